from __future__ import annotations

import dataclasses
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.exit_codes import exit_code, exit_reason, plan_exit_code
from maintainer.model.run.optimize_metrics import FileSizeMetrics, OptimizeMetrics
from maintainer.model.run.outcome import (
    Assertion,
    Preparation,
    RunOutcome,
    StepOutcome,
    StepStatus,
    TableOutcome,
    TableStatus,
    run_from_json,
    run_to_json,
)
from maintainer.model.run.receipts import CommitReceipt, VacuumReceipt, Verdict
from maintainer.model.table.store_requests import RunRequests, StoreRequests
from maintainer.model.table.table_facts import TableRef
from maintainer.report.findings import render_annotations
from maintainer.report.run.outcome_text import MAX_WIDTH, metrics_lines
from maintainer.report.run.run_findings import render_junit, run_findings
from maintainer.report.run.run_text import MAX_BLOCKS, render_requests, render_run, render_steps, run_markdown
from maintainer.report.style import Style
from tests.support.runs.sample_plans import TEN_PM, gone, items, leads, plan, quiet
from tests.support.runs.sample_runs import RUN, bad_run, compact_done, good_run, properties_done
from tests.support.suites.golden_text import assert_golden

GOLDEN = Path(__file__).parents[1] / "golden"

REMOVED = FileSizeMetrics(1024, 4096, 2048.5, 1204, 2466394)
METRICS = OptimizeMetrics(
    151,
    1204,
    FileSizeMetrics(10, 20, 15.0, 151, 2265),
    REMOVED,
    3,
    151,
    2,
    1300,
    96,
    1_795_298_400_000,
    1_795_298_675_000,
)


def with_metrics() -> RunOutcome:
    run = good_run()
    table = run.tables[0]
    steps = tuple(replace(step, metrics=METRICS) if step.kind == "compact" else step for step in table.steps)
    return replace(run, tables=(replace(table, steps=steps), *run.tables[1:]))


def test_figures_stand_under_the_names_that_optimize_has_for_them() -> None:
    lines = metrics_lines(replace(compact_done(), metrics=METRICS))
    pairs = dict(pair.split(" ") for line in lines for pair in line.split("   "))
    assert pairs["numFilesAdded"] == "151"
    assert pairs["filesRemoved.avg"] == "2048.5"
    assert pairs["filesRemoved.totalSize"] == "2466394"
    assert (pairs["numBins"], pairs["numBatches"], pairs["totalFilesSkipped"]) == ("151", "2", "96")
    assert "zOrderStats" not in pairs
    assert "preserveInsertionOrder" not in pairs
    assert all(len(line) <= MAX_WIDTH for line in lines)


def test_a_step_that_rewrites_nothing_has_no_figures() -> None:
    assert metrics_lines(properties_done()) == []


def test_show_names_every_step_and_verbose_its_figures() -> None:
    lines = [" ".join(line.split()) for line in render_steps(with_metrics()).splitlines()]
    assert [line.split()[:3] for line in lines[1:-1]] == [
        ["+", "properties", "OK"],
        ["+", "compact", "OK"],
        ["+", "vacuum", "OK"],
    ]
    assert lines[0].startswith("+ sales.orders")
    assert "1,204 -> 151 files" in lines[2]
    assert "numFilesAdded 151" in render_steps(with_metrics(), verbose=True)
    assert "in 151 bins and 2 commits" in render_run(with_metrics())
    assert "bins" not in render_run(good_run())


FOLDER = f".maintainer/runs/{RUN}"


def run_of(*ends: TableStatus | StepStatus | StepOutcome, interrupted_by: str | None = None) -> RunOutcome:
    """A run with a table for each table status, and a table with one step for each step or step status."""
    tables = []
    for number, end in enumerate(ends):
        ref = TableRef(f"a.t{number}")
        if isinstance(end, TableStatus):
            tables.append(TableOutcome(ref, end))
            continue
        step = end if isinstance(end, StepOutcome) else StepOutcome("a.t/compact", StepKind.COMPACT, end, TEN_PM, 1.0)
        tables.append(TableOutcome(ref, TableStatus.DONE, (step,)))
    return RunOutcome(RUN, TEN_PM, 1.0, tuple(tables), interrupted_by)


