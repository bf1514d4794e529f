from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from maintainer.model.plan.plan import BUILT_IN_POLICY
from maintainer.model.run.history_rows import LOST, HistoryRow, StatusRow
from maintainer.report.status_documents import history_csv, history_json, status_json
from maintainer.report.status_text import WIDTH, age, no_steps, render_history, render_status, status_table
from maintainer.report.style import Style
from maintainer.report.text_layout import short_share
from tests.support.runs.sample_plans import GIB, TEN_PM
from tests.support.runs.sample_runs import RUN

DAY_MS = 86_400_000
HISTORY = [
    HistoryRow(
        at_ms=TEN_PM,
        table="sales.orders",
        step="compact",
        status="succeeded",
        run_id=RUN,
        version_before=1846,
        version_after=1847,
        num_files_removed=1204,
        num_files_added=151,
        bytes_removed=38 * GIB,
        bytes_added=37 * GIB,
        duration_seconds=275.0,
        proof="pass",
        git_commit="3f2c1a9",
    ),
    HistoryRow(
        at_ms=TEN_PM + 60_000,
        table="sales.orders",
        step="vacuum",
        status="failed",
        run_id=RUN,
        error_code="C702",
        error="no permission to delete\nin /lake",
    ),
    HistoryRow(
        at_ms=TEN_PM - DAY_MS,
        table="crm.leads",
        step="OPTIMIZE",
        status="",
        version_before=1790,
        version_after=1791,
        by="notebook 991",
    ),
]
STATUS = [
    StatusRow(
        "sales.orders",
        "ok",
        12,
        8577,
        3 * GIB,
        1849,
        TEN_PM - 3_600_000,
        "succeeded",
        TEN_PM - 6 * DAY_MS,
        "pass",
        TEN_PM,
        "tomorrow 22:00",
        auto_compact=True,
        auto_compact_source="delta.autoOptimize.autoCompact",
    ),
    StatusRow(
        "sales.items",
        "failed",
        96,
        812,
        88 * GIB,
        77,
        TEN_PM - DAY_MS,
        "failed",
        next="maintainer apply",
        auto_compact=False,
        auto_compact_source="session",
        commits_seen_from=0,
    ),
    StatusRow("sales.日本", "unmanaged"),
]


def test_history_as_text() -> None:
    assert render_history(HISTORY).splitlines() == [
        "WHEN (UTC)        RUN                    TABLE         STEP      RESULT  VERSIONS      PROOF   DETAIL",
        "2026-11-21 22:00  20261121T220000Z-7f3a  sales.orders  compact   ok      1846 -> 1847  proven  "
        "1,204 -> 151 files, 38 GiB, 4m 35s, @ 3f2c1a9",
        "2026-11-21 22:01  20261121T220000Z-7f3a  sales.orders  vacuum    FAILED  -             -       "
        "C702: no permission to delete\\nin /lake",
        "2026-11-20 22:00  -                      crm.leads     OPTIMIZE  -       1790 -> 1791  -       "
        "outside maintainer, by notebook 991",
    ]


def test_history_of_one_table_has_no_column_for_it() -> None:
    lines = render_history(HISTORY[:1], tz=ZoneInfo("Europe/Berlin"), one_table=True).splitlines()
    assert lines[0] == "WHEN (CET)        RUN                    STEP     RESULT  VERSIONS      PROOF   DETAIL"
    assert lines[1].startswith("2026-11-21 23:00  20261121T220000Z-7f3a  compact  ok")


def test_history_over_a_change_of_the_clock_names_the_zone_of_each_time() -> None:
    summer = HistoryRow(TEN_PM - 60 * DAY_MS, "a.b", "compact", "succeeded", RUN)
    lines = render_history([HISTORY[0], summer], tz=ZoneInfo("Europe/Berlin")).splitlines()
    assert [line[:21].rstrip() for line in lines] == [
        "WHEN                  RUN"[:21].rstrip(),
        *[
            "2026-11-21 23:00 CET",
            "2026-09-23 00:00 CEST",
        ],
    ]


def write(version: int, by: str = "etl", step: str = "WRITE") -> HistoryRow:
    at_ms = TEN_PM + version * 60_000
    return HistoryRow(at_ms, "t", step, "", version_after=version, num_files_added=2, bytes_added=1024, by=by)


