"""The conformance suite's server scenarios through a foreign bridge.

Run twice: the server alone, and with a door that has the suite's own test tools, so that those scenarios judge what
is forwarded. The rest does not apply, each for a reason given here.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.conformance import bridged, failures, suite
from tests.interop.everything_door import everything_door

pytestmark = pytest.mark.interop

JsonObject = dict[str, Any]

ALONE = ("server-initialize", "ping", "tools-list", "logging-set-level")
FORWARDED = (
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
)
NO_SUCH_TOOL = "needs a test tool that asks or logs; a forwarded call relays progress only"
NOT_OURS = "about HTTP, which here is the bridge's"
NOT_OFFERED = "the capability is not advertised"
INAPPLICABLE = {
    "tools-call-with-logging": NO_SUCH_TOOL,
    "tools-call-sampling": NO_SUCH_TOOL,
    "tools-call-elicitation": NO_SUCH_TOOL,
    "elicitation-sep1034-defaults": NO_SUCH_TOOL,
    "elicitation-sep1330-enums": NO_SUCH_TOOL,
    "server-sse-polling": NOT_OURS,
    "server-sse-multiple-streams": NOT_OURS,
    "dns-rebinding-protection": NOT_OURS,
    "completion-complete": NOT_OFFERED,
    "resources-list": NOT_OFFERED,
    "resources-read-text": NOT_OFFERED,
    "resources-read-binary": NOT_OFFERED,
    "resources-templates-read": NOT_OFFERED,
    "resources-subscribe": NOT_OFFERED,
    "resources-unsubscribe": NOT_OFFERED,
    "prompts-list": NOT_OFFERED,
    "prompts-get-simple": NOT_OFFERED,
    "prompts-get-with-args": NOT_OFFERED,
    "prompts-get-embedded-resource": NOT_OFFERED,
    "prompts-get-with-image": NOT_OFFERED,
}

Checks = dict[str, list[JsonObject]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    home = tmp_path_factory.mktemp("alone")
    with bridged(home) as url:
        return suite(home, "server", "--url", url, "--suite", "all")


@pytest.fixture(scope="module")
def forwarded(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    home = tmp_path_factory.mktemp("forwarded")
    with everything_door() as door, bridged(home, {"HANZO_MCP_DOOR": door, "HANZO_API_KEY": "hk-test"}) as url:
        return suite(home, "server", "--url", url, "--suite", "all")


@pytest.mark.parametrize("scenario", ALONE)
def test_server_alone(alone: Checks, scenario: str) -> None:
    assert alone[scenario], "the scenario checked nothing"
    assert failures(alone[scenario]) == []


@pytest.mark.parametrize("scenario", [*ALONE, *FORWARDED])
def test_server_with_a_door(forwarded: Checks, scenario: str) -> None:
    assert forwarded[scenario], "the scenario checked nothing"
    assert failures(forwarded[scenario]) == []


def test_every_scenario_is_accounted_for(alone: Checks) -> None:
    assert set(alone) == {*ALONE, *FORWARDED, *INAPPLICABLE}
