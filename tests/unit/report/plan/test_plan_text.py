"""What is said of a table's other writers, in a plan and in `why`."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from datetime import date, time
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from maintainer.model.plan.plan import ContentCheck, Plan, RowCountCheck, TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import Batch, CompactStep, SetPropertiesStep, Step
from maintainer.model.run.auto_compaction import AutoCompactSwitch, SwitchSource
from maintainer.model.table.commit_records import WriterRhythm
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.resolve.resolved import (
    AutoCompactPolicy,
    Consumer,
    LimitsPolicy,
    OptimizePolicy,
    Origin,
    ResolvedPolicy,
    Suspension,
    VacuumMode,
    VacuumPolicy,
    VerifyPolicy,
    Window,
    WorthPolicy,
    ZOrderPolicy,
)
from maintainer.report.plan.plan_markdown import MARKER, render_plan_markdown
from maintainer.report.plan.plan_text import PlanTextOptions, conflict_line, render_plan, rhythm_lines
from maintainer.report.plan.why_text import render_why
from maintainer.report.style import Style
from tests.support.runs import sample_plans
from tests.support.runs.sample_plans import GIB, MIB, data_bin, full_plan, gone, items, leads, orders, plan, quiet
from tests.support.suites.golden_text import assert_golden

GOLDEN = Path(__file__).parents[1] / "golden"

SGR = re.compile(r"\x1b\[[0-9;]*m")


def fleet_policy() -> ResolvedPolicy:
    file = "policies/sales/orders.yml"
    return ResolvedPolicy(
        table=TableRef("sales.orders"),
        file=file,
        digest="sha256:a",
        optimize=OptimizePolicy(
            min_file_size_bytes=64 * MIB,
            max_file_size_bytes=256 * MIB,
            max_threads=8,
            max_deleted_rows_ratio=0.05,
            batch_size_bytes=10 * GIB,
            zorder=ZOrderPolicy(("customer_id", "product_id")),
            where=parse_predicate("order_day >= '2026-01-01'"),
            skip_newest_partitions=1,
            quiet_for_seconds=1800,
            every_seconds=86_400,
            when=WorthPolicy(20, GIB),
        ),
        verify=VerifyPolicy(RowCountCheck.SCAN, ContentCheck.FINGERPRINT, True),
        limits=LimitsPolicy(500 * GIB, 100_000, timeout_seconds=3 * 3600),
        vacuum=VacuumPolicy(7 * 86_400, False, 7 * 86_400, VacuumMode.AUTO, False, 30 * 86_400),
        auto_compact=AutoCompactPolicy(True),
        properties=(("delta.logRetentionDuration", "interval 30 days"),),
        consumers=(Consumer("orders-stream", 3 * 86_400), Consumer("audit", None, "/chk/audit")),
        windows=(Window((1, 2, 3, 4, 5), time(22), time(4), "Europe/Berlin"),),
        suspend=Suspension(date(2026, 12, 1), "migration"),
        origins={
            "optimize.minFileSize": Origin(file, 9, 3),
            "optimize.zorder": Origin("policies/_fleet/silver.yml", 11, 3),
            "vacuum": Origin(file, 25),
        },
    )


def test_a_plan_as_text() -> None:
    options = PlanTextOptions(project="lake", num_policies=214, saved_to="plan.json")
    assert_golden(GOLDEN / "plan.txt", render_plan(full_plan(), options))


def test_a_plan_as_markdown() -> None:
    assert_golden(GOLDEN / "plan.md", render_plan_markdown(full_plan()))


def test_why_names_every_decision_and_threshold() -> None:
    assert_golden(GOLDEN / "why.txt", render_why(orders(), fleet_policy(), at_ms=sample_plans.TEN_PM))


@pytest.mark.parametrize(
    ("switch", "line"),
    [
        (AutoCompactSwitch(True, SwitchSource.PROPERTY), "on: by the table property delta.autoOptimize.autoCompact"),
        (
            AutoCompactSwitch(False, SwitchSource.SESSION),
            "off: the session says so (spark.databricks.delta.autoCompact.enabled), which wins over the table",
        ),
        (AutoCompactSwitch(False, SwitchSource.DEFAULT), "off: not set"),
        ("x is `y`, neither true nor false", "not known: x is `y`, neither true nor false"),
    ],
)
def test_why_says_whether_the_writers_compact_and_who_decides(switch: AutoCompactSwitch | str, line: str) -> None:
    lines = render_why(orders(), auto_compact=switch).splitlines()
    assert lines[lines.index("Auto compaction by its writers") + 1] == f"      = {line}"


def test_why_of_a_table_with_nothing_to_do() -> None:
    table = quiet("a.b", (ReasonCode.NO_PARTNER, "1 small file, and none to join it with"))
    assert render_why(table) == (
        "a.b   v12   900 MiB in 4 files   policies/_fleet/all.yml\n"
        "\n"
        "Will do (0 steps)\n"
        "      = nothing\n"
        "\n"
        "Leaves alone\n"
        "      . left alone  no_partner: 1 small file, and none to join it with   policies/_fleet/all.yml:4\n"
    )


def test_why_of_a_blocked_and_of_an_unplannable_table() -> None:
    assert "      ! blocked     over_limit: would rewrite 812 GiB, limits.maxBytes is 500 GiB   policies" in render_why(
        leads()
    )
    text = render_why(gone())
    assert "      x error T401  no table `crm.gone` in the catalog\n" in text
    assert "Will do" not in text


@pytest.mark.parametrize("verbose", [False, True])
def test_colour_only_repeats_what_the_words_say(verbose: bool) -> None:
    options = PlanTextOptions(verbose=verbose)
    painted = render_plan(full_plan(), options, Style(color=True))
    assert painted != render_plan(full_plan(), options)
    assert SGR.sub("", painted) == render_plan(full_plan(), options)
    why = render_why(orders(), fleet_policy(), options, Style(color=True))
    assert SGR.sub("", why) == render_why(orders(), fleet_policy(), options)


def test_an_empty_and_a_quiet_plan_say_so() -> None:
    assert render_plan(plan()).endswith("No table is selected: nothing to plan.\n")
    text = render_plan(plan(quiet("a.b", (ReasonCode.AT_TARGET, "4 files of 192 MiB or more"))))
    assert text.splitlines()[2:] == [
        "  = 1 table   nothing to do: files are as compaction leaves them (1 table)",
        "",
        "Plan: 0 tables to change, 0 steps; 1 up to date.",
        "Nothing to do; `maintainer -v plan` says why, for each table.",
    ]
    applied = render_plan(plan(quiet("a.b", (ReasonCode.AT_TARGET, "x"))), PlanTextOptions(applied_next=True))
    assert applied.splitlines()[-1] == "Nothing to do."


def test_a_table_outside_its_window_is_not_called_up_to_date() -> None:
    shut = quiet("a.b", (ReasonCode.OUTSIDE_WINDOW, "outside the window sat 22:00-04:00 UTC"))
    assert render_plan(plan(shut)).splitlines()[2:] == [
        "  = 1 table   nothing to do: outside their window (1 table)",
        "",
        "Plan: 0 tables to change, 0 steps; 0 up to date, 1 waiting.",
        "Nothing to do now; `maintainer -v plan` says why, for each table.",
    ]
    text = render_plan_markdown(plan(shut))
    assert "1 table waiting" in text
    assert "table up to date" not in text


def test_a_plan_that_only_blocks_does_not_say_that_nothing_is_to_do() -> None:
    assert render_plan(plan(leads())).splitlines()[-1] == "Plan: 0 tables to change, 0 steps; 0 up to date, 1 blocked."


def test_a_plan_that_was_not_saved_says_that_apply_may_differ() -> None:
    assert render_plan(plan(items())).splitlines()[-2:] == [
        "This plan was not saved: a later `maintainer apply` plans again and may do something else.",
        "`--out FILE` saves it, so that `maintainer apply FILE` does exactly this.",
    ]


def test_the_command_to_apply_is_quoted_for_the_shell() -> None:
    text = render_plan(plan(items()), PlanTextOptions(saved_to="my plan.json"))
    # A plan of an environment is refused without it (A405).
    assert text.endswith("    maintainer --env prod apply 'my plan.json'\n")
    of_none = dataclasses.replace(plan(items()), environment=None)
    assert render_plan(of_none, PlanTextOptions(saved_to="p.json")).endswith("    maintainer apply p.json\n")


def with_owner(table: TablePlan, number: int) -> TablePlan:
    """A table that stands alone: no other has its owner."""
    return dataclasses.replace(table, owner=f"team-{number}")


def named(table: TablePlan, name: str) -> TablePlan:
    return dataclasses.replace(table, ref=TableRef(name))


def rewriting(number: int, name: str) -> TablePlan:
    """A table that stands alone, with one byte more to rewrite than its number says."""
    step = CompactStep((Batch((data_bin(None, [number, 1]),)),), 256 * MIB, 8, ())
    return with_owner(replace(named(items(), name), steps=(step,)), number)


def test_of_very_many_tables_those_with_most_to_rewrite_are_said_and_whatever_is_wrong() -> None:
    tables = [rewriting(number, f"t{number:02d}") for number in range(1, 26)]
    tables += [with_owner(named(leads(), f"x{number}"), number) for number in range(3)]
    text = render_plan(plan(*tables), PlanTextOptions(saved_to="p.json"))
    said = re.findall(r"^  \S (\w\d+) ", text, flags=re.MULTILINE)
    assert said == ["x0", "x1", "x2", *(f"t{number:02d}" for number in range(25, 5, -1))]
    assert "  ~ 5 more tables with no more to rewrite   (`-v` names each, p.json has all)\n" in text
    assert "25 tables to change" in text
    assert (
        len(re.findall(r"^  \S t\d+ ", render_plan(plan(*tables), PlanTextOptions(verbose=True)), re.MULTILINE)) == 25
    )
    assert "more table" not in render_plan(plan(*tables[5:]))


def test_long_names_stay_whole_and_do_not_push_the_others() -> None:
    long_name = "s3://bucket/" + "deep/" * 30 + "table"
    text = render_plan(plan(named(leads(), long_name), named(leads(), "a.b")))
    assert f"  ! {long_name}" in text
    assert "  ! a.b   v3   812 GiB in 4,000 files" in text


EVIL = "a\x1b[2Jb\ncrm.fake\r\u202ec|`<script>`"


def evil_plan() -> Plan:
    """Every text that comes from outside is hostile."""
    steps: list[Step] = []
    for step in orders().steps:
        reasons = tuple(dataclasses.replace(reason, text=EVIL, origin=EVIL) for reason in step.reasons)
        if isinstance(step, SetPropertiesStep):
            step = dataclasses.replace(step, before=((EVIL, EVIL),), after=((EVIL, EVIL),))
        steps.append(dataclasses.replace(step, reasons=reasons))
    left = tuple(
        dataclasses.replace(
            entry,
            reason=dataclasses.replace(entry.reason, text=EVIL, origin=EVIL),
            partition_values=((EVIL, EVIL),),
        )
        for entry in orders().left_alone
    )
    changing = dataclasses.replace(named(orders(), EVIL), steps=tuple(steps), left_alone=left, policy_file=EVIL)
    blocked = dataclasses.replace(
        named(leads(), EVIL), blocked=(dataclasses.replace(leads().blocked[0], text=EVIL, origin=EVIL),)
    )
    problem = gone().problem
    assert problem is not None
    broken = dataclasses.replace(
        named(gone(), EVIL), problem=dataclasses.replace(problem, code=EVIL, what=EVIL, where=EVIL, help=EVIL)
    )
    return dataclasses.replace(plan(changing, blocked, broken), environment=EVIL, git_commit=EVIL)


def test_no_text_from_outside_moves_the_cursor_or_breaks_a_line() -> None:
    texts = [
        render_plan(evil_plan(), PlanTextOptions(project=EVIL, saved_to=EVIL, verbose=verbose))
        for verbose in (False, True)
    ]
    texts += [render_why(table, fleet_policy()) for table in evil_plan().tables]
    texts.append(render_plan_markdown(evil_plan()))
    for text in texts:
        assert all(character == "\n" or character.isprintable() for character in text)
        assert "\ncrm.fake" not in text
    assert r"a\x1b[2Jb\ncrm.fake\r\u202ec|`<script>`" in texts[0]


def test_markdown_from_outside_stays_text() -> None:
    text = render_plan_markdown(evil_plan())
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert not [inline for token in tokens for inline in token.children or () if inline.type == "html_inline"]
    assert not [token for token in tokens if token.type == "html_block" and "script" in token.content]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {6, 4}


def test_markdown_is_the_same_for_the_same_plan_at_another_time_and_version() -> None:
    later = dataclasses.replace(
        full_plan(),
        created_at_ms=1,
        expires_at_ms=2,
        tables=tuple(
            table
            if table.observed is None
            else dataclasses.replace(table, observed=dataclasses.replace(table.observed, version=9999))
            for table in full_plan().tables
        ),
    )
    assert render_plan_markdown(later) == render_plan_markdown(full_plan())


def test_a_comment_says_the_tables_with_most_to_rewrite_first_and_leaves_out_those_with_least() -> None:
    many = plan(*(rewriting(number, f"sales.t{number:04}") for number in range(1, 2001)))
    text = render_plan_markdown(many)
    assert len(text) <= 60_000
    assert text.startswith(MARKER + "\n")
    assert text.splitlines()[3] == "**2,000 tables to change, 2,000 steps (compact 2,000); 0 up to date**"
    at_once, _, folded = text.partition("<summary>1,980 more tables with no more to rewrite</summary>")
    said, more = (re.findall(r"`sales\.t(\d+)`", part) for part in (at_once, folded))
    assert list(map(int, said)) == list(range(2000, 1980, -1))
    assert list(map(int, more)) == list(range(1980, 1980 - len(more), -1))
    assert len(more) > 200
    assert f"{1980 - len(more):,} more rows did not fit: see the saved plan." in text


def test_a_comment_says_whatever_is_wrong_first() -> None:
    wrong = [with_owner(named(leads(), f"x{number}"), number) for number in range(30)]
    text = render_plan_markdown(plan(*(rewriting(number, f"t{number}") for number in range(9)), *wrong))
    assert re.findall(r"`(\w\d+)`", text) == [*(f"x{n}" for n in range(30)), *(f"t{n}" for n in range(8, -1, -1))]


def test_verbose_shows_every_bin_of_every_batch() -> None:
    days = [f"2026-01-{day:02}" for day in range(1, 29)]
    step = CompactStep(
        batches=tuple(Batch((data_bin(day, [1, 2], day),)) for day in days),
        max_file_size_bytes=256 * MIB,
        max_threads=1,
        reasons=orders().steps[1].reasons,
    )
    text = render_plan(plan(dataclasses.replace(orders(), steps=(step,))), PlanTextOptions(verbose=True))
    assert [line.split("order_day=")[1] for line in text.splitlines() if "commit " in line] == days
    assert "      + compact     56 files, 84 MiB -> about 28 files of up to 256 MiB, in 28 commits" in text
    lines = render_plan(full_plan(), PlanTextOptions(verbose=True)).splitlines()
    assert [line.split()[-1] for line in lines if " delete " in line] == ["old-1.parquet", "dv/old-2.bin"]
    assert all(any(f" {table.ref} " in line for line in lines) for table in full_plan().tables)


DAY_MS = 86_400_000
BUSY = WriterRhythm(0, 4 * DAY_MS + 4 * 3_600_000, 100, (0, 14, *[0] * 12, 11, *[0] * 9))
APPENDS = WriterRhythm(0, 7 * DAY_MS, 1)


def test_why_says_what_was_seen_and_when() -> None:
    assert rhythm_lines(BUSY, 0.004) == [
        "100 commits of others in 4d 4h, 25 of them took or replaced live files",
        "most from 01:00 to 02:00 UTC: 14 of 25",
        "chance that they make a rewrite useless if it runs now: <1%",
    ]
    assert rhythm_lines(APPENDS, 0.0) == [
        "1 commit of others in 7d, none of them took or replaced live files",
        "chance that they make a rewrite useless if it runs now: 0%",
    ]


def test_a_plan_has_a_line_where_it_is_worth_one() -> None:
    assert conflict_line(BUSY, 0.009) is None
    assert conflict_line(APPENDS, 0.5) == "other writers will probably make 50% of this useless, as in past runs"
    plan = sample_plans.full_plan()
    table = replace(next(table for table in plan.tables if table.steps), writers=BUSY)
    line = (
        "      ! conflicts   other writers will probably make 12% of this useless: "
        "100 commits of others in 4d 4h, 25 of them took or replaced live files"
    )
    options = PlanTextOptions(lost_ratios={table.ref: 0.118})
    one_table = replace(plan, tables=(table,))
    assert line in render_plan(one_table, options).splitlines()
    assert "conflicts" not in render_plan(one_table)
    why = render_why(table, options=options).splitlines()
    at = why.index("Other writers")
    assert why[at + 1 : at + 4] == [f"      = {text}" for text in rhythm_lines(BUSY, 0.118)]
    assert "Other writers" not in render_why(replace(table, writers=None))


def test_a_plan_without_changes_says_that_it_was_saved() -> None:
    saved = PlanTextOptions(saved_to="plan.json")
    end = "Saved plan.json: it changes nothing.\n"
    assert render_plan(plan(), saved).endswith(f"nothing to plan.\n{end}")
    table = quiet("a.b", (ReasonCode.AT_TARGET, "4 files of 192 MiB or more"))
    assert render_plan(plan(table), saved).endswith(f"for each table.\n{end}")
    assert "Saved" not in render_plan(plan(table), replace(saved, applied_next=True))
