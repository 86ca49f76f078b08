"""The path of a call and what stands along it."""
