"""The size ratchet: small functions, small modules (architecture §8)."""

from __future__ import annotations

import statistics

from tests.contract.source import ROOT, functions, modules

LONGEST_FUNCTION = 60
LONGEST_MODULE = 500


def test_functions_stay_small() -> None:
    lengths = {
        f"{path}:{function.lineno} {function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path, tree in modules()
        for function in functions(tree)
    }
    too_long = {where: lines for where, lines in lengths.items() if lines > LONGEST_FUNCTION}
    assert not too_long
    ordered = sorted(lengths.values())
    assert statistics.median(ordered) <= 10
    assert ordered[int(len(ordered) * 0.95)] <= 40


def test_modules_stay_small() -> None:
    sizes = {path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path, _ in modules()}
    assert not {path: lines for path, lines in sizes.items() if lines > LONGEST_MODULE}
    assert statistics.median(sizes.values()) <= 130
