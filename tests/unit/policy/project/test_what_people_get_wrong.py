"""What people get wrong, and every word that they are told: where it is, what is wrong, and how to write it right.

``what_people_get_wrong.json`` has the files, beside a smallest project, and the findings: place, code, message, help.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maintainer.policy.project.policy_project import load_project

CASES = json.loads(Path(__file__).with_name("what_people_get_wrong.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_is_wrong_is_said_with_its_place_and_the_way_out(tmp_path: Path, case: dict[str, Any]) -> None:
    files = {"maintainer.yml": "version: 1\n", **case["files"]}
    if not any(name.startswith("policies/") for name in files):
        files["policies/t.yml"] = "version: 1\ntable: sales.orders\n"
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    diagnostics = load_project(tmp_path, None, {}).diagnostics
    assert [
        f"{finding.file}:{finding.span.line}:{finding.span.column} {finding.code} {finding.message}"
        + (f" | {finding.help}" if finding.help else "")
        for finding in diagnostics
    ] == case["told"]
