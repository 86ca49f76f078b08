"""think: room to reason between calls. Nothing leaves the machine and nothing is kept after the process."""

from __future__ import annotations

from pydantic import Field

from hanzo_mcp.core.tool import Access, Result
from hanzo_mcp.runtime.local import Context, Op, Tool
from hanzo_mcp.runtime.params import Params

_KEPT = 200
_SHOWN = 10


class Think(Params):
    """One thought of a chain."""

    thought: str = Field(description="[think] The thought itself")
    revises: int | None = Field(None, ge=1, description="[think] Number of the earlier thought this one replaces")
    branch: str | None = Field(None, description="[think] Name of the line of thought; default main")
    next: bool | None = Field(None, description="[think] false when this thought concludes the chain")


async def think(ctx: Context, params: Think) -> Result:
    """Append a thought and answer with the chain of its branch so far."""
    chains: dict[str, list[Think]] = ctx.memo.setdefault(ctx.session_id, {})
    chain = chains.setdefault(params.branch or "main", [])
    if len(chain) >= _KEPT:
        del chain[0]
    chain.append(params)
    earlier = max(0, len(chain) - _SHOWN)
    lines = [_line(number, thought) for number, thought in enumerate(chain[earlier:], earlier + 1)]
    return Result.text("\n".join([f"… {earlier} earlier thoughts", *lines] if earlier else lines))


def _line(number: int, thought: Think) -> str:
    mark = f" (revises {thought.revises})" if thought.revises else ""
    end = " [concluded]" if thought.next is False else ""
    return f"{number}{mark}. {thought.thought}{end}"


TOOL = Tool(
    name="think",
    title="Think",
    description="Write down a thought before acting on something hard; returns the chain so far. Has no side effects.",
    ops=[Op("think", Think, think, Access.READ, "add a thought")],
)
