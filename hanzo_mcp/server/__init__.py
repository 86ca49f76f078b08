"""The stdio protocol engine: framing, eras, dispatch, subscriptions (MCP 2024-11-05 to 2026-07-28)."""
