"""What an engine that only issues Delta's commands cannot do: left alone, with the reason."""

from __future__ import annotations

from dataclasses import replace

from maintainer.model.plan import LeftAlone
from maintainer.model.reasons import Reason, ReasonCode
from maintainer.model.steps import PartitionRewriteStep
from maintainer.model.table import TableFacts
from maintainer.planning.decision import Decision, leave_files
from maintainer.planning.dropped_columns import dropped_columns_digest
from maintainer.policy.resolved import ResolvedPolicy

_HELP = "apply with --engine transaction beside the storage"


def without_commands(policy: ResolvedPolicy, layout: Decision) -> Decision:
    """Leave a rewrite of partitions alone: OPTIMIZE joins files and puts them on a curve, nothing else."""
    if not isinstance(layout.step, PartitionRewriteStep):
        return layout
    files = [file for batch in layout.step.batches for file in batch.files]
    text = f"rewrite: no command writes files of a number, a size or an order; {_HELP}"
    left = leave_files(ReasonCode.NOT_BY_ENGINE, text, files, str(policy.origin("optimize.rewrite")))
    return Decision(None, (*layout.left_alone, left))


def left_by_commands(policy: ResolvedPolicy, facts: TableFacts, purge: Decision) -> Decision:
    """Say that nobody looked for dropped columns, where there may be any."""
    asked = policy.optimize.purge is not None and policy.optimize.purge.dropped_columns
    if not asked or dropped_columns_digest(facts) is None:
        return purge
    text = f"dropped columns: the command engine opens no file to look for them; {_HELP}"
    origin = str(policy.origin("optimize.purge.droppedColumns"))
    return replace(purge, left_alone=(*purge.left_alone, LeftAlone(Reason(ReasonCode.NOT_BY_ENGINE, text, origin))))