def test_commits_of_others_that_are_alike_are_one_line_and_maintenance_never_is() -> None:
    rows = [write(9), write(8, step="OPTIMIZE"), write(7, step="OPTIMIZE"), write(6, step="OPTIMIZE")]
    rows += [write(version) for version in range(5, 1, -1)] + [write(1, by="ana"), write(0, by="ana")]
    lines = render_history(rows, one_table=True).splitlines()
    assert [(" ".join(line.split()[3:5]), line.split("-  ")[-1].strip()) for line in lines[1:]] == [
        ("WRITE -", "+2 files, 1 KiB, outside maintainer, by etl"),
        *[("OPTIMIZE -", "+2 files, 1 KiB, outside maintainer, by etl")] * 3,
        ("WRITE x4", "+8 files, 4 KiB, outside maintainer, by etl"),
        *[("WRITE -", "+2 files, 1 KiB, outside maintainer, by ana")] * 2,
    ]
    assert "1 -> 5" in lines[5]


def test_what_a_run_did_alike_to_many_tables_is_one_line() -> None:
    rows = [replace(HISTORY[0], table=f"t{number}", duration_seconds=2.0) for number in range(30)]
    failed = [replace(HISTORY[0], table=f"f{number}", proof="fail") for number in range(3)]
    heading, line, *others = render_history([*rows, *failed]).splitlines()
    assert heading.startswith("WHEN")
    assert "30 tables" in line
    assert f"{30 * 1204:,} -> {30 * 151:,} files" in line
    assert "1m" in line
    assert [row.table in other for row, other in zip(failed, others, strict=True)] == [True] * 3
    assert len(render_history([*rows, *failed], verbose=True).splitlines()) == 34


@pytest.mark.parametrize(
    ("status", "proof", "result", "words"),
    [
        ("succeeded", "pass", "ok", "proven"),
        ("verify_failed", "fail", "VERIFY FAILED", "failed"),
        ("error", "error", "could not check", "could not check"),
        ("spelled_anew", "spelled_anew", "SPELLED ANEW", "SPELLED ANEW"),
        ("yielded", None, "yielded", "-"),
    ],
)
def test_a_proof_is_said_in_the_words_of_verify(status: str, proof: str | None, result: str, words: str) -> None:
    """What it found of another tool's commit is no error of ours."""
    found = replace(HISTORY[0], step="verify", status=status, proof=proof, table="t", git_commit=None)
    row = render_history([found], verbose=True).splitlines()[1]
    assert re.split(r"\s{2,}", row)[4:7] == [result, "1846 -> 1847", words]
    table = replace(STATUS[0], last_proof=proof, table="t")
    assert status_table([[table]], TEN_PM).rows[0].cells[7] == words


def test_the_newest_of_our_rows_says_how_to_go_on() -> None:
    ours = replace(HISTORY[0], policy_file="policies/orders.yml", git_commit="3f2c1a9")
    text = render_history([write(9), ours], one_table=True)
    assert text.splitlines()[-2:] == [
        f"the run: maintainer show {RUN}   its report: maintainer report {RUN}",
        "its policy as it was: git show 3f2c1a9:./policies/orders.yml",
    ]
    verified = replace(ours, step="verify", git_commit=None)
    assert render_history([verified], one_table=True).splitlines()[-1] == f"the run: maintainer show {RUN}"
    lost = replace(HISTORY[0], reason=LOST, git_commit=None)
    assert render_history([lost], one_table=True).splitlines()[-1].endswith("4m 35s, its run folder is not here")


def test_a_commit_with_changes_beside_it_is_not_called_the_policy_as_it_was() -> None:
    commit = "3f2c1a9b8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a"
    ours = replace(HISTORY[0], policy_file="policies/orders.yml", git_commit=f"{commit}+dirty")
    *_, row, _, last = render_history([ours], one_table=True).splitlines()
    assert row.endswith(", @ 3f2c1a9b8d7e+dirty")
    assert last == (
        "its policies had changes that were not committed; without them: git show 3f2c1a9b8d7e:./policies/orders.yml"
    )


def test_no_history() -> None:
    assert render_history([]) == "No step fits.\n"
    assert no_steps(0) == "No runs are recorded yet.\n"
    assert no_steps(5) == "No steps are recorded: 5 runs, and none of them changed anything.\n"


