"""fs: the files of the workspace. The ops stand in the modules beside this one."""

from __future__ import annotations

from hanzo_mcp.core.tool import Access
from hanzo_mcp.runtime.local import Op, Tool
from hanzo_mcp.tools._fs_list import List, Stat, list_, stat
from hanzo_mcp.tools._fs_read import Read, read

TOOL = Tool(
    name="fs",
    title="Files",
    description="Read, change, list and search files of the workspace.",
    ops=[
        Op("read", Read, read, Access.READ, "text by lines, images, base64"),
        Op("list", List, list_, Access.READ, "a folder"),
        Op("stat", Stat, stat, Access.READ, "size, mode, times"),
    ],
)
