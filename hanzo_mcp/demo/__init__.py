"""A small stand-in for the cloud endpoint: what ``hanzo-mcp demo`` and the fake door of the tests answer with."""
