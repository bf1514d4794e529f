"""What the log will say of a batch's new files beside their rows: tags, and who clustered them. One for each bin."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from maintainer.model.steps import (
    DROPPED_COLUMNS_TAG,
    LIQUID,
    ZCUBE_ID_TAG,
    Batch,
    Bin,
    ClusterStep,
    PurgeStep,
    RewriteStep,
)
from maintainer.model.table import TableFacts
from maintainer.planning.dropped_columns import dropped_columns_digest


@dataclass(frozen=True, slots=True)
class Marks:
    """Tags that every file of a bin carries, and its ``clusteringProvider``; None for a file that is not clustered."""

    tags: tuple[tuple[str, str], ...] = ()
    clustering_provider: str | None = None


def marks_of(facts: TableFacts, step: RewriteStep, batch: Batch) -> tuple[Marks, ...]:
    """Decide the marks of each bin of a batch, in order; the id of a new cube is made here."""
    dropped = dropped_columns_digest(facts)
    common = (*step.file_tags, *(((DROPPED_COLUMNS_TAG, dropped),) if dropped else ()))
    return tuple(_marks(step, one, common) for one in batch.bins)


def _marks(step: RewriteStep, one: Bin, common: tuple[tuple[str, str], ...]) -> Marks:
    if isinstance(step, ClusterStep):
        # Each bin is a cube of its own.
        return Marks((*common, (ZCUBE_ID_TAG, str(uuid.uuid4()))), LIQUID)
    if isinstance(step, PurgeStep) and len(one.files) == 1:
        return Marks((*common, *step.kept_tags(one)), one.files[0].clustering_provider)
    return Marks(common)
