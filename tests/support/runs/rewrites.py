"""Each kind of rewrite on all files of a table, and the log of what came of it, read as text by no code of ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from maintainer.delta.engine.table_engine import DeltaTableEngine
from maintainer.model.plan.lanes import BY_SPARK, Lane, LaneChoice
from maintainer.model.plan.layout_tags import RewriteRequest
from maintainer.model.plan.steps import Batch, PartitionRewriteStep, PurgeStep, RewriteStep
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.table.table_facts import TableFacts, TableRef
from maintainer.planning.selection.lane_choice import why_not_copy, why_not_local
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


def partition_values(actions: list[dict[str, Any]], kind: str) -> set[str]:
    """The partition values of adds or removes, letter for letter; Delta leaves nulls out of removes."""
    values = [action[kind]["partitionValues"] for action in actions if kind in action]
    return {json.dumps({k: v for k, v in row.items() if v is not None}, sort_keys=True) for row in values}


LANES = tuple(
    (kind, lane) for kind in REWRITES for lane in Lane if lane is not Lane.COPY or kind in ("compact", "purge")
)
"""Kinds of rewrites, each in every lane that may take it; a table that fits no other lane is Spark's."""


def in_lane(facts: TableFacts, step: RewriteStep, batch: Batch, lane: Lane) -> tuple[RewriteStep, Batch]:
    """Put the bins that a lane may take into it, whatever their size; Spark takes all others."""
    bins = []
    for bin_ in batch.bins:
        no_copy = why_not_copy(facts, step) if lane is Lane.COPY else "another lane was asked for"
        no_local = why_not_local(facts, step) if lane is Lane.LOCAL else "another lane was asked for"
        if any(file.deletion_vector for file in bin_.files):
            no_copy = "soft-deleted rows"
        fits = lane is Lane.SPARK or no_copy is None or no_local is None
        bins.append(replace(bin_, lane=LaneChoice(lane, "asked for", Lane.SPARK) if fits else BY_SPARK))
    batch = Batch(tuple(bins))
    return replace(step, batches=(batch,)), batch


def rewrite(
    engine: DeltaTableEngine, path: Path, table: FeatureTable, kind: str, lane: Lane = Lane.SPARK
) -> CommitReceipt:
    """Rewrite all files of all partitions, in a lane where it may take them."""
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = REWRITES[kind](facts, table)
    step, batch = in_lane(facts, step, batch, lane)
    return engine.writer.rewrite(facts, step, batch, stamp(f"t/{kind}", list(Lane).index(lane)), no_intent)
