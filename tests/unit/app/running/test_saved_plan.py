"""A saved plan against tables that moved on: each changed table is refused by itself, or all of them if asked for."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.project_folders import Project
from maintainer.app.running.apply_plan import check_saved_plan
from maintainer.errors import ExitCode, Refused
from maintainer.journal.journal import Journal
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import from_json, to_json
from maintainer.model.plan.steps import Batch, Bin
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import RunOutcome, TableStatus
from maintainer.model.run.progress import ProgressSink
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.recheck.staleness import PLAN_AGAIN
from maintainer.policy.diagnostics import Severity
from maintainer.policy.resolve.resolved import policy_values
from maintainer.report.run.progress_text import PlannedNames, ProgressText
from maintainer.report.run.run_findings import render_junit, run_findings
from maintainer.report.style import Style
from tests.support.policies.projects import write_project
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet
from tests.support.tables.builders import DAY_MS, NOW_MS
from tests.unit.app.selection.test_store_reach import Sign

NAMES = tuple(f"s.t{number:02}" for number in range(16))
LATER_MS = NOW_MS + 60_000


class Fleet:
    """Sixteen tables with a policy and a saved plan each, in memory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        write_project(root, {"maintainer.yml": "version: 1\n"})
        for name in NAMES:
            self.write_policy(name)
        self.lake = FakeLake()
        self.tables = {name: self.lake.table(name, (1, 2), (3,)) for name in NAMES}
        digests = {policy.table.identifier: policy.digest for policy in Project.load(root).policies}
        values = {policy.table.identifier: policy_values(policy) for policy in Project.load(root).policies}
        plans = [
            plan_of(table, compact(table), policy_digest=digests[name], policy_values=values[name])
            for name, table in self.tables.items()
        ]
        self.saved = to_json(plan_all(*plans))

    def write_policy(self, name: str, text: str = "optimize: {maxFileSize: 1MiB}\n") -> None:
        write_project(self.root, {f"policies/{name}.yml": f"version: 1\ntable: {name}\n{text}"})

    def check(
        self,
        *,
        exact: bool = False,
        all_or_nothing: bool = False,
        now_ms: int = LATER_MS,
        text: str | None = None,
        away: str | None = None,
        order: list[str] | None = None,
    ) -> Plan:
        plan = from_json(self.saved if text is None else text)
        signs = {} if away is None else {away: Sign(TableRef(away), [] if order is None else order)}
        return check_saved_plan(
            Project.load(self.root), self.lake, plan, signs, now_ms=now_ms, exact=exact, all_or_nothing=all_or_nothing
        )

    def apply(self, on_event: ProgressSink | None = None) -> RunOutcome:
        journal = Journal.open(self.root / "runs", "20261121T220000Z-7f3a", lambda: NOW_MS)
        return run_fleet(self.check(), self.lake, journal=journal, verifier=PlainVerifier(), on_event=on_event)

    @property
    def changed(self) -> set[str]:
        return {name for name, table in self.tables.items() if table.version > 1}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_a_table_without_a_sign_of_life_is_not_done_and_fifteen_are(fleet: Fleet) -> None:
    order: list[str] = []
    checked = fleet.check(away="s.t03", order=order)
    assert order == ["s.t03 for others"]  # the fifteen are looked at first, and wait for this one
    assert [table.ref.identifier for table in checked.tables] == list(NAMES)
    assert {table.ref.identifier: table.problem.code for table in checked.tables if table.problem} == {"s.t03": "T435"}
    assert [bool(table.steps) for table in checked.tables].count(True) == 15


def test_one_changed_table_is_refused_and_fifteen_are_done(fleet: Fleet) -> None:
    fleet.tables["s.t03"].columns = {"id": "long", "note": "string"}
    outcome = fleet.apply()
    assert exit_code(outcome) is ExitCode.PARTLY_REFUSED
    assert outcome.count(TableStatus.DONE) == 15
    (refused,) = [table for table in outcome.tables if table.status is TableStatus.BLOCKED]
    assert refused.ref.identifier == "s.t03"
    assert refused.problem is not None
    assert (refused.problem.code, refused.problem.what) == ("A403", "not as planned: column note (string) was added")
    assert refused.steps == ()
    assert fleet.changed == {*NAMES} - {"s.t03"}


def test_a_changed_policy_refuses_its_table_alone(fleet: Fleet) -> None:
    fleet.write_policy("s.t00", "optimize: {maxFileSize: 1MiB, maxThreads: 2}\n")
    (fleet.root / "policies" / "s.t01.yml").unlink()
    outcome = fleet.apply()
    says = {table.ref.identifier: table.problem.what for table in outcome.tables if table.problem is not None}
    assert says == {
        "s.t00": "not as planned: policy key optimize.maxThreads was 8, now 2",
        "s.t01": "not as planned: no policy matches the table any more",
    }
    assert (outcome.count(TableStatus.DONE), exit_code(outcome)) == (14, ExitCode.PARTLY_REFUSED)


