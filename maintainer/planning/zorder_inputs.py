"""What incremental Z-order has to be planned from, and what can be said of the layout without planning."""

from __future__ import annotations

from maintainer.errors import MaintainerError
from maintainer.model.table import TableFacts
from maintainer.model.zorder import LayoutFigures
from maintainer.planning.columns import FoundColumn
from maintainer.planning.zorder_columns import zorder_columns
from maintainer.planning.zorder_revision import (
    ESCAPED_RATIO,
    escaped_ratio,
    fitting_revision,
    measured_layout,
    usable_columns,
)
from maintainer.policy.resolved import ResolvedPolicy, ZOrderMode


def ranges_wanted(policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return the columns whose smallest and largest values planning needs; none without incremental Z-order.

    Empty also where planning will end in a problem: then nothing has to be read for it.
    """
    zorder = policy.optimize.zorder
    if zorder is None or zorder.mode is not ZOrderMode.INCREMENTAL or not facts.files:
        return ()
    try:
        return tuple(column.quoted for column in incremental_columns(policy, facts))
    except MaintainerError:
        return ()


def sample_wanted(policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return the columns that a sample is needed of: those of a revision that is to be made; none otherwise.

    Args:
        policy: The effective policy.
        facts: With ``column_ranges`` where ``ranges_wanted`` names columns.
    """
    if not ranges_wanted(policy, facts):
        return ()
    columns = incremental_columns(policy, facts)
    revision = fitting_revision(columns, facts)
    if revision is not None and escaped_ratio(revision, facts) <= ESCAPED_RATIO:
        return ()
    return tuple(column.quoted for column in columns)


def layout_of(policy: ResolvedPolicy, facts: TableFacts) -> LayoutFigures | None:
    """Return the figures of the table's layout, by the log alone; None without incremental Z-order or a revision."""
    if not ranges_wanted(policy, facts):
        return None
    return measured_layout(incremental_columns(policy, facts), facts)


def incremental_columns(policy: ResolvedPolicy, facts: TableFacts) -> tuple[FoundColumn, ...]:
    """Return the Z-order columns of an incremental Z-order.

    Raises:
        TableError: As ``zorder_columns`` and ``usable_columns``.
    """
    return usable_columns(zorder_columns(policy, facts), str(policy.origin("optimize.zorder.columns")))
