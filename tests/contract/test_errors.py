"""The exception tree in the docstring is the one in the code."""

from __future__ import annotations

from hanzo_mcp import errors


def _drawn() -> list[str]:
    lines = (errors.__doc__ or "").splitlines()
    return [line.strip("│├└─ ").split()[0] for line in lines if line.startswith(("HanzoError", "├", "│", "└", "    └"))]


def _real(kind: type[BaseException]) -> list[str]:
    return [
        kind.__name__,
        *(name for below in kind.__subclasses__() if below.__module__ == errors.__name__ for name in _real(below)),
    ]


def test_docstring_draws_the_tree() -> None:
    assert _drawn() == _real(errors.HanzoError)


def test_codes_are_stable_and_unique() -> None:
    codes = {kind.__name__: kind.code for kind in errors.ToolError.__subclasses__()}
    assert codes == {
        "InvalidInput": "invalid_input",
        "NotFound": "not_found",
        "Denied": "denied",
        "Conflict": "conflict",
        "Unavailable": "unavailable",
        "TimedOut": "timed_out",
        "TooLarge": "too_large",
    }
