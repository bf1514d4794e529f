"""The exit codes in docs/commands.md are the program's, in its order, and no other page lists them again."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from maintainer.errors import ExitCode
from maintainer.model.run.exit_codes import gravest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "commands.md").read_text(encoding="utf-8")
LISTED = re.compile(r"^\| ([\d, ]+) \|", flags=re.MULTILINE)


def test_the_exit_codes_are_the_programs_in_their_order() -> None:
    listed = [int(code) for row in LISTED.findall(PAGE) for code in row.split(",")]
    assert sorted(listed) == sorted(ExitCode)
    order = re.search(r"the first of ([\d, ]+) is the code", PAGE)
    assert order is not None
    codes = [ExitCode(int(code)) for code in order[1].split(",")]
    assert {*codes, ExitCode.OK} == set(ExitCode)
    assert all(gravest(pair) is pair[0] for pair in itertools.combinations(codes, 2))


def test_no_other_page_has_an_order_of_its_own() -> None:
    pages = [page for page in DOCS.rglob("*.md") if page.name != "commands.md"]
    assert pages
    assert [page.name for page in pages if re.search(r"\b5, 70, 143\b", page.read_text(encoding="utf-8"))] == []
