"""The README and the page of commands say what is so: commands, links, exit codes and pictures are held against it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from maintainer.cli.main import COMMANDS
from maintainer.errors import ExitCode
from maintainer.policy.project.policy_project import load_project
from tools.before_after_picture import PICTURE, look_ups, picture

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def test_the_table_of_commands_is_the_programs() -> None:
    rows = re.findall(
        r"^\| ((?:`[^`]+`(?:, )?)+) \|.*\| [a-z ]+ \|$", COMMANDS_PAGE.split("\n## ")[0], flags=re.MULTILINE
    )
    named = [name.split()[0] for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert named == list(COMMANDS)


def test_every_exit_code_is_explained() -> None:
    section = COMMANDS_PAGE[COMMANDS_PAGE.index("\n## Exit codes") :].split("\n## ")[1]
    table = section[section.index("\n|") :].split("\n\n")[0]
    cells = re.findall(r"^\| ([0-9, ]+) \|", table, flags=re.MULTILINE)
    assert {int(code) for cell in cells for code in cell.split(",")} == {code.value for code in ExitCode}


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_the_picture_shows_what_the_demo_printed() -> None:
    transcript = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")
    before, after = look_ups(transcript)
    assert PICTURE.read_text(encoding="utf-8") == picture(before, after), "python -m tools.before_after_picture"
    assert f"reads {before.num_read} of {before.num_files} files before the run and {after.num_read} of" in README
    assert f"reads {after.size} where it read {before.size}" in README


def test_the_two_commands_are_in_the_makefile() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for command in ("demo", "test"):
        assert f"make {command} " in README
        assert command in targets


def test_the_policy_at_the_top_is_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    for number, block in enumerate(blocks):
        folder = tmp_path / str(number) / "policies"
        folder.mkdir(parents=True)
        (folder / "policy.yaml").write_text(block, encoding="utf-8")
        assert load_project(folder.parent).diagnostics == ()


def test_the_demo_is_shown_by_its_real_output() -> None:
    whole = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")
    shown = whole[whole.index("<!-- demo -->") : whole.index("<!-- /demo -->")]
    ours = README[README.index("<!-- demo -->") : README.index("<!-- /demo -->")]
    assert ours.strip().removeprefix("<!-- demo -->\n```\n").removesuffix("\n```") in shown
    for command in ("validate", "explain", "plan --out plan.json", "apply plan.json", "apply", "history", "status"):
        assert f"$ maintainer {command}" in shown
    assert "ok: the second `apply` committed nothing" in shown
    assert "FAILED" not in shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
