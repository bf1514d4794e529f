"""Put the rows of a bin in an order and divide them among files, in memory.

Orders are those of ``planning.curve``: along the curve of a revision, along a curve over the values of the bin itself,
or by sort columns. Nulls come first and NaN last, as in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maintainer.planning.curve.curve import MAX_ADDRESS_BITS, ValueKey, bit_order, cut_curve
from maintainer.planning.curve.curve_files import files_of_pieces, max_rows_of
from maintainer.planning.curve.revision import Revision

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MAX_BITS = 10
"""Bits of a rank where the bin's own values are the measure: 1,024 ranks, as Delta's own Z-order has."""


@dataclass(frozen=True, slots=True)
class OrderedColumn:
    """A column of an order: ``codes`` are places of the rows' values among ``values`` from 1 on, 0 for null."""

    codes: np.ndarray
    values: pa.Array


def ordered_column(column: pa.ChunkedArray) -> OrderedColumn:
    """Sort the distinct values of a column and number its rows by them."""
    import numpy as np
    import pyarrow.compute as pc

    encoded = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    place = np.zeros(len(order) + 1, dtype=np.int64)
    place[order.to_numpy()] = np.arange(1, len(order) + 1)
    # Null is index -1, the last place, which stays 0.
    codes = place[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return OrderedColumn(codes, encoded.dictionary.take(order))


def along_revision(columns: Sequence[OrderedColumn], revision: Revision, num_files: int) -> list[np.ndarray]:
    """Return the rows of each file along a revision's curve, cut at the borders of cubes.

    Args:
        columns: The revision's, in its order.
        revision: The revision.
        num_files: About how many files are wanted.
    """
    import numpy as np

    ranks = [_ranks(column, boundaries.keys) for column, boundaries in zip(columns, revision.columns, strict=True)]
    addresses = _addresses(ranks, revision.bits)
    order = _sorted(columns, addresses)
    if num_files <= 1:
        return [order]
    cells, rows = np.unique(addresses, return_counts=True)
    counts = list(zip(cells.tolist(), rows.tolist(), strict=True))
    max_rows = max_rows_of(len(order), num_files)
    starts = cut_curve(counts, num_bits=revision.num_bits, max_rows=max_rows)
    pieces = np.split(order, np.searchsorted(addresses[order], starts[1:]))
    parts = files_of_pieces(counts, starts, max_rows)
    files = [file for piece, number in zip(pieces, parts, strict=True) for file in np.array_split(piece, number)]
    return [file for file in files if len(file)]


def along_own_curve(columns: Sequence[OrderedColumn], num_files: int) -> list[np.ndarray]:
    """Return the rows of each of ``num_files`` files along a curve whose ranks hold equally many rows each."""
    bits = [min(MAX_BITS, MAX_ADDRESS_BITS // len(columns))] * len(columns)
    ranks = [_shares(column, bits[0]) for column in columns]
    return _divided(_sorted(columns, _addresses(ranks, bits)), num_files)


def by_columns(columns: Sequence[OrderedColumn], num_rows: int, num_files: int) -> list[np.ndarray]:
    """Return the rows of each of ``num_files`` files, sorted by columns; as they come, where there are none."""
    import numpy as np

    return _divided(_sorted(columns, None) if columns else np.arange(num_rows), num_files)


def _divided(order: np.ndarray, num_files: int) -> list[np.ndarray]:
    import numpy as np

    return [piece for piece in np.array_split(order, num_files) if len(piece)]


def _sorted(columns: Sequence[OrderedColumn], addresses: np.ndarray | None) -> np.ndarray:
    """Row numbers by address, if there is one, and then by the columns."""
    import numpy as np

    keys: list[Any] = [column.codes for column in reversed(columns)]
    return np.lexsort(keys if addresses is None else [*keys, addresses])


def _ranks(column: OrderedColumn, keys: Sequence[ValueKey]) -> np.ndarray:
    """The number of boundaries at or below each row's value; 0 for null."""
    import numpy as np

    values = column.values
    firsts = [_first_at_or_above(values, key) for key in keys]
    of_values = np.searchsorted(np.array(firsts, dtype=np.int64), np.arange(len(values)), side="right")
    return np.take(np.concatenate(([0], of_values)), column.codes)


def _first_at_or_above(values: pa.Array, least: ValueKey) -> int:
    """The place of the first of the sorted values that is not below ``least``. NaN is below nothing."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if _key(values[middle]) < least:
            low = middle + 1
        else:
            high = middle
    return low


def _key(value: pa.Scalar) -> ValueKey:
    """What ``planning.curve.key_of`` makes of a value: days, microseconds, or the value itself."""
    import pyarrow as pa

    return value.value if isinstance(value, pa.TimestampScalar | pa.Date32Scalar) else value.as_py()


def _shares(column: OrderedColumn, bits: int) -> np.ndarray:
    """Ranks from the share of rows below a value, from 0 to 2^bits - 1; equal values have equal ranks."""
    import numpy as np

    below = np.cumsum(np.bincount(column.codes, minlength=len(column.values) + 1))
    below = np.concatenate(([0], below[:-1]))
    return np.take((below << bits) // max(1, len(column.codes)), column.codes)


def _addresses(ranks: Sequence[np.ndarray], bits: Sequence[int]) -> np.ndarray:
    """Interleave ranks bit by bit."""
    import numpy as np

    address = np.zeros(len(ranks[0]), dtype=np.int64)
    for position, (place, bit) in enumerate(reversed(bit_order(bits))):
        address |= ((ranks[place] >> bit) & 1) << position
    return address
