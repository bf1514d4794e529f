"""Read the live files of a table's version through Kernel, without a Spark job.

Delta's own reader builds the state of a version with Spark, each time anew. The checks after a commit need two
versions, and on small tables that was most of their time.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.actions import live_rows
from maintainer.delta.transaction.add_files import adds_through_kernel
from maintainer.model.table.table_facts import TableFacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERSIONS_KEPT = 2
"""One commit's checks ask for N-1 and N several times. A version never changes."""

MAX_FILES_BY_NAME = 1_000
"""Files that a frame is made of one by one, half a millisecond each; above it Delta's own reader is as quick."""


class VersionFiles:
    """Reads on a worker's session and keeps the last versions."""

    def __init__(self, jvm: DeltaJvm) -> None:
        self._jvm = jvm
        self._kept: OrderedDict[tuple[str, str, int], list[dict[str, Any]]] = OrderedDict()

    def of(self, facts: TableFacts, version: int) -> list[dict[str, Any]] | None:
        """The ``add`` actions, statistics cut down to ``numRecords``; None where Kernel does not read the version.

        What Kernel cannot read is left to Spark, which reads it or says what is wrong.
        """
        key = (facts.location, facts.table_id, version)
        adds = self._kept.get(key)
        if adds is None:
            adds = adds_through_kernel(self._jvm, self._jvm.log_at(facts.location), version, facts.table_id)
            if adds is None:
                return None
        self._kept[key] = adds
        self._kept.move_to_end(key)
        while len(self._kept) > VERSIONS_KEPT:
            self._kept.popitem(last=False)
        return adds

    def rows_in_log(self, facts: TableFacts, version: int) -> int | None:
        """Rows that the log says the version has, deleted ones taken off; -1 where it does not say; None as ``of``."""
        adds = self.of(facts, version)
        if adds is None:
            return None
        rows = live_rows(adds)
        return -1 if rows is None else rows

    def frame(self, facts: TableFacts, snapshot: JavaObject, version: int) -> DataFrame | None:
        """The version's rows, of exactly these files; None as ``of``, and for tables of very many files.

        Args:
            facts: The table.
            snapshot: Delta's snapshot of the version, for its schema; its state is not built.
            version: The version.
        """
        adds = self.of(facts, version)
        if adds is None or len(adds) > MAX_FILES_BY_NAME:
            return None
        files = self._jvm.seq(self._jvm.action(json.dumps({"add": add}, ensure_ascii=False)) for add in adds)
        return self._jvm.read_files(self._jvm.log_at(facts.location), snapshot, files, "Verify")
