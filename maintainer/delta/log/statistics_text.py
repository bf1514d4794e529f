"""Read the statistics of a file as the log has them: JSON in a text, which any writer may have spelled. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

RECORDS_FIRST = r'^\{ *"numRecords" *: *(?P<count>\d{1,18}) *[,}]'
"""How nearly every writer begins statistics. Anything else is parsed in full."""
_RECORDS_FIRST = re.compile(RECORDS_FIRST)
_MAX_EXACT_FLOAT = 2.0**53


def num_records(stats: str | None) -> int | None:
    """Return the record count of an action's statistics; None without one, or where readers find no number.

    Parses only what it must.
    """
    if not stats:
        return None
    first = _RECORDS_FIRST.match(stats)
    if first:
        return int(first.group(1))
    try:
        count = whole_count(json.loads(stats).get("numRecords"))
    except (ValueError, AttributeError):
        return None
    return count if count is not None and count >= 0 else None


def whole_count(value: object) -> int | None:
    """Return a count of an action's statistics; None for what is no whole number: a text, a fraction, a truth value.

    Some writers write 12 as ``12.0``.
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _MAX_EXACT_FLOAT else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def statistics_in(
    text: object, parse_float: Callable[[str], Any] | None = None, parse_int: Callable[[str], Any] | None = None
) -> Mapping[str, Any] | None:
    """The statistics of an action; None where there are none, or no JSON object. Numbers as ``json`` reads them."""
    try:
        stats = json.loads(text, parse_float=parse_float, parse_int=parse_int) if isinstance(text, str) else None
    except ValueError:
        return None
    return stats if isinstance(stats, Mapping) else None


def value_at(tree: object, path: Sequence[str]) -> object | None:
    """The value of nested maps at a path, None where there is none."""
    for name in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(name)
    return tree


def named_in(tree: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all leaves of nested maps."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from named_in(value, (*path, name))
    elif path:
        yield path
