"""Cases of vacuum without Spark: tables that are ready to be vacuumed, and a hash of all that had to stay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.log.replay import log_replay
from maintainer.delta.log.replay.version_replay import LogState
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.run.receipts import VacuumReceipt
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.resolve.resolved import Consumer, ResolvedPolicy
from tests.support.tables.aged_tables import AgedTable, tree
from tests.support.tables.builders import make_policy, make_vacuum
from tests.support.tables.local_vacuum import LocalTable, Vacuuming


def policies(
    *, consumers: tuple[Consumer, ...] = (), max_deletes: int | None = None, **vacuum: Any
) -> Callable[[TableRef], ResolvedPolicy]:
    """Policies of seven days for whatever table is asked for."""
    made = make_policy(vacuum=make_vacuum(**vacuum), consumers=consumers, max_deletes=max_deletes)
    return lambda ref: replace(made, table=ref)


def old_table(path: Path, **settings: Any) -> AgedTable:
    """Two live files, and one that was compacted away twenty days ago."""
    table = AgedTable(path, **settings)
    table.append(60, "a.parquet", "b.parquet")
    table.rewrite(20, "ab.parquet", "a.parquet")
    return table


def is_own_commit(path: str) -> bool:
    """Whether a new file is a commit of a log."""
    return path.endswith(".json") and "_delta_log/" in path


def assert_only(lake: Path, before: dict[str, str], *gone: str) -> None:
    """Everything that had to stay is there with its content; exactly ``gone`` is not."""
    after = tree(lake)
    assert {path for path in before if path not in after} == set(gone)
    assert {path: after[path] for path in before if path in after} == {
        path: content for path, content in before.items() if path not in gone
    }
    assert all(is_own_commit(path) for path in after.keys() - before.keys())


def vacuum(lake: Path, table: AgedTable, work: Vacuuming, *gone: str) -> VacuumReceipt | None:
    """Plan, delete, and check that exactly the files named went from the table; None where nothing was planned."""
    before = tree(lake)
    step = work.step(table)
    assert tree(lake) == before, "planning changed something"
    receipt = work.delete(table, step) if step is not None else None
    name = table.path.relative_to(lake)
    assert_only(lake, before, *(f"{name}/{path}" for path in gone))
    if receipt is not None:
        assert (receipt.num_files_deleted, receipt.remaining, receipt.stopped) == (len(gone), (), None)
    assert work.step(table) is None, "a second run found something"
    return receipt


def codes(plan: TablePlan) -> set[ReasonCode]:
    """Why something is left alone, but for what compaction says."""
    return {entry.reason.code for entry in plan.left_alone} - {ReasonCode.AT_TARGET, ReasonCode.NO_PARTNER}


def write_checkpoint(folder: Path, table: AgedTable, version: int, *, committed: int = 3) -> Path:
    """A stream's checkpoint that stands before a version of the table."""
    (folder / "offsets").mkdir(parents=True)
    (folder / "commits").mkdir()
    (folder / "metadata").write_text('{"id":"x"}')
    for batch in range(committed + 2):  # the last batch has begun and is not done
        offset = {
            "sourceVersion": 1,
            "reservoirId": table.table_id,
            "reservoirVersion": version if batch == committed else (0 if batch < committed else version + 5),
            "index": -1,
            "isStartingVersion": False,
        }
        text = "v1\n" + json.dumps({"batchWatermarkMs": 0}) + "\n" + json.dumps(offset)
        (folder / "offsets" / str(batch)).write_text(text)
        if batch <= committed:
            (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    (folder / "offsets" / ".3.crc").write_bytes(b"crc")
    return folder


def clone_of(source: AgedTable, path: Path, *names: str, prefix: str | None = None) -> AgedTable:
    """A shallow clone: a log that names the source's files by absolute path."""
    clone = AgedTable(path, created_days_ago=15)
    adds = []
    for name in names:
        add = source.add_action(name, 15)
        add["add"]["path"] = f"{prefix or 'file:' + str(source.path)}/{add['add']['path']}"
        adds.append(add)
    clone.commit(15, *adds, operation="CLONE")
    return clone


class Stubborn(LocalTable):
    """Storage on which the n-th deletion fails, or kills the process."""

    def __init__(self, path: Path, nth: int, error: BaseException) -> None:
        super().__init__(path)
        self._left, self._error = nth, error

    def delete(self, uri: str) -> bool:
        self._left -= 1
        if self._left == 0:
            raise self._error
        return super().delete(uri)


class Killed(BaseException):
    """The process ends here."""


def wide_table(lake: Path) -> tuple[AgedTable, list[str]]:
    table = AgedTable(lake / "t")
    names = [f"f{number:02}.parquet" for number in range(20)]
    table.append(60, "live.parquet", *names)
    table.rewrite(20, "all.parquet", *names)
    return table, names


def forget_add(patch: pytest.MonkeyPatch, path: str) -> None:
    """Plant a fault in our reader: both of its replays miss the adds of a path, as the log spells it."""
    take, record = LogState.take, log_replay._record

    def taken(state: LogState, actions: Iterable[Mapping[str, Any]]) -> None:
        take(state, (action for action in actions if "add" not in action or action["add"].path != path))

    def recorded(log: Any, storage: Any, body: dict[str, Any], uri: str, *how: Any, late: bool) -> str | None:
        return None if body["path"] == path else record(log, storage, body, uri, *how, late=late)

    patch.setattr(LogState, "take", taken)
    patch.setattr(log_replay, "_record", recorded)
