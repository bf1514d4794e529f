"""Collect the statistics of a file that is being written, and spell them as Delta does.

Rules are those of Delta's ``StatisticsCollection``: strings are cut after 32 characters, or as the table asks; an upper
bound that was cut gets a last character above all that it stands for; time stamps are cut to milliseconds; NaN is the
greatest number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.statistics_columns import StatisticsColumn
from maintainer.delta.rewrite.bin_work import LaneUnfit
from maintainer.model.table.table_features import DEFAULT_TEXT_PREFIX

if TYPE_CHECKING:
    import pyarrow as pa

_BOUNDED = ("byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz", "string")
"""Types that get bounds, besides decimals. The proof has a rule of its own: a mistake in one must not prove itself."""

_TIE_BREAKERS = ("\x7f", "\U0010ffff")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (only to count from)
_UTC_NAMES = {"timestamp": "Z", "timestamp_ntz": ""}


@dataclass(slots=True)
class ColumnFigures:
    """The figures of one column so far; bounds are Python values that compare as Delta compares, None without any."""

    column: StatisticsColumn
    nulls: int = 0
    lowest: Any = None
    highest: Any = None
    has_nan: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether Delta keeps bounds for the type."""
        return self.column.kind in _BOUNDED or self.column.kind.startswith("decimal")

    def widen(self, low: Any, high: Any) -> None:  # noqa: ANN401
        """Let the bounds hold these values, too; None for none."""
        if low is not None:
            self.lowest = low if self.lowest is None else min(self.lowest, low)
            self.highest = high if self.highest is None else max(self.highest, high)


@dataclass(slots=True)
class FileStatistics:
    """The statistics of one file, fed piece by piece; of the columns that the table's settings collect them for."""

    columns: Sequence[StatisticsColumn]
    num_records: int = 0
    figures: list[ColumnFigures] = field(init=False)

    def __post_init__(self) -> None:
        self.figures = [ColumnFigures(column) for column in self.columns]

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take the rows of a batch or a row group in."""
        self.num_records += rows.num_rows
        for figures in self.figures:
            _add_column(figures, _values(rows, figures.column.physical))

    def include(self, other: FileStatistics) -> None:
        """Take in what was collected of other rows, for the same columns."""
        self.num_records += other.num_records
        for figures, others in zip(self.figures, other.figures, strict=True):
            figures.nulls += others.nulls
            figures.has_nan |= others.has_nan
            figures.widen(others.lowest, others.highest)

    def to_json(self, *, tight_bounds: bool, text_prefix: int = DEFAULT_TEXT_PREFIX) -> str:
        """Spell the statistics as in the log.

        Args:
            tight_bounds: Whether to say that bounds are reached, as Delta does on tables with deletion vectors.
            text_prefix: Characters of a text that a bound keeps.

        Raises:
            LaneUnfit: A date or time has no spelling of four digits for its year.
        """
        sides: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
        for figures in self.figures:
            path = figures.column.physical
            _put(sides["nullCount"], path, str(figures.nulls))
            if figures.is_bounded:
                _put(sides["minValues"], path, _lower_text(figures, text_prefix))
                _put(sides["maxValues"], path, _upper_text(figures, text_prefix))
        body = [f'"numRecords":{self.num_records}', *(f'"{name}":{_object(tree)}' for name, tree in sides.items())]
        return "{" + ",".join([*body, *(['"tightBounds":true'] if tight_bounds else [])]) + "}"


def _values(rows: pa.RecordBatch | pa.Table, path: tuple[str, ...]) -> pa.Array | pa.ChunkedArray:
    import pyarrow.compute as pc

    column = rows.column(rows.schema.get_field_index(path[0]))
    for name in path[1:]:
        column = pc.struct_field(column, [column.type.get_field_index(name)])
    return column


def _add_column(figures: ColumnFigures, values: pa.Array | pa.ChunkedArray) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    figures.nulls += values.null_count
    if not figures.is_bounded or values.null_count == len(values):
        return
    if pa.types.is_floating(values.type):
        is_nan = pc.is_nan(values)
        if pc.any(is_nan).as_py():
            figures.has_nan = True
            values = values.filter(pc.invert(is_nan))
            if values.null_count == len(values):
                return
    elif pa.types.is_string(values.type):
        values = values.cast(pa.binary())  # compared by bytes
    elif pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        values = values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())
    extremes = pc.min_max(values)
    figures.widen(extremes["min"].as_py(), extremes["max"].as_py())


def _lower_text(figures: ColumnFigures, text_prefix: int) -> str | None:
    if figures.lowest is None:
        return '"NaN"' if figures.has_nan else None
    if figures.column.kind == "string":
        return json.dumps(_decoded(figures.lowest)[:text_prefix], ensure_ascii=False)
    return _text(figures.lowest, figures.column.kind)


def _upper_text(figures: ColumnFigures, text_prefix: int) -> str | None:
    if figures.has_nan:
        return '"NaN"'
    if figures.highest is None:
        return None
    if figures.column.kind == "string":
        text = _cut_upwards(_decoded(figures.highest), text_prefix)
        return None if text is None else json.dumps(text, ensure_ascii=False)
    return _text(figures.highest, figures.column.kind)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise LaneUnfit("a string is not UTF-8") from error


def _cut_upwards(text: str, length: int) -> str | None:
    """Cut an upper bound, so that it stays above the text; None where no character is above the first one cut off."""
    if len(text) <= length:
        return text
    # Of no characters at all Delta writes no upper bound either.
    above = next((last for last in _TIE_BREAKERS if last > text[length]), None) if length else None
    return None if above is None else text[:length] + above


def _text(value: Any, kind: str) -> str:  # noqa: ANN401
    """The value as JSON."""
    match kind:
        case "date":
            return json.dumps(_moment("a date", days=value).date().isoformat())
        case "timestamp" | "timestamp_ntz":
            moment = _moment("a time stamp", milliseconds=value // 1000)
            return json.dumps(moment.isoformat(timespec="milliseconds") + _UTC_NAMES[kind])
        case "float" | "double":
            return repr(value) if math.isfinite(value) else json.dumps("Infinity" if value > 0 else "-Infinity")
        case _:
            return format(value, "f") if isinstance(value, Decimal) else str(value)


def _moment(what: str, **since: int) -> datetime:
    try:
        return _EPOCH + timedelta(**since)
    except OverflowError as error:
        raise LaneUnfit(f"{what} is beyond the year 9999") from error


def _put(tree: dict[str, Any], path: tuple[str, ...], text: str | None) -> None:
    if text is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _object(tree: Mapping[str, Any]) -> str:
    """Write a tree of JSON texts as JSON: so decimals keep every digit."""
    parts = (
        f"{json.dumps(name, ensure_ascii=False)}:{_object(value) if isinstance(value, dict) else value}"
        for name, value in tree.items()
    )
    return "{" + ",".join(parts) + "}"
