"""The ledger is a table of the fleet as soon as it is there, whatever the policies say, unless a file names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.report.policy.explain_text import explain_text
from tests.support.policies.projects import loaded, write_project

LEDGER = ".maintainer/ledger"
FILES = {
    "maintainer.yml": "defaults: {optimize: {maxFileSize: 1GiB}, vacuum: {retention: 90d}}\n",
    "policies/t.yml": "table: lake/t\n",
    "policies/all.yml": 'match: {tables: ["*"]}\noptimize: {zorder: {columns: [id], mode: full}}\n',
}


def with_ledger(root: Path, files: dict[str, str]) -> LoadedProject:
    (root / ".maintainer" / "ledger" / "_delta_log").mkdir(parents=True)
    (root / ".maintainer" / "ledger" / "_delta_log" / "00000000000000000000.json").write_text("")
    return loaded(root, files)


def names(project: LoadedProject) -> list[str]:
    return [policy.table.identifier for policy in project.resolved()]


def test_a_ledger_that_no_run_has_made_is_no_table(tmp_path: Path) -> None:
    assert names(loaded(tmp_path, FILES)) == ["lake/t"]


def test_the_ledger_has_a_policy_of_its_own_that_nothing_else_reaches(tmp_path: Path) -> None:
    project = with_ledger(tmp_path, FILES)
    assert names(project) == [LEDGER, "lake/t"]
    policy = project.resolve_table(LEDGER)
    assert policy == project.resolved()[0]
    assert (policy.optimize.max_file_size_bytes, policy.optimize.when.min_small_files) == (128 << 20, 20)
    assert policy.optimize.zorder is None
    assert policy.vacuum is not None
    assert (policy.vacuum.retention_seconds, policy.vacuum.every_seconds) == (7 * 86_400, 7 * 86_400)
    assert (policy.file, str(policy.origin("optimize.maxFileSize"))) == ("built-in", "built-in")
    assert policy.verify.content.value == "fingerprint"


@pytest.mark.parametrize("written", [LEDGER, "./.maintainer/../.maintainer/ledger/"])
def test_a_file_that_names_the_ledger_takes_its_place_as_for_any_table(tmp_path: Path, written: str) -> None:
    own = {**FILES, "policies/ledger.yml": f'table: "{written}"\nsuspend: {{reason: by hand}}\n'}
    project = with_ledger(tmp_path, own)
    assert project.ledger is None
    assert names(project) == [LEDGER, "lake/t"]
    policy = project.resolve_table(LEDGER)
    assert (policy.file, policy.optimize.max_file_size_bytes) == ("policies/ledger.yml", 1 << 30)
    assert policy.suspend is not None


def test_of_a_ledger_elsewhere_only_a_look_can_tell_whether_it_is_there(tmp_path: Path) -> None:
    project = loaded(tmp_path, {**FILES, "maintainer.yml": "state: s3://lake/_maintainer/ledger\n"})
    assert names(project) == ["lake/t", "s3://lake/_maintainer/ledger"]


def test_a_shared_ledger_outside_the_project_is_named_by_its_path(tmp_path: Path) -> None:
    shared = tmp_path / "shared" / "ledger"
    (shared / "_delta_log").mkdir(parents=True)
    (shared / "_delta_log" / "00000000000000000000.json").write_text("")
    project = loaded(tmp_path / "p", {"maintainer.yml": f"state: {shared}\n", "policies/t.yml": "table: lake/t\n"})
    assert names(project) == [str(shared), "lake/t"]


def test_the_ledger_can_be_selected_and_left_out_like_any_table(tmp_path: Path) -> None:
    project = with_ledger(tmp_path, FILES)
    again = load_project(write_project(tmp_path, {}))
    assert [one.policy.tags for one in again.resolutions] == [("maintainer-ledger",), ()]
    assert project.resolution_of(LEDGER).named_by_file is False


def test_explain_says_whose_policy_it_is(tmp_path: Path) -> None:
    lines = explain_text(with_ledger(tmp_path, FILES).resolution_of(LEDGER)).splitlines()
    assert lines[:2] == [
        f"{LEDGER}   built-in",
        "no file names the ledger: a built-in policy applies to it; a file that names it would replace that policy",
    ]
