"""A commit read briefly says of each file what a JSON reader says, whoever wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.delta.storage.table_log import LogEntry
from tests.support.tables.aged_tables import AgedTable
from tests.support.tables.local_vacuum import LocalTable

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 5, "cardinality": 1}
ADD_FIELDS = ("path", "modificationTime", "deletionVector")
REMOVE_FIELDS = ("path", "deletionTimestamp", "dataChange", "size", "deletionVector")


def add(path: str, value: str, moment: int, vector: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "path": path, "partitionValues": {value: value, "size": "1"}, "size": 7, "modificationTime": moment,
        "dataChange": True, "stats": json.dumps({"numRecords": 1, "modificationTime": 5, "dataChange": value}),
    }  # fmt: skip
    return {"add": body | ({"deletionVector": VECTOR} if vector else {})}


def remove(path: str, value: str, moment: int, vector: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "path": path, "deletionTimestamp": moment, "dataChange": moment % 2 == 0, "extendedFileMetadata": True,
        "partitionValues": {value: value, "size": value}, "size": moment + 1, "tags": {"size": "3"}, "stats": value,
    }  # fmt: skip
    return {"remove": body | ({"deletionVector": VECTOR} if vector else {})}


@given(
    st.lists(st.tuples(st.sampled_from([add, remove]), TEXT, TEXT, st.integers(0, 2**45), st.booleans()), max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_brief_and_whole_agree(
    tmp_path_factory: pytest.TempPathFactory, made: list[Any], spaced: bool, escaped: bool
) -> None:
    actions = [make(path, value, moment, vector) for make, path, value, moment, vector in made]
    separators = (", ", ": ") if spaced else (",", ":")
    text = "\n".join(json.dumps(action, separators=separators, ensure_ascii=escaped) for action in actions)
    folder = tmp_path_factory.mktemp("t")
    entry = _entry(folder, text)
    for brief, whole in zip(_brief(folder, entry), actions, strict=True):
        (kind,) = whole
        fields = ADD_FIELDS if kind == "add" else REMOVE_FIELDS
        assert {name: brief[kind].get(name) for name in fields} == {name: whole[kind].get(name) for name in fields}


def _brief(folder: Path, entry: LogEntry) -> list[dict[str, Any]]:
    ((_, actions),) = LocalTable(folder).brief_commits([entry])
    return list(actions)


def _entry(folder: Path, text: str) -> Any:
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / f"{0:020}.json").write_text(text + "\n", encoding="utf-8")
    (entry,) = LocalTable(folder).commits()
    return entry


def test_a_line_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    table = AgedTable(tmp_path / "t")
    line = json.dumps(remove("a", "b", 1, False), separators=(",", ":"))
    for cut in range(1, len(line)):
        (table.path / "_delta_log" / f"{0:020}.json").write_text(line[:cut])
        (entry,) = LocalTable(table.path).commits()
        with pytest.raises(ValueError, match=r"\w"):
            _brief(table.path, entry)
