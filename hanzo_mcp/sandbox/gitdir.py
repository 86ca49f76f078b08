"""Nothing inside a repository's own folder may lead out of the workspace.

git follows links and alternates in ``.git`` wherever they point, so a repository could hand over the objects,
references or any text file of another place. The whole folder is walked by directory entries, without opening files;
what no read ever touches (``hooks``, submodules, other worktrees, large-file stores) is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from hanzo_mcp.errors import Unavailable

ENTRIES = 250_000
"""Directory entries looked at. A repository with more is refused rather than half looked at."""
_LEFT_OUT = frozenset({"hooks", "modules", "worktrees", "lfs", "annex"})
_ALTERNATES = os.path.join("info", "alternates")
Inside = Callable[[str], None]


def check(folders: Iterable[str], inside: Inside, shown: str) -> None:
    """Look at the git folders of one repository. ``inside`` raises for a path outside; blocking, for a thread.

    Raises what ``inside`` raises, and ``Unavailable`` for a repository too large or written too oddly to be judged.
    """
    look = _Look(inside, shown)
    for folder in {os.path.realpath(folder) for folder in folders}:
        look.walk(folder, _LEFT_OUT)


class _Look:
    def __init__(self, inside: Inside, shown: str) -> None:
        self._inside, self._shown = inside, shown
        self._walked: set[str] = set()
        self._left = ENTRIES

    def walk(self, top: str, left_out: frozenset[str] = frozenset()) -> None:
        """Every entry below ``top``; links that stay inside are walked where they lead."""
        pending = [top]
        while pending:
            folder = pending.pop()
            if folder in self._walked:
                continue
            self._walked.add(folder)
            self._alternates(folder)
            skipped = left_out if folder == top else frozenset[str]()
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._count()
                    if entry.name not in skipped and (below := self._folder(entry)) is not None:
                        pending.append(below)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Unavailable(
                f"{self._shown}: its .git holds more than {ENTRIES} loose entries. "
                "Run `git gc` and `git pack-refs --all`."
            )

    def _folder(self, entry: os.DirEntry[str]) -> str | None:
        if not entry.is_symlink():
            return entry.path if entry.is_dir(follow_symlinks=False) else None
        real = os.path.realpath(entry.path)
        self._inside(real)
        return real if os.path.isdir(real) else None

    def _alternates(self, store: str) -> None:
        """Object stores that ``store`` borrows from (gitrepository-layout(5)), and theirs in turn."""
        path = os.path.join(store, _ALTERNATES)
        if not os.path.isfile(path):
            return
        self._inside(os.path.realpath(path))
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line for line in file.read(64 * 1024).splitlines() if line and not line.startswith("#")]
        for line in lines:
            if line.startswith('"'):  # git reads escapes in it, which could spell any path
                raise Unavailable(f"{self._shown}: objects/info/alternates has a quoted path; write it plainly.")
            borrowed = os.path.realpath(os.path.join(store, line))
            self._inside(borrowed)
            if os.path.isdir(borrowed):
                self.walk(borrowed)
