"""Streams that follow tables: each row, or each change, goes into a file for each batch.

A reader keeps its offsets in a checkpoint. A batch that is done twice writes the same file twice. Now and then a
reader is away for longer than vacuum keeps files.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.soak.soak_lake import SoakTable
from tests.soak.soak_settings import SoakSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MAX_ERRORS = 5
DRAIN_SECONDS = 240
TRIGGER = "8 seconds"


class StreamReader:
    """The reader of one table."""

    def __init__(self, settings: SoakSettings, spark: SparkSession, table: SoakTable) -> None:
        self._settings, self._spark, self._table = settings, spark, table
        self._random = random.Random(f"{settings.seed} reader {table.name}")
        self._folder = settings.streams / table.name
        self._folder.mkdir()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"reader {table.name}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Read what is there to the end, and stop."""
        self._stop.set()
        self._thread.join()
        try:
            query = self._query(available_now=True)
            if not query.awaitTermination(DRAIN_SECONDS):
                query.stop()
                raise TimeoutError(f"the stream was not at the end after {DRAIN_SECONDS} s")
        except Exception as error:
            self._note_error(error)

    def _follow(self) -> None:
        while not self._stop.is_set() and len(list(self._folder.glob("error-*"))) < MAX_ERRORS:
            away_at = time.monotonic() + self._random.uniform(1.0, 3.0) * self._settings.retention_seconds
            try:
                query = self._query(available_now=False)
                while not self._stop.is_set() and time.monotonic() < away_at:
                    # Raises what the stream failed with.
                    query.awaitTermination(1)
                query.stop()
            except Exception as error:
                self._note_error(error)
                continue
            if not self._stop.wait(self._random.uniform(0.2, 1.0) * self._settings.reader_pause_seconds):
                (self._folder / f"return-{time.time_ns()}").touch()

    def _query(self, *, available_now: bool) -> StreamingQuery:
        reader = self._spark.readStream.format("delta").option("startingVersion", "0")
        if self._table.reader == "changes":
            reader = reader.option("readChangeFeed", "true")
        frame = reader.load(str(self._table.path(self._settings)))
        writer = frame.writeStream.foreachBatch(self._keep).option(
            "checkpointLocation", str(self._settings.checkpoints / self._table.name)
        )
        trigger: Any = writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime=TRIGGER)
        query: StreamingQuery = trigger.start()
        return query

    def _keep(self, frame: DataFrame, batch: int) -> None:
        rows = [row.asDict() for row in frame.drop("_commit_timestamp").collect()]
        write_whole(self._folder / f"batch-{batch:08d}.json", json.dumps(rows))

    def _note_error(self, error: Exception) -> None:
        write_whole(self._folder / f"error-{time.time_ns()}", f"{type(error).__name__}: {error}"[:4000])


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(path)
