"""docs/policies.md and docs/first-policy.md say what is so: keys, commands, selectors and examples are tried."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from maintainer.cli.main import run
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.selectors import parse_selector
from tests.support.policies.example_commands import found_command

ROOT = Path(__file__).resolve().parents[2]
POLICIES = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
FIRST = (ROOT / "docs" / "first-policy.md").read_text(encoding="utf-8")


def test_the_keys_are_those_of_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "--markdown"]) == 0
    shown = POLICIES[POLICIES.index("<!-- keys -->\n") + 14 : POLICIES.index("<!-- /keys -->")]
    assert shown.splitlines() == capsys.readouterr().out.rstrip("\n").splitlines()


def test_every_example_is_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", POLICIES, flags=re.DOTALL)
    assert len(blocks) == 7
    for number, block in enumerate(blocks):
        named = re.match(r"# (\S+\.yml)\n", block)
        file = tmp_path / str(number) / (named[1] if named else "policies/t.yml")
        file.parent.mkdir(parents=True)
        file.write_text(block, encoding="utf-8")
        is_rule = "match:" in block
        if "manage:" in block:  # which wants the places that the block before declares
            (tmp_path / str(number) / "maintainer.yml").write_text(blocks[number - 1], encoding="utf-8")
        elif is_rule:  # which wants a table that it reaches
            named_table = "version: 1\ntable: bronze.clicks\ntags: [nightly]\n"
            file.with_name("clicks.yml").write_text(named_table, encoding="utf-8")
        project = load_project(tmp_path / str(number), environ={})
        assert (project.diagnostics, project.files_read) == ((), 1 + is_rule)


def test_every_selector_is_one() -> None:
    rows = re.findall(
        r"^\| (`[^|]*) \| .* \|$", POLICIES[POLICIES.index("## Choosing") :].split("##")[1], flags=re.MULTILINE
    )
    matches = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    assert len(matches) > 8
    for text in matches:
        if text not in ("--since REF", "@tables.txt"):
            assert parse_selector([text], ROOT).alternatives


@pytest.mark.parametrize(
    "page_name", ["policies", "first-policy", "what-to-persist", "upgrades", "costs", "alerts", "security"]
)
def test_every_command_exists(page_name: str) -> None:
    page = (ROOT / "docs" / f"{page_name}.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ maintainer (.*)$", page, flags=re.MULTILINE)
    commands += re.findall(r"`maintainer ([^`]+)`", page)
    for script in re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL):
        commands += [line.partition(" > ")[0] for line in re.findall(r"^maintainer (.*)$", script, flags=re.MULTILINE)]
    assert commands
    for line in commands:
        with found_command(shlex.split(line, comments=True)) as (name, command, rest, group):
            if name != "apply" or not rest:  # a plan's file is looked for when the line is read
                command.make_context(name, rest, parent=group)


def test_a_new_project_goes_the_way_that_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["init", "lake-policies"]) == 0
    monkeypatch.chdir(tmp_path / "lake-policies")
    for line in ("validate --strict --tests", "validate", "explain /data/lake/orders", "schema optimize.when"):
        assert f"$ maintainer {line}" in FIRST
        assert run(line.split()) == 0
    printed = capsys.readouterr()
    for shown in ("2 policies valid", "2 tests in policies/_tests/ (1 file): 2 passed, 0 failed"):
        assert shown in FIRST
        assert shown in printed.out + printed.err
    for name in re.findall(r"^\| `([^`]+)` \|", FIRST, flags=re.MULTILINE):
        assert (tmp_path / "lake-policies" / name).exists()
