"""Tables as Markdown and on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

OK, SHORT = "ok", "short"


@dataclass(slots=True)
class Table:
    """Cells as text; the first column says what a row is, the last may be a verdict (``ok`` or ``short``)."""

    title: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list[list[str]])
    note: str = ""

    def add(self, *cells: str) -> None:
        """One more row. Raises ``ValueError`` when a cell is missing."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(list(cells))


def verdict(met: bool | None) -> str:
    """The last cell; empty where nothing is wanted."""
    return "" if met is None else OK if met else SHORT


def markdown(tables: Sequence[Table]) -> str:
    """All tables, each under its heading."""
    return "\n\n".join(_markdown(table) for table in tables) + "\n"


def _markdown(table: Table) -> str:
    lines = [f"## {table.title}", ""]
    if table.note:
        lines += [table.note, ""]
    lines.append(_line(table.columns))
    lines.append(_line(["---"] + ["---:"] * (len(table.columns) - 1)))
    lines += [_line(row) for row in table.rows]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def show(header: str, tables: Sequence[Table]) -> None:
    """Print to a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    console = Console()
    console.print(header, markup=False, highlight=False)
    for table in tables:
        rich = RichTable(title=table.title, caption=table.note, title_justify="left", caption_justify="left")
        for number, column in enumerate(table.columns):
            rich.add_column(column, justify="right" if number else "left")
        for row in table.rows:
            rich.add_row(*(_coloured(escape(cell)) for cell in row))
        console.print(rich)


def _coloured(cell: str) -> str:
    colour = {OK: "green", SHORT: "red"}.get(cell)
    return f"[{colour}]{cell}[/{colour}]" if colour else cell
