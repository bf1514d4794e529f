"""Settings of maintainer.yml that are secrets by their names: no finding quotes them, whatever is wrong there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.policies.projects import write_project
from tests.support.product import run

FORMS = ("full", "concise", "json", "github", "junit", "sarif")
HOOK = "https://hooks.example.org/services/T0/plantedHook7"


@pytest.mark.parametrize(
    "text",
    [
        "notify: {url: 'http://hooks.example.org/services/T0/plantedHook7'}",
        f"notify: {HOOK}",
        f"notify: {{uri: {HOOK}}}",
        f"notify: {{url: {HOOK}, on: [x]}}",
        f"notify:\n  url:\n    {HOOK}\n  on: [x]",
        f"notify: {{url: [{HOOK}]}}",
        f"notify: {{on: {HOOK}}}",
        f"notify: {{url: {HOOK}, url: {HOOK}}}",
        f"notify: {{url: *{HOOK}}}",
        f"notify: {{{HOOK}: 1}}",
        f"notify: {{url: '${{env:HOOK:-{HOOK}}}', on: [x]}}",
        "notify: {url: hooks.example.org/services/T0/plantedHook7}",
        "notify: {url: 'hooks.example.org/services/T0/plantedHook7'}",
        "spark: {conf: {spark.ssl.keyPassword: plantedHook7}}",
        "spark:\n  conf:\n    my.password: 'plantedHook7'",
    ],
)
def test_no_finding_quotes_a_setting_that_is_a_secret_by_its_name(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path, {"maintainer.yml": f"{text}\n", "policies/t.yml": "table: s.t\n"})
    for form in FORMS:
        assert run(["--project", str(root), "validate", "-o", form]) == 1
    assert run(["--project", str(root), "list"]) == 2
    captured = capsys.readouterr()
    assert "plantedHook7" not in captured.out + captured.err
    assert "***" in captured.out


def test_where_a_secret_comes_from_is_still_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "notify: {url: '${env:HOOK:-}', on: [x]}\nspark: {conf: {my.password: '${env:PW}'}}\n"
    root = write_project(tmp_path, {"maintainer.yml": text, "policies/t.yml": "table: s.t\n"})
    assert run(["--project", str(root), "validate"]) == 1
    shown = capsys.readouterr().out
    assert text.splitlines()[0] in shown
    assert text.splitlines()[1] in shown
