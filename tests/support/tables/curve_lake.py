"""A lake of numbers in memory: what the engine does to files on the curve, without an engine.

Rows are tuples of integers. A turn is carried out as the real engine does it: rows are given ranks by the revision's
boundaries, the curve is cut by ``cut_curve``, and each file gets its tags and its smallest and largest values.
"""

from __future__ import annotations

import bisect
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from maintainer.model.plan.zorder_turn import Strategy, ZOrderSettings
from maintainer.model.table.table_facts import DataFile, FileRange, PartitionValues
from maintainer.planning.curve.curve import cut_curve
from maintainer.planning.curve.curve_files import max_rows_of, tags_of
from maintainer.planning.curve.revision import Revision, make_column
from maintainer.planning.zorder.turn_choice import Chosen, choose_turn, sort_candidates

Row = tuple[int, ...]


def address_of(ranks: Sequence[int], bits: Sequence[int]) -> int:
    """Interleave ranks into a Z-address, bit by bit from the highest; shares no code with the product."""
    address = 0
    for turn in range(max(bits, default=0)):
        for rank, count in zip(ranks, bits, strict=True):
            if turn < count:
                address = address << 1 | rank >> (count - 1 - turn) & 1
    return address


def revision_of(rows: Sequence[Row], *, number: int = 1, max_bits: int = 8) -> Revision:
    """A revision of all columns, from the rows."""
    names = [f"c{position}" for position in range(len(rows[0]))]
    return Revision(
        number,
        tuple(
            make_column(name, "long", [str(row[position]) for row in rows], max_bits=max_bits)
            for position, name in enumerate(names)
        ),
    )


def settings_of(revision: Revision, **changes: object) -> ZOrderSettings:
    """Settings with the default strategies and files of 1,000 bytes; a row is a byte."""
    settings = ZOrderSettings(
        revision=revision.tag,
        optimized=revision.tag,
        strategies=(Strategy.UNINDEXED, Strategy.LEVELED, Strategy.PIECES),
        batch_bytes=1 << 40,
        bytes_per_iteration=1 << 40,
        max_file_size_bytes=1000,
        max_deleted_rows_ratio=0.05,
        max_turns=100,
    )
    return replace(settings, **changes)  # type: ignore[arg-type]


@dataclass
class CurveLake:
    """Files with their rows; a row is a byte, and each commit is a millisecond.

    With ``overhead`` a file has so many bytes more than rows, and by chance half to twice as many for its rows: as
    Parquet has footers, and rows compress better beside some than beside others.
    """

    revision: Revision
    rows: dict[str, list[Row]] = field(default_factory=dict)
    files: dict[str, DataFile] = field(default_factory=dict)
    ranges: dict[tuple[str, str], list[FileRange]] = field(default_factory=dict)
    commits: int = 0
    bytes_rewritten: int = 0
    number: int = 0
    overhead: int = 0

    def add(
        self, rows: Iterable[Row], *, partition: PartitionValues = (), tags: Sequence[tuple[str, str]] = ()
    ) -> DataFile:
        """One file of these rows, as any writer would add it."""
        rows = list(rows)
        self.number += 1
        path = f"f{self.number:06}"
        size = len(rows)
        if self.overhead:
            size = self.overhead + int(size * random.Random(self.number).uniform(0.5, 2.0))
        file = DataFile(path, size, self.commits, partition, len(rows), tags=tuple(sorted(tags)))
        self.rows[path], self.files[path] = rows, file
        self.ranges[file.key] = [(str(min(values)), str(max(values)), False) for values in zip(*rows, strict=True)]
        return file

    def append(self, rows: Iterable[Row], *, partition: PartitionValues = ()) -> DataFile:
        """A commit of one file."""
        self.commits += 1
        return self.add(rows, partition=partition)

    def choose(self, settings: ZOrderSettings) -> Chosen | None:
        """The next turn."""
        files = list(self.files.values())
        random.Random(self.number).shuffle(files)
        candidates = sort_candidates(files, settings, self.revision, self.revision, self.ranges)
        return choose_turn(settings, candidates, self.revision, self.revision)

    def carry_out(self, chosen: Chosen) -> None:
        """Rewrite what a turn takes."""
        self.commits += 1
        for bin_, num_files in zip(chosen.batch.bins, chosen.planned_turn.num_files, strict=True):
            rows = [row for file in bin_.files for row in self.rows.pop(file.path)]
            for file in bin_.files:
                del self.files[file.path], self.ranges[file.key]
            self.bytes_rewritten += len(rows)
            self._write(rows, num_files, bin_.partition_values, chosen.planned_turn.strategy)

    def _write(self, rows: list[Row], num_files: int, partition: PartitionValues, strategy: Strategy) -> None:
        bits = self.revision.bits
        keys = [column.keys for column in self.revision.columns]

        def ranks(row: Row) -> list[int]:
            return [bisect.bisect_right(boundaries, value) for boundaries, value in zip(keys, row, strict=True)]

        addresses = [address_of(ranks(row), bits) for row in rows]
        starts = cut_curve(
            sorted(Counter(addresses).items()),
            num_bits=self.revision.num_bits,
            max_rows=max_rows_of(len(rows), num_files),
        )
        pieces: dict[int, list[Row]] = {}
        for row, address in zip(rows, addresses, strict=True):
            pieces.setdefault(bisect.bisect_right(starts, address), []).append(row)
        for piece in pieces.values():
            ranges = [(str(min(values)), str(max(values)), False) for values in zip(*piece, strict=True)]
            tags = tags_of(self.revision, strategy, ranges, len(piece))
            self.add(piece, partition=partition, tags=tags)

    def run(self, settings: ZOrderSettings, *, max_turns: int = 10_000) -> list[Chosen]:
        """Turns until nothing is left; fails when that takes too long."""
        turns: list[Chosen] = []
        while (chosen := self.choose(settings)) is not None:
            turns.append(chosen)
            self.carry_out(chosen)
            if len(turns) > max_turns:
                raise AssertionError(f"no end after {max_turns} turns")
        return turns