def test_history_as_csv_and_json_carry_every_field() -> None:
    rows = list(csv.DictReader(io.StringIO(history_csv(HISTORY), newline="")))
    assert [row["at"] for row in rows] == [
        "2026-11-21T22:00:00.000Z",
        "2026-11-21T22:01:00.000Z",
        "2026-11-20T22:00:00.000Z",
    ]
    assert rows[0]["bytes_removed"] == str(38 * GIB)
    assert rows[1]["error"] == "no permission to delete\nin /lake"
    assert rows[2]["run_id"] == ""
    document = json.loads(history_json(HISTORY))
    assert document["format_version"] == "1"
    assert list(document["history"][0]) == list(rows[0])
    assert document["history"][2]["run_id"] is None


def test_status_as_text() -> None:
    rows = [replace(STATUS[0], small_bytes=GIB, deleted_rows_ratio=0.001), *STATUS[1:]]
    assert render_status(rows, TEN_PM).splitlines() == [
        "TABLE         STATE      SMALL  FILES    SIZE  OPTIMIZED        VACUUMED  PROOF   NEXT",
        "sales.items   failed        96    812  88 GiB  yesterday 22:00  never     -",
        "    maintainer apply; the last optimize ended failed",
        "sales.orders  ok             -  8,577   3 GiB  today 21:00      6d ago    proven",
        "    tomorrow 22:00; <1% of the rows are deleted; auto compaction on (table)",
        "sales.日本    unmanaged      -      -       -  -                -         -",
        "3 tables: 1 ok, 1 failed, 1 unmanaged",
    ]


def test_status_breaks_no_name_over_lines() -> None:
    long_name = f"s3://bucket/{'very-long-folder/' * 8}orders"
    for name in ("sales-eu-west.order-lines-2026", long_name):
        for before in range(WIDTH - 40, WIDTH):
            row = StatusRow("a.b", "problem", next=f"{'x' * before} {name}")
            assert name in render_status([row], TEN_PM)


def test_status_fits_its_width_whatever_is_next() -> None:
    reason = "the look-back of delta.deletedFileRetentionDuration is longer than what the consumers say " * 3
    rows = [
        StatusRow("s.t", "due", 1204, 8577, 3 * GIB, small_bytes=GIB, next="compact 3GiB", commits_seen_from=0),
        StatusRow("warehouse_of_the_north." + "a_table_with_a_long_name" * 4, "blocked", 1, 2, 3, next=reason),
        StatusRow("s.idle", "ok", 12, 12, GIB, small_bytes=GIB, next="nothing to do: 12 files as they were written"),
    ]
    text = render_status(rows, TEN_PM, verbose=True)
    name = rows[1].table
    assert max(map(len, text.replace(name, "").splitlines())) <= WIDTH
    lines = text.splitlines()
    assert lines[1] == "s.t     due      1,204 (33%)  8,577  3 GiB  never      never     -      compact 3GiB"
    # A name that is too long has a line of its own, and is whole: it can be copied.
    assert lines[2] == name
    assert " ".join(" ".join(lines[4:8]).split()).startswith("the look-back of delta.deletedFileRetentionDuration")
    # Beside `ok` small files are no failure, and nothing to do needs no reason.
    assert lines[-2] == "s.idle  ok                 -     12  1 GiB  -          -         -"


@pytest.mark.parametrize(
    ("enabled", "source", "text"),
    [
        (False, "default", "later"),
        (True, "default", "later; auto compaction on"),
        (True, "delta.autoOptimize", "later; auto compaction on (table)"),
        (True, "session", "later; auto compaction on (session)"),
        (None, "x is `y`", "later; auto compaction unknown: x is `y`"),
        (None, None, "later"),
    ],
)
def test_whether_writers_compact_by_themselves(enabled: bool | None, source: str | None, text: str) -> None:
    row = StatusRow("a.b", "ok", next="later", auto_compact=enabled, auto_compact_source=source)
    assert status_table([[row]], TEN_PM).rows[0].cells[-1] == text


def test_colour_moves_no_column() -> None:
    painted = render_status(STATUS, TEN_PM, Style(color=True))
    assert "\x1b[1;31mfailed\x1b[0m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render_status(STATUS, TEN_PM)
    assert re.sub(r"\x1b\[[0-9;]*m", "", render_history(HISTORY, Style(color=True))) == render_history(HISTORY)


def test_no_status() -> None:
    assert render_status([], TEN_PM) == "No table is selected.\n"


