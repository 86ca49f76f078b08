"""The command. ``serve`` without options goes straight to the start-up loop; everything else through ``cli``."""

from __future__ import annotations

import sys


def main() -> int:
    """Entry point of ``hanzo-mcp`` and ``python -m hanzo_mcp``; the process's exit status."""
    if sys.argv[1:] == ["serve"]:
        from hanzo_mcp.serve import serve

        return serve([])
    from hanzo_mcp.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
