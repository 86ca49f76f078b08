"""Local tools, one file each. The reviewed contracts are in the folder ``tools/`` at the root."""
