"""Running the MCP conformance suite: its checks by scenario, and what its door scenarios need at the other end."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from tests.interop.contract import need
from tests.support.wire import clean_environment, server_command

JsonObject = dict[str, Any]

SUITE_TIMEOUT = 120.0
START_TIMEOUT = 30.0
_STAMPED = re.compile(r"^(?:server-)?(?P<name>.+)-\d{4}-\d\d-\d\dT[\d-]+Z$")


def suite(home: Path, *words: str, variables: Mapping[str, str] | None = None) -> dict[str, list[JsonObject]]:
    """Run the suite with ``words``; its checks by scenario, informative ones left out."""
    program = need("conformance").command("the conformance suite", "conformance")
    results = home / "results"
    subprocess.run(
        [*program, *words, "--output-dir", str(results)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SUITE_TIMEOUT,
        env=clean_environment(home, variables),
        cwd=home,
        check=False,  # its exit status is about scenarios; the checks say which
    )
    return {_scenario(path.parent): _checks(path) for path in sorted(results.rglob("checks.json"))}


def _scenario(directory: Path) -> str:
    found = _STAMPED.match(directory.name)
    assert found, f"unforeseen directory of results: {directory}"
    parent = directory.parent.name
    return found["name"] if parent == "results" else f"{parent.removeprefix('server-')}/{found['name']}"


def _checks(path: Path) -> list[JsonObject]:
    found = cast(list[JsonObject], json.loads(path.read_text(encoding="utf-8")))
    return [check for check in found if check["status"] != "INFO"]


def failures(checks: Sequence[JsonObject]) -> list[str]:
    """What went wrong in a scenario, warnings included."""
    return [
        f"{check['status']} {check['id']}: {check.get('errorMessage') or check.get('details')}"
        for check in checks
        if check["status"] not in ("SUCCESS", "SKIPPED")
    ]


@contextmanager
def bridged(home: Path, variables: Mapping[str, str] | None = None) -> Generator[str]:
    """The server under test behind a foreign stdio-to-HTTP bridge; its address."""
    program = need("mcp-proxy").command("the bridge", "mcp-proxy")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "--server", "stream", "--"]
    with (home / "bridge.log").open("wb") as log:
        bridge = subprocess.Popen(
            [*program, *options, *server_command("serve")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=clean_environment(home, variables),
            cwd=home,
        )
        try:
            _await_listening(bridge, port, home / "bridge.log")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            bridge.terminate()
            try:
                bridge.wait(10)
            except subprocess.TimeoutExpired:
                bridge.kill()
                bridge.wait(10)


def _await_listening(bridge: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        assert bridge.poll() is None, f"the bridge ended: {log.read_text(errors='replace')}"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)  # another process starts to listen: nothing to await
        else:
            return
    raise TimeoutError(f"the bridge does not listen: {log.read_text(errors='replace')}")