def committed(status: StepStatus = StepStatus.SUCCEEDED) -> StepOutcome:
    """A step of which a commit landed, however it ended."""
    return StepOutcome("a.t/compact", StepKind.COMPACT, status, TEN_PM, 1.0, commits=(CommitReceipt(8, 7),))


def deleted(*, num_files: int, emptied: int = 0, version_after: int | None = None) -> StepOutcome:
    """A deletion that ended well: with its commits from version 7 on, or without any."""
    receipt = VacuumReceipt(
        num_files, 10 * num_files, version_before=7, version_after=version_after, num_files_emptied=emptied
    )
    return StepOutcome("a.t/vacuum", StepKind.VACUUM, StepStatus.SUCCEEDED, TEN_PM, 1.0, vacuum=receipt)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (run_of(), 0),
        (run_of(TableStatus.DONE, TableStatus.UP_TO_DATE, TableStatus.YIELDED), 0),
        (run_of(TableStatus.DONE, TableStatus.WAITING), 0),
        (run_of(TableStatus.DONE, TableStatus.NOT_REACHED), 1),
        (run_of(StepStatus.SUCCEEDED, StepStatus.NOTHING_LEFT, StepStatus.YIELDED, StepStatus.SKIPPED), 0),
        (run_of(TableStatus.BLOCKED), 4),
        (run_of(TableStatus.BLOCKED, TableStatus.UP_TO_DATE, StepStatus.NOTHING_LEFT), 4),
        (run_of(TableStatus.BLOCKED, committed()), 6),
        (run_of(TableStatus.BLOCKED, committed(StepStatus.YIELDED)), 6),
        (run_of(TableStatus.BLOCKED, deleted(num_files=1)), 6),
        (run_of(TableStatus.BLOCKED, deleted(num_files=0, emptied=1)), 6),
        (run_of(TableStatus.BLOCKED, deleted(num_files=0, version_after=9)), 6),
        (run_of(TableStatus.BLOCKED, deleted(num_files=0)), 4),
        (run_of(TableStatus.BLOCKED, committed(), TableStatus.FAILED), 1),
        (run_of(TableStatus.BLOCKED, committed(), StepStatus.VERIFY_FAILED), 5),
        (run_of(TableStatus.BLOCKED, committed(), interrupted_by="SIGTERM"), 143),
        (run_of(TableStatus.BLOCKED, TableStatus.FAILED), 1),
        (run_of(StepStatus.FAILED), 1),
        (run_of(StepStatus.UNKNOWN), 1),
        (run_of(StepStatus.INCOMPLETE), 1),
        (run_of(TableStatus.FAILED, TableStatus.VERIFY_FAILED, TableStatus.BLOCKED), 5),
        (run_of(StepStatus.VERIFY_FAILED, interrupted_by="SIGINT"), 5),
        (run_of(TableStatus.FAILED, interrupted_by="SIGINT"), 130),
        (run_of(TableStatus.DONE, interrupted_by="timeout"), 130),
        (run_of(TableStatus.NOT_REACHED, interrupted_by="SIGTERM"), 143),
        # One Spark job was ended from outside, or the run itself held its deletions back: nobody stopped the run.
        (run_of(TableStatus.INTERRUPTED), 1),
        (run_of(StepStatus.INTERRUPTED), 1),
        (run_of(TableStatus.FAILED, TableStatus.INTERRUPTED, TableStatus.NOT_REACHED), 1),
        (run_of(TableStatus.INTERRUPTED, interrupted_by="maintainer stop"), 130),
        (run_of(StepStatus.INTERRUPTED, interrupted_by="SIGTERM"), 143),
    ],
)
def test_exit_code_of_a_run(outcome: RunOutcome, expected: int) -> None:
    assert exit_code(outcome) == expected


