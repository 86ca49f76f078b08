"""think: room to reason between calls. Nothing leaves the machine and nothing is kept after the process."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from pydantic import Field

from hanzo_mcp.core.tool import Access, Result
from hanzo_mcp.runtime.local import Context, Op, Tool
from hanzo_mcp.runtime.params import Params

_SHOWN = 10
_BRANCHES = 100


class Think(Params):
    """One thought of a chain."""

    thought: str = Field(description="[think] The thought itself")
    revises: int | None = Field(None, ge=1, description="[think] Number of the earlier thought this one replaces")
    branch: str | None = Field(None, description="[think] Name of the line of thought; default main")
    next: bool | None = Field(None, description="[think] false when this thought concludes the chain")


@dataclass(slots=True)
class _Chain:
    """The last thoughts of a branch, and how many there were."""

    count: int = 0
    last: deque[str] = field(default_factory=lambda: deque[str](maxlen=_SHOWN))


async def think(ctx: Context, params: Think) -> Result:
    """Append a thought and answer with the end of its branch."""
    chains: OrderedDict[tuple[str, str], _Chain] = ctx.memo.setdefault("chains", OrderedDict())
    key = (ctx.session_id, params.branch or "main")
    chain = chains.setdefault(key, _Chain())
    chains.move_to_end(key)
    while len(chains) > _BRANCHES:
        chains.popitem(last=False)
    chain.count += 1
    chain.last.append(_line(chain.count, params))
    earlier = chain.count - len(chain.last)
    return Result.text("\n".join([f"… {earlier} earlier thoughts", *chain.last] if earlier else chain.last))


def _line(number: int, thought: Think) -> str:
    mark = f" (revises {thought.revises})" if thought.revises else ""
    end = " [concluded]" if thought.next is False else ""
    return f"{number}{mark}. {thought.thought}{end}"


TOOL = Tool(
    name="think",
    title="Think",
    description="Write a thought down before something hard; returns the last ten of its branch. No side effects.",
    ops=[Op("think", Think, think, Access.READ, "add a thought")],
)
