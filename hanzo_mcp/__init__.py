"""hanzo-mcp: one local MCP server for a machine and its cloud (HIP-0300, HIP-0301)."""

from __future__ import annotations

__version__ = "0.16.0"
