"""An HTML page as Markdown for a reader who cannot see it (decision 0003: html-to-markdown does the conversion).

Content comes first: when the part that calls itself the main one holds next to nothing, the whole body is used, and
when that is empty too, what the page would show only after its scripts ran.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hanzo_mcp.core.text import clean
from hanzo_mcp.core.webpage import Source, prepare

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions

_NEVER = (
    *("nav", "button", "select", "input", "svg", "canvas", "dialog", "[aria-hidden=true]"),
    *("[role=navigation]", "[role=search]", "[role=contentinfo]", "[role=banner]"),
    *(
        "a.anchor",
        "a.doc-anchor",
        ".test-arrow",
        ".headerlink",
        ".header-anchor",
        ".hash-link",
        ".anchorjs-link",
        ".mw-editsection",
    ),
    *(".linenos", ".gutter", ".rouge-gutter", ".newsletter", ".advertisement", ".breadcrumbs"),
    *(".cookie-banner", "#cookie-banner", "#onetrust-banner-sdk", "#CybotCookiebotDialog"),
)
_OUTSIDE_MAIN = ("footer", "aside", ".sidebar", ".footer", "#footer", "#nav", ".nav", ".menu", "#mw-navigation")
_ENOUGH = 1000
_TIMES = 4
_IMAGE = re.compile(
    r"(?<!`)(`{1,4})(?!`)[^`\n|]{1,200}\1(?!`)"  # a code span, left alone
    r"|\[?!\[((?:[^\[\]\\]|\\.){0,500})\]\(((?:[^()]|\([^()]{0,200}\)){0,2000})\)(?:\](?=\())?"
    r"|!\["
)
_FENCE = re.compile(r" {0,40}(`{3,})([^`]*)")


@dataclass(frozen=True, slots=True)
class Page:
    """``cut``: the page has more elements, or deeper ones, than are read."""

    text: str
    title: str
    cut: bool


class Unconvertible(Exception):
    """The converter gave up; ``str()`` is its reason."""


def from_html(source: str, url: str) -> Page:
    """The main content of ``source`` with absolute links; ``url`` is where it came from. Raises ``Unconvertible``."""
    page = prepare(source, url)
    text, deep = _best(page)
    return Page(links_for_images(clean(text)), page.title, page.cut or deep)


def _best(page: Source) -> tuple[str, bool]:
    inner = _converted(page.main, _options(page.base, _NEVER)) if page.main else ("", False)
    if len(inner[0]) >= _ENOUGH:
        return inner
    whole = _converted(page.html, _options(page.base, _NEVER + _OUTSIDE_MAIN))
    best = whole if len(whole[0]) > _TIMES * len(inner[0]) else inner
    return best if best[0] else _converted(page.html, _options(page.base, (), hidden="all"))


def _converted(source: str, options: ConversionOptions) -> tuple[str, bool]:
    """The Markdown, and whether elements nested too deeply were left out of it."""
    from html_to_markdown import ConversionError, WarningKind, convert

    try:
        result = convert(source, options)
    except ConversionError as exc:
        raise Unconvertible(str(exc)) from None
    deep = any(warning.kind == WarningKind.DEPTH_LIMIT_EXCEEDED for warning in result.warnings)
    return (result.content or "").strip(), deep


def _options(base: str, without: tuple[str, ...], hidden: str = "drop") -> ConversionOptions:
    from html_to_markdown import ConversionOptions, PreprocessingOptions

    return ConversionOptions(
        extract_metadata=False,
        compact_tables=True,
        hidden_content=hidden,
        inline_data_media="alt_text_only",
        base_url=base,
        exclude_selectors=list(without),
        preprocessing=PreprocessingOptions(preset="minimal", remove_navigation=False, remove_forms=False),
    )


def links_for_images(text: str) -> str:
    """``![alt](url)`` as ``[image: alt](url)`` outside code: a client that renders the answer must not load it."""
    pieces: list[str] = []
    prose: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.fullmatch(line) if "```" in line else None
        if not fence and mark is None:
            prose.append(line)
            continue
        pieces += _without_images(prose)
        pieces.append(line)
        if not fence and mark:
            fence = mark[1]
        elif mark and len(mark[1]) >= len(fence) and not mark[2].strip():
            fence = ""
    return "\n".join(pieces + _without_images(prose))


def _without_images(lines: list[str]) -> list[str]:
    """The lines as one text, images replaced; ``lines`` is emptied."""
    text = "\n".join(lines)
    found = [_IMAGE.sub(_as_link, text) if "![" in text else text] if lines else []
    lines.clear()
    return found


def _as_link(match: re.Match[str]) -> str:
    if match[1]:
        return match[0]
    if match[3] is None:
        return "!\\["
    alt = " ".join(match[2].split())
    name = f"[image: {alt}]" if alt else "[image]"
    return name if match[0].startswith("[") else f"{name}({match[3]})"
