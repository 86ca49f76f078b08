"""Making an HTML source ready to be read: what to leave out, where the content is, which tables are only layout.

Works on the source text with linear scans instead of a tree: a page of 200 KB costs a few milliseconds, and no input
makes it quadratic, since every pattern stops at the next ``<`` or after a few hundred characters. The Markdown itself
is the converter's work.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urljoin

from hanzo_mcp.core.text import one_line

MAX_TAGS = 200_000
"""More are cut off: a converter needs about a kilobyte for each element."""
_MEANINGLESS = re.compile("[\0\ud800-\udfff]")
_UNREAD = re.compile(r"<!--|<(script|style)(?=[\s/>])", re.IGNORECASE)
_ENDS = {name: re.compile(rf"</{name}[\s/>]", re.IGNORECASE) for name in ("script", "style")}
_TITLE = re.compile(r"<title(?:\s[^<>]*)?>([^<]*)</title", re.IGNORECASE)
_BASE = re.compile(r"<base\s[^<>]*?\bhref\s*=\s*[\"']?([^\"'\s<>]+)", re.IGNORECASE)
_MAIN = re.compile(r"<(?:(main)(?=[\s>])|(\w+)\s[^<>]*?\brole\s*=\s*[\"']?main\b)[^<>]*>", re.IGNORECASE)
_ARTICLE = re.compile(r"<(article)(?=[\s>])[^<>]*>", re.IGNORECASE)
_SCRIPT_LINK = re.compile(r"\shref\s*=\s*([\"'])\s*(?:javascript|vbscript):[^\"'<>]*\1", re.IGNORECASE)
_LINK_TITLE = re.compile(r"(<a\s[^<>]*?)\stitle\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*')", re.IGNORECASE)
_SUMMARY = re.compile(r"(</?)summary(?=[\s>])", re.IGNORECASE)
_STREAMED = re.compile(r"<div hidden(?:=\"\")? id=\"S:")
_LANGUAGE = re.compile(
    r"(<div\s[^<>]{0,200}\bhighlight-(?:source-)?(?!default|none|text)([a-z0-9+#]{1,20})\b[^<>]{0,200}>\s{0,20}"
    r"(?:<div[^<>]{0,200}>\s{0,20})?)<pre(?=[\s>])",
    re.IGNORECASE,
)
_TABLE_TAG = re.compile(
    r"<(/?)(table|caption|thead|tbody|tfoot|tr|td|th|pre|h[12]|p|br)(?=[\s/>])[^<>]*>", re.IGNORECASE
)
_GUTTER = re.compile(r"\sclass\s*=[^<>]*\b(?:linenos|lineno|gutter|line-numbers)\b", re.IGNORECASE)
_INSIDE = frozenset({"pre", "h1", "h2", "p", "br"})
_LAYOUT_CELLS = 20


@dataclass(frozen=True, slots=True)
class Source:
    """``html`` without scripts, styles and comments; ``main`` the content's part of it ("" when nothing says so)."""

    html: str
    main: str
    title: str
    base: str
    cut: bool


def prepare(source: str, url: str) -> Source:
    """``source`` ready for the converter; ``url`` is where it came from, for its links."""
    source = "".join(_readable(_MEANINGLESS.sub("", source)))
    title = _TITLE.search(source)
    shown = one_line(html.unescape(title[1])) if title else ""
    base = _base(source, url)
    source, cut = _bounded(source)
    source = _LINK_TITLE.sub(r"\1", _SCRIPT_LINK.sub("", source))
    source = _SUMMARY.sub(r"\1div", _STREAMED.sub('<div id="S:', source))
    source = unfold(_LANGUAGE.sub(r'\1<pre class="language-\2"', source))
    return Source(source, main_part(source), shown, base, cut)


def _readable(source: str) -> Iterator[str]:
    """The pieces between comments, scripts and styles; what is never closed runs to the end (HTML Standard §13.2.5)."""
    at = 0
    while match := _UNREAD.search(source, at):
        yield source[at : match.start()]
        if match[1]:
            end = _ENDS[match[1].lower()].search(source, match.end())
            at = source.find(">", end.start()) + 1 if end else 0
        else:
            at = source.find("-->", match.start() + 2) + 3
        if at < match.end():
            return
    yield source[at:]


