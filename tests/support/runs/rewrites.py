"""Each kind of rewrite on all files of a table, and the log of what came of it, read as text by no code of ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maintainer.delta.engine.table_engine import DeltaTableEngine
from maintainer.model.plan.steps import Batch, PartitionRewriteStep, PurgeStep, RewriteRequest, RewriteStep
from maintainer.model.run.outcome import CommitReceipt
from maintainer.model.table.table_facts import TableFacts, TableRef
from tests.support.tables.delta_tables import GIB, compaction, no_intent, stamp, zorder
from tests.support.tables.feature_tables import FeatureTable

MakeStep = Callable[[TableFacts, FeatureTable], tuple[RewriteStep, Batch]]

REWRITES: dict[str, MakeStep] = {
    "compact": lambda facts, table: compaction(facts),
    "zorder": lambda facts, table: zorder(facts, *table.zorder),
    "rewrite": lambda facts, table: _sorted(facts),
    "purge": lambda facts, table: _purge(facts),
}
"""How each kind of rewrite takes all files of a table, one bin a partition."""


def _sorted(facts: TableFacts) -> tuple[RewriteStep, Batch]:
    batch = compaction(facts)[1]
    return PartitionRewriteStep((batch,), RewriteRequest(1, None, ("id",)), 2, ()), batch


def _purge(facts: TableFacts) -> tuple[RewriteStep, Batch]:
    batch = compaction(facts)[1]
    return PurgeStep((batch,), GIB, 2, ()), batch


def actions_of(path: Path, version: int) -> list[dict[str, Any]]:
    """The actions of one commit, as the log has them."""
    text = (path / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def partition_values(actions: list[dict[str, Any]], kind: str) -> set[str]:
    """The partition values of adds or removes, letter for letter; Delta leaves nulls out of removes."""
    found = [one[kind]["partitionValues"] for one in actions if kind in one]
    return {json.dumps({k: v for k, v in one.items() if v is not None}, sort_keys=True) for one in found}


def rewrite(engine: DeltaTableEngine, path: Path, table: FeatureTable, kind: str) -> CommitReceipt:
    """Rewrite all files of all partitions."""
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = REWRITES[kind](facts, table)
    return engine.writer.rewrite(facts, step, batch, stamp(f"t/{kind}"), no_intent)
