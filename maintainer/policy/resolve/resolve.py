"""From levels of settings to the effective policy of one table, complete and in base units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from maintainer.model.plan.plan import ContentCheck, RowCountCheck
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.predicate.partition_predicate import Predicate, parse_predicate
from maintainer.policy.resolve.builtin_defaults import (
    ALWAYS,
    DEFAULT_MIN_CUBE_SIZE_BYTES,
    VACUUM,
    ZORDER,
    min_file_size_of,
)
from maintainer.policy.resolve.merge import Layer, Level, Merged, Setting, merge
from maintainer.policy.resolve.resolved import (
    BUILT_IN,
    AutoCompactPolicy,
    ClusterPolicy,
    Consumer,
    Expectation,
    LimitsPolicy,
    OptimizePolicy,
    Origin,
    PurgePolicy,
    ResolvedPolicy,
    RewritePolicy,
    Suspension,
    VacuumMode,
    VacuumPolicy,
    VerifyPolicy,
    Window,
    WorthPolicy,
    ZOrderMode,
    ZOrderPolicy,
    policy_digest,
)
from maintainer.policy.resolve.setting_units import base_value
from maintainer.policy.select.table_names import absolute_path

_T = TypeVar("_T")

_WEEKDAYS = {"mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6, "sun": 7}


@dataclass(frozen=True, slots=True)
class Resolution:
    """The effective policy of a table, and the merged settings with everything they replaced."""

    policy: ResolvedPolicy
    merged: Merged
    values: Mapping[str, object]
    """Every effective value by dotted key, in base units: what the digest is taken of."""

    named_by_file: bool = True
    """False for a table that only rules reach; ``policy.file`` is then the rule of highest priority."""


def resolve(
    ref: TableRef, file: str, layers: Sequence[Layer], *, root: Path, timezone: str, named_by_file: bool = True
) -> Resolution:
    """Merge the levels of one table and read them into a policy.

    Args:
        ref: The table.
        file: The file that names it, or the rule that reaches it.
        layers: What files say, from low to high; built-in defaults are put below.
        root: Where relative checkpoint paths start.
        timezone: IANA zone of windows that name none.
        named_by_file: Whether ``file`` names the table itself.
    """
    merged = _with_min_file_size(merge([*_built_in(layers), *layers]))
    values = effective_values(merged, timezone)
    return Resolution(_policy(ref, file, merged, values, root), merged, values, named_by_file)


def effective_values(merged: Merged, timezone: str) -> dict[str, object]:
    """Return every effective value by dotted key, in base units."""
    values = {".".join(keys): base_value(".".join(keys), setting.value) for keys, setting in merged.leaves.items()}
    if ("autoCompact",) in merged.maps:
        values["autoCompact"] = True
    windows = values.get("window")
    if isinstance(windows, list):
        values["window"] = [{"timezone": timezone, **window} for window in windows]
    return values


def _built_in(layers: Sequence[Layer]) -> list[Layer]:
    built_in = [ALWAYS]
    if any(("vacuum",) in layer.maps for layer in layers):
        built_in.append(VACUUM)
    if any(("optimize", "zorder") in layer.maps for layer in layers):
        built_in.append(ZORDER)
    return built_in


def _with_min_file_size(merged: Merged) -> Merged:
    """Add the default of ``optimize.minFileSize``, which follows the effective ``maxFileSize``."""
    keys = ("optimize", "minFileSize")
    if keys in merged.leaves:
        return merged
    largest = base_value("optimize.maxFileSize", merged.leaves["optimize", "maxFileSize"].value)
    smallest = min_file_size_of(_typed(largest, int))
    return Merged({**merged.leaves, keys: Setting(smallest, Level.BUILT_IN, BUILT_IN)}, merged.maps)


def _policy(ref: TableRef, file: str, merged: Merged, values: Mapping[str, object], root: Path) -> ResolvedPolicy:
    read = _Reader(values)
    return ResolvedPolicy(
        table=ref,
        file=file,
        digest=policy_digest(values),
        optimize=_optimize(read, merged),
        verify=VerifyPolicy(
            row_count=RowCountCheck(read.text("verify.rowCount")),
            content=ContentCheck(read.text("verify.content")),
            files=read.required("verify.files", bool),
            expectations=tuple(_expectation(item) for item in read.maps("verify.expectations")),
        ),
        limits=LimitsPolicy(
            max_bytes=read.optional("limits.maxBytes", int),
            max_files=read.optional("limits.maxFiles", int),
            timeout_seconds=read.required("limits.timeout", int),
            max_deletes=read.optional("limits.maxDeletes", int),
        ),
        vacuum=_vacuum(read) if ("vacuum",) in merged.maps else None,
        auto_compact=_auto_compact(read),
        properties=tuple(
            sorted((keys[1], read.text(".".join(keys))) for keys in merged.leaves if keys[0] == "properties")
        ),
        consumers=tuple(_consumer(item, root) for item in read.maps("consumers")),
        windows=tuple(_window(item) for item in read.maps("window")),
        suspend=_suspension(read, merged),
        owner=read.optional("owner", str),
        description=read.optional("description", str),
        tags=read.texts("tags"),
        origins=_origins(merged),
    )


def _origins(merged: Merged) -> dict[str, Origin]:
    origins = {".".join(keys): origin for keys, origin in merged.maps.items()}
    origins.update((".".join(keys), setting.origin) for keys, setting in merged.leaves.items())
    return origins


def _optimize(read: _Reader, merged: Merged) -> OptimizePolicy:
    where = read.optional("optimize.where", str)
    columns = read.texts("optimize.zorder.columns")
    return OptimizePolicy(
        min_file_size_bytes=read.required("optimize.minFileSize", int),
        max_file_size_bytes=read.required("optimize.maxFileSize", int),
        max_threads=read.required("optimize.maxThreads", int),
        max_deleted_rows_ratio=float(read.required("optimize.maxDeletedRowsRatio", (int, float))),
        batch_size_bytes=read.required("optimize.batchSize", int),
        zorder=_zorder(read, columns) if columns else None,
        where=_predicate(where) if where is not None else None,
        skip_newest_partitions=read.required("optimize.skipNewestPartitions", int),
        quiet_for_seconds=read.required("optimize.quietFor", int),
        quiet_after_updates_seconds=read.required("optimize.quietAfterUpdates", int),
        every_seconds=read.required("optimize.every", int),
        when=WorthPolicy(
            min_small_files=read.optional("optimize.when.minSmallFiles", int),
            min_small_bytes=read.optional("optimize.when.minSmallBytes", int),
        ),
        repartition=read.optional("optimize.repartition", bool) or False,
        rewrite=_rewrite(read),
        cluster=_cluster(read),
        purge=_purge(read, merged),
    )


def _zorder(read: _Reader, columns: tuple[str, ...]) -> ZOrderPolicy:
    return ZOrderPolicy(
        columns=columns,
        mode=ZOrderMode(read.text("optimize.zorder.mode")),
        strategies=tuple(Strategy(name) for name in read.texts("optimize.zorder.strategies")),
        batch_bytes=read.required("optimize.zorder.batchBytes", int),
        bytes_per_iteration=read.optional("optimize.zorder.bytesPerIteration", int),
        revision=read.optional("optimize.zorder.revision", int),
        from_timestamp=read.optional("optimize.zorder.fromTimestamp", str),
        honour_table_properties=read.text("optimize.zorder.tableProperties") == "honour",
    )


def _purge(read: _Reader, merged: Merged) -> PurgePolicy | None:
    """None unless some level wrote the map, which may be empty: all that can be purged."""
    if ("optimize", "purge") not in merged.maps:
        return None
    ratio = read.optional("optimize.purge.deletedRowsRatio", (int, float))
    dropped = read.optional("optimize.purge.droppedColumns", bool)
    return PurgePolicy(0.0 if ratio is None else float(ratio), True if dropped is None else dropped)


def _cluster(read: _Reader) -> ClusterPolicy:
    """A wanted size that nobody wrote is one and a half times the least one, as Delta's defaults are."""
    least = read.optional("optimize.cluster.minCubeSize", int) or DEFAULT_MIN_CUBE_SIZE_BYTES
    wanted = read.optional("optimize.cluster.targetCubeSize", int)
    full = read.optional("optimize.cluster.full", bool) or False
    return ClusterPolicy(least, least * 3 // 2 if wanted is None else wanted, full)


def _rewrite(read: _Reader) -> RewritePolicy | None:
    """None where nothing is asked for; an empty map is a finding of its own."""
    asked = RewritePolicy(
        num_files=read.optional("optimize.rewrite.files", int),
        file_size_bytes=read.optional("optimize.rewrite.fileSize", int),
        sort_by=read.texts("optimize.rewrite.sortBy"),
    )
    return asked if asked != RewritePolicy() else None


@lru_cache(maxsize=1024)
def _predicate(text: str) -> Predicate:
    """Read a predicate; equal texts share one, they are frozen."""
    return parse_predicate(text)


def _vacuum(read: _Reader) -> VacuumPolicy:
    large = read.required("vacuum.allowLargeDelete", (bool, str))
    return VacuumPolicy(
        retention_seconds=read.required("vacuum.retention", int),
        allow_short_retention=read.required("vacuum.allowShortRetention", bool),
        every_seconds=read.required("vacuum.every", int),
        mode=VacuumMode(read.text("vacuum.mode")),
        delete_untracked=read.required("vacuum.deleteUntracked", bool),
        untracked_age_seconds=read.required("vacuum.untrackedAge", int),
        untracked_every_seconds=read.required("vacuum.untrackedEvery", int),
        allow_large_delete=large is True,
        trash_seconds=read.optional("vacuum.trash", int) or 0,
        allow_rewritten=large == "rewritten",
    )


def _auto_compact(read: _Reader) -> AutoCompactPolicy | None:
    enabled = read.optional("autoCompact", bool)
    if enabled is None:
        return None
    return AutoCompactPolicy(
        enabled=enabled,
        min_num_files=read.optional("autoCompact.minNumFiles", int),
        min_file_size_bytes=read.optional("autoCompact.minFileSize", int),
        max_file_size_bytes=read.optional("autoCompact.maxFileSize", int),
        modified_partitions_only=read.optional("autoCompact.modifiedPartitionsOnly", bool),
    )


def _suspension(read: _Reader, merged: Merged) -> Suspension | None:
    if ("suspend",) not in merged.maps:
        return None
    until = read.optional("suspend.until", str)
    return Suspension(date.fromisoformat(until) if until else None, read.optional("suspend.reason", str) or "")


def _consumer(item: Mapping[str, object], root: Path) -> Consumer:
    checkpoint = item.get("checkpoint")
    return Consumer(
        name=_typed(item["name"], str),
        max_lag_seconds=_typed(item["maxLag"], int) if "maxLag" in item else None,
        checkpoint=absolute_path(checkpoint, root) if isinstance(checkpoint, str) else None,
    )


def _window(item: Mapping[str, object]) -> Window:
    days = item.get("days")
    return Window(
        days=tuple(sorted(_WEEKDAYS[day] for day in days)) if isinstance(days, list) else tuple(range(1, 8)),
        start=_time_of_day(_typed(item["from"], str)),
        end=_time_of_day(_typed(item["to"], str)),
        timezone=_typed(item["timezone"], str),
    )


def _time_of_day(text: str) -> time:
    """Read ``22:00``; ``24:00`` is the midnight that ends the day."""
    hour, _, minute = text.partition(":")
    return time(int(hour) % 24, int(minute))


def _expectation(item: Mapping[str, object]) -> Expectation:
    return Expectation(_typed(item["type"], str), {key: value for key, value in item.items() if key != "type"})


class _Reader:
    """Typed look-ups in effective values. Checked documents never fail them; a failure is a bug of ours."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def optional(self, key: str, kind: type[_T] | tuple[type[_T], ...]) -> _T | None:
        value = self._values.get(key)
        return None if value is None else _typed(value, kind)

    def required(self, key: str, kind: type[_T] | tuple[type[_T], ...]) -> _T:
        return _typed(self._values[key], kind)

    def text(self, key: str) -> str:
        return _typed(self._values[key], str)

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(_typed(item, str) for item in _typed(self._values.get(key) or [], list))

    def maps(self, key: str) -> list[dict[str, object]]:
        return [_typed(item, dict) for item in _typed(self._values.get(key) or [], list)]


def _typed(value: object, kind: type[_T] | tuple[type[_T], ...]) -> _T:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} passed the schema and is not {kind}")
    return value
