"""The actions of a rewrite against its plan, without an engine."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from maintainer.delta.log.staged_file import Marks, WrittenFile
from maintainer.delta.proof.proof_actions import (
    Expected,
    check_adds,
    check_removes,
    check_sizes,
    readers_of_spelling,
    spelled_anew,
    zone_of_spelling,
)
from maintainer.model.plan.steps import Batch, Bin
from maintainer.model.table.table_facts import DataFile, DeletionVector, PartitionValues

TAGS = (("maintainer.packed", "1000"),)


def _source(path: str, partition: PartitionValues = (("p", "a"), ("n", "1")), vector: str | None = None) -> DataFile:
    return DataFile(path, 10, 0, partition, 5, DeletionVector(vector, 1, 1) if vector else None)


BATCH = Batch(
    (Bin((_source("old-1"), _source("old-2", vector="u123"))), Bin((_source("old-3", (("p", None), ("n", "2"))),)))
)
EXPECTED = Expected(
    batch=BATCH,
    marks=[Marks(TAGS)] * len(BATCH.bins),
    physical_names={"p": "col-p", "n": "n"},
    is_live=lambda path: path == "live",
    is_below_root=lambda path: ".." not in path,
)


def _written(path: str = "new", bin_number: int = 0, **changes: Any) -> WrittenFile:
    values = {"col-p": "a", "n": "1"} if bin_number == 0 else {"col-p": None, "n": "2"}
    add = {"path": path, "partitionValues": values, "size": 7, "modificationTime": 1, "dataChange": True, "stats": "{}"}
    return WrittenFile({**add, **changes}, TAGS, bin_number)


def test_planned_files_pass() -> None:
    assert check_adds([_written(), _written("new-2", 1), _written("new-3", 1, tags=None)], EXPECTED) == []
    # Delta's writer has tags of its own.
    assert check_adds([_written(tags={"ICEBERG_COMPAT_VERSION": "2"})], EXPECTED) == []


def test_tags_of_the_curve_are_worked_out_anew_from_the_statistics() -> None:
    expected = replace(EXPECTED, curve_tags=lambda stats: {"maintainer.zorder.cube": str(len(stats or ""))})
    right = replace(_written(), tags=(*TAGS, ("maintainer.zorder.cube", "2")))
    assert check_adds([right], expected) == []
    wrong = replace(_written(), tags=(*TAGS, ("maintainer.zorder.cube", "3")))
    (said,) = check_adds([wrong], expected)
    assert said.startswith("new: its tags are ")
    assert check_adds([_written()], expected) != []
    assert check_adds([right], EXPECTED) != []


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (_written(partitionValues={"col-p": "b", "n": "1"}), "new: partition p is 'b', its rows are of 'a'"),
        (_written(partitionValues={"col-p": None, "n": "1"}), "new: partition p is None, its rows are of 'a'"),
        (_written(partitionValues={"col-p": "a", "n": None}), "new: partition n is None, its rows are of '1'"),
        # Another text of the same value is another value for some readers.
        (_written(partitionValues={"col-p": "a", "n": "01"}), "new: partition n is '01', its rows are of '1'"),
        (
            _written(bin_number=1, partitionValues={"col-p": "", "n": "2"}),
            "new: partition p is '', its rows are of None",
        ),
        (_written(partitionValues={"col-p": "a"}), "new: its partition columns are ['col-p']"),
        (_written(partitionValues={"p": "a", "n": "1"}), "new: its partition columns are ['n', 'p']"),
        (_written(size=0), "new: its size is 0"),
        (_written(baseRowId=1, deletionVector={"cardinality": 1}), "new: it carries baseRowId, deletionVector"),
        (_written("../new"), "../new: it is not a path below the table's folder"),
        (_written("s3://b/new"), "s3://b/new: it is not a path below the table's folder"),
        (_written("live"), "live is a file of the table already"),
        (_written("old-1"), "old-1 is a file of the table already"),
        (_written(clusteringProvider="x"), "new: it is clustered by x, the step's files by None"),
        (_written(bin_number=2), "new: it belongs to no bin of the batch"),
        (
            _written(tags={"maintainer.zorder": "[]"}),
            "new: its tags are {'maintainer.packed': '1000', 'maintainer.zorder': '[]'}, "
            "the step's are {'maintainer.packed': '1000'}",
        ),
    ],
)
def test_what_was_not_planned_is_named(written: WrittenFile, problem: str) -> None:
    assert problem in check_adds([written], EXPECTED)


class Changing(WrittenFile):
    def to_commit(self) -> dict[str, Any]:
        return {**super().to_commit(), "dataChange": True}


def test_a_file_that_says_it_changes_data() -> None:
    assert _written().to_commit()["dataChange"] is False
    assert check_adds([Changing(_written().add, TAGS)], EXPECTED) == ["new: dataChange is not false"]


def test_a_file_has_the_deletion_vector_that_was_written_for_it_and_no_other() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "123", "cardinality": 2}
    expected = replace(EXPECTED, vectors={"new": vector})
    assert check_adds([_written(deletionVector=vector)], expected) == []
    for forgotten in (_written(), _written(deletionVector={**vector, "pathOrInlineDv": "124"})):
        assert check_adds([forgotten], expected) == ["new: its deletion vector is not the one that was written for it"]


def test_a_file_that_is_added_twice() -> None:
    assert check_adds([_written(), _written()], EXPECTED) == ["new is added twice"]


def test_sizes_are_those_on_storage() -> None:
    assert check_sizes([_written()], lambda path: 7) == []
    assert check_sizes([_written()], lambda path: 6) == ["new has 6 bytes on storage, its action says 7"]


def _remove(path: str, **changes: Any) -> dict[str, Any]:
    return {"path": path, "dataChange": False, "size": 10, **changes}


REMOVES = [
    _remove("old-1"),
    _remove("old-2", deletionVector={"storageType": "u", "pathOrInlineDv": "123"}),
    _remove("old-3"),
]


def test_exactly_the_planned_files_are_removed() -> None:
    assert check_removes(REMOVES, BATCH) == []
    assert check_removes(REMOVES[:2], BATCH) == ["old-3 was planned and is not removed"]
    assert check_removes([*REMOVES, REMOVES[0]], BATCH) == ["old-1 is removed twice"]
    assert check_removes([*REMOVES, _remove("old-4")], BATCH) == ["old-4 is removed and was not planned"]
    assert check_removes([{**REMOVES[0], "dataChange": True}, *REMOVES[1:]], BATCH) == [
        "old-1: dataChange is not false"
    ]
    # Without its deletion vector it is another file: a reader of the log would see the rows twice.
    assert check_removes([REMOVES[0], _remove("old-2"), REMOVES[2]], BATCH) == [
        "old-2 is removed and was not planned",
        "old-2 was planned and is not removed",
    ]
    assert check_removes([{**REMOVES[0], "size": 9}, *REMOVES[1:]], BATCH) == [
        "old-1 is removed with 9 bytes, planned with 10"
    ]


def test_other_partitions_of_the_batch_do_not_count() -> None:
    swapped = replace(_written(), bin_number=1)
    assert check_adds([swapped], EXPECTED) == [
        "new: partition p is 'a', its rows are of None",
        "new: partition n is '1', its rows are of '2'",
    ]


def test_new_files_carry_the_text_of_their_bin_and_not_the_one_spelling_of_its_value() -> None:
    moment, text = (("ts", "2020-05-05 00:00:00"),), (("ts", "2020-05-05T00:00:00.000000Z"),)
    batch = Batch((Bin((DataFile("old", 10, 0, moment, 5, stored_values=text),)),))
    expected = replace(EXPECTED, batch=batch, marks=[Marks(TAGS)], physical_names={"ts": "ts"})
    assert check_adds([_written(partitionValues=dict(text))], expected) == []
    assert check_adds([_written(partitionValues=dict(moment))], expected) == [
        "new: partition ts is '2020-05-05 00:00:00', its rows are of '2020-05-05T00:00:00.000000Z'"
    ]


def _add(rows: int | None, deleted: int = 0, **values: str | None) -> dict[str, Any]:
    vector = {"deletionVector": {"cardinality": deleted}} if deleted else {}
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    return {"path": "f", "partitionValues": values, **stats, **vector}


WALL, INSTANT = "2020-05-05 00:00:00", "2020-05-05T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("removed", "added", "sentences"),
    [
        ([_add(4, ts=WALL), _add(6, ts=WALL)], [_add(10, ts=WALL)], []),
        # Nothing is left of a text whose rows were all deleted.
        ([_add(4, deleted=4, ts=INSTANT), _add(6, ts=WALL)], [_add(6, ts=WALL)], []),
        (
            [_add(4, ts=WALL, d="a"), _add(6, ts=WALL, d="a")],
            [_add(10, ts=INSTANT, d="a")],
            [f"ts of 2 files with 10 rows was '{WALL}' and is '{INSTANT}' now"],
        ),
        # Joined under one of two texts that were there before.
        (
            [_add(4, ts=WALL), _add(6, ts=INSTANT)],
            [_add(10, ts=INSTANT)],
            [f"ts of 2 files with 10 rows was '{WALL}', '{INSTANT}' and is '{INSTANT}' now"],
        ),
        ([_add(1, p=None)], [_add(1, p="")], ["p of 1 file with 1 row was None and is '' now"]),
        ([_add(3, p="7")], [_add(3)], ["p of 1 file with 3 rows was '7' and is 'missing' now"]),
        # Without counts the texts alone are compared.
        ([_add(None, p="01")], [_add(None, p="1")], ["p of 1 file was '01' and is '1' now"]),
        ([_add(None, p="1"), _add(2, p="2")], [_add(3, p="1"), _add(3, p="2")], []),
    ],
)
def test_texts_of_partition_values_that_were_spelled_anew(
    removed: list[dict[str, Any]], added: list[dict[str, Any]], sentences: list[str]
) -> None:
    assert spelled_anew(removed, added) == sentences


def in_partitions(*texts: str | None, **more: str) -> list[dict[str, Any]]:
    stats = json.dumps({"numRecords": 1})
    return [{"path": str(text), "partitionValues": {"ts": text, **more}, "stats": stats} for text in texts]


SUMMER, WINTER = "2020-07-05 00:00:00", "2020-12-05 00:00:00.500000"


@pytest.mark.parametrize(
    ("removed", "added", "offsets"),
    [
        # Three hours before in summer and two in winter: UTC, and Addis Ababa (always three), fit to one of them only.
        ((SUMMER, WINTER), ("2020-07-04T21:00:00.000000Z", "2020-12-04T22:00:00.500000Z"), (3, 2)),
        ((SUMMER,), ("2020-07-05T00:00:00Z",), (0, None)),
        ((SUMMER, None), ("2020-07-04T23:00:00+02:00", None), (3, None)),
        ((SUMMER,), ("2020-07-04T21:07:00.000000Z",), None),
        ((SUMMER, WINTER), ("2020-07-04T21:00:00.000000Z", "2020-12-04T15:00:00.500000Z"), None),
        ((SUMMER,), ("2021-07-05 00:00:00",), None),
        ((SUMMER,), ("2020-07-04T21:00:00Z", "2020-07-04T22:00:00Z"), None),
        (("a",), ("b",), None),
        ((), ("2020-07-04T21:00:00Z",), None),
    ],
)
def test_a_zone_in_which_texts_mean_the_moments_that_they_meant_before(
    removed: tuple[str | None, ...], added: tuple[str | None, ...], offsets: tuple[int, int | None] | None
) -> None:
    zone = zone_of_spelling(in_partitions(*removed, day="2020-07-05"), in_partitions(*added, day="2020-07-05"))
    assert (zone is None) is (offsets is None)
    if zone is not None and offsets is not None:
        days = (datetime(2020, 7, 5, tzinfo=ZoneInfo(zone)), datetime(2020, 12, 5, tzinfo=ZoneInfo(zone)))
        found = [day.utcoffset() for day in days]
        assert all(hours is None or at == timedelta(hours=hours) for hours, at in zip(offsets, found, strict=True))


@pytest.mark.parametrize(
    ("removed", "added", "says"),
    [
        # By a session of Vilnius: its own readers saw this moment before, and those in UTC another one.
        ((SUMMER,), ("2020-07-04T21:00:00Z",), "readers in a time zone such as Africa/Addis_Ababa see what they saw; "),
        # By a session of UTC.
        ((SUMMER,), ("2020-07-05T00:00:00Z",), "readers in UTC see what they saw, and elsewhere other values: "),
        (
            (SUMMER, "2020-07-05T00:00:00Z"),
            ("2020-07-05T00:00:00Z",),
            "readers in UTC see what they saw, and elsewhere ",
        ),
        # Another text of the same moment for everybody.
        ((SUMMER,), (f"{SUMMER}.000000",), "readers in every time zone see what they saw"),
        (("2020-07-05T03:00:00+03:00",), ("2020-07-05T00:00:00Z",), "readers in every time zone see what they saw"),
        ((SUMMER,), ("2020-07-04T21:07:00Z",), "readers may see other values than before"),
        (("01",), ("1",), "readers may see other values than before"),
        (("7",), (None,), "readers may see other values than before"),
    ],
)
def test_who_sees_the_values_that_were_there_before(
    removed: tuple[str | None, ...], added: tuple[str | None, ...], says: str
) -> None:
    said = readers_of_spelling(in_partitions(*removed), in_partitions(*added))
    assert said.startswith(says)
    assert said == says or says.endswith((": ", "; ", " "))


def test_no_zone_is_looked_for_where_other_columns_changed_or_partitions_are_many() -> None:
    before, after = in_partitions(SUMMER, day="2020-07-05"), in_partitions("2020-07-04T21:00:00Z", day="2020-07-04")
    assert zone_of_spelling(before, after) is None
    many = [
        f"{datetime(2020, 1, 1, tzinfo=ZoneInfo('UTC')) + timedelta(hours=number):%Y-%m-%d %H:%M:%S}"
        for number in range(501)
    ]
    assert zone_of_spelling(in_partitions(*many), in_partitions(*many)) is None
    assert zone_of_spelling(in_partitions(*many[1:]), in_partitions(*many[1:])) is not None
