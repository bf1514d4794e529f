"""A plan names the files that it rewrites and whose bounds cannot be trusted, in one line."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from maintainer.model.plan.plan import TablePlan
from maintainer.model.table.statistics_writers import doubts_about
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import assemble, plan_table
from maintainer.report.plan.plan_text import render_plan
from maintainer.report.plan.why_text import render_why
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_facts, make_file, make_optimize, make_policy

RUST, OLD_SPARK = "delta-rs:py-1.6.2", "Apache-Spark/3.5.0 Delta-Lake/3.2.1"
COLUMNS = {"id": "long", "d": "double", "e": "float", "f": "double", "g": "double", "ts": "timestamp"}


def planned(*doubtful: tuple[str, frozenset[str]], columns: dict[str, str] = COLUMNS) -> TablePlan:
    """The plan of a table of three small files, and one that is large enough."""
    files = [make_file(name, size=20) for name in ("a", "b", "c")] + [make_file("large", size=1 << 40)]
    facts = make_facts(files=files, columns=columns)
    facts = replace(facts, doubtful_files=doubtful, columns_with_stats=tuple(columns))
    policy = make_policy(optimize=make_optimize())
    return plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21), PlanOptions()))


def texts(plan: TablePlan) -> list[str]:
    assert plan.steps
    return [note.text for note in plan.notes]


def test_files_and_columns_of_each_writer_are_in_one_line_of_plan_and_why() -> None:
    plan = planned((RUST, frozenset({"a", "b", "large", "gone"})), (OLD_SPARK, frozenset({"c"})))
    assert texts(plan) == [
        "min and max in the log cannot be trusted, a query may skip rows; new files get their own: "
        f"2 files of {RUST} (d, e, f and 1 more: it leaves NaN out); "
        f"1 file of {OLD_SPARK} (ts: it cuts the seconds of old zone offsets)"
    ]
    line = f"note        {texts(plan)[0]}"
    assert line in render_plan(assemble([plan], created_at_ms=NOW_MS))
    assert line in render_why(plan)


def test_nothing_is_said_without_such_columns_or_files() -> None:
    assert texts(planned()) == []
    assert texts(planned((RUST, frozenset({"large", "gone"})))) == []
    assert texts(planned((RUST, frozenset({"a"})), columns={"id": "long", "ts": "timestamp"})) == []
    assert texts(planned((RUST, frozenset({"a"})), columns={"m": "decimal(15,2)"})) == []


def test_two_doubts_about_one_writer_stand_together() -> None:
    assert texts(
        planned((RUST, frozenset({"a", "b"})), columns={"d": "double", "m": "decimal(16,2)", "n": "long"})
    ) == [
        "min and max in the log cannot be trusted, a query may skip rows; new files get their own: "
        f"2 files of {RUST} (d: it leaves NaN out; m: it rounds decimals)"
    ]


@pytest.mark.parametrize(
    ("engine", "kinds"),
    [
        (RUST, {"float", "double", "decimal"}),
        ("delta-rs.0.17.0", {"float", "double", "decimal"}),
        ("DuckDB", {"float", "double"}),
        (OLD_SPARK, {"timestamp"}),
        ("Apache-Spark/4.1.0 Delta-Lake/4.4.0", {"timestamp"}),
        ("Trino-455", set()),
        ("", set()),
    ],
)
def test_writers_are_a_closed_list(engine: str, kinds: set[str]) -> None:
    assert {kind for doubt in doubts_about(engine) for kind in doubt.kinds} == kinds
