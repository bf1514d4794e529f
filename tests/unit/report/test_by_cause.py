"""What holds for many tables is said once, in a plan and in the status; what is one table's own stays its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.model.plan.lanes import Codec
from maintainer.model.plan.plan import LeftAlone, Plan, Problem, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Batch, CompactStep
from maintainer.model.run.commit_verdict import TableVerification, VerifyRun
from maintainer.model.run.history_rows import StatusRow
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus
from maintainer.model.table.table_facts import TableRef
from maintainer.report.document.terminal_writer import terminal_text
from maintainer.report.findings import render_annotations
from maintainer.report.plan.plan_markdown import render_plan_markdown
from maintainer.report.plan.plan_text import PlanTextOptions, render_plan
from maintainer.report.run.run_findings import joined, run_findings
from maintainer.report.run.run_text import ended_tables, run_markdown
from maintainer.report.run.verify_text import render_verify, verify_findings
from maintainer.report.status_text import render_status
from maintainer.report.style import PLAIN
from maintainer.units import format_size
from tests.support.runs.sample_plans import MIB, data_bin, full_plan, items, observed

NAMES = [f"s3://lake/t/t{number:02}" for number in range(30)]


def refused_plan(*, own: int) -> Plan:
    """A plan of 30 tables that a store refuses; the last ``own`` of them for a reason of their own."""
    sample = next(table for table in full_plan().tables if table.problem is not None)
    tables = []
    for number, name in enumerate(NAMES):
        what = "the key is wrong" if number < 30 - own else f"no such folder {number}"
        tables.append(replace(sample, ref=TableRef(name), problem=Problem("T440", what, name, "set the key")))
    return replace(full_plan(), tables=tuple(tables))


def test_a_plan_says_one_cause_once_and_verbose_names_each_table() -> None:
    text = render_plan(refused_plan(own=2))
    assert text.count("the key is wrong") == 1
    assert "28 tables" in text
    assert "s3://lake/t/t00, s3://lake/t/t01, s3://lake/t/t02 and 25 more" in text
    assert (text.count("no such folder 28"), text.count("no such folder 29")) == (1, 1)
    assert "30 cannot be planned" in text
    verbose = render_plan(refused_plan(own=2), PlanTextOptions(verbose=True))
    assert verbose.count("the key is wrong") == 28
    markdown = render_plan_markdown(refused_plan(own=2))
    assert markdown.count("the key is wrong") == 1
    assert "28 tables: `s3://lake/t/t00`, `s3://lake/t/t01`, `s3://lake/t/t02` and 25 more" in markdown


def test_what_differs_in_the_name_of_the_table_alone_is_one_cause_everywhere() -> None:
    wrong = [
        Problem("T403", f"its log cannot be read (found: {name}/_delta_log/1.json)", name, "look") for name in NAMES
    ]
    sample = refused_plan(own=0).tables[0]
    tables = [replace(sample, ref=TableRef(name), problem=each) for name, each in zip(NAMES, wrong, strict=True)]
    outcomes = [
        TableOutcome(TableRef(name), TableStatus.FAILED, (), each, "rules.yml")
        for name, each in zip(NAMES, wrong, strict=True)
    ]
    checked = [TableVerification(TableRef(name), problem=each) for name, each in zip(NAMES, wrong, strict=True)]
    rows = [StatusRow(name, "problem", next=each.what) for name, each in zip(NAMES, wrong, strict=True)]
    run = RunOutcome("r", 0, 1.0, tuple(outcomes))
    for text in (
        render_plan(replace(full_plan(), tables=tuple(tables))),
        terminal_text([ended_tables(run.tables)], PLAIN),
        run_markdown(run),
        render_annotations(joined(run_findings(run))),
        render_verify(VerifyRun("r", 0, 1.0, tuple(checked))),
        render_status(rows, 0),
    ):
        assert (text.count("cannot be read"), text.count("t00/_delta_log/1.json")) == (1, 1), text


def equal_tables(number: int, *, by_rule: bool) -> list[TablePlan]:
    """Tables with a compaction each, of which only the figures differ: by one rule, or by a policy file each."""
    tables = []
    for place in range(number):
        small = [1] * (9 + place % 3)
        file = "policies/lake.yml" if by_rule else f"policies/lake/t{place:03}.yml"
        step = CompactStep(
            (Batch((data_bin(None, small),)),),
            256 * MIB,
            1,
            (Reason(ReasonCode.SMALL_FILES, f"{len(small)} files under 64 MiB", f"{file}:14"),),
        )
        seen = observed(place, len(small), sum(small) * MIB)
        ref = TableRef(f"lake/t{place:03}")
        tables.append(TablePlan(ref, file, "d", seen, (step,), owner="team-a", rule_line=14 if by_rule else None))
    return tables


@pytest.mark.parametrize("by_rule", [True, False])
def test_three_hundred_equal_tables_are_one_and_verbose_names_each(by_rule: bool) -> None:
    tables = equal_tables(300, by_rule=by_rule)
    num_files = sum(table.rewrites[0].num_files for table in tables)
    fleet = replace(full_plan(), tables=(*tables, items()))
    text = render_plan(fleet)
    place = "policies/lake.yml:14" if by_rule else "policies/lake/t000.yml:14 and 299 more"
    lines = [" ".join(line.split()) for line in text.splitlines()]
    size = format_size(num_files * MIB)
    assert "lake/t000, lake/t001, lake/t002 and 297 more (`-v` names each)" in lines
    assert any(line.startswith(f"~ 300 tables of team-a {size} in {num_files:,} files policies/lake") for line in lines)
    assert f"+ compact {num_files:,} files, {size} -> about 300 files of up to 256 MiB" in " ".join(lines)
    assert f"each: 9 to 11 files under 64 MiB {place}" in " ".join(lines)
    assert len(lines) <= 16
    assert render_plan(fleet, PlanTextOptions(verbose=True)).count("lake/t2") >= 100
    rows = [line for line in render_plan_markdown(fleet).splitlines() if "`lake/t" in line]
    assert len(rows) == 1
    assert "300 tables of team-a: `lake/t000`, `lake/t001`, `lake/t002` and 297 more" in rows[0]


def test_partitions_of_several_tables_are_counted_for_each() -> None:
    reason = Reason(ReasonCode.HOT_PARTITION, "2 files written lately", "policies/lake.yml:14")
    left = LeftAlone(reason, 2, MIB, (("day", "1"),))
    tables = [replace(table, left_alone=(left,)) for table in equal_tables(5, by_rule=True)]
    assert "10 files, 5 MiB in 5 partitions" in render_plan(replace(full_plan(), tables=tuple(tables)))


def test_what_differs_in_more_than_figures_is_not_one() -> None:
    tables = equal_tables(9, by_rule=True)
    tables[:3] = [replace(table, owner="team-b") for table in tables[:3]]
    tables[3] = replace(tables[3], rule_line=20)
    (step,) = tables[4].rewrites
    tables[4] = replace(tables[4], steps=(replace(step, codec=Codec.ZSTD),))
    shown = [
        line.split("   ")[0].strip() for line in render_plan(replace(full_plan(), tables=tuple(tables))).splitlines()
    ]
    assert [line for line in shown if line.startswith("~")] == [
        "~ 4 tables of team-a", "~ 3 tables of team-b", "~ lake/t004", "~ lake/t003"
    ]  # fmt: skip


def test_a_run_on_github_says_one_cause_once_at_the_place_that_all_share() -> None:
    stale = Problem("A403", "not as planned: policy key optimize.maxThreads was 8, now 2", "rules.yml:3")
    tables = [TableOutcome(TableRef(name), TableStatus.BLOCKED, (), stale, "rules.yml") for name in NAMES]
    elsewhere = replace(stale, where="other.yml:3")
    findings = joined(run_findings(RunOutcome("r", 0, 1.0, tuple(tables))))
    (command,) = render_annotations(findings).splitlines()
    assert command.startswith("::error title=maintainer A403,file=rules.yml,line=3::30 tables: not as planned")
    assert "s3://lake/t/t04 and 25 more" in command
    summary = run_markdown(RunOutcome("r", 0, 1.0, tuple(tables)))
    assert (summary.count("not as planned"), "and 25 more" in summary) == (1, True)
    tables[0] = replace(tables[0], problem=elsewhere, policy_file="other.yml")
    (finding,) = joined(run_findings(RunOutcome("r", 0, 1.0, tuple(tables))))
    assert (finding.where, finding.file) == ("", "")


def test_the_summary_of_a_run_names_each_of_several_tables_whole() -> None:
    stale = Problem("A403", "not as planned")
    names = ("lake/a $new", "lake/b @x", "lake/c, d")
    tables = tuple(TableOutcome(TableRef(name), TableStatus.BLOCKED, (), stale, "rules.yml") for name in names)
    summary = run_markdown(RunOutcome("r", 0, 1.0, tables))
    assert "A403 not as planned; `lake/a $new`, `lake/b @x`, `lake/c, d` |" in summary


def test_a_verification_says_one_cause_once() -> None:
    refused = Problem("T440", "the key is wrong", help="set the key")
    tables = [TableVerification(TableRef(name), problem=refused) for name in NAMES]
    own = TableVerification(TableRef("s.own"), problem=Problem("T401", "there is no such table"))
    run = VerifyRun("r", 0, 1.0, (*tables, own))
    text = render_verify(run)
    assert (text.count("the key is wrong"), text.count("there is no such table")) == (1, 1)
    assert "! 30 tables\n      s3://lake/t/t00, s3://lake/t/t01, s3://lake/t/t02 and 27 more " in text
    assert render_verify(run, verbose=True).count("the key is wrong") == 30
    assert "31 tables: 31 could not check" in text
    assert [finding.table for finding in verify_findings(run)] == ["30 tables", "s.own"]


def test_a_status_says_one_cause_once_and_counts_each_table() -> None:
    rows = [StatusRow(name, "problem", next="the key is wrong") for name in NAMES]
    rows.append(StatusRow("s3://lake/t/t30", "problem", next="no such folder"))
    text = render_status(rows, 0)
    assert text.count("the key is wrong") == 1
    assert "the key is wrong: s3://lake/t/t00, s3://lake/t/t01, s3://lake/t/t02 and 27 more" in text
    assert text.count("no such folder") == 1
    assert "31 tables: 31 problem" in text
    assert render_status(rows, 0, verbose=True).count("the key is wrong") == len(NAMES)


def test_three_hundred_healthy_tables_are_one_line_of_status_and_those_with_work_are_named() -> None:
    day, now = 86_400_000, 40 * 86_400_000
    rows = [
        StatusRow(f"lake/t{n}", "ok", n, 10 + n, n * MIB, 1, now - (n % 3 + 2) * day, next="nothing to do",
                  commits_seen_from=0)
        for n in range(300)
    ]  # fmt: skip
    due = [StatusRow(f"lake/d{n}", "due", n, n, MIB, 1, next=f"compact {9 + n} files") for n in range(4)]
    _, *lines, totals = render_status([*rows, *due], now).splitlines()
    assert lines[0].split()[:3] == ["4", "tables", "due"]
    assert lines[1].strip() == "compact 9 to 12 files: lake/d0, lake/d1, lake/d2 and 1 more"
    files, size = sum(row.num_files or 0 for row in rows), sum(row.size_bytes or 0 for row in rows)
    figures = f"-  {files:,}  {format_size(size)}  4d ago  never  -"
    assert " ".join(lines[2].split()) == " ".join(f"300 tables  ok  {figures}".split())
    assert (len(lines), totals) == (3, "304 tables: 300 ok, 4 due")
    assert len(render_status([*rows, *due], now, verbose=True).splitlines()) == 306
    with_owners = [replace(row, owner="ab"[n % 2]) for n, row in enumerate(rows)]
    names = [line.split("  ")[0] for line in render_status(with_owners, now).splitlines()[1:3]]
    assert names == ["150 tables of a", "150 tables of b"]
