"""Which files are packed together, and which partitions count as newest or fit `where`."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from maintainer.delta.rewrite.unfinished_files import prefix_of_attempt
from maintainer.errors import TableError
from maintainer.journal.folder.run_folder import new_run_id
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import DeletionVector, TableFacts
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import partition_text
from maintainer.planning.selection.file_selection import (
    group_by_partition,
    has_many_deleted_rows,
    is_small,
    pack_batches,
    pack_bins,
    pack_in_order,
    select_partitions,
)
from maintainer.policy.predicate.partition_predicate import parse_predicate
from tests.support.tables.builders import (
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
)


def sizes(groups: object) -> list[list[int]]:
    return [[file.size_bytes for file in group.files] for group in groups]  # type: ignore[attr-defined]


def test_bins_are_packed_smallest_first_up_to_the_bound_itself() -> None:
    assert sizes(pack_bins(make_files(60, 10, 40, 30, 100, 101), max_bin_bytes=100)) == [
        [10, 30, 40], [60], [100], [101],
    ]  # fmt: skip
    assert sizes(pack_bins(make_files(50, 50, 1), max_bin_bytes=101)) == [[1, 50, 50]]
    assert sizes(pack_bins(make_files(50, 50, 1), max_bin_bytes=100)) == [[1, 50], [50]]
    assert sizes(pack_bins(make_files(0, 0), max_bin_bytes=1)) == [[0, 0]]
    assert pack_bins((), max_bin_bytes=1) == ()


def test_files_of_equal_size_are_packed_by_their_names() -> None:
    files = [make_file(name, size=10) for name in ("c", "a", "b")]
    (packed,) = pack_bins(files, max_bin_bytes=100)
    assert [file.path for file in packed.files] == ["a", "b", "c"]


def test_packing_in_order_keeps_the_order() -> None:
    assert sizes(pack_in_order(make_files(60, 10, 40, 30), max_bin_bytes=100)) == [[60, 10], [40, 30]]
    assert sizes(pack_in_order(make_files(100, 1), max_bin_bytes=100)) == [[100], [1]]


def test_batches_take_small_bins_first() -> None:
    bins = [*pack_bins(make_files(60, 50, prefix="a"), max_bin_bytes=60), *pack_bins(make_files(40), max_bin_bytes=60)]
    batches = pack_batches(bins, batch_size_bytes=100)
    assert [[bin_.size_bytes for bin_ in batch.bins] for batch in batches] == [[40, 50], [60]]
    assert [len(batch.bins) for batch in pack_batches(bins, batch_size_bytes=1)] == [1, 1, 1]


def test_a_bin_is_of_one_partition_and_a_bound_above_zero() -> None:
    mixed = (make_file("a", partition={"d": "1"}), make_file("b", partition={"d": "2"}))
    with pytest.raises(ValueError, match="one partition at a time"):
        pack_bins(mixed, max_bin_bytes=1)
    with pytest.raises(ValueError, match="must be positive, not 0"):
        pack_bins(make_files(1), max_bin_bytes=0)
    with pytest.raises(ValueError, match="must be positive, not -1"):
        pack_batches((), batch_size_bytes=-1)
    with pytest.raises(ValueError, match="one partition at a time"):
        pack_bins(reversed(mixed), max_bin_bytes=1)


@pytest.mark.parametrize(("size", "small"), [(74, True), (75, False), (76, False)])
def test_a_file_is_small_strictly_below_the_bound(size: int, small: bool) -> None:
    assert is_small(make_file(size=size), make_optimize(min_size=75)) is small


def test_deleted_rows_count_strictly_above_the_ratio() -> None:
    assert not has_many_deleted_rows(make_file(records=100), 0.0)
    assert not has_many_deleted_rows(make_file(records=100, deleted=5), 0.05)
    assert has_many_deleted_rows(make_file(records=100, deleted=6), 0.05)
    assert has_many_deleted_rows(make_file(records=None, deleted=1), 0.99)
    assert DeletionVector("u@1", 0, 1) != make_file().deletion_vector


def test_partitions_are_in_order_of_their_values_null_first() -> None:
    files = [make_file(f"f{value}{size}", size=size, partition={"c": value}) for value in ("b", None, "", "a")
             for size in (2, 1)]  # fmt: skip
    groups = group_by_partition(files)
    assert [dict(group.values)["c"] for group in groups] == [None, "", "a", "b"]
    assert sizes(groups) == [[1, 2]] * 4
    assert [group.size_bytes for group in groups] == [3] * 4
    assert [partition_text(group.values) for group in groups] == ["c=null", "c=''", "c=a", "c=b"]


def table(
    type_name: str, *values: str | None, skip_newest: int = 0, where: str | None = None, **more: str
) -> TableInput:
    optimize = make_optimize(
        skip_newest_partitions=skip_newest, where=None if where is None else parse_predicate(where)
    )
    columns = {"id": "long", "c": type_name, **more}
    files = [make_file(f"f{number}", size=number + 1, partition={"c": value}) for number, value in enumerate(values)]
    facts: TableFacts = make_facts(files=files, columns=columns, partitioned_by=("c",))
    policy = make_policy(optimize=optimize, lines={"optimize.where": 5, "optimize.skipNewestPartitions": 6})
    return TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21))


def skipped(asked: TableInput) -> list[str]:
    selection = select_partitions(asked)
    left = {entry.reason.code for entry in selection.left_alone}
    assert left <= {ReasonCode.NEWEST_PARTITION}
    taken = {partition.values for partition in selection.partitions}
    return sorted(file.partition_values[0][1] or "" for file in asked.facts.files
                   if file.partition_values not in taken)  # fmt: skip


@pytest.mark.parametrize(
    ("type_name", "values", "newest"),
    [
        ("timestamp", ("2026-01-01 00:00:00Z", "2026-01-01 05:00:00+05:30", "2026-01-01 01:00:00Z"),
         "2026-01-01 01:00:00Z"),
        ("timestamp_ntz", ("2026-01-02", "2026-01-10", "soon"), "2026-01-10"),
        ("date", ("2026-01-02", "2026-01-10", None), "2026-01-10"),
        ("integer", ("9", "10", "-11"), "10"),
        ("byte", ("9", "10", "-11"), "10"),
        ("short", ("9", "10", "-11"), "10"),
        ("float", ("9.5", "10", "-11"), "10"),
        ("decimal(5,1)", ("9.5", "10", "NaN"), "10"),
        ("double", ("9.5", "Infinity", "1e3"), "1e3"),
        ("long", ("9", "ten", "8"), "9"),
        ("string", ("9", "10", "8"), "9"),
        ("string", ("2026-01-02", "2026-01-10", None), "2026-01-10"),
    ],
)  # fmt: skip
def test_the_newest_partition_is_found_by_the_type_of_its_column(
    type_name: str, values: tuple[str | None, ...], newest: str
) -> None:
    assert skipped(table(type_name, *values, skip_newest=1)) == [newest]
    assert skipped(table(type_name, *values, skip_newest=0)) == []


def test_times_that_may_be_the_newest_to_some_reader_are_all_skipped() -> None:
    """A time without a zone is up to 18 hours earlier or later, in the zone of its reader; all of them together."""
    zoned = ("2026-01-02T06:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z")
    zoneless = ("2026-01-03 00:00:00", "2026-01-03 05:59:59", "2026-01-03 06:00:00")
    assert skipped(table("timestamp", *zoned, *zoneless, skip_newest=1)) == [zoneless[2], zoned[2]]
    earlier = ("2026-01-03T06:00:00+05:00", "2026-01-02T12:00:00Z", "2026-01-02T11:59:59Z")
    assert skipped(table("timestamp", *earlier, *zoneless, skip_newest=1)) == [zoneless[2], earlier[0]]
    assert skipped(table("timestamp", *earlier, *zoneless, skip_newest=2)) == sorted([*zoneless[1:], *earlier[:2]])
    assert skipped(table("timestamp", *earlier, *zoneless, skip_newest=3)) == sorted([*zoneless, *earlier])
    assert skipped(table("timestamp", *zoneless, skip_newest=2)) == [*zoneless[1:]]
    assert skipped(table("timestamp_ntz", "2026-01-03T00:00:00Z", *zoneless, skip_newest=1)) == [zoneless[2]]
    apart = ("2026-01-01T00:00:00Z", "2026-02-02 00:00:00", None)
    assert skipped(table("timestamp", *apart, skip_newest=1)) == [apart[1]]


@pytest.mark.parametrize(
    ("where", "taken"),
    [
        ("c < '2026-01-02 00:00:00'", {"2026-01-01 00:00:00", "2026-01-01T05:59:59Z", "2026-01-01T06:00:00Z"}),
        ("c = '2026-01-01 00:00:00'", {"2026-01-01 00:00:00"}),
        ("c < '2026-01-01T18:00:00Z'", {"2026-01-01T05:59:59Z", "2026-01-01T06:00:00Z"}),
        ("c < '2026-01-01T18:00:01Z'", {"2026-01-01 00:00:00", "2026-01-01T05:59:59Z", "2026-01-01T06:00:00Z"}),
        ("NOT c < '2026-01-01T18:00:00Z'", {"2026-01-04 00:00:00"}),
        ("NOT c = '2026-01-01T18:00:00Z'", {"2026-01-01T05:59:59Z", "2026-01-01T06:00:00Z", "2026-01-04 00:00:00"}),
        ("c != '2026-01-01T18:00:00Z'", {"2026-01-01T05:59:59Z", "2026-01-01T06:00:00Z", "2026-01-04 00:00:00"}),
        ("c = '2026-01-01T06:00:00Z'", {"2026-01-01T06:00:00Z"}),
    ],
)
def test_where_takes_a_time_without_a_zone_only_if_it_fits_for_every_reader(where: str, taken: set[str]) -> None:
    texts = ("2026-01-01 00:00:00", "2026-01-01T05:59:59Z", "2026-01-01T06:00:00Z", "2026-01-04 00:00:00")
    partitions = select_partitions(table("timestamp", *texts, where=where)).partitions
    assert {str(file.partition_values[0][1]) for partition in partitions for file in partition.files} == taken


def test_where_goes_by_each_text_that_the_log_has_for_a_value() -> None:
    value = {"c": "2026-01-01 00:00:00"}
    zoned = replace(make_file("z", partition=value), stored_values=(("c", "2026-01-01T00:00:00.000000Z"),))
    asked = table("timestamp", where="c < '2026-01-01T18:00:00Z'")
    for files, taken in (((zoned,), 1), ((zoned, make_file("n", partition=value)), 0)):
        facts = replace(asked.facts, files=files)
        assert len(select_partitions(replace(asked, facts=facts)).partitions) == taken


def test_of_several_columns_the_first_that_is_a_time_decides_alone() -> None:
    files = [
        make_file(f"f{day}{country}", partition={"country": country, "day": day})
        for day in ("2026-01-01", "2026-01-02")
        for country in ("at", "de")
    ]
    facts = make_facts(files=files, columns={"id": "long", "day": "date"}, partitioned_by=("country", "day"))
    policy = make_policy(optimize=make_optimize(skip_newest_partitions=1))
    selection = select_partitions(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    assert [dict(partition.values)["day"] for partition in selection.partitions] == ["2026-01-01"] * 2
    assert [entry.reason.text for entry in selection.left_alone] == [
        "1 file among the newest 1 (skipNewestPartitions)"
    ] * 2


def test_a_value_that_where_cannot_read_is_an_error_at_its_line() -> None:
    with pytest.raises(TableError) as caught:
        select_partitions(table("integer", "1", "two", where="c > 1"))
    assert (caught.value.code, caught.value.where) == ("T410", "orders.yml:5")
    assert "two" in str(caught.value.found)
    with pytest.raises(TableError) as caught:
        select_partitions(table("integer", "1", where="c > 'x'"))
    assert (caught.value.code, caught.value.where) == ("T410", "orders.yml:5")


def test_partitions_outside_where_are_named_with_its_text_and_line() -> None:
    selection = select_partitions(table("integer", "1", "2", "3", where="c >= 2"))
    assert [dict(partition.values)["c"] for partition in selection.partitions] == ["2", "3"]
    (left,) = selection.left_alone
    assert (left.reason.code, left.reason.origin) == (ReasonCode.OUTSIDE_WHERE, "orders.yml:5")
    assert left.reason.text == "1 file outside where: c >= 2"
    assert (left.num_files, left.size_bytes, left.partition_values) == (1, 1, (("c", "1"),))


def test_partitions_that_wait_are_named_at_the_line_that_holds_them() -> None:
    asked = table("date", "2026-01-01", "2026-01-02", skip_newest=1)
    (left,) = select_partitions(asked).left_alone
    assert left.reason.origin == "orders.yml:6"
    files = [make_file(f"f{n}", size=1, partition={"c": str(n)}, modified_at_ms=NOW_MS - n * 1000) for n in range(60)]
    policy = make_policy(optimize=make_optimize(quiet_for_seconds=50), lines={"optimize.quietFor": 7})
    facts = make_facts(files=files, partitioned_by=("c",))
    selection = select_partitions(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    assert len(selection.partitions) == 10, "50 seconds old is quiet"
    assert {left.reason.origin for left in selection.left_alone} == {"orders.yml:7"}
    assert sum(left.num_files for left in selection.left_alone) == 50


def test_many_partitions_are_counted_together_with_their_number() -> None:
    selection = select_partitions(table("integer", *[str(n) for n in range(100)], where="c > 98"))
    (left,) = selection.left_alone
    assert left.reason.text == "99 files of 99 partitions outside where: c > 98"
    assert left.partition_values is None


def test_a_table_without_partitions_has_no_newest_one() -> None:
    policy = make_policy(optimize=make_optimize(skip_newest_partitions=1))
    facts = make_facts(files=make_files(1, 2))
    selection = select_partitions(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    assert (len(selection.partitions), selection.left_alone) == (1, ())


def test_text_is_a_time_only_where_all_of_it_is_dates() -> None:
    mixed = table("string", "2026-01-02", "a", "b", skip_newest=1)
    assert skipped(mixed) == ["b"]


def test_the_newest_data_of_a_partition_counts_and_a_rewrite_is_none() -> None:
    stamp = CommitStamp(new_run_id(NOW_MS), "sales.orders/compact", 0, "d")
    ours = f"day=2026-11-21/{prefix_of_attempt(stamp)}part-00000-6b1a0c7e-c000.snappy.parquet"
    files = [make_file("old", modified_at_ms=1), make_file("new", modified_at_ms=9), make_file(ours, modified_at_ms=20)]
    (group,) = group_by_partition(files)
    assert [group.is_written_after(moment, None) for moment in (8, 9)] == [True, False]
    assert [group.is_written_after(moment, frozenset({"new"})) for moment in (0, 1)] == [True, False]


@pytest.mark.parametrize(
    "name", ["part-00000-6b1a0c7e-0000-0000-0000-000000000000-c000.snappy.parquet", "part-0.parquet", "x", "day=1/"]
)
def test_names_of_others_are_not_taken_for_ours(name: str) -> None:
    assert not make_file(name).is_ours


def test_values_of_partitions_are_one_path() -> None:
    assert partition_text((("day", "2026-11-20"), ("country", None))) == "day=2026-11-20/country=null"


def newest_of(columns: dict[str, str], *values: tuple[str, ...]) -> list[tuple[str | None, ...]]:
    files = [make_file("-".join(value), partition=dict(zip(columns, value, strict=True))) for value in values]
    facts = make_facts(files=files, columns={"id": "long", **columns}, partitioned_by=tuple(columns))
    policy = make_policy(optimize=make_optimize(skip_newest_partitions=1))
    taken = select_partitions(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21))).partitions
    newest = {partition.values for partition in taken}
    return [tuple(dict(file.partition_values).values()) for file in files if file.partition_values not in newest]


def test_of_two_columns_of_text_the_one_that_is_all_dates_decides_alone() -> None:
    columns = {"country": "string", "day": "string"}
    rows = [("de", "2026-01-01"), ("at", "2026-01-02"), ("ch", "2026-01-02")]
    assert newest_of(columns, *rows) == rows[1:]
    mixed = [("zz", "2026-01-01"), ("2026-01-05", "2026-01-02")]
    assert newest_of(columns, *mixed) == mixed[1:], "one country that looks like a date makes no column of time"


def test_of_two_times_the_first_decides() -> None:
    columns = {"day": "date", "at": "timestamp"}
    rows = [("2026-01-01", "2026-01-09 00:00:00"), ("2026-01-02", "2026-01-03 00:00:00"), ("2026-01-02", "2026-01-04")]
    assert newest_of(columns, *rows) == rows[1:]
    for time in ("timestamp", "timestamp_ntz"):
        later = [("b", "2026-01-01 00:00:00"), ("a", "2026-01-02 00:00:00")]
        assert newest_of({"country": "string", "at": time}, *later) == later[1:]
    plain = {"year": "integer", "month": "integer"}
    assert newest_of(plain, ("2025", "12"), ("2026", "9"), ("2026", "10")) == [("2026", "10")]
