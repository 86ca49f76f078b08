"""Pure code: no files, processes, sockets, clocks or environment."""
