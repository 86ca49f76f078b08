"""fs: the files of the workspace. The ops stand in the modules beside this one."""

from __future__ import annotations

from hanzo_mcp.core.tool import Access
from hanzo_mcp.runtime.local import Op, Tool
from hanzo_mcp.tools._fs_change import EditFile, Write, edit, write
from hanzo_mcp.tools._fs_list import List, Stat, list_, stat
from hanzo_mcp.tools._fs_read import Read, read
from hanzo_mcp.tools._fs_search import Search, search

TOOL = Tool(
    name="fs",
    title="Files",
    description="Read, change, list and search files of the workspace.",
    ops=[
        Op("read", Read, read, Access.READ, "text by lines, images, base64"),
        Op("write", Write, write, Access.WRITE, "a whole file; makes folders"),
        Op("edit", EditFile, edit, Access.WRITE, "replace text exactly, all or nothing; gives the diff"),
        Op("list", List, list_, Access.READ, "a folder"),
        Op("search", Search, search, Access.READ, "ripgrep through contents"),
        Op("stat", Stat, stat, Access.READ, "size, mode, times"),
    ],
)
