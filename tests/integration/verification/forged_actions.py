"""Faults in statistics and actions of files that a rewrite wrote, and changes that are none."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.integration.verification.forged_rows import Forgery, Plant, StatsChange, forge, read, write
from tests.support.product import WrittenFile
from tests.support.tables.forged_footers import exchange_bounds


def _leaves(tree: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    leaves = []
    for name, value in tree.items():
        leaves += _leaves(value, (*path, name)) if isinstance(value, dict) else [(*path, name)]
    return leaves


def _parent(tree: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for name in path[:-1]:
        tree = tree[name]
    return tree


def moved(bound: Any, up: bool) -> Any:
    """A bound a little higher or lower, None where that says nothing."""
    if isinstance(bound, int):
        return bound + (1 if up else -1)
    if isinstance(bound, float):
        return bound + (1 + abs(bound)) * (1 if up else -1)
    for pattern, step in (("%Y-%m-%d", timedelta(days=1)), ("%Y-%m-%dT%H:%M:%S.%f", timedelta(milliseconds=1))):
        try:
            moment = datetime.strptime(bound.removesuffix("Z"), pattern)  # noqa: DTZ007 (the zone is the bound's)
        except ValueError:
            continue
        later = moment + (step if up else -step)
        if pattern.endswith("d"):
            return later.date().isoformat()
        return later.isoformat(timespec="milliseconds") + ("Z" if bound.endswith("Z") else "")
    if bound in ("NaN", "Infinity", "-Infinity"):
        return None
    return bound + "~" if up else bound.rstrip()[:-1] if bound.rstrip() else None


def _is_answered(bound: Any) -> bool:
    """Whether readers answer MIN and MAX from the bound: of a number or a date."""
    return not isinstance(bound, str) or re.fullmatch(r"\d{4}-\d\d-\d\d", bound) is not None


def move_bound(side: str, up: bool) -> StatsChange:
    """One bound is moved; away from the rows only where readers answer MIN and MAX from it."""
    is_widened = up == (side == "maxValues")

    def change(stats: dict[str, Any], rng: random.Random) -> bool:
        paths = [(path, moved(_parent(stats[side], path)[path[-1]], up)) for path in _leaves(stats.get(side) or {})]
        usable = [
            (path, value)
            for path, value in paths
            if value is not None and (not is_widened or _is_answered(_parent(stats[side], path)[path[-1]]))
        ]
        if not usable:
            return False
        path, value = rng.choice(usable)
        _parent(stats[side], path)[path[-1]] = value
        return True

    return change


def move_count(by: int) -> StatsChange:
    """One null count is moved."""

    def change(stats: dict[str, Any], rng: random.Random) -> bool:
        paths = _leaves(stats.get("nullCount") or {})
        if not paths:
            return False
        path = rng.choice(paths)
        _parent(stats["nullCount"], path)[path[-1]] += by
        return True

    return change


def swap_bounds(stats: dict[str, Any], rng: random.Random) -> bool:
    """The lower bounds of two columns of one type are swapped."""
    low = stats.get("minValues") or {}
    names = [name for name in low if name in stats["maxValues"] and not isinstance(low[name], dict)]
    pairs = [(a, b) for a in names for b in names if a < b and type(low[a]) is type(low[b]) and low[a] != low[b]]
    if not pairs:
        return False
    a, b = rng.choice(pairs)
    low[a], low[b] = low[b], low[a]
    return True


def drop_bound(stats: dict[str, Any], rng: random.Random) -> bool:
    """A lower bound is missing."""
    paths = _leaves(stats.get("minValues") or {})
    if not paths:
        return False
    path = rng.choice(paths)
    del _parent(stats["minValues"], path)[path[-1]]
    return True


def garbage(stats: dict[str, Any], rng: random.Random) -> bool:
    """A bound of a number is a text."""
    stats["minValues"][next(iter(stats["minValues"]))] = "garbage"
    return True


def count_rows(by: int) -> StatsChange:
    """``numRecords`` is moved."""

    def change(stats: dict[str, Any], rng: random.Random) -> bool:
        stats["numRecords"] += by
        return True

    return change


def in_stats(change: StatsChange) -> Plant:
    """The fault as one of the files."""
    return lambda forgery: forgery.change_stats(change)


def wide(stats: dict[str, Any], rng: random.Random) -> bool:
    """The bounds are said to be wide."""
    stats["tightBounds"] = False
    return True


def strange_name(stats: dict[str, Any], rng: random.Random) -> bool:
    """A statistic of a column that does not exist."""
    stats["nullCount"]["no such column"] = 0
    return True


STATS_FAULTS: dict[str, StatsChange] = {
    "numRecords is too high": count_rows(1),
    "numRecords is too low": count_rows(-1),
    "a lower bound is too high": move_bound("minValues", up=True),
    "a lower bound is too low": move_bound("minValues", up=False),
    "an upper bound is too high": move_bound("maxValues", up=True),
    "an upper bound is too low": move_bound("maxValues", up=False),
    "a null count is too high": move_count(1),
    "a null count is too low": move_count(-1),
    "the bounds of two columns are swapped": swap_bounds,
    "a bound is missing": drop_bound,
    "a bound is garbage": garbage,
    "the bounds are wide": wide,
    "an unknown column has statistics": strange_name,
}


def _partition(value: Callable[[Any], Any]) -> Plant:
    def plant(forgery: Forgery) -> bool:
        values = forgery.victim().add["partitionValues"]
        if not values:
            return False
        name = sorted(values)[0]
        values[name] = value(values[name])
        return True

    return plant


def _exchange(first: WrittenFile, other: WrittenFile, *names: str) -> None:
    for name in names:
        first.add[name], other.add[name] = other.add[name], first.add[name]


def _of_two_partitions(change: Callable[[Forgery, WrittenFile, WrittenFile], None]) -> Plant:
    def plant(forgery: Forgery) -> bool:
        first, *others = forgery.written
        for other in others:
            if other.add["partitionValues"] != first.add["partitionValues"]:
                change(forgery, first, other)
                return True
        return False

    return plant


def _partitions_exchanged(_: Forgery, first: WrittenFile, other: WrittenFile) -> None:
    _exchange(first, other, "partitionValues")


def _rows_exchanged(forgery: Forgery, first: WrittenFile, other: WrittenFile) -> None:
    paths = [forgery.path(file) for file in (first, other)]
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(content)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    _exchange(first, other, "size", "stats")


def _set(**fields: Any) -> Plant:
    def plant(forgery: Forgery) -> bool:
        forgery.victim().add.update(fields)
        return True

    return plant


def _size(forgery: Forgery) -> bool:
    forgery.victim().add["size"] += 1
    return True


def _twice(forgery: Forgery) -> bool:
    forgery.written.append(forgery.victim())
    return True


def _copied(forgery: Forgery) -> bool:
    forgery.written += forge(forgery.root, [forgery.victim()], f"copy {forgery.rng.random()}").written
    return True


def _left_out(forgery: Forgery) -> bool:
    forgery.written.remove(forgery.victim())
    return True


def _deleted(forgery: Forgery) -> bool:
    forgery.path(forgery.victim()).unlink()
    return True


def _truncated(forgery: Forgery) -> bool:
    path = forgery.path(forgery.victim())
    path.write_bytes(path.read_bytes()[:-20])
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return True


def _truncated_with_its_size(forgery: Forgery) -> bool:
    _truncated(forgery)
    forgery.victim().add["size"] -= 20
    return True


def _elsewhere(forgery: Forgery) -> bool:
    victim = forgery.victim()
    outside = forgery.root.parent / "elsewhere.parquet"
    shutil.copyfile(forgery.path(victim), outside)
    victim.add["path"] = f"../{outside.name}"
    return True


def _absolute(forgery: Forgery) -> bool:
    victim = forgery.victim()
    victim.add["path"] = forgery.path(victim).as_uri()
    return True


def _no_stats(forgery: Forgery) -> bool:
    forgery.victim().add["stats"] = None
    return True


def _exchanged(*, up: bool) -> Plant:
    """Bounds in the footer of a file, by which readers skip row groups, leave rows out."""

    def plant(forgery: Forgery) -> bool:
        return any(
            exchange_bounds(forgery.path(file), json.loads(file.add["stats"])["nullCount"], up=up)
            for file in forgery.written
        )

    return plant


ACTION_FAULTS: dict[str, Plant] = {
    "a partition value is another one": _partition(lambda value: "1999-01-01" if value == "2024-02-29" else "9"),
    "a partition value is null": _partition(lambda value: None if value is not None else "9"),
    "two files exchange their partitions": _of_two_partitions(_partitions_exchanged),
    "two partitions exchange their rows": _of_two_partitions(_rows_exchanged),
    "a size is wrong": _size,
    "a file is added twice": _twice,
    "a file is written twice": _copied,
    "a file is left out": _left_out,
    "a file is gone from storage": _deleted,
    "a file is cut off": _truncated,
    "a file is cut off, with its size": _truncated_with_its_size,
    "a file lies outside the table": _elsewhere,
    "a path is absolute": _absolute,
    # Not one of a step's own tags: those are put over what is there.
    "a strange tag": _set(tags={"maintainer.strange": "1"}),
    "a row id": _set(baseRowId=7),
    "a deletion vector": _set(
        deletionVector={"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    ),
    "no statistics": _no_stats,
    "an upper bound of the footer is too low": _exchanged(up=False),
    "a lower bound of the footer is too high": _exchanged(up=True),
}  # fmt: skip


def _again(**options: Any) -> Plant:
    def plant(forgery: Forgery) -> bool:
        for file in forgery.written:
            table = read(forgery.path(file))
            if options.get("reverse"):
                table = table.take(pa.array(range(table.num_rows)[::-1]))
            write(table, forgery.path(file), **{key: value for key, value in options.items() if key != "reverse"})
            file.add["size"] = forgery.path(file).stat().st_size
        return True

    return plant


def _read_back(forgery: Forgery) -> bool:
    """The same statistics in another spelling; False where Python's floats cannot hold a bound of 38 digits."""
    for file in forgery.written:
        text = str(file.add["stats"])
        spelled = json.dumps(json.loads(text))
        if json.loads(text, parse_float=Decimal) != json.loads(spelled, parse_float=Decimal):
            return False
    return forgery.change_stats(lambda stats, rng: True)


HARMLESS: dict[str, Plant] = {
    "as written": lambda forgery: True,
    "in another order": _again(reverse=True),
    "in small row groups": _again(row_group_size=5),
    "with another codec": _again(compression="gzip"),
    "without dictionaries": _again(use_dictionary=False, version="1.0"),
    "in another order, one row a group": _again(reverse=True, row_group_size=1),
    "with statistics as Delta reads them back": _read_back,
}
