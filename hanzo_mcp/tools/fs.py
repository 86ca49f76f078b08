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
    description="Files of the workspace.",
    ops=[
        Op("read", Read, read, Access.READ, "lines, image"),
        Op("write", Write, write, Access.WRITE, "whole file"),
        Op("edit", EditFile, edit, Access.WRITE, "replace exact text"),
        Op("list", List, list_, Access.READ, "folder"),
        Op("search", Search, search, Access.READ, "contents"),
        Op("stat", Stat, stat, Access.READ, "facts"),
    ],
)
