"""One session of the Python SDK's client with the server under test. Runs in the peer's own environment, by itself."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

Plan = dict[str, Any]


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True) if model is not None else None


class Session:
    """A client that does what its plan says and reports what it saw."""

    def __init__(self, plan: Plan, said: Any) -> None:
        command, *args = plan["command"]
        server = StdioServerParameters(command=command, args=args, env=plan["env"], cwd=plan["cwd"])
        self.plan, self.elicited, self.changed = plan, list[Any](), anyio.Event()
        self.client = Client(
            stdio_client(server, errlog=said),
            mode=plan["mode"],
            elicitation_callback=self.elicit if plan.get("answer") else None,
            message_handler=self.message,
        )

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.elicited.append(plain(params))
        return types.ElicitResult(action="accept", content=self.plan["answer"])

    async def message(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.changed.set()

    async def run(self) -> Plan:
        async with self.client:
            if self.plan.get("hears") and self.plan["mode"] != "legacy":
                async with self.client.listen(tools_list_changed=True):
                    return await self.report()
            return await self.report()

    async def report(self) -> Plan:
        client, plan = self.client, self.plan
        return {
            "tools": await self.tools(),
            "calls": [await self.attempt(call) for call in plan["calls"]],
            "together": await self.together(plan["together"]),
            "twice": await self.twice(plan["twice"]) if plan.get("twice") else None,
            "changed": await self.relisted() if plan.get("hears") else None,
            "elicited": self.elicited,
            "version": client.protocol_version,
            "server": plain(client.server_info),
            "capabilities": plain(client.server_capabilities),
            "instructions": client.instructions,
            "problems": [],
        }

    async def tools(self) -> list[Any]:
        return [plain(tool) for tool in (await self.client.list_tools()).tools]

    async def relisted(self) -> list[Any]:
        await self.changed.wait()
        return await self.tools()

    async def attempt(self, call: Plan, progress: Any = None) -> Plan:
        try:
            result = await self.client.call_tool(call["name"], call["arguments"], progress_callback=progress)
        except MCPError as error:
            return {"error": {"code": error.error.code, "message": error.error.message}}
        return {"result": plain(result)}

    async def together(self, calls: list[Plan]) -> list[Plan]:
        outcomes: list[Plan] = [{} for _ in calls]

        async def one(index: int) -> None:
            outcomes[index] = await self.attempt(calls[index])

        async with anyio.create_task_group() as group:
            for index in range(len(calls)):
                group.start_soon(one, index)
        return outcomes

    async def twice(self, call: Plan) -> Plan:
        """The same call twice: the second while the first waits, or instead of it, once its progress is complete."""
        steps: list[Plan] = []
        complete, first = anyio.Event(), anyio.CancelScope()
        report: Plan = {"first": {"error": {"message": "cancelled"}}, "progress": steps}

        async def progress(done: float, total: float | None, message: str | None) -> None:
            steps.append({"progress": done, "total": total, "message": message})
            if done == total:
                complete.set()

        async def one() -> None:
            with first:
                report["first"] = await self.attempt(call, progress)

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            await complete.wait()
            if self.plan["first"] == "abort":
                first.cancel()
            report["second"] = await self.attempt(call)
        return report


async def main() -> None:
    with tempfile.TemporaryFile("w+") as said:
        plan: Plan = json.loads(sys.argv[1])
        with anyio.fail_after(plan["deadline"]):
            report = await Session(plan, said).run()
        said.seek(0)
        print(json.dumps(report | {"stderr": said.read()}))


if __name__ == "__main__":
    anyio.run(main)
