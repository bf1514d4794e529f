"""Names of data files tell which run wrote them, and for which batch of which step."""

from __future__ import annotations

import itertools
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.schema_names import PHYSICAL_NAME
from maintainer.delta.rewrite.bin_work import LaneUnfit, folder_of_sources
from maintainer.delta.rewrite.unfinished_files import folders_of, prefix_of_attempt, prefix_of_batch
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.commit_records import CommitStamp
from tests.support.tables.builders import make_facts
from tests.unit.delta.log.replay.test_version_replay import NEVER_STARTED

RUN = "20261122T220000Z-c609"


def test_no_batch_has_the_prefix_of_another() -> None:
    batches = [
        (RUN, "t/zorder", 0),
        (RUN, "t/zorder", 1),
        (RUN, "t/zorder", 11),
        (RUN, "t/compact", 1),
        (RUN + "0", "t/zorder", 1),
    ]
    prefixes = [prefix_of_batch(*batch) for batch in batches]
    assert not [pair for pair in itertools.permutations(prefixes, 2) if pair[0].startswith(pair[1])]
    assert all(prefix.startswith(f"part-{run_id}-") for prefix, (run_id, _, _) in zip(prefixes, batches, strict=True))


def test_each_attempt_of_a_batch_has_a_name_of_its_own() -> None:
    stamp = CommitStamp(RUN, "t/zorder", 1, "digest")
    first, second = prefix_of_attempt(stamp), prefix_of_attempt(stamp)
    assert first != second
    assert {
        first.startswith(prefix_of_batch(RUN, "t/zorder", 1)),
        second.startswith(prefix_of_batch(RUN, "t/zorder", 1)),
    } == {True}


@pytest.mark.parametrize("run_id", ["", "a/b", "..", "x*", "-a"])
def test_what_is_no_run_id_names_no_files(run_id: str) -> None:
    with pytest.raises(ValueError, match="is not the id of a run"):
        prefix_of_batch(run_id, "t/zorder", 0)


MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({}, {"", "p=a", "p=%61"}),
        # Folders of random names, and those that Delta 4.0 names by the column's name in the files.
        (MAPPED, {"", "p=a", "p=%61", "col-1=a", "x7"}),
    ],
)
def test_where_a_rewrite_of_a_partition_may_have_left_files(
    properties: dict[str, str], found: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("p=a", "p=%61", "p=b", "col-1=a", "col-1=b", "col-2=a", "x7", "_delta_log"):
        (tmp_path / name).mkdir()
    (tmp_path / "col-1=%61").symlink_to("p=b")
    (tmp_path / "x8").symlink_to("x7")
    facts = make_facts(partitioned_by=("p",), properties=properties)
    if properties:
        schema = json.loads(facts.schema_json)
        schema["fields"][-1]["metadata"] = {PHYSICAL_NAME: "col-1"}
        facts = replace(facts, schema_json=json.dumps(schema))
    storage = TableStorage(DeltaJvm(NEVER_STARTED), tmp_path.as_uri())
    folders = folders_of(storage, facts, [(("p", "a"),)])
    root = storage.root_uri
    assert {folder.removeprefix(root).strip("/").replace("%25", "%") for folder in folders} == found

    # A folder of a live file is judged alike, and nothing is listed.
    there = list(storage.children(root))
    monkeypatch.setattr(TableStorage, "children", lambda storage, uri: pytest.fail("a folder was listed"))
    bin_: Any = SimpleNamespace(partition_values=(("p", "a"),))
    for uri in (*there, f"{root}/p=a/q=a", f"{root}/absent=a"):
        sources = [{"path": f"{uri.removeprefix(f'{root}/')}/file.parquet"}]
        with nullcontext() if uri in folders else pytest.raises(LaneUnfit):
            assert f"{root}/{folder_of_sources(storage, facts, bin_, sources)}" == f"{uri}/"
