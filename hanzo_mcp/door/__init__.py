"""The door: forwarding to the one cloud endpoint, ``POST /v1/mcp`` (HIP-0300 §1, §2)."""
