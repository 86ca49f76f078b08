"""Side-by-side measurements of ``hanzo-mcp serve`` and of the least an MCP server can cost. See README.md here."""
