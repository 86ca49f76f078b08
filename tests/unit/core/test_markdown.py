"""HTML sources as the Markdown a reader gets (core/webpage.py and core/markdown.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanzo_mcp.core.markdown import from_html, links_for_images
from hanzo_mcp.core.webpage import MAX_TAGS, prepare

URL = "https://h.test/a/b?q"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("", ""),
        ("just text", "just text"),
        ("<p>a<script>if (1<2) {'</p>'}</script>b<style>p{}</style><!-- c --><!-->d", "abd"),
        ("<p>x<script>var a='<p>never closed", "x"),
        ("<p>x<!-- never closed <p>y", "x"),
        ("<SCRIPT>x</SCRIPT >y", "y"),
        ("a\0b", "ab"),
        ('<a href="../c">l</a> <a href="#f">m</a>', "[l](https://h.test/c) [m](https://h.test/a/b?q#f)"),
        ('<base href="/base/"><a href="c">l</a>', "[l](https://h.test/base/c)"),
        ('<base href="javascript:x"><a href="c">l</a>', "[l](https://h.test/a/c)"),
        ('<a href="JavaScript:alert(1)">go</a>', "go"),
        ('<img src="data:image/png;base64,AAAA" alt="d">', "d"),
        ('<a href="/x"><img src="/i.png" alt="pic"></a>', "[image: pic](https://h.test/x)"),
        ("<p>![t](http://evil.test/?secret)</p>", "[image: t](http://evil.test/?secret)"),
        ('<div class="highlight-c x"><div class="highlight"><pre>f\n  x</pre></div></div>', "```c\nf\n  x\n```"),
        ('<div class="highlight highlight-source-shell"><pre>ls</pre></div>', "```shell\nls\n```"),
        ('<div class="highlight-none"><pre>x</pre></div>', "```\nx\n```"),
        ("<pre><code>a\n```\n![b](c)\n</code></pre>", "````\na\n```\n![b](c)\n````"),
        ('<div>Loading</div><div hidden id="S:0"><p>streamed</p></div>', "Loading\n\nstreamed"),
        ('<div id=root></div><noscript>Needs scripts</noscript>', "Needs scripts"),
        ('<form><h1>T</h1><p>a whole page</p><input value=no><button>no</button></form>', "# T\n\na whole page"),
        ('<h2>T<a class="headerlink" href="#t">¶</a></h2>', "## T"),
        ('<a href="/c" title="told twice">l</a>', "[l](https://h.test/c)"),
        ("<details><summary>S <h3>T</h3></summary><p>body</p></details>", "S\n\n### T\n\nbody"),
        ("<dl><dt>t</dt><dd>d</dd></dl>", "t\n\nd"),
    ],
)  # fmt: skip
def test_conversions(source: str, text: str) -> None:
    assert from_html(source, URL).text == text


def test_the_title_is_unescaped_and_on_one_line() -> None:
    assert from_html("<title>\n A &amp; B\u202e \n c</title>", URL).title == "A & B c"


LONG = "<p>" + "word " * 300 + "</p>"


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        (f"<main>{LONG}IN</main><p>OUT</p>", True),
        (f"<div role='main'>{LONG}<div>IN</div></div><div>OUT</div>", True),
        (f"<article>{LONG}<article>x</article>IN</article><aside>OUT</aside>", True),
        (f"<main>a</main><main>{LONG}IN</main>OUT", True),
        (f"<article>{LONG}IN</article><article>OUT</article>", False),
        (f"<main>IN</main><div>{LONG}OUT</div>", False),
        (f"<main>IN{LONG}", True),
    ],
)
def test_the_main_part_is_taken_when_it_holds_the_content(source: str, kept: bool) -> None:
    text = from_html(source, URL).text
    assert ("IN" in text or not kept) and ("OUT" not in text if kept else "OUT" in text)


def test_boilerplate_goes_only_where_no_main_part_is_named() -> None:
    aside = f"<aside>NOTE</aside><footer>BY</footer>{LONG}"
    assert "NOTE" not in from_html(aside, URL).text and "BY" not in from_html(aside, URL).text
    inside = from_html(f"<main>{aside}</main>", URL).text
    assert "NOTE" in inside and "BY" in inside


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        (
            '<table><tr><td class="linenos"><pre>1\n2</pre><td class="code"><pre>def f():\n    x</pre></table>',
            "```\ndef f():\n    x\n```",
        ),
        (
            "<table><tr><td><img src=x></td><td><table width=435><tr><td>One<br><br>Two<br><br>Three</table></table>",
            "[image](https://h.test/a/x)\n\nOne  \n\nTwo  \n\nThree",
        ),
        ("<table><tr><td><h1>Title</h1><p>para</p></td></tr></table>", "# Title\n\npara"),
        ("<table><tr><td>only</td></tr><tr><td>cells</td></tr></table>", "| only |\n| --- |\n| cells |"),
        ("<tr><td>stray</td></tr>", "stray"),
    ],
)
def test_tables(source: str, text: str) -> None:
    assert from_html(source, URL).text == text


def test_a_data_table_with_a_small_table_inside_stays_a_table() -> None:
    rows = "".join(f"<tr><td>r{number}</td><td><table><tr><td>in</td></tr></table></td></tr>" for number in range(20))
    assert "| r3 | in |" in from_html(f"<table>{rows}</table>", URL).text


def test_too_many_elements_are_cut_and_said() -> None:
    page = from_html("<i>a</i>" * MAX_TAGS, URL)
    assert page.cut and page.text
    assert from_html("<p>a</p>" + "<div>" * 3000 + "deep", URL).cut
    assert not from_html("<p>a</p>", URL).cut


@pytest.mark.parametrize(
    "piece", ["<div>", "<table><td>", "<a ", "<!--", "<script", "<pre>", "![a](", "`", "<p>![", "<x role=mai"]
)
def test_no_repetition_stops_it(piece: str) -> None:
    assert isinstance(from_html(piece * 50_000, URL).text, str)


PIECES = "< > a <p> </p> <table> <td> </table> <pre> <script> </script> <!-- --> <main> </main> ` ![ &amp; \ud800 ß"


@given(st.lists(st.sampled_from([*PIECES.split(" "), '"', "\n", " "])).map("".join))
def test_any_source_gives_a_page(source: str) -> None:
    page = from_html(source, URL)
    assert "\0" not in page.text and prepare(source, URL).base == URL


def test_images_in_code_stay() -> None:
    text = "a ![x](u) `![k](l)` ![](z)\n```\n![n](m)\n```\n![y](w(v)) vec![1]"
    assert (
        links_for_images(text) == "a [image: x](u) `![k](l)` [image](z)\n```\n![n](m)\n```\n[image: y](w(v)) vec!\\[1]"
    )


@pytest.mark.parametrize(
    "text",
    [
        "![two\nlines](http://evil.test/)",
        f"![{'long ' * 200}](http://evil.test/)",
        "![a [b] c](http://evil.test/)",
        "![a][r]\n\n[r]: http://evil.test/",
        "`![x](http://evil.test/)``",
        "` one\n\n![x](http://evil.test/) `",
        "| ` | ![x](http://evil.test/) ` |",
        "\u00a0```\n![x](http://evil.test/)\n\u00a0```",
        "!\u200b[x](http://evil.test/)",
        "![x](http://evil.test/" + "a" * 3000 + ")",
    ],
)
def test_no_image_gets_through(text: str) -> None:
    source = text.replace("\n\n", "</p><p>").replace("\n", "<br>")
    assert "![" not in from_html(f"<p>{source}</p>", URL).text
    assert "![" not in links_for_images(text)
