"""Projects with one table that needs every kind of step, in shapes that a seed chooses. Made by a second engine."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import deltalake
import pyarrow as pa

from tests.support.policies.projects import write_project
from tests.support.tables.delta_tables import age, second_engine_rows

POLICY = """\
table: lake/orders
optimize: {optimize}
vacuum: {{retention: 7d, allowLargeDelete: true}}
"""
REGIONS = ("north", "a/b c", "ü=1", None)


@dataclass(frozen=True)
class Shape:
    """What is done to the table, and what it is partitioned by.

    ``struck`` are the kinds of step in which a point lies that every step has; ``commit`` is the table and the
    operation of the commit at which the JVM is held.
    """

    optimize: str
    struck: tuple[str, ...]
    commit: tuple[str, str]
    partitioned_by: tuple[str, ...] = ()
    more: str = ""


SHAPES = (
    Shape("{lanes: [copy, local]}", ("compact",), ("orders", "OPTIMIZE")),
    Shape("{lanes: [local]}", ("vacuum",), ("orders", "VACUUM START"), ("region",)),
    Shape("{lanes: [local], zorder: {columns: [id, name], mode: full}}", ("zorder",), ("orders", "VACUUM END")),
    Shape("{lanes: [spark]}", ("set_properties",), ("orders", "SET TBLPROPERTIES"), ("part",), "autoCompact: true\n"),
    Shape("{lanes: [spark], zorder: {columns: [id, part]}}", ("zorder",), ("ledger", "WRITE")),
)
"""A seed takes the shape of its number modulo five; what else it chooses is random."""


@dataclass(frozen=True)
class FaultTable:
    """A project, its table, and what the table held before anything was done to it."""

    project: Path
    shape: Shape
    rows: Counter[str]

    @property
    def path(self) -> Path:
        """The table's folder."""
        return self.project / "lake" / "orders"

    @property
    def ledger(self) -> Path:
        """The ledger's folder."""
        return self.project / ".maintainer" / "ledger"


def make_fault_table(project: Path, seed: int) -> FaultTable:
    """Write the project of a seed: a table with small files, and files that were overwritten a month ago."""
    shape, chance = SHAPES[seed % len(SHAPES)], random.Random(seed)
    write_project(
        project,
        {"maintainer.yml": "version: 1\n", "policies/orders.yml": POLICY.format(optimize=shape.optimize) + shape.more},
    )
    path = project / "lake" / "orders"
    num_old, num_live = chance.randint(2, 14), chance.randint(3, 7)
    for number in range(num_old + num_live):
        deltalake.write_deltalake(
            str(path), _rows(chance, number), mode="overwrite" if number == num_old else "append",
            partition_by=list(shape.partitioned_by) or None,
        )  # fmt: skip
    age(path, days=30)
    return FaultTable(project, shape, second_engine_rows(path))


def _rows(chance: random.Random, number: int) -> pa.Table:
    count = chance.randint(1, 40)
    return pa.table(
        {
            "id": pa.array([number * 1000 + place for place in range(count)], pa.int64()),
            "name": pa.array([chance.choice(["", "x", "ß", None]) for _ in range(count)], pa.string()),
            "part": pa.array([chance.randint(0, 2) for _ in range(count)], pa.int32()),
            "region": pa.array([chance.choice(REGIONS) for _ in range(count)], pa.string()),
            "price": pa.array([chance.choice([-0.0, 1.5, None, chance.random()]) for _ in range(count)], pa.float64()),
        }
    )
