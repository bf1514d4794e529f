"""Read how incremental Z-order is asked for: by the policy, by table properties, or once by hand.

The properties are those of Qbeast's documentation, with its meanings and defaults, so that the owner of a table can
set them without access to policies: ``use.optimization.autoOptimize.*``, and ``use.optimization.type`` with
``use.optimization.bytes-per-iter`` for one round of leveled compaction. They count only where a policy says
``tableProperties: honour``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from maintainer.errors import TableError
from maintainer.model.plan.zorder_turn import LayoutFigures, Strategy
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.curve.curve import key_of
from maintainer.planning.property_plan import property_of
from maintainer.planning.zorder.zorder_revision import (
    ESCAPED_RATIO,
    columns_or_none,
    escaped_ratio,
    fitting_revision,
    incremental_columns,
    measured_layout,
)
from maintainer.policy.resolve.resolved import ResolvedPolicy, ZOrderMode, ZOrderPolicy
from maintainer.units import read_digits

_T = TypeVar("_T")

AUTO = "use.optimization.autoOptimize."
ENABLED = f"{AUTO}enabled"
REVISION_ID = f"{AUTO}revisionId"
UNINDEXED_ENABLED = f"{AUTO}optimizeUnindexedFiles.enabled"
UNINDEXED_FIRST = f"{AUTO}optimizeUnindexedFiles.prioritize"
BATCH_BYTES = f"{AUTO}optimizeUnindexedFiles.batchBytes"
FROM_TIMESTAMP = f"{AUTO}optimizeUnindexedFiles.fromTimestamp"
REQUEST = "use.optimization.type"
REQUEST_BYTES = "use.optimization.bytes-per-iter"
REQUEST_KEYS = (REQUEST, REQUEST_BYTES)
LEVELED_COMPACTION = "LeveledCompaction"

DEFAULT_BATCH_BYTES = 10_000_000_000


@dataclass(frozen=True, slots=True)
class ZOrderOptions:
    """What holds for one table now. ``disabled_by`` is the property that switches it off, None where nothing does.

    ``request`` says that a round was asked for by hand: it is cleared afterwards. ``note`` says why a request is not
    followed. ``origin`` is the line of the policy or the property behind all this.
    """

    strategies: tuple[Strategy, ...]
    batch_bytes: int
    bytes_per_iteration: int
    from_timestamp_ms: int
    revision: int | None
    origin: str
    disabled_by: str | None = None
    request: bool = False
    note: str | None = None


def options_of(policy: ResolvedPolicy, facts: TableFacts) -> ZOrderOptions:
    """Return what holds for a table.

    Raises:
        TableError: T418, a property ``use.optimization.*`` has a value that cannot be read.
    """
    zorder = policy.optimize.zorder
    assert zorder is not None
    options = _of_policy(policy, zorder)
    if not zorder.honour_table_properties:
        return options
    enabled = _boolean(facts, ENABLED)
    if enabled:
        options = _of_properties(options, facts, policy.optimize.batch_size_bytes)
    elif enabled is False:
        options = replace(options, disabled_by=ENABLED)
    return _with_request(options, facts, automatic=bool(enabled))


def _of_policy(policy: ResolvedPolicy, zorder: ZOrderPolicy) -> ZOrderOptions:
    since = 0 if zorder.from_timestamp is None else (key_of("timestamp", zorder.from_timestamp) or 0) // 1000
    batch_bytes = min(zorder.batch_bytes, policy.optimize.batch_size_bytes)
    return ZOrderOptions(
        strategies=zorder.strategies,
        batch_bytes=batch_bytes,
        bytes_per_iteration=min(zorder.bytes_per_iteration or batch_bytes, policy.optimize.batch_size_bytes),
        from_timestamp_ms=since,
        revision=zorder.revision,
        origin=policy.place_of("optimize.zorder"),
    )


def _of_properties(options: ZOrderOptions, facts: TableFacts, most_bytes: int) -> ZOrderOptions:
    """Read the options from the table's properties, with the documented defaults for those not set.

    Pieces of the curve are not in that documentation; they stay where the policy has them, after the others. And
    ``optimize.batchSize`` (``most_bytes``) still bounds each commit.
    """
    indexed = [Strategy.LEVELED, *(strategy for strategy in options.strategies if strategy is Strategy.PIECES)]
    strategies = indexed
    if _boolean(facts, UNINDEXED_ENABLED) is not False:
        first = _boolean(facts, UNINDEXED_FIRST) is not False
        strategies = [Strategy.UNINDEXED, *indexed] if first else [*indexed, Strategy.UNINDEXED]
    time = "a time like 2023-01-01 00:00:00, or milliseconds since 1970"
    return replace(
        options,
        strategies=tuple(strategies),
        revision=_number(facts, REVISION_ID),
        batch_bytes=min(_number(facts, BATCH_BYTES) or DEFAULT_BATCH_BYTES, most_bytes),
        from_timestamp_ms=_property(facts, FROM_TIMESTAMP, _timestamp_ms, time) or 0,
        origin=ENABLED,
    )


def _with_request(options: ZOrderOptions, facts: TableFacts, *, automatic: bool) -> ZOrderOptions:
    request = property_of(facts, REQUEST)
    if request is None:
        return options
    if request.lower() != LEVELED_COMPACTION.lower():
        raise _unreadable(facts, REQUEST, request, LEVELED_COMPACTION)
    if automatic:
        return replace(options, note=f"{REQUEST} is ignored: the table is under automatic optimization ({ENABLED})")
    # A round that finds nothing must not keep the policy's own work from being done.
    others = () if options.disabled_by else options.strategies
    return replace(
        options,
        strategies=tuple(dict.fromkeys((Strategy.LEVELED, *others))),
        bytes_per_iteration=_number(facts, REQUEST_BYTES) or options.bytes_per_iteration,
        origin=REQUEST,
        disabled_by=None,
        request=True,
    )


def _property(facts: TableFacts, key: str, read: Callable[[str], _T | None], allowed: str) -> _T | None:
    """Read a property; None where it is not set."""
    text = property_of(facts, key)
    value = None if text is None else read(text)
    if text is not None and value is None:
        raise _unreadable(facts, key, text, allowed)
    return value


def _boolean(facts: TableFacts, key: str) -> bool | None:
    return _property(facts, key, lambda text: {"true": True, "false": False}.get(text.lower()), "true or false")


def _number(facts: TableFacts, key: str) -> int | None:
    return _property(facts, key, lambda text: read_digits(text.strip()), "a whole number")


def _timestamp_ms(text: str) -> int | None:
    if (digits := read_digits(text.strip())) is not None:
        return digits
    instant = key_of("timestamp", text)
    return None if instant is None else int(instant // 1000)


def _unreadable(facts: TableFacts, key: str, value: str, allowed: str) -> TableError:
    what = f"the table property {key} cannot be read"
    help = f"ALTER TABLE ... SET or UNSET TBLPROPERTIES ('{key}'), or write `tableProperties: ignore`"
    return TableError(what, code="T418", where=str(facts.ref), found=value, allowed=allowed, help=help)


def ranges_wanted(policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return the columns whose smallest and largest values planning needs; none without incremental Z-order.

    Empty also where planning will end in a problem: then nothing has to be read for it.
    """
    zorder = policy.optimize.zorder
    if zorder is None or zorder.mode is not ZOrderMode.INCREMENTAL or not facts.files:
        return ()
    return columns_or_none(incremental_columns, policy, facts)


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
