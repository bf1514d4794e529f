"""Complete the documentation site: what pages link to outside of docs/ is part of it, and titles have the version.

mkdocs runs the functions below (`hooks:` in mkdocs.yml). Pages are also read in the repository, so they link to
`../CHANGELOG.md` or `../policies`. On the site such a file lies below `repository/`, and a folder becomes one page that
shows its files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from maintainer import __version__

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SITE_FOLDER = "repository"

# Code is taken first, so that a link inside of it stays text.
CODE_OR_LINK = re.compile(r"```.*?```|`[^`\n]*`|\]\((?!\w+:|#)(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)", re.DOTALL)


def place_on_site(source: Path) -> str:
    """Name the place of a file or folder of the repository below the site's root, as the address of its source."""
    if source.is_relative_to(DOCS):
        return source.relative_to(DOCS).as_posix()
    place = f"{SITE_FOLDER}/{source.relative_to(ROOT).as_posix()}"
    if source.is_dir():
        return f"{place}/index.md"
    return place if source.suffix else f"{place}.txt"  # LICENSE: a browser shows a text


def with_site_links(markdown: str, source: Path) -> tuple[str, list[Path]]:
    """Turn the links of a page into links between places of the site, and name what they lead to outside of docs/."""
    outside: list[Path] = []
    here = Path(place_on_site(source)).parent

    def link(match: re.Match[str]) -> str:
        if match["target"] is None:
            return match[0]
        target = (source.parent / match["target"]).resolve()
        if not target.is_relative_to(ROOT) or not target.exists():
            return match[0]  # mkdocs says which link it is
        if not target.is_relative_to(DOCS):
            outside.append(target)
        return f"]({Path(os.path.relpath(place_on_site(target), here)).as_posix()}{match['anchor'] or ''})"

    return CODE_OR_LINK.sub(link, markdown), outside


def page_of_folder(folder: Path) -> str:
    """Show all text files of a folder on one page, folders below it first named by their path."""
    parts = [f"# {folder.relative_to(ROOT).as_posix()}"]
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        language = {".yml": "yaml", ".json": "json", ".py": "python"}.get(file.suffix, "text")
        code = f"````{language}\n{file.read_text(encoding='utf-8')}\n````"
        parts.append(f"## `{file.relative_to(folder).as_posix()}`\n\n{code}")
    return "\n\n".join(parts) + "\n"


def outside_of_docs() -> dict[str, Path]:
    """Find everything outside of docs/ that pages link to, also by way of such a page, by its place on the site."""
    to_read = sorted(DOCS.rglob("*.md"))
    places: dict[str, Path] = {}
    while to_read:
        page = to_read.pop()
        for target in with_site_links(page.read_text(encoding="utf-8"), page)[1]:
            place = place_on_site(target)
            if place not in places and target.suffix == ".md":
                to_read.append(target)
            places[place] = target
    return places


def on_config(config: Any) -> Any:  # mkdocs's own class; mkdocs is not installed everywhere
    """Show the version in the head of each page."""
    config.site_name = f"{config.site_name} {__version__}"
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add what lies outside of docs/."""
    from mkdocs.structure.files import File

    for place, source in sorted(outside_of_docs().items()):
        if source.is_dir():
            files.append(File.generated(config, place, content=page_of_folder(source)))
        else:
            files.append(File.generated(config, place, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn links out of docs/ into links to what was added."""
    source = page.file.abs_src_path
    return with_site_links(markdown, Path(source))[0] if source else markdown
