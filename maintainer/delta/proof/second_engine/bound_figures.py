"""Compare the least and the greatest values of a file with the bounds in its statistics. Pure.

The rules are Delta's: a time may be a millisecond above its bound, NaN is above all numbers.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from maintainer.delta.log.statistics_text import statistics_in, value_at
from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.delta.proof.statistics_figures import FileFigures, StatisticsColumn

_MILLISECOND = 1000


def figures_of(
    rows: int,
    nulls: tuple[int, ...],
    extremes: Sequence[tuple[Any, Any]],
    columns: tuple[StatisticsColumn, ...],
    stats: str | None,
) -> FileFigures:
    """Put the figures of one file together, as ``statistics_verdict.judge`` takes them.

    Args:
        rows: Its rows.
        nulls: Nulls of each column.
        extremes: Least and greatest value of each column, None without any: times in microseconds, dates in days.
        columns: The columns.
        stats: The statistics as the log will have them.
    """
    bounds = statistics_in(stats, parse_float=Decimal) or {}
    outside = reached = 0
    for number, (column, (least, most)) in enumerate(zip(columns, extremes, strict=True)):
        low, high = (value_at(bounds.get(side), column.physical) for side in ("minValues", "maxValues"))
        if not column.has_bounds or least is None:
            continue
        is_outside, at_low, at_high = _compared(column, least, most, low, high)
        outside |= is_outside << number
        reached |= at_low << (2 * number) | at_high << (2 * number + 1)
    return FileFigures(rows, nulls, outside, reached)


def _compared(
    column: StatisticsColumn, least: object, most: object, low: object, high: object
) -> tuple[bool, bool, bool]:
    """Whether a value is outside the bounds, at the lower one, at the upper one."""
    first, last = _ordered(least, column.kind), _ordered(most, column.kind)
    lower = None if low is None else _ordered(_bound(low, column.kind), column.kind)
    upper = None if high is None else _ordered(_bound(high, column.kind), column.kind)
    below, above = lower is not None and first < lower, upper is not None and last > upper
    if column.kind in ("timestamp", "timestamp_ntz"):
        above = upper is not None and last[1] >= upper[1] + _MILLISECOND
    return below or above, first == lower, last == upper


def _ordered(value: Any, kind: str) -> tuple[bool, Any]:  # noqa: ANN401
    """A value that orders as Delta orders: NaN above all numbers."""
    if kind in ("float", "double"):
        number = float(value)
        return (True, 0.0) if math.isnan(number) else (False, number)
    return False, value.encode() if isinstance(value, str) else value


def _bound(value: Any, kind: str) -> Any:  # noqa: ANN401
    """A bound of the log as a value like those of the file.

    Raises:
        CannotCompareError: It is spelled in a way that is not known here.
    """
    try:
        match kind:
            case "date":
                return (date.fromisoformat(value) - date(1970, 1, 1)).days
            case "timestamp" | "timestamp_ntz":
                return _microseconds(value, kind)
            case "float":
                number = float(value)
                return number if not math.isfinite(number) else struct.unpack("f", struct.pack("f", number))[0]
            case "double":
                return float(value)
            case "string":
                return value.encode()
            case _:
                return Decimal(value) if kind.startswith("decimal") else int(value)
    except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise CannotCompareError(f"a bound is spelled {value!r}") from error


def _microseconds(text: str, kind: str) -> int:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        if kind == "timestamp":
            raise ValueError("a time without a zone")
        moment = moment.replace(tzinfo=timezone.utc)
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
