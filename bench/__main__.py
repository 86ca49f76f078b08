"""``python -m bench``: everything in one run, ours beside its peers."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench import doorstates, forwarding, load, proc, startup, tables
from bench.contenders import COMMAND, contenders, place
from bench.driver import ServerFailed
from bench.report import Table, markdown, show
from bench.startup import Say

RESULTS = Path(__file__).parent / "RESULTS.md"
SECTIONS = ("start", "calls", "door")


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is measured: rounds of spawns, calls, and rounds with the door."""

    starts: tuple[int, int, int]
    load: load.Size
    forwarded: tuple[int, int]
    states: tuple[int, int]


FULL = Amount((20, 7, 5), load.Size(3, 1000, 1.0), (5, 300), (20, 5))
QUICK = Amount((3, 1, 1), load.Size(1, 400, 0.2), (1, 100), (3, 1))


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0, 1 when a server failed, 2 when this machine cannot be measured."""
    options = _options(argv)
    if sys.platform != "linux":
        print("bench: needs Linux: it reads /proc and waits on pidfds.", file=sys.stderr)
        return 2
    begin, busy = time.monotonic(), os.getloadavg()[0]
    try:
        found = measure(QUICK if options.quick else FULL, options.only or SECTIONS, _say)
    except ServerFailed as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 1
    head = header(options.quick, busy, time.monotonic() - begin)
    if sys.stdout.isatty():
        show(head, found)
    else:
        print(head + "\n\n" + markdown(found), end="")
    if options.write:
        RESULTS.write_text(f"# Results\n\n{head}\n\n{markdown(found)}", encoding="utf-8")
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure hanzo-mcp serve beside two standard-library echoes and an SDK server, in one run.",
        epilog=f"{COMMAND} names another command line to measure as ours.",
    )
    parser.add_argument("--quick", action="store_true", help="about 20 s, fewer samples; for a look, not for a record")
    parser.add_argument("--write", action="store_true", help="write the tables to bench/RESULTS.md as well")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="one section (repeatable); all by default")
    return parser.parse_args(argv)


def measure(amount: Amount, sections: Sequence[str], say: Say) -> list[Table]:
    """The tables of the sections. Raises ``ServerFailed``."""
    found: list[Table] = []
    everyone = contenders()
    with place() as where:
        if "start" in sections:
            found.append(tables.starts(startup.measure(everyone, where, amount.starts, say)))
        if "calls" in sections:
            found.append(tables.loads(load.measure(everyone, where, amount.load, say)))
    if "door" in sections:
        found.append(tables.forwarding(forwarding.measure(*amount.forwarded, say)))
        found.append(tables.states(doorstates.measure(*amount.states, say)))
    return found


def header(quick: bool, busy: float, took: float) -> str:
    """When, on what, and how to repeat it. Names no host and no path."""
    command = "python -m bench --quick" if quick else "python -m bench --write"
    ours = os.environ.get(COMMAND)
    measured = f"another command as ours ({COMMAND})" if ours else f"hanzo-mcp {version('hanzo-mcp')}"
    lines = [
        f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {proc.processor()}, "
        f"Linux {platform.release().partition('-')[0]}.",
        f"Measured: {measured}; SDK: mcp {version('mcp')}; httpx {version('httpx')}.",
        f"Took {took:.0f} s; load average {busy:.1f} before the run, {os.getloadavg()[0]:.1f} after it.",
        f"Repeat with `make bench`, or `{command}`. What each row means: `bench/README.md`.",
    ]
    return "\n".join(lines)


def _say(text: str) -> None:
    """Progress, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
