"""Making git repositories for tests, with git itself and nothing of the machine's configuration."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENVIRON = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+00:00",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+00:00",
}


class Repository:
    """A working tree at ``path``."""

    def __init__(self, path: Path, *init: str) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *init)

    def git(self, *args: str, check: bool = True, **environ: str) -> str:
        """Run plain git; gives its stdout."""
        done = subprocess.run(
            ["git", *args],
            cwd=self.path,
            env=ENVIRON | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=60,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def write(self, name: str, text: str) -> Path:
        """A file of the working tree."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def commit(self, message: str, **files: str) -> str:
        """Commit everything after writing ``files`` (their names without ``.txt``); gives the id."""
        for name, text in files.items():
            self.write(f"{name}.txt", text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").strip()
