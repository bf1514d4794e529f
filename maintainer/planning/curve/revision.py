"""Revisions: Z-order columns with the boundaries that map each column's values to ranks.

A revision is made once from a sample and stored as JSON in a table property (``maintainer.zorder.revision.<id>``), so
that files written months apart lie on the same curve. A revision that cannot be read, or that was changed by hand so
that the files' tags no longer match it, is ignored. Its files are then unindexed, which costs work but never rows.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from maintainer.model.cached_property import cached_property
from maintainer.model.table.table_facts import DataFile
from maintainer.model.table.table_features import DEFAULT_TEXT_PREFIX
from maintainer.planning.curve.curve import MAX_ADDRESS_BITS, ValueKey, bits_of, key_of, num_shared, upper_key
from maintainer.units import read_digits

MAX_SAMPLED_FILES = 48
"""Files that a sample for boundaries is drawn from, spread over the table by the order of their paths."""


def sampled_files(files: Iterable[DataFile]) -> list[DataFile]:
    """Return the files that a sample for boundaries is drawn from: as far apart as they can be, the first among them.

    Not the first ones alone: paths go by partitions, and these by days, of which a growing column has the newest last.
    """
    ordered = sorted(files, key=lambda file: file.path)
    count = min(MAX_SAMPLED_FILES, len(ordered))
    return [ordered[number * len(ordered) // count] for number in range(count)]


PROPERTY_PREFIX = "maintainer.zorder.revision."
FORMAT_VERSION = 1

MAX_BITS_PER_COLUMN = 8
"""256 ranks a column: on two columns 65,536 cells, enough for files of a cell each in a table of 16 TiB, and a
property of a few kilobytes. Within a cell rows are sorted by value."""

_BELOW_MILLISECONDS = re.compile(r"(\.\d{3})\d+")


@dataclass(frozen=True)
class ColumnBoundaries:
    """One column of a revision. ``name`` is the column's, safe for Spark to parse; ``type_name`` is Spark's.

    ``boundaries`` are texts in ascending order of their values; a value's rank is the number of boundaries at or
    below it, and null has rank 0. ``low`` and ``high`` are the smallest and largest values of the sample: what lies
    outside has escaped. None where the sample had no value. Of texts all of these are only beginnings, as short as
    tells them apart.
    """

    name: str
    type_name: str
    boundaries: tuple[str, ...]
    low: str | None = None
    high: str | None = None

    @cached_property
    def keys(self) -> tuple[ValueKey, ...]:
        """What the boundaries compare by.

        Raises:
            ValueError: A boundary is not a value of the type, or they do not ascend.
        """
        keys = [key_of(self.type_name, text) for text in self.boundaries]
        boundaries = tuple(key for key in keys if key is not None)
        if len(boundaries) < len(keys) or any(a >= b for a, b in itertools.pairwise(boundaries)):
            raise ValueError(f"boundaries of {self.name} are not ascending values of {self.type_name}")
        return boundaries

    def fits(self, text_prefix: int) -> bool:
        """Return whether statistics that keep so much of a text tell the boundaries apart."""
        return key_of(self.type_name, "x") != "x" or all(len(text) <= text_prefix for text in self.boundaries)

    @property
    def num_ranks(self) -> int:
        """Ranks that the column's values can have."""
        return len(self.boundaries) + 1

    def rank_of(self, key: ValueKey | None) -> int:
        """Return the rank of a value's key; that of null is 0."""
        return 0 if key is None else bisect.bisect_right(self.keys, key)

    def escapes(self, low: str, high: str) -> bool:
        """Return whether most of the range from ``low`` to ``high`` is outside of the sample's: its middle value is.

        Only numbers and times have a middle; of text, both ends must be outside on the same side.
        """
        first, last, least, most = (
            key_of(self.type_name, text) for text in (low, high, self.low or low, self.high or high)
        )
        if first is None or last is None or least is None or most is None:
            return False
        if isinstance(first, str) and isinstance(most, str):
            return bool(last < least or first[: len(most)] > most)
        middle = first / 2 + last / 2
        return bool(middle < least or middle > most)


