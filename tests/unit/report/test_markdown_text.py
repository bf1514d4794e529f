"""Markdown that stays text: read as it is, and by a CommonMark reader with GitHub's tables."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from maintainer.report.document.blocks import Statement, Subject, Subjects
from maintainer.report.document.markdown_writer import (
    code,
    code_block,
    escaped,
    fitting,
    folded,
    markdown_text,
    table,
)
from maintainer.report.text_layout import printable

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
TRICKY = st.text(alphabet=st.sampled_from(" `|\\<>&;#@[]()*_~$:/.!-+=1aw"), max_size=24)


def cell(markdown: str) -> str:
    """What a reader shows of a table cell, without our code spans."""
    rendered = READER.render("\n".join(table(("h",), [(markdown,)])))
    (content,) = re.findall(r"<td>(.*?)</td>", rendered, re.DOTALL)
    return html.unescape(re.sub(r"</?code>", "", content))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sales_orders by-day", "sales_orders by-day"),
        ("9 files, 233 MiB -> about 3 files", "9 files, 233 MiB -> about 3 files"),
        ("_x_ @team #12", r"\_x\_ `@team` `#12`"),
        ("[a](http://b)", "`[a](http://b`)"),
        ("see (www.b), or $x$", "see (`www.b`), or `$x$`"),
        ("bronze.* | <b> &lt; a < b", r"bronze.\* \| \<b> \&lt; a < b"),
        ("run `maintainer plan --out FILE`", "run `maintainer plan --out FILE`"),
        ("two `a``b` and one `", r"two \`a\`\`b\` and one \`"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("C:\\a\\", "C:\\a\\\\"),
        ("a|@b", r"`a`\|`@b`"),
    ],
)
def test_what_has_a_meaning_is_escaped_and_stays_readable(text: str, expected: str) -> None:
    assert escaped(text) == expected
    own_code = text.startswith("run ")
    assert cell(escaped(text)) == (text.replace("`", "") if own_code else text)


def test_code_spans() -> None:
    assert code("a.b") == "`a.b`"
    assert code("a|b`c") == r"`a`\|``b`c``"
    assert code("`") == "`` ` ``"
    assert (code(""), code(" ")) == ("", " ")


@given(TRICKY)
def test_a_cell_shows_the_text_itself(text: str) -> None:
    shown = printable(text)
    # A cell is stripped, and code spans of a text lose their ticks.
    assert cell(code(text)).strip() == shown.strip()
    assert cell(escaped(text)).replace("`", "").strip() == shown.replace("`", "").strip()


@given(TRICKY)
def test_no_element_comes_of_a_text(text: str) -> None:
    for markdown in (escaped(text), code(text)):
        (inline, *_) = [token for token in READER.parse("x " + markdown) if token.type == "inline"]
        assert {child.type for child in inline.children or ()} <= {"text", "text_special", "code_inline"}


def test_a_code_block_is_not_ended_from_within() -> None:
    lines = code_block(["error", "```", "````x", "a\x1bb"])
    assert lines == ["`````text", "error", "```", "````x", r"a\x1bb", "`````"]
    (block,) = READER.parse("\n".join(lines))
    assert block.type == "fence"


def test_what_does_not_fit_is_left_out_from_the_first_on() -> None:
    rows = [("a", "b"), ("c" * 50, "d"), ("e", "f")]
    assert fitting(rows, 30) == ([("a", "b")], 0)
    assert fitting(rows[:1], 30) == ([("a", "b")], 20)


def test_folded() -> None:
    assert folded("2 tables", ["x"]) == ["<details>", "<summary>2 tables</summary>", "", "x", "", "</details>"]


def test_a_column_that_says_nothing_is_left_out() -> None:
    left = Statement(".", "left alone", reasons=(("suspended", "p.yml:3"),), is_aside=True)
    some = replace(left, facts=("2 files, 4 KiB",))
    alone = markdown_text([Subjects([Subject(".", ("a",), (left,))])])
    both = markdown_text([Subjects([Subject(".", ("a",), (left, some))])])
    assert ("| table | why |" in alone, "| table | left alone | why |" in both) == (True, True)
    assert "| `a` | suspended `p.yml:3` |" in alone
