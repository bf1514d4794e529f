"""Statistics of a few columns: paths under column mapping, texts as they stand in the log, tags that follow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maintainer.delta.log.schema_names import physical_path
from maintainer.delta.rewrite.curve_writer import curve_tags, revision_of
from maintainer.delta.snapshot.column_statistics import parse_statistics, range_in
from maintainer.errors import CommitConflict, CommitNotLanded
from maintainer.model.plan.layout_tags import CURVE_CUBE_TAG, ELEMENTS_TAG, REVISION_TAG, STRATEGY_TAG
from maintainer.model.plan.steps import ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy, ZOrderTurn
from maintainer.planning.curve.revision import Revision, make_column

PHYSICAL = "delta.columnMapping.physicalName"


def field(name: str, kind: Any, physical: str | None = None) -> dict[str, Any]:
    return {"name": name, "type": kind, "metadata": {PHYSICAL: physical} if physical else {}}


INNER = {"type": "struct", "fields": [field("x.y", "integer", "col-2")]}
SCHEMA = {"fields": [field("id", "long"), field("s", INNER, "col-1")]}
STATS = (
    '{"numRecords":7,"minValues":{"id":9007199254740993,"col-1":{"col-2":1.50}},'
    '"maxValues":{"id":9},"nullCount":{"id":0}}'
)


def test_a_path_is_physical_and_has_no_case() -> None:
    assert physical_path(SCHEMA, "ID") == ("id",)
    assert physical_path(SCHEMA, "s.`x.y`") == ("col-1", "col-2")
    with pytest.raises(ValueError, match=r"no column s\.z"):
        physical_path(SCHEMA, "s.z")


def test_numbers_stay_the_texts_that_they_are() -> None:
    stats = parse_statistics(STATS)
    assert range_in(stats, ("id",)) == ("9007199254740993", "9", False)
    assert range_in(stats, ("col-1", "col-2")) == ("1.50", None, True)
    assert range_in(stats, ("gone",)) == (None, None, True)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "7"])
def test_statistics_that_cannot_be_read_say_nothing(text: str | None) -> None:
    assert parse_statistics(text) == {}


REVISION = Revision(4, (make_column("id", "long", [str(n) for n in range(64)], max_bits=3),))
TURN = ZOrderTurn(Strategy.PIECES, REVISION.tag, 10, (1,), cube="01")
STEP = ZOrderStep((), ("id",), 1, 1, (), planned_turn=TURN)
METADATA = {
    "schemaString": json.dumps(SCHEMA),
    "partitionColumns": [],
    "configuration": {REVISION.property_name: REVISION.to_json()},
}


def test_tags_follow_from_the_statistics_of_the_file() -> None:
    stats = json.dumps({"numRecords": 10, "minValues": {"id": 16}, "maxValues": {"id": 23}, "nullCount": {"id": 0}})
    assert dict(curve_tags(STEP, stats, METADATA, "t")) == {
        REVISION_TAG: REVISION.tag,
        CURVE_CUBE_TAG: "010",
        ELEMENTS_TAG: "10",
        STRATEGY_TAG: "pieces",
    }


@pytest.mark.parametrize("stats", ['{"minValues":{"id":1}}', None])
def test_a_file_without_statistics_is_not_committed(stats: str | None) -> None:
    with pytest.raises(CommitNotLanded, match="without statistics") as caught:
        curve_tags(STEP, stats, METADATA, "t")
    assert (caught.value.code, caught.value.where) == ("C702", "t")


@pytest.mark.parametrize("text", [None, "{}", REVISION.to_json().replace('"63"', '"64"')])
def test_a_revision_that_was_removed_or_changed_is_a_conflict(text: str | None) -> None:
    metadata = {**METADATA, "configuration": {REVISION.property_name: text} if text else {}}
    with pytest.raises(CommitConflict, match=r"maintainer\.zorder\.revision\.4 was removed or changed"):
        revision_of(TURN, metadata, "t")
