"""The path policy (HIP-0301 §10, sandbox design §4.2)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from hanzo_mcp.errors import Denied, InvalidInput, NotFound, TooLarge, ToolError
from hanzo_mcp.sandbox.paths import IsolationMode, Sandbox, SandboxConfig, Workspace, protected


def test_check_path_by_mode(tmp_path: Path) -> None:
    inside, outside = tmp_path / "ws", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    workspace_only = Sandbox(SandboxConfig(), inside)
    assert workspace_only.check_path(Path("a/b"))
    assert not workspace_only.check_path(Path("../out"))
    assert not workspace_only.check_path(Path("link/x"))
    assert not workspace_only.check_path(tmp_path / "ws-evil")
    allow = Sandbox(SandboxConfig(IsolationMode.ALLOW_LIST, [str(outside)]), inside)
    assert allow.check_path(outside / "x")
    assert not allow.check_path(inside / "x")
    assert Sandbox(SandboxConfig(IsolationMode.OFF), inside).check_path(Path("/etc/passwd"))


def _workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "ws" / "sub").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("S3CRET")
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil" / "secret").write_text("S3CRET")
    return Workspace([str(tmp_path / "ws")])


@pytest.mark.parametrize(
    "path",
    [
        "../out/secret",
        "sub/../../out/secret",
        "{0}/out/secret",
        "{0}/ws-evil/secret",
        "/etc/passwd",
        "file://{0}/out/secret",
        "~root/x",
    ],
)
def test_outside_is_refused(tmp_path: Path, path: str) -> None:
    files = _workspace(tmp_path)
    with pytest.raises(Denied, match="outside the workspace"):
        files.read(files.place(path.format(tmp_path)), 100)


@pytest.mark.parametrize("target", ["../out", "/etc", "../../out", "{0}/out", "/proc/self/root/etc", "sub/../../out"])
def test_a_link_out_is_refused(tmp_path: Path, target: str) -> None:
    files = _workspace(tmp_path)
    (tmp_path / "ws" / "link").symlink_to(target.format(tmp_path))
    for path in ("link", "link/secret", "link/../../out/secret"):
        with pytest.raises(ToolError) as refused:
            files.read(files.place(path), 100)
        assert "S3CRET" not in str(refused.value)
    with pytest.raises(Denied):
        files.write(files.place("link/new"), b"x")


def test_a_link_inside_is_followed_and_kept(tmp_path: Path) -> None:
    files = _workspace(tmp_path)
    real = tmp_path / "ws" / "sub" / "real"
    real.write_text("old")
    real.chmod(0o750)
    (tmp_path / "ws" / "relative").symlink_to("sub/real")
    (tmp_path / "ws" / "absolute").symlink_to(real)
    for name in ("relative", "absolute"):
        files.write(files.place(name), name.encode())
        assert real.read_text() == name
        assert (tmp_path / "ws" / name).is_symlink()
        assert real.stat().st_mode & 0o777 == 0o750


def test_cyclic_and_broken_links_end(tmp_path: Path) -> None:
    files = _workspace(tmp_path)
    (tmp_path / "ws" / "a").symlink_to("b")
    (tmp_path / "ws" / "b").symlink_to("a")
    (tmp_path / "ws" / "broken").symlink_to("nowhere")
    with pytest.raises(InvalidInput, match="too many symbolic links"):
        files.read(files.place("a"), 100)
    with pytest.raises(NotFound):
        files.read(files.place("broken"), 100)


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "bad\x1bname", "\ud800"])
def test_what_is_no_path_is_said(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidInput, match="path:"):
        _workspace(tmp_path).place(path)


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".git/config",
        ".GIT/Config",
        ".hanzo/settings.json",
        "sub/.git/hooks/x",
        ".git/info/attributes",
        ".git/modules/m/hooks/x",
        ".git",
    ],
)
def test_what_runs_code_is_protected_from_writing(tmp_path: Path, path: str) -> None:
    files = _workspace(tmp_path)
    assert protected(tuple(path.split("/")))
    with pytest.raises(Denied, match="protected"):
        files.write(files.place(path), b"x", parents=True)
    assert not (tmp_path / "ws" / path).exists()


def test_ordinary_git_files_are_not_protected() -> None:
    assert not protected((".git", "COMMIT_EDITMSG"))
    assert not protected((".gitignore",))
    assert not protected((".github", "workflows", "x.yml"))


def test_devices_fifos_and_directories_are_not_read(tmp_path: Path) -> None:
    files = _workspace(tmp_path)
    os.mkfifo(tmp_path / "ws" / "fifo")
    with pytest.raises(InvalidInput, match="not a regular file"):
        files.read(files.place("fifo"), 100)
    with pytest.raises(InvalidInput, match="is a directory"):
        files.read(files.place("sub"), 100)
    with pytest.raises(InvalidInput, match="not a regular file"):
        files.write(files.place("fifo"), b"x")


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    files = _workspace(tmp_path)
    files.write(files.place("big"), b"x" * 101)
    with pytest.raises(TooLarge):
        files.read(files.place("big"), 100)


def test_secrets_of_the_server_are_refused_even_inside(tmp_path: Path) -> None:
    (tmp_path / ".config" / "hanzo").mkdir(parents=True)
    (tmp_path / ".config" / "hanzo" / "credentials.json").write_text("S3CRET")
    files = Workspace([str(tmp_path)], [str(tmp_path / ".config" / "hanzo")])
    with pytest.raises(Denied, match="secrets"):
        files.read(files.place(".config/hanzo/credentials.json"), 100)


def test_a_renamed_directory_never_leads_out(tmp_path: Path) -> None:
    """The race: a directory on the way is swapped with a link to the outside, over and over."""
    files = _workspace(tmp_path)
    swapped, aside = tmp_path / "ws" / "sub", tmp_path / "ws" / "aside"
    (swapped / "secret").write_text("inside")
    (tmp_path / "ws" / "evil").symlink_to("../out")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(swapped, aside)
            os.rename(tmp_path / "ws" / "evil", swapped)
            os.rename(swapped, tmp_path / "ws" / "evil")
            os.rename(aside, swapped)

    thread = threading.Thread(target=swap)
    thread.start()
    seen: set[bytes] = set()
    try:
        for _ in range(3000):
            try:
                seen.add(files.read(files.place("sub/secret"), 100))
            except ToolError:
                continue
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"inside"}
    assert seen
