"""The servers and the endpoint that are measured beside ours. Each is a script of its own."""