def _bounded(source: str) -> tuple[str, bool]:
    if source.count("<") <= MAX_TAGS:
        return source, False
    at = 0
    for _ in range(MAX_TAGS):
        at = source.index("<", at) + 1
    return source[: at - 1], True


def _base(source: str, url: str) -> str:
    match = _BASE.search(source)
    if match is None:
        return url
    try:
        base = urljoin(url, html.unescape(match[1]))
    except ValueError:
        return url
    return base if base.startswith(("http://", "https://")) else url


def main_part(source: str) -> str:
    """The longest ``<main>`` or ``role=main`` element, else the only top-level ``<article>``, else ""."""
    mains = list(_elements(source, _MAIN))
    if mains:
        return max(mains, key=len)
    articles = list(_elements(source, _ARTICLE))
    return articles[0] if len(articles) == 1 else ""


def _elements(source: str, opening: re.Pattern[str]) -> Iterator[str]:
    at = 0
    while match := opening.search(source, at):
        at = _closing(source, match.end(), match[match.lastindex or 0].lower())
        yield source[match.start() : at]


def _closing(source: str, at: int, name: str) -> int:
    depth = 1
    for tag in re.compile(rf"<(/?){name}(?=[\s/>])", re.IGNORECASE).finditer(source, at):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return tag.start()
    return len(source)


@dataclass(slots=True)
class _Table:
    """An open table: its own tags with what each would become, and what tells data from layout."""

    parent: _Table | None
    blocks: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    flat: bool = False
    cells: int = 0
    row: int = 0
    widest: int = 0
    heads: int = 0
    breaks: int = 0
    gutter: bool = False
    nested: bool = False
    code: bool = False
    titled: bool = False

    def take(self, tag: re.Match[str], name: str, closing: bool) -> None:
        """One of the table's own tags. A column of line numbers is hidden: beside its code it would be in the way."""
        block = "</div>" if self.gutter else ""
        self.gutter = name == "td" and not closing and _GUTTER.search(tag[0]) is not None
        self.blocks.append((*tag.span(), block + ("<div hidden>" if self.gutter else "<p></p>")))
        if name in ("td", "th") and not closing:
            self.cells += 1
            self.row += 1
            self.widest = max(self.widest, self.row)
            self.heads += name == "th"
        elif name == "tr":
            self.row = 0

    def holds(self, name: str) -> None:
        """An element inside a cell."""
        self.nested |= name == "table"
        self.code |= name == "pre"
        self.titled |= name in ("h1", "h2")
        self.breaks += name in ("p", "br")

    def layout(self) -> bool:
        """Is it there for the look, or only to arrange what is in a cell? Then its cells are read one by one."""
        if self.parent and not self.parent.flat:
            return True
        if self.code or self.titled:
            return True
        if self.nested:
            return self.cells <= _LAYOUT_CELLS and not self.heads
        return self.widest <= 1 and self.breaks > 1


def unfold(source: str) -> str:
    """Layout tables, and tables that hold code, become plain blocks: in a table row their lines would be lost."""
    blocks: list[tuple[int, int, str]] = []
    for table in _tables(source):
        table.flat = table.layout()
        blocks += table.blocks if table.flat else ()
    pieces: list[str] = []
    at = 0
    for start, end, block in sorted(blocks):
        pieces += (source[at:start], block)
        at = end
    return "".join(pieces) + source[at:]


def _tables(source: str) -> list[_Table]:
    """Every table, the outer before the inner."""
    found: list[_Table] = []
    stack: list[_Table] = []
    for tag in _TABLE_TAG.finditer(source):
        name, closing = tag[2].lower(), bool(tag[1])
        opens = name == "table" and not closing
        if stack and (opens or name in _INSIDE):
            stack[-1].holds(name)
        if opens:
            stack.append(_Table(stack[-1] if stack else None))
            found.append(stack[-1])
        if not stack or name in _INSIDE:
            continue
        stack[-1].take(tag, name, closing)
        if name == "table" and closing:
            stack.pop()
    return found
