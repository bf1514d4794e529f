"""Every code is documented, and every documented example gives its code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from maintainer.app.policy_tests import run_policy_tests
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.schema.schema_keys import code_titles
from maintainer.policy.yaml.yaml_reader import read_document
from tests.support.policies.policy_reading import findings_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "codes.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### ([YP]\d{3}): (.+?)$(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
SECTIONS = {code: (title, body) for code, title, body in SECTION.findall(PAGE)}
CROSS_FILE = [code for code in SECTIONS if code.startswith("P") and code >= "P350"]
ONE_FILE = [code for code in SECTIONS if code not in CROSS_FILE]
BLOCK = re.compile(r"^```(sh|yaml escaped|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_in(folder: Path, commands: str) -> None:
    (folder / "policies").mkdir()
    subprocess.run(["sh", "-c", commands], cwd=folder, check=True, timeout=30)


def test_the_title_of_a_code_is_that_of_its_section() -> None:
    titles = code_titles()
    assert {code: titles[code] for code in SECTIONS} == {code: title for code, (title, _) in SECTIONS.items()}


def test_every_code_of_the_source_has_a_section() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "maintainer").rglob("*.py")]
    assert {code for source in sources for code in re.findall(r'"([YP]\d{3})"', source)} == SECTIONS.keys()


@pytest.mark.parametrize("code", SECTIONS)
def test_every_code_says_what_to_do(code: str) -> None:
    (advice,) = re.findall(r"^What to do: ([a-z].+?\.)$\n\n", SECTIONS[code][1], re.MULTILINE | re.DOTALL)
    assert "\n\n" not in advice


@pytest.mark.parametrize("code", ONE_FILE)
def test_the_example_gives_the_code(code: str, tmp_path: Path) -> None:
    (kind, example), *more = BLOCK.findall(SECTIONS[code][1])
    assert not more
    if kind == "sh":
        run_in(tmp_path, example)
        _, findings = read_document(tmp_path / "policies" / "t.yml", tmp_path)
    else:
        findings = findings_of(example.encode().decode("unicode_escape") if kind == "yaml escaped" else example)
    assert code in {finding.code for finding in findings}
    # The examples of what a policy means are policies, and show one thing only.
    if code.startswith("P3"):
        assert {finding.code for finding in findings} == {code}


@pytest.mark.parametrize("code", CROSS_FILE)
def test_the_example_of_several_files_gives_the_code(code: str, tmp_path: Path) -> None:
    ((kind, example),) = BLOCK.findall(SECTIONS[code][1])
    assert kind == "sh"
    run_in(tmp_path, example)
    project = load_project(tmp_path)
    findings = run_policy_tests(project).diagnostics if code.startswith("P36") else project.diagnostics
    assert {finding.code for finding in findings} == {code}