def test_status_as_json_carries_every_field() -> None:
    document = json.loads(status_json(STATUS, TEN_PM))
    assert document["format_version"] == "1"
    assert document["at"] == "2026-11-21T22:00:00.000Z"
    names = [field.name.removesuffix("_ms") for field in dataclasses.fields(StatusRow)]
    assert all(list(table) == names for table in document["tables"])
    assert document["tables"][0]["last_optimize_at"] == "2026-11-21T21:00:00.000Z"
    assert document["tables"][2]["small_files"] is None


@pytest.mark.parametrize(
    ("at_ms", "expected"),
    [
        (None, "never"),
        (TEN_PM - 3_600_000, "today 21:00"),
        (TEN_PM - 23 * 3_600_000, "yesterday 23:00"),
        (TEN_PM - 2 * DAY_MS, "2d ago"),
        (TEN_PM - 30 * DAY_MS, "30d ago"),
        (TEN_PM - 31 * DAY_MS, "2026-10-21"),
        (TEN_PM + DAY_MS, "2026-11-22"),
    ],
)
def test_ages(at_ms: int | None, expected: str) -> None:
    assert age(at_ms, TEN_PM, UTC) == expected


def test_today_is_a_matter_of_the_zone() -> None:
    assert age(TEN_PM - 3_600_000, TEN_PM, timezone(timedelta(hours=2))) == "yesterday 23:00"


def test_the_layout_of_an_incremental_zorder_stands_behind_what_is_next() -> None:
    row = StatusRow("t", "due", next="zorder 1GiB", files_read=12.34, overlap_depth=3.0, unindexed_ratio=0.125)
    following = status_table([[row]], 0).rows[0].cells[-1]
    assert following == "zorder 1GiB; a query reads 12.3 files, 3.0 overlap at a point, 12% unindexed"


def test_a_table_that_a_run_works_on_says_so() -> None:
    row = StatusRow("t", "due", next="zorder 1GiB", scheduled=True, running=RUN)
    assert status_table([[row]], 0).rows[0].cells[-1] == f"run {RUN} is working on it; zorder 1GiB"
    assert json.loads(status_json([row], 0))["tables"][0]["running"] == RUN


def test_no_share_is_rounded_to_nothing_or_to_all() -> None:
    shares = (0.0, 0.0004, 0.0051, 0.994, 0.9962, 1.0)
    assert [short_share(ratio) for ratio in shares] == ["0%", "<1%", "1%", "99%", ">99%", "100%"]


def test_the_ledger_stands_among_the_tables_only_where_it_is_asked_for() -> None:
    ledger = StatusRow(".maintainer/ledger", "due", 20, 20, 4096, 7, next="compact 4 KiB", policy_file=BUILT_IN_POLICY)
    table = StatusRow("s.orders", "ok", 1, 1, 4096, 7, next="nothing to do")
    assert render_status([ledger, table], TEN_PM).splitlines()[1:] == [
        "s.orders  ok         -      1  4 KiB  -          -         -",
        "1 table: 1 ok; our own ledger: due",
    ]
    for rows, verbose in (([ledger], False), ([ledger, table], True)):
        assert ".maintainer/ledger" in render_status(rows, TEN_PM, verbose=verbose)


def test_tables_that_another_tool_cares_for_are_one_line_with_its_name() -> None:
    rows = [
        StatusRow(f"s.t{n}", "ok", 1, 1, 4096, 7, next="nothing to do", last_vacuum_at_ms=TEN_PM - 9 * DAY_MS,
                  commits_seen_from=0, others_vacuumed_at_ms=TEN_PM - (n + 2) * DAY_MS, others_vacuumed_by="delta-rs")
        for n in range(4)
    ]  # fmt: skip
    assert " ".join(render_status(rows, TEN_PM).split("\n")[1].split()) == (
        "4 tables ok - 4 16 KiB never 5d ago - vacuumed by delta-rs"
    )
    ours = [replace(row, last_vacuum_at_ms=TEN_PM) for row in rows]
    assert "delta-rs" not in render_status(ours, TEN_PM)


def test_tables_that_wait_for_different_times_are_one_line() -> None:
    waits = ("5h 3m", "17h 57m"), ("40s", "23h"), ("1d 2h", "1m")
    rows = [
        StatusRow(f"t{number}", "ok", next=f"a run with a rewrite began {ago} ago, at most every 1d: due in {wait}")
        for number, (ago, wait) in enumerate(waits)
    ]
    _, line, said, _ = render_status(rows, TEN_PM).splitlines()
    assert line.startswith("3 tables  ok")
    assert said.strip() == "a run with a rewrite began 40s to 1d 2h ago, at most every 1d: due in 1m to 23h"