@pytest.mark.parametrize(
    ("tables", "detailed", "expected"),
    [
        ((), True, 0),
        ((quiet("a.b"),), True, 0),
        ((items(),), False, 0),
        ((items(),), True, 3),
        ((items(), leads()), True, 4),
        ((items(), leads(), gone()), True, 1),
    ],
)
def test_exit_code_of_a_plan(tables: tuple[TablePlan, ...], detailed: bool, expected: int) -> None:
    assert plan_exit_code(plan(*tables), detailed=detailed) == expected


def test_the_time_is_what_somebody_waited_for_with_its_parts() -> None:
    run = dataclasses.replace(run_of(TableStatus.UP_TO_DATE), duration_seconds=0.062)
    assert render_run(run).startswith("Done in 62ms: 0 steps succeeded")
    waited = dataclasses.replace(run, preparation=Preparation(24.9, 15.9))
    text = "40.9s (start 24.9s, planning 15.9s, run 62ms)"
    assert render_run(waited).startswith(f"Done in {text}: 0 steps succeeded")
    assert text in run_markdown(waited)
    stopped = dataclasses.replace(waited, interrupted_by="SIGTERM")
    assert render_run(stopped).startswith(f"Interrupted by SIGTERM after {text}: ")
    assert run_from_json(run_to_json(waited)) == waited


def test_every_exit_code_has_words() -> None:
    assert all(exit_reason(code) for code in ExitCode)


def test_the_end_of_a_good_run() -> None:
    assert_golden(GOLDEN / "run_good.txt", render_run(good_run(), run_folder=FOLDER))


def test_tables_that_wait_are_counted_apart() -> None:
    outcome = run_of(StepStatus.SUCCEEDED, TableStatus.UP_TO_DATE, TableStatus.WAITING, TableStatus.WAITING)
    assert "4 tables: 1 done, 1 up to date, 2 waiting." in render_run(outcome, run_folder=FOLDER)
    skipped = ET.fromstring(render_junit(outcome).encode()).findall(".//skipped")
    assert [line.get("message") for line in skipped] == ["waiting: held back for now"] * 2


def test_the_end_of_a_bad_run() -> None:
    assert_golden(GOLDEN / "run_bad.txt", render_run(bad_run(), run_folder=FOLDER))
    painted = render_run(bad_run(), Style(color=True), run_folder=FOLDER)
    assert painted.startswith("\x1b[1;31merror[V503]\x1b[0m: sales.orders, compact: ")
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render_run(bad_run(), run_folder=FOLDER)


def test_the_end_of_an_interrupted_run() -> None:
    lines = render_run(run_of(TableStatus.INTERRUPTED, interrupted_by="SIGINT"), next_command="maintainer retry")
    assert lines.splitlines() == [
        "Interrupted by SIGINT after 1.0s: 0 steps succeeded, 0 failed.",
        "1 table: 1 interrupted.",
        "Exit code 130: interrupted before everything was done.",
        "To continue with the rest:    maintainer retry",
    ]


@pytest.mark.parametrize("status", TableStatus)
def test_the_end_names_retry_where_that_takes_up_a_table(status: TableStatus) -> None:
    """A failed verification is for a person first."""
    assert ("maintainer retry" in render_run(run_of(status))) == (
        status in ("failed", "yielded", "not_reached", "interrupted")
    )


@pytest.mark.parametrize(("code", "named"), [("A406", True), ("A403", True), ("A411", False), ("A420", False)])
def test_the_end_names_retry_for_a_blocked_table_only_where_that_may_do_it(code: str, named: bool) -> None:
    """A table in quarantine, or above its limits, is blocked again."""
    run = run_of(TableStatus.BLOCKED)
    tables = tuple(replace(table, problem=Problem(code, "blocked")) for table in run.tables)
    assert ("maintainer retry" in render_run(replace(run, tables=tables))) is named


