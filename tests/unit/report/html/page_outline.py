"""The outline of an HTML page, a page of a sample run, and the check that nothing on a page is loaded."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC
from html.parser import HTMLParser
from pathlib import Path

from maintainer.model.plan.plan import Plan
from maintainer.model.run.outcome import RunOutcome
from maintainer.report import html
from maintainer.report.html.page import render_page
from maintainer.report.html.run_view import run_view
from maintainer.report.html.table_past import TableTimeline
from tests.support.runs import sample_plans

TEMPLATES = Path(html.__file__).parent / "templates"
VOID = {"meta", "br", "hr", "img", "input", "link"}
SHORT_FORM = {"rect", "path", "polyline", "circle"}


class Outline(HTMLParser):
    """Checks that tags are closed in order, and keeps what the tests ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SHORT_FORM
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def said(page: str) -> str:
    """The page's text in one line."""
    return " ".join("".join(check_is_safe(page).text).split())


def run_page(outcome: RunOutcome, plan: Plan | None = None, past: dict[str, TableTimeline] | None = None) -> str:
    return render_page(run_view(plan or sample_plans.full_plan(), outcome, past or {}, UTC, run_folder="runs/x"))


def check_is_safe(page: str) -> Outline:
    """Nothing loaded, and a policy that allows exactly the style sheet and the script that are there, one of each."""
    page_outline = outline(page)
    assert not {"link", "img", "iframe", "object", "form", "base"} & set(page_outline.tags)
    assert (page_outline.tags.count("script"), page_outline.tags.count("style")) == (1, 1)
    names = {name for name, _ in page_outline.attributes}
    assert not {name for name in names if name.startswith("on")} | ({"style", "src", "srcset"} & names)
    targets = [value or "" for name, value in page_outline.attributes if name == "href"]
    places = {value for name, value in page_outline.attributes if name == "id"}
    assert {target[1:] for target in targets if target.startswith("#")} <= places
    # Places on the page itself, and reports of single runs beside it: nothing with a scheme or a host.
    assert all(re.fullmatch(r"#.*|(?!/)[\w.%/~-]+/report\.html", target) for target in targets)
    policy = next(
        value for name, value in page_outline.attributes if name == "content" and value and "default-src" in value
    )
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script is not None
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style[1], script[1])]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; base-uri 'none'; "
        "form-action 'none'"
    )
    assert style[1] == (TEMPLATES / "style.css").read_text()
    assert script[1] == (TEMPLATES / "page.js").read_text()
    return page_outline
