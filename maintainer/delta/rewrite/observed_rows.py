"""Take the fingerprint of rows on their way into new files, without a second read of the sources.

Spark's ``observe`` adds up the same sums as ``row_comparison``. It stands right behind the read, so the layout, the
writer and storage are all on the other side of the comparison.

Retried tasks are counted twice: equal sums prove, unequal sums disprove nothing. Where they differ or are missing,
both sides are read again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.schema_names import fresh_prefix
from maintainer.delta.proof.fingerprint import combine, hashed_columns, sum_expressions
from maintainer.model.run.outcome import Fingerprint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WAIT_SECONDS = 2.0
"""How long the sums may come after a write, until the sources are read again."""


@dataclass(frozen=True, slots=True)
class ObservedRows:
    """A frame whose rows are added up while they are written."""

    frame: DataFrame
    observation: JavaObject
    num_sums: int

    def fingerprint(self, jvm: DeltaJvm) -> Fingerprint | None:
        """Return the fingerprint of the written rows; None if Spark does not deliver it in two seconds."""
        values = jvm.observed(self.observation, WAIT_SECONDS)
        if values is None or len(values) != 1 + self.num_sums:
            return None
        return combine(values[0], values[1:])


def observe(jvm: DeltaJvm, frame: DataFrame) -> ObservedRows:
    """Add up the rows of a frame as they pass; the frame that comes back has the same columns."""
    schema = json.loads(frame.schema.json())
    prefix = fresh_prefix([field["name"] for field in schema["fields"]])
    hashed = hashed_columns(schema)
    names = tuple(f"{prefix}h{number}" for number in range(len(hashed.hashes)))
    added = [f"{text} AS {name}" for text, name in zip(hashed.hashes, names, strict=True)]
    sums = ["count(1) AS rows", *sum_expressions(names)]
    watched, observation = jvm.observe(frame.selectExpr("*", *added), sums)
    return ObservedRows(watched.drop(*names), observation, len(sums) - 1)