def test_tables_that_the_run_never_came_to_are_told_together() -> None:
    problem = Problem("C713", "not started: 1 table failed, and --max-failures is 1", help="take up what is left")
    left = tuple(
        TableOutcome(TableRef(f"t{number}"), TableStatus.NOT_REACHED, (), problem, f"p/t{number}.yml")
        for number in range(8)
    )
    failed = TableOutcome(TableRef("a"), TableStatus.FAILED, (), Problem("T401", "no such table"), "p/a.yml")
    lines = render_run(RunOutcome(RUN, TEN_PM, 1.0, (failed, *left))).splitlines()
    assert lines[:6] == [
        "error[T401]: a: no such table",
        "  --> p/a.yml",
        "warning[C713]: 8 tables: not started: 1 table failed, and --max-failures is 1",
        "   = t0, t1, t2, t3, t4 and 3 more",
        "   = help: take up what is left",
        "",
    ]
    two = render_run(RunOutcome(RUN, TEN_PM, 1.0, (failed, *left[:2]))).splitlines()
    assert [line for line in two if line.startswith("warning")] == [
        f"warning[C713]: t{number}: not started: 1 table failed, and --max-failures is 1" for number in (0, 1)
    ]


def test_a_check_that_did_not_decide_is_a_warning() -> None:
    step = dataclasses.replace(
        compact_done(), assertions=(Assertion("expect_x", Verdict.ERROR, 1845, error="no such column", column="price"),)
    )
    run = RunOutcome(RUN, TEN_PM, 1.0, (TableOutcome(TableRef("a.b"), TableStatus.DONE, (step,), None, "p/a.yml"),))
    assert render_run(run).splitlines()[:3] == [
        "warning: a.b, compact: 1 of 1 check did not pass; the step itself stands",
        "  --> p/a.yml",
        "   = expect_x(price): could not check: no such column",
    ]
    assert exit_code(run) is ExitCode.OK


def test_a_thousand_failures_are_counted_after_the_first() -> None:
    tables = tuple(
        TableOutcome(
            TableRef(f"a.t{number}"), TableStatus.FAILED, problem=Problem("T405", f"permission denied: /lake/t{number}")
        )
        for number in range(1000)
    )
    text = render_run(RunOutcome(RUN, TEN_PM, 1.0, tables))
    assert text.count("error[T405]: a.t") == MAX_BLOCKS
    assert "... and 950 more (T405 950): all in results.json of the run folder\n" in text


def test_one_failure_is_told_once() -> None:
    step = StepOutcome(
        "a.b/compact", StepKind.COMPACT, StepStatus.FAILED, TEN_PM, 1.0, error=Problem("C702", "disk full")
    )
    run = RunOutcome(RUN, TEN_PM, 1.0, (TableOutcome(TableRef("a.b"), TableStatus.FAILED, (step,), step.error),))
    assert render_run(run).count("disk full") == 1
    assert render_junit(run).count("<testcase") == 1


def test_junit_of_a_bad_run() -> None:
    text = render_junit(bad_run())
    assert_golden(GOLDEN / "run_bad.junit.xml", text)
    root = ET.fromstring(text.encode())
    assert [suite.get("name") for suite in root] == [table.ref.identifier for table in bad_run().tables]
    for element, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert len(root.findall(f".//{element}")) == int(root.attrib[attribute])
        assert int(root.attrib[attribute]) == sum(int(suite.attrib[attribute]) for suite in root)
    assert len(root.findall(".//testcase")) == int(root.attrib["tests"])


EVIL = "a\x1b[2J\x00\n::error::b\"<&>' ]]> \ud800 100%"


