"""Links between pages lead to files and headings that are there; the references are what the program says of itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools import api_reference
from tools.cli_reference import PAGE

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def slug(heading: str) -> str:
    """A heading as GitHub and MkDocs make an anchor of it."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text))


def without_code(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_leads_somewhere(file: Path) -> None:
    for groups in LINK.findall(without_code(file.read_text(encoding="utf-8"))):
        target = groups[0] or groups[1]
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        target_path = (file.parent / path).resolve() if path else file
        assert target_path.exists(), target
        if anchor and target_path.suffix == ".md":
            headings = re.findall(
                r"^#+ (.*)$", without_code(target_path.read_text(encoding="utf-8")), flags=re.MULTILINE
            )
            assert anchor in {slug(heading) for heading in headings}, target


def test_every_page_is_in_the_site() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    def leaves(node: object) -> list[str]:
        if isinstance(node, dict):
            return [leaf for value in node.values() for leaf in leaves(value)]
        if isinstance(node, list):
            return [leaf for value in node for leaf in leaves(value)]
        return [str(node)]

    pages = {str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")}
    assert sorted(leaves(settings["nav"])) == sorted(pages)


def test_the_reference_of_commands_is_what_they_print() -> None:
    # In a process of its own: click keeps what a command that was called alone has as its help option.
    command = [sys.executable, "-c", "from tools.cli_reference import page; print(page(), end='')"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert PAGE.read_text(encoding="utf-8") == done.stdout, "python -m tools.cli_reference writes it\n" + done.stderr


def test_the_reference_of_the_python_api_is_what_its_docstrings_say() -> None:
    assert api_reference.PAGE.read_text(encoding="utf-8") == api_reference.page(), (
        "python -m tools.api_reference writes it"
    )
