"""The command the conformance suite runs as a client: our own door client, through the command line.

The suite appends the address of its mock server and names the scenario in the environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn

from tests.support.wire import server_command

CALLS = {
    "initialize": (),
    "tools_call": ("call", "add_numbers", '{"a": 5, "b": 3}'),
    "sse-retry": ("call", "test_reconnection", "{}"),
}


def main() -> NoReturn:
    scenario, url = os.environ["MCP_CONFORMANCE_SCENARIO"], sys.argv[1]
    env = {**os.environ, "HANZO_MCP_DOOR": url, "HANZO_API_KEY": "hk-test"}
    for words in (("tools",), CALLS[scenario]):
        if words:
            done = subprocess.run(server_command(*words), env=env, stdin=subprocess.DEVNULL, check=False)
            if done.returncode:
                sys.exit(f"{' '.join(words)}: exit status {done.returncode}")
    sys.exit(0)


if __name__ == "__main__":
    main()