def evil_run() -> RunOutcome:
    problem = Problem(EVIL, EVIL, EVIL, EVIL)
    step = StepOutcome(
        EVIL,
        StepKind.COMPACT,
        StepStatus.FAILED,
        TEN_PM,
        1.0,
        assertions=(Assertion(EVIL, Verdict.FAIL, 1, EVIL, EVIL, EVIL, EVIL),),
        error=problem,
        note=EVIL,
    )
    table = TableOutcome(TableRef(EVIL), TableStatus.FAILED, (step,), Problem("T401", EVIL), EVIL, EVIL)
    return RunOutcome(EVIL, TEN_PM, 1.0, (table,), EVIL)


def test_hostile_names_stay_text_everywhere() -> None:
    root = ET.fromstring(render_junit(evil_run()).encode())
    assert root[0].get("name") == r"""a\x1b[2J\x00\n::error::b"<&>' ]]> \ud800 100%"""
    for text in (render_run(evil_run(), run_folder=EVIL), run_markdown(evil_run())):
        assert all(character == "\n" or character.isprintable() for character in text)
    commands = render_annotations(run_findings(evil_run())).splitlines()
    assert len(commands) == 2
    assert all(command.startswith("::error title=maintainer ") for command in commands)
    assert r"%0A\x3a:error::b" in commands[0].split("::", 2)[2]


def test_annotations_of_a_bad_run() -> None:
    assert_golden(GOLDEN / "run_bad.github.txt", render_annotations(run_findings(bad_run())))
    assert_golden(GOLDEN / "run_bad.md", run_markdown(bad_run()))


def test_what_went_to_the_trash_was_not_deleted() -> None:
    step = deleted(num_files=3)
    assert step.vacuum is not None
    moved = replace(step, vacuum=replace(step.vacuum, trash="/lake/.maintainer-trash/t/r"))
    text = render_run(run_of(moved))
    assert "Moved 3 files, " in text
    assert "eleted" not in text


SAID = "Asked of object stores until the record was closed: "
ASKED = RunRequests(StoreRequests(48, 13, 12, 5, 2), StoreRequests(lists=1, writes=2), 0.0001244, "EUR", 1234)


@pytest.mark.parametrize(
    ("requests", "line"),
    [
        (
            ASKED,
            f"{SAID}83 requests (48 reads, 13 looks, 13 lists, 7 writes, 2 deletions); 3 of them by "
            "Hadoop's client; 0.00012 EUR; the plan said about 1,200 requests.",
        ),
        (
            RunRequests(StoreRequests(reads=1), StoreRequests()),
            f"{SAID}1 request (1 read, 0 looks, 0 lists, 0 writes, 0 deletions).",
        ),
        (
            RunRequests(StoreRequests(reads=1), None, 12.0, ""),
            f"{SAID}1 request (1 read, 0 looks, 0 lists, 0 writes, 0 deletions); Spark's own are not counted; 12.00.",
        ),
    ],
)
def test_what_a_run_asked_of_stores_is_said_with_its_price(requests: RunRequests, line: str) -> None:
    run = replace(good_run(), requests=requests)
    assert f"\n{line}\n" in render_run(run)
    assert line in run_markdown(run)
    assert run_from_json(run_to_json(run)) == run
    assert "object stores" not in render_run(good_run())


def test_what_runs_asked_together_says_no_more_than_each_of_them() -> None:
    uncounted = RunRequests(StoreRequests(reads=1))
    assert render_requests([]) == ""
    assert render_requests([ASKED, ASKED]).startswith(f"2 runs. {SAID}166 requests (96 reads,")
    assert render_requests([ASKED, ASKED]).endswith("; 6 of them by Hadoop's client; 0.00025 EUR.\n")
    assert render_requests([ASKED, uncounted]).endswith("2 deletions); Spark's own are not counted.\n")
    # Amounts of two currencies have no sum.
    assert render_requests([ASKED, replace(ASKED, currency="USD")]).endswith("; 6 of them by Hadoop's client.\n")


def test_results_of_a_version_that_counted_no_requests_are_read() -> None:
    document = json.loads(run_to_json(good_run()))
    del document["requests"]
    assert run_from_json(json.dumps(document)) == good_run()
