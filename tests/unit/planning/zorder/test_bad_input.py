"""Columns and values that a Z-order could trip over: put in order rightly, or refused by name when planning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import CompactStep, SetPropertiesStep, ZOrderStep
from maintainer.model.table.table_facts import ColumnRanges, ColumnSample, TableFacts
from maintainer.planning.curve.curve import key_of
from maintainer.planning.curve.revision import ColumnBoundaries, Revision, make_column, read_revision
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.zorder.zorder_options import ranges_wanted, sample_wanted
from maintainer.policy.resolve.resolved import ZOrderPolicy
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_facts, make_file, make_optimize, make_policy

TYPES: dict[str, Any] = {
    "id": "long",
    "day": "date",
    "name": "string",
    "late": "string",
    "labels": {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
    "items": {"type": "array", "elementType": "long", "containsNull": True},
    "payload": "variant",
    "place": {"type": "struct", "fields": []},
    "flag": "boolean",
    "raw": "binary",
}


def plan(
    *columns: str,
    sample: Mapping[str, tuple[str | None, ...]] | None = None,
    properties: Mapping[str, str] | None = None,
) -> TablePlan:
    """Plan a table of two files, partitioned by ``day``, without statistics of ``late``; Delta has none of the last."""
    optimize = make_optimize(zorder=ZOrderPolicy(columns), min_size=1000, max_size=1000)
    policy = make_policy(optimize=optimize, lines={"optimize.zorder": 7, "optimize.zorder.columns": 8})
    facts: TableFacts = make_facts(
        files=[make_file(name, size=500, partition={"day": "2026-01-01"}) for name in ("a", "b")],
        columns=TYPES,
        partitioned_by=("day",),
        properties=properties,
        columns_with_stats=tuple(name for name in TYPES if name not in ("late", "day", "flag", "raw")),
    )
    wanted = ranges_wanted(policy, facts)
    facts = replace(facts, column_ranges=ColumnRanges(wanted, {}) if wanted else None)
    names = sample_wanted(policy, facts)
    values = tuple((sample or {})[name] for name in names)
    facts = replace(facts, column_sample=ColumnSample(names, values) if names else None)
    return plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))


@pytest.mark.parametrize(
    ("columns", "code", "says"),
    [
        (("nope",), "T411", "Z-order column `nope` does not exist"),
        (("id", "nam"), "T411", "Z-order column `nam` does not exist"),
        (("place.street",), "T411", "Z-order column `place.street` does not exist"),
        (("day",), "T412", "Z-order column `day` is a partition column"),
        (("late",), "T413", "Z-order column `late` has no statistics"),
        (("labels",), "T414", "Z-order column `labels` has a type without order"),
        (("items",), "T414", "Z-order column `items` has a type without order"),
        (("payload",), "T414", "Z-order column `payload` has a type without order"),
        (("flag",), "T427", "Z-order column `flag` has a type of which the log keeps no smallest and largest"),
        (("raw",), "T427", "Z-order column `raw` has a type of which the log keeps no smallest and largest"),
        (("id", "ID"), "T420", "a Z-order column is named twice"),
    ],
)
def test_columns_are_refused_by_name(columns: tuple[str, ...], code: str, says: str) -> None:
    problem = plan(*columns).problem
    assert problem is not None
    assert (problem.code, problem.where) == (code, "orders.yml:8")
    assert problem.what.startswith(says)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (("x",) * 40, "`name` is always x"),
        ((None,) * 40, "`name` is all null"),
        (tuple(f"{'p' * 32}{n}" for n in range(40)), "`name` differs only behind the first 32 characters"),
    ],
    ids=["constant", "all null", "long common prefix"],
)  # fmt: skip
def test_files_whose_values_have_no_order_are_compacted_and_one_line_says_why(
    values: tuple[str | None, ...], says: str
) -> None:
    planned = plan("name", sample={"name": values})
    assert planned.problem is None
    (step,) = planned.steps
    assert isinstance(step, CompactStep)
    assert sorted(file.path for file in step.files) == ["a", "b"]
    (line,) = planned.left_alone
    assert (line.reason.code, line.num_files, line.reason.origin) == ("nothing_to_order", 0, "orders.yml:8")
    assert line.reason.text.startswith(f"nothing to order by, so compaction: {says}")


@pytest.mark.parametrize(
    "values",
    [(None,) * 990 + tuple("abcdefghij"), ("x",) * 999 + ("y",), tuple(f"{'p' * 31}{n % 8}" for n in range(1000))],
    ids=["mostly null", "nearly constant", "a prefix that statistics see the end of"],
)
def test_values_of_which_few_differ_are_put_in_order(values: tuple[str | None, ...]) -> None:
    planned = plan("name", "id", sample={"name": values, "id": tuple(str(n) for n in range(1000))})
    assert planned.problem is None
    (step,) = [step for step in planned.steps if isinstance(step, ZOrderStep)]
    assert step.columns == ("name", "id")


KEPT = "delta.dataSkippingStringPrefixLength"
CUSTOMERS = tuple(f"customer-{number % 40:02}" for number in range(1000))


def revisions_of(planned: TablePlan) -> list[tuple[str, Revision]]:
    made = [step.after[0] for step in planned.steps if isinstance(step, SetPropertiesStep)]
    return [(name, revision) for name, text in made if (revision := read_revision(name, text))]


@pytest.mark.parametrize(("kept", "longest"), [("8", None), ("10", 10), ("100", 11)])
def test_boundaries_are_as_long_as_the_statistics_of_the_table_keep(kept: str, longest: int | None) -> None:
    """With longer ones no file lies in a narrower cube than before, and turns take the same bytes without end."""
    planned = plan("name", sample={"name": CUSTOMERS}, properties={KEPT: kept})
    assert planned.problem is None
    made = [len(text) for _, revision in revisions_of(planned) for text in revision.columns[0].boundaries]
    assert max(made, default=None) == longest
    said = [line.reason.text for line in planned.left_alone]
    assert any(f"`name` differs only behind the first {kept} characters" in text for text in said) is (longest is None)


def test_a_text_that_statistics_do_not_tell_apart_keeps_no_other_column_from_its_order() -> None:
    sample = {"name": CUSTOMERS, "id": tuple(str(number) for number in range(1000))}
    ((_, revision),) = revisions_of(plan("name", "id", sample=sample, properties={KEPT: "8"}))
    assert [bool(column.boundaries) for column in revision.columns] == [False, True]


def test_a_revision_with_longer_texts_than_the_table_keeps_is_replaced() -> None:
    before = Revision(4, (make_column("name", "string", CUSTOMERS),))
    property = {before.property_name: before.to_json()}
    assert revisions_of(plan("name", sample={"name": CUSTOMERS}, properties=property)) == []
    planned = plan("name", sample={"name": CUSTOMERS}, properties={**property, KEPT: "10"})
    assert [name for name, _ in revisions_of(planned)] == ["maintainer.zorder.revision.5"]


def boxes(column: ColumnBoundaries, *ranges: tuple[str | None, str | None, bool]) -> list[tuple[int, int]]:
    """Lowest and highest ranks of files with these smallest and largest values."""
    all_boxes = [Revision(1, (column,)).box([bounds]) for bounds in ranges]
    return [(low[0], high[0]) for low, high in all_boxes]


def test_nearly_constant_tells_the_rest_apart() -> None:
    column = make_column("name", "string", ["x"] * 999 + ["y"], max_bits=2)
    assert column.boundaries == ("y",)
    assert boxes(column, ("x", "x", False), ("y", "y", False)) == [(0, 0), (1, 1)]
    assert make_column("name", "string", ["x"] * 998 + ["y", None], max_bits=2).boundaries == ("x", "y")
    assert make_column("name", "string", ["x"] * 999, max_bits=2).boundaries == ()


def test_mostly_null_leaves_the_values_ranks_of_their_own() -> None:
    column = make_column("name", "string", [None] * 900 + [f"v{n:02}" for n in range(100)], max_bits=2)
    assert column.boundaries == ("v", "v25", "v5")
    assert boxes(column, (None, None, True), ("v00", "v10", False), ("v60", "v99", False), ("v60", "v99", True)) == [
        (0, 0), (1, 1), (3, 3), (0, 3),
    ]  # fmt: skip


def test_not_a_number_and_infinities_have_ranks_at_the_ends() -> None:
    values = ["-Infinity", *(f"{n}.5" for n in range(97)), "Infinity", "NaN"]
    column = make_column("f", "double", values, max_bits=2)
    assert column.boundaries == ("24.5", "49.5", "74.5")
    assert boxes(column, ("-Infinity", "-Infinity", False), ("Infinity", "NaN", False), ("-0.0", "0.0", False)) == [
        (0, 0), (3, 3), (0, 0),
    ]  # fmt: skip
    only = make_column("f", "double", ["NaN"] * 9 + ["Infinity"] * 9 + ["1.0"] * 9, max_bits=1)
    assert only.boundaries == ("Infinity",)
    assert boxes(only, ("1.0", "1.0", False), ("NaN", "NaN", False)) == [(0, 0), (1, 1)]


@pytest.mark.parametrize("type_name", ["date", "timestamp", "timestamp_ntz"])
def test_days_before_1582_are_in_order(type_name: str) -> None:
    texts = ["0001-01-01", "1500-02-28", "1500-03-01", "1582-10-04", "1582-10-15", "1600-02-29", "1970-01-01",
             "9999-12-31"]  # fmt: skip
    if type_name != "date":
        texts = [f"{text} 00:00:00" for text in texts]
    column = make_column("d", type_name, texts, max_bits=3)
    assert column.boundaries == tuple(texts[1:])
    assert boxes(column, *((text, text, False) for text in texts)) == [(n, n) for n in range(8)]
    # 1500 had no leap day in the calendar of Delta's log: one day lies between the two, not two.
    assert key_of("date", "1500-03-01") == (key_of("date", "1500-02-28") or 0) + 1


def test_a_renamed_column_gets_a_new_revision_and_one_that_is_gone_is_refused() -> None:
    sample = {"name": tuple("abcdefgh" * 5)}
    before = Revision(4, (make_column("former", "string", sample["name"]),))
    planned = plan("name", sample=sample, properties={before.property_name: before.to_json()})
    assert planned.problem is None
    made = planned.steps[0]
    assert isinstance(made, SetPropertiesStep)
    assert [name for name, _ in made.after] == ["maintainer.zorder.revision.5"]
    gone = plan("former", sample=sample).problem
    assert gone is not None
    assert gone.code == "T411"
