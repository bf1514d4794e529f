"""``validate --tests``: tests of policies pass, fail at their line, and are checked like any other file."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.policy_tests import run_policy_tests
from maintainer.cli.main import run
from maintainer.policy.project.policy_project import load_project
from tests.support.policies.projects import write_project

ROOT = Path(__file__).resolve().parents[3]

POLICY = """\
table: s.t
optimize: {maxFileSize: 100MiB, every: 1d, where: "d >= current_date() - 1"}
limits: {maxFiles: 9}
vacuum: {retention: 7d}
"""

TEST = """\
tests:
  - name: one
    table: s.t
    now: 2026-11-21 12:00
    given:
      columns: {id: long, d: date}
      partitionedBy: [d]
      properties: {delta.deletedFileRetentionDuration: interval 7 days}
      files: [{count: 4, size: 10MiB, partition: {d: 2026-11-20}}, {size: 1MiB, partition: {d: null}}]
      removed: [{count: 3, size: 1MiB, age: 8d}, {size: 1MiB, age: 6d}]
    expect:
      state: changes
      steps:
        - {action: compact, files: 4, writes: 1}
        - {action: vacuum, files: 3}
      leftAlone: [outside_where]
"""


def failures(tmp_path: Path, test: str, policy: str = POLICY) -> list[str]:
    root = write_project(tmp_path, {"policies/t.yml": policy, "policies/_tests/one.yml": test})
    report = run_policy_tests(load_project(root))
    return [f"{d.span.line}:{d.span.column} {d.code} {d.message}" for d in report.diagnostics]


def test_a_test_passes_when_the_plan_is_the_one_expected(tmp_path: Path) -> None:
    assert failures(tmp_path, TEST) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("files: 4, w", "files: 5, w", ["15:36 P360 test `one`: `files` of compact is 4"]),
        ("writes: 1", "writes: 2", ["15:47 P360 test `one`: `writes` of compact is 1"]),
        ("action: vacuum", "action: zorder", ["15:9 P360 test `one`: the steps are [compact, vacuum]"]),
        ("state: changes", "state: up_to_date", ["13:14 P360 test `one`: the table is `changes`"]),
        ("[outside_where]", "[]", ["17:18 P360 test `one`: what is left alone is [outside_where]"]),
        ("files: 3}", "files: 3, writes: 0}", ["16:46 P360 test `one`: `writes` of vacuum is nothing that it has"]),
        ("table: s.t", "table: s.u", ["4:12 P361 no policy names `s.u`, and no rule reaches it"]),
        ("count: 4", "count: 10", ["13:14 P360 test `one`: the table is `blocked`"]),
        ("age: 8d", "age: 8", ["11:45 P203"]),
        ("name: one", "nam: one", ["3:5 P201", "3:5 P202"]),
    ],
)
def test_a_test_that_fails_is_a_finding_at_its_line(tmp_path: Path, old: str, new: str, expected: list[str]) -> None:
    assert old in TEST
    reported = failures(tmp_path, TEST.replace(old, new))
    assert len(reported) >= len(expected)
    for line in expected:
        assert any(failure.startswith(line) for failure in reported), reported


def test_history_and_problems_can_be_expected(tmp_path: Path) -> None:
    recent = TEST.replace("    expect:", "      lastOptimize: 2h\n    expect:").replace(
        "        - {action: compact, files: 4, writes: 1}\n", ""
    )
    assert failures(tmp_path / "recent", recent.replace("[outside_where]", "[not_due, outside_where]")) == []
    unpartitioned = TEST.replace("      partitionedBy: [d]\n", "").partition("    expect:")[0]
    problem = unpartitioned + "    expect: {state: problem, problem: T410, steps: []}\n"
    assert failures(tmp_path / "problem", problem) == []


def test_the_tests_of_our_examples_pass() -> None:
    report = run_policy_tests(load_project(ROOT))
    assert report.diagnostics == ()
    assert (report.files, report.tests, report.failed) == (4, 10, 0)


def test_the_command_ends_in_1_when_a_test_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path, {"policies/t.yml": POLICY, "policies/_tests/one.yml": TEST})
    assert run(["--project", str(root), "validate", "--tests"]) == 0
    assert "1 test in policies/_tests/ (1 file): 1 passed, 0 failed" in capsys.readouterr().err
    write_project(root, {"policies/_tests/one.yml": TEST.replace("writes: 1", "writes: 2")})
    assert run(["--project", str(root), "validate"]) == 0
    assert run(["--project", str(root), "validate", "--tests", "-o", "concise"]) == 1
    printed = capsys.readouterr()
    assert "policies/_tests/one.yml:15:47: error[P360]" in printed.out
    assert "1 failed" in printed.err


def test_tests_are_not_run_against_policies_with_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path, {"policies/t.yml": POLICY + "x: 1\n", "policies/_tests/one.yml": TEST})
    assert run(["--project", str(root), "validate", "--tests"]) == 1
    assert "tests were not run" in capsys.readouterr().err
