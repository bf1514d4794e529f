"""A data file that was written and is not committed yet, and the tags that it will carry in the log.

Each bin of a batch has its ``Marks``: the tags and the ``clusteringProvider`` of its new files.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from maintainer.model.plan.layout_tags import DROPPED_COLUMNS_TAG, LIQUID, ZCUBE_ID_TAG
from maintainer.model.plan.steps import Batch, Bin, ClusterStep, PurgeStep, RewriteStep
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.selection.schema_columns import dropped_columns_digest


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file written and not yet committed: its ``add`` action as Delta made it, and the tags it will carry.

    ``bin_number`` is the place in its batch of the bin whose rows it holds.
    """

    add: dict[str, Any]
    tags: tuple[tuple[str, str], ...] = ()
    bin_number: int = 0
    clustering_provider: str | None = None

    @property
    def path(self) -> str:
        """Path as in the log: relative to the root, percent-encoded."""
        return str(self.add["path"])

    @property
    def size_bytes(self) -> int:
        return int(self.add["size"])

    def to_proof(self) -> dict[str, Any]:
        """The ``add`` action for reading the file before it is committed.

        Delta gives row ids at commit and refuses to read a file without; the ids that count are in the file, and a
        row that lacks one would get an id from this base and not pass the proof.
        """
        return {"baseRowId": 0, "defaultRowCommitVersion": 0, **self.add}

    def to_commit(self) -> dict[str, Any]:
        """The ``add`` action for the log: a rewrite changes no data."""
        tags = {**(self.add.get("tags") or {}), **dict(self.tags)}
        add = {**self.add, "dataChange": False, **({"tags": tags} if tags else {})}
        if self.clustering_provider is not None:
            add["clusteringProvider"] = self.clustering_provider
        return add


def widened(stats: str) -> str:
    """Return statistics that say their bounds are not tight, as the protocol asks of a file with soft-deleted rows.

    Numbers stay as they are written: a decimal of many digits is no float.
    """
    return _as_json({**json.loads(stats, parse_float=_Number, parse_int=_Number), "tightBounds": False})


class _Number(str):
    """A number by its text."""

    __slots__ = ()


def _as_json(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_as_json(name)}:{_as_json(inner)}" for name, inner in value.items()) + "}"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Marks:
    """Tags that every file of a bin carries, and its ``clusteringProvider``; None for a file that is not clustered."""

    tags: tuple[tuple[str, str], ...] = ()
    clustering_provider: str | None = None


def marks_of(facts: TableFacts, step: RewriteStep, batch: Batch) -> tuple[Marks, ...]:
    """Decide the marks of each bin of a batch, in order; the id of a new cube is made here."""
    dropped = dropped_columns_digest(facts)
    common = (*step.file_tags, *(((DROPPED_COLUMNS_TAG, dropped),) if dropped else ()))
    return tuple(_marks(step, bin_, common) for bin_ in batch.bins)


def _marks(step: RewriteStep, bin_: Bin, common: tuple[tuple[str, str], ...]) -> Marks:
    if isinstance(step, ClusterStep):
        # Each bin is a cube of its own.
        return Marks((*common, (ZCUBE_ID_TAG, str(uuid.uuid4()))), LIQUID)
    if isinstance(step, PurgeStep) and len(bin_.files) == 1:
        return Marks((*common, *step.row_order_tags(bin_)), bin_.files[0].clustering_provider)
    return Marks(common)