def test_a_table_that_cannot_be_read_fails_by_its_own_cause(fleet: Fleet) -> None:
    fleet.tables["s.t05"].exists = False
    del fleet.lake.tables["s.t05"]
    outcome = fleet.apply()
    (failed,) = [table for table in outcome.tables if table.status is TableStatus.FAILED]
    assert failed.problem is not None
    assert (failed.ref.identifier, failed.problem.code) == ("s.t05", "T401")
    assert (outcome.count(TableStatus.DONE), exit_code(outcome)) == (15, ExitCode.FINDINGS)


def test_with_every_table_changed_nothing_was_touched(fleet: Fleet) -> None:
    for table in fleet.tables.values():
        table.table_id = "another"
    outcome = fleet.apply()
    assert (outcome.count(TableStatus.BLOCKED), exit_code(outcome)) == (16, ExitCode.REFUSED)
    assert fleet.changed == set()


@pytest.mark.parametrize("option", ["all_or_nothing", "exact"])
def test_all_or_nothing_refuses_all_and_names_every_reason(fleet: Fleet, option: str) -> None:
    fleet.tables["s.t03"].columns = {"id": "long", "note": "string"}
    del fleet.lake.tables["s.t05"]
    with pytest.raises(Refused) as caught:
        fleet.check(exact=option == "exact", all_or_nothing=option == "all_or_nothing")
    assert (caught.value.code, caught.value.exit_code) == ("A403", ExitCode.REFUSED)
    assert caught.value.found == (
        "s.t03: column note (string) was added\ns.t05: it cannot be read: no such table [T401]"
    )
    assert fleet.changed == set()


def test_exact_refuses_all_after_any_commit(fleet: Fleet) -> None:
    fleet.tables["s.t03"].append(9)
    with pytest.raises(Refused, match="the plan is stale") as caught:
        fleet.check(exact=True)
    assert caught.value.found == "s.t03: the table is at version 2, the plan was made at version 1 (--exact)"
    assert fleet.check(all_or_nothing=True).has_changes


def test_an_old_or_edited_plan_is_refused_as_a_whole(fleet: Fleet) -> None:
    with pytest.raises(Refused, match="too old") as caught:
        fleet.check(now_ms=NOW_MS + DAY_MS + 1)
    assert caught.value.code == "A404"
    edited = fleet.saved.replace('"max_threads": 2', '"max_threads": 3', 1)
    assert edited != fleet.saved
    with pytest.raises(Refused) as caught:
        fleet.check(text=edited)
    assert caught.value.code == "A402"


def test_a_second_policy_that_came_after_the_plan_refuses_its_table_alone(fleet: Fleet) -> None:
    other = fleet.tables["s.t03"].location
    write_project(fleet.root, {"policies/other.yml": f"version: 1\ntable: {other}\n"})
    outcome = fleet.apply()
    (failed,) = [table for table in outcome.tables if table.status is TableStatus.FAILED]
    assert failed.problem is not None
    assert (failed.ref.identifier, failed.problem.code) == ("s.t03", "T409")
    assert (outcome.count(TableStatus.DONE), fleet.changed) == (15, {*NAMES} - {"s.t03"})


@pytest.mark.parametrize("option", ["all_or_nothing", "exact"])
def test_or_the_whole_plan_where_all_or_nothing_is_asked_for(fleet: Fleet, option: str) -> None:
    other = fleet.tables["s.t03"].location
    write_project(fleet.root, {"policies/other.yml": f"version: 1\ntable: {other}\n"})
    with pytest.raises(Refused, match="the plan is stale") as caught:
        fleet.check(exact=option == "exact", all_or_nothing=option == "all_or_nothing")
    assert caught.value.found is not None
    assert caught.value.found.startswith("s.t03: two policies reach the same table: this one and ")
    assert fleet.changed == set()


def test_bins_with_files_that_others_changed_are_named_and_left_out(fleet: Fleet) -> None:
    """A commit of another writer makes no plan stale, and nothing that was planned is left out in silence."""
    for name in NAMES[:2]:
        path = min(fleet.tables[name].live)
        fleet.tables[name].delete_file(path)
    table = fleet.tables["s.t01"]
    steps = compact(table, *((path,) for path in sorted(table.live)))
    whole = from_json(fleet.saved)
    (gone,) = (file for batch in whole.tables[1].rewrites[0].batches for bin_ in batch.bins for file in bin_.files[:1])
    both = replace(steps, batches=(Batch((Bin((gone,)),)), *steps.batches))
    fleet.saved = to_json(replace(whole, tables=(whole.tables[0], replace(whole.tables[1], steps=(both,)))))
    lines = io.StringIO()
    printer = ProgressText(lines, Style(), planned=PlannedNames(NAMES[:2]))
    outcome = fleet.apply(on_event=printer)
    all_of_it, part_of_it = outcome.tables
    assert (all_of_it.status, part_of_it.status) == (TableStatus.WAITING, TableStatus.DONE)
    found = run_findings(outcome)
    assert [(each.severity, each.code, each.table, each.what) for each in found] == [
        (Severity.WARNING, "A403", name, f"left out: {bins}, some of which others changed after the plan was made")
        for name, bins in (("s.t00", "1 bin with 2 files"), ("s.t01", "1 bin with 1 file"))
    ]
    assert {each.help for each in found} == {PLAN_AGAIN}
    assert exit_code(outcome) is ExitCode.OK
    assert "FAIL" not in lines.getvalue()
    assert "<failure" not in render_junit(outcome)
