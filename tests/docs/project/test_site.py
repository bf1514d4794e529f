"""The documentation as a site: no link is dead, nothing is loaded from elsewhere, and each page has the version."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from maintainer import __version__

pytest.importorskip("mkdocs", reason="`make docs` installs mkdocs")

ROOT = Path(__file__).resolve().parents[3]
# The theme names itself in the footer; the rest stands in our own texts.
OTHER_SITES = {"squidfunk.github.io", "semver.org", "hadoop.apache.org"}


class Page(HTMLParser):
    """What a page refers to, what it loads, and the places in it that others may refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        if tag == "a" and (target := values.get("href")):
            self.links.append(target)
        if tag in ("img", "script", "iframe") and (target := values.get("src")):
            self.loaded.append(target)
        if tag == "link" and values.get("rel") != "canonical" and (target := values.get("href")):
            self.loaded.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    # 404.html is served for any address, so its own links begin at the server's root.
    files = [file for file in site.rglob("*.html") if file.name != "404.html"]
    return {file: Page(file.read_text(encoding="utf-8")) for file in files}


def dead_links(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    for file, page in pages.items():
        for target in [*page.links, *page.loaded]:
            address = urlsplit(target)
            if address.scheme or address.netloc:
                continue
            led_to = (file.parent / unquote(address.path)).resolve() if address.path else file
            anchor = unquote(address.fragment)
            has_anchor = led_to not in pages or anchor in pages[led_to].anchors | {""}
            if not led_to.is_relative_to(site) or not led_to.is_file() or not has_anchor:
                yield f"{file.relative_to(site)}: {target}"


def test_no_link_is_dead(site: Path, pages: dict[Path, Page]) -> None:
    assert len(pages) >= len(list((ROOT / "docs").rglob("*.md")))
    assert list(dead_links(site, pages)) == []


def test_a_dead_link_would_be_noticed(site: Path, pages: dict[Path, Page]) -> None:
    file = site / "index.html"
    for target in ("../README.md", "nothing.html", "#no-such-place", "costs.html#no-such-place"):
        broken = pages | {file: Page(f'<a href="{target}">x</a>')}
        assert list(dead_links(site, broken)) == [f"index.html: {target}"]


def test_pages_link_to_no_other_site_than_those_that_are_known(pages: dict[Path, Page]) -> None:
    others = {urlsplit(target).netloc for page in pages.values() for target in page.links}
    assert others - {""} <= OTHER_SITES


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    assert {target for page in pages.values() for target in page.loaded if urlsplit(target).netloc} == set()


def test_each_page_has_the_version_in_its_title(pages: dict[Path, Page]) -> None:
    for file in pages:
        assert f"maintainer {__version__}</title>" in file.read_text(encoding="utf-8"), file.name


EXAMPLES = ROOT / "examples"
SHOWN_ELSEWHERE = {"README.md", "notebook.ipynb", "facts.yml", "orders.yml"}
"""The page of examples/many-tables/ shows the last two."""


def test_every_example_is_shown_as_it_is(site: Path) -> None:
    shown = Text((site / "workflows.html").read_text(encoding="utf-8")).text
    files = [file for file in EXAMPLES.rglob("*") if file.is_file() and EXAMPLES / "demo" not in file.parents]
    assert len(files) >= 10
    for file in files:
        if file.name not in SHOWN_ELSEWHERE:
            assert file.read_text(encoding="utf-8").strip() in shown, file.name


class Text(HTMLParser):
    """The text of a page as it is read, without marks."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data