@dataclass(frozen=True)
class Revision:
    """A Z-order layout: columns in their order of weight, each with its boundaries."""

    id: int
    columns: tuple[ColumnBoundaries, ...]

    @cached_property
    def bits(self) -> tuple[int, ...]:
        """Bits of each column's rank."""
        return tuple(bits_of(column.num_ranks) for column in self.columns)

    @property
    def num_bits(self) -> int:
        """Length of the addresses."""
        return sum(self.bits)

    @property
    def property_name(self) -> str:
        """The table property that holds it."""
        return f"{PROPERTY_PREFIX}{self.id}"

    @cached_property
    def tag(self) -> str:
        """What files of this revision carry: its number and a digest, so that another definition is no match."""
        digest = hashlib.sha256(self.to_json().encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self.id}:{digest[:12]}"

    def names(self) -> tuple[str, ...]:
        """Return the columns' names."""
        return tuple(column.name for column in self.columns)

    def box(self, ranges: Sequence[tuple[str | None, str | None, bool]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the lowest and highest ranks of rows whose values lie in the ranges, both inclusive.

        Args:
            ranges: For each column smallest and largest value as the log spells them (None: all null, or nobody
                knows) and whether there are nulls.
        """
        low, high = [], []
        for column, (least, most, has_nulls) in zip(self.columns, ranges, strict=True):
            first = None if least is None else key_of(column.type_name, least)
            last = None if most is None else upper_key(column.type_name, most)
            if first is None or last is None:
                # All null, or unknown: then the file may hold any rank.
                low.append(0)
                high.append(0 if has_nulls and least is None and most is None else column.num_ranks - 1)
            else:
                low.append(0 if has_nulls else column.rank_of(first))
                high.append(column.rank_of(last))
        return tuple(low), tuple(high)

    def to_json(self) -> str:
        """Spell the revision for its property: stable, compact, readable."""
        columns = [
            {
                "name": column.name,
                "type": column.type_name,
                "low": column.low,
                "high": column.high,
                "boundaries": list(column.boundaries),
            }
            for column in self.columns
        ]
        return json.dumps(
            {"version": FORMAT_VERSION, "revision": self.id, "columns": columns},
            ensure_ascii=False,
            separators=(",", ":"),
        )


def read_revision(name: str, text: str) -> Revision | None:
    """Read a property back; None for whatever is not a whole and sound revision of this format."""
    number = read_digits(name[len(PROPERTY_PREFIX) :])
    if not name.startswith(PROPERTY_PREFIX) or number is None:
        return None
    try:
        document = json.loads(text)
        if document["version"] != FORMAT_VERSION or document["revision"] != number:
            return None
        revision = Revision(number, tuple(_read_column(column) for column in document["columns"]))
        if not revision.columns or not 0 < revision.num_bits <= MAX_ADDRESS_BITS:
            return None
        for column in revision.columns:
            # Raises where the boundaries are no values, or do not ascend.
            _ = column.keys
        return revision
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _read_column(column: Mapping[str, object]) -> ColumnBoundaries:
    texts = [column["name"], column["type"], *_texts(column["boundaries"])]
    ends = [column["low"], column["high"]]
    if not all(isinstance(text, str) for text in texts) or not all(e is None or isinstance(e, str) for e in ends):
        raise ValueError("not a column of a revision")
    name, type_name, *boundaries = (str(text) for text in texts)
    low, high = (None if end is None else str(end) for end in ends)
    return ColumnBoundaries(name, type_name, tuple(boundaries), low, high)


def _texts(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError("boundaries are a list")
    return value


def revisions_in(properties: Iterable[tuple[str, str]]) -> dict[int, Revision]:
    """Return all revisions that the properties hold and that can be read, by number, in ascending order."""
    readable = (read_revision(name, text) for name, text in properties if name.startswith(PROPERTY_PREFIX))
    revisions = sorted((revision for revision in readable if revision), key=lambda revision: revision.id)
    return {revision.id: revision for revision in revisions}


def next_id(properties: Iterable[tuple[str, str]]) -> int:
    """Return the number of the next revision: above every one that was ever set and is still there, damaged or not."""
    numbers = [read_digits(name[len(PROPERTY_PREFIX) :]) for name, _ in properties if name.startswith(PROPERTY_PREFIX)]
    return max((number for number in numbers if number is not None), default=0) + 1


def _as_statistics_keep(type_name: str, text: str, text_prefix: int) -> str:
    """Cut a value down to what smallest and largest values in the log tell apart; never above the value itself.

    A boundary between two values of one millisecond would lie inside of what every file there may hold: its cubes
    would never become deeper, and leveled compaction would write them again without end.
    """
    if type_name in ("timestamp", "timestamp_ntz"):
        return _BELOW_MILLISECONDS.sub(r"\1", text)
    return text[:text_prefix] if key_of(type_name, "x") == "x" else text


def make_column(
    name: str,
    type_name: str,
    sample: Sequence[str | None],
    *,
    max_bits: int = MAX_BITS_PER_COLUMN,
    text_prefix: int = DEFAULT_TEXT_PREFIX,
) -> ColumnBoundaries:
    """Choose boundaries so that about as many values of the sample have each rank.

    Args:
        name: The column, safe for Spark to parse.
        type_name: Spark's name of its type.
        sample: Values as text, None for null; in any order, which does not matter.
        max_bits: At most ``2 ** max_bits`` ranks.
        text_prefix: Characters of a text that the table's statistics keep: what differs only behind them skips no file.

    Returns:
        The column; without boundaries where all values are equal, or differ only behind what statistics keep.
    """
    texts = [_as_statistics_keep(type_name, text, text_prefix) for text in sample if text is not None]
    typed = [(key_of(type_name, text), text) for text in texts]
    keyed: list[tuple[ValueKey, str]] = sorted((key, text) for key, text in typed if key is not None)
    if not keyed:
        return ColumnBoundaries(name, type_name, ())
    has_nulls = len(texts) < len(sample)
    num_ranks = 1 << max_bits
    # The lowest value is a boundary only where nulls, which have rank 0, are to be told apart from it.
    boundaries = [keyed[0]] if has_nulls else []
    for position in range(1, num_ranks):
        key, text = keyed[position * len(keyed) // num_ranks]
        if key > (boundaries[-1][0] if boundaries else keyed[0][0]):
            boundaries.append((key, text))
    if not boundaries or boundaries[-1][0] == keyed[0][0]:
        # One value is nearly all of the column: what is above it is still told apart.
        boundaries += [value for value in keyed if value[0] > keyed[0][0]][:1]
    ends = keyed[0][1], keyed[-1][1]
    if isinstance(keyed[0][0], str):
        sampled = [text for _, text in keyed]
        boundaries = [(text, text) for text in (_separator(sampled, text) for _, text in boundaries)]
        ends = _cut_ends(*ends, [text for _, text in boundaries])
    # NaN has the key of infinity; as a boundary it would be above infinity in Spark, which then had two ranks.
    chosen = tuple("Infinity" if key == math.inf else text for key, text in boundaries[: num_ranks - 1])
    return ColumnBoundaries(name, type_name, chosen, *ends)


def _separator(sampled: Sequence[str], text: str) -> str:
    """Cut a text to what tells it from the next lower one: who reads a table's properties need not see its values."""
    position = bisect.bisect_left(sampled, text)
    return _told_apart(text, sampled[position - 1] if position else "")


def _told_apart(text: str, other: str) -> str:
    """The shortest beginning of a text, of one character at least, that is no beginning of the other."""
    return text[: num_shared(text, other) + 1]


def _cut_ends(low: str, high: str, boundaries: Sequence[str]) -> tuple[str, str]:
    """Smallest and largest text, cut to what tells them from the boundary beside them."""
    above_low = next((boundary for boundary in boundaries if boundary > low), "")
    return _told_apart(low, above_low), _told_apart(high, boundaries[-1] if boundaries else "")
