"""A writer that does one operation after another at its own pace, and writes each into its ledger."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod

from tests.soak.soak_settings import SoakSettings
from tests.soak.traffic.operation_ledger import ACKNOWLEDGED, LedgerReader, Operation, OperationLedger

IDS_A_WRITER = 10**10


class PacedWriter(ABC):
    """One writer on a thread of its own.

    Args:
        settings: The soak.
        name: Who it is.
        number: Its ids begin at this number times `IDS_A_WRITER`.
        period_seconds: From the beginning of one operation to that of the next, on average.
        only_in_bursts: Whether it rests in the calm part of each cycle, as updates do.
    """

    def __init__(
        self, settings: SoakSettings, name: str, number: int, period_seconds: float, *, only_in_bursts: bool = False
    ) -> None:
        self.settings, self.name = settings, name
        self.random = random.Random(f"{settings.seed} {name}")
        self.ledger = OperationLedger(settings.ledgers / f"{name}.jsonl")
        self._period_seconds, self._only_in_bursts = period_seconds, only_in_bursts
        self._next_id = number * IDS_A_WRITER
        self._begun = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def draw(self) -> Operation | None:
        """Return the next operation, None where there is nothing to do yet."""

    @abstractmethod
    def carry_out(self, operation: Operation) -> None:
        """Do it; what is raised goes into the ledger."""

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self, timeout_seconds: float = 120.0) -> bool:
        """Write no more; return whether the last operation has ended."""
        self._stop.set()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def new_ids(self, number: int) -> tuple[int, int]:
        """Return the first and last of so many ids that nobody had."""
        low = self._next_id
        self._next_id += number
        return low, low + number - 1

    def operation_name(self) -> str:
        """Return the name of the next operation."""
        return f"{self.name}-{self.ledger.operations}"

    @property
    def cycle(self) -> tuple[int, bool]:
        """The number of the cycle of updates, and whether updates come now: the same for all writers of a process."""
        number, seconds = divmod(
            time.monotonic() - self._begun, self.settings.burst_seconds + self.settings.calm_seconds
        )
        return int(number), seconds <= self.settings.burst_seconds

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            pause_seconds = self._period_seconds * self.random.uniform(0.7, 1.3)
            due = max(due, time.monotonic() - self._period_seconds) + pause_seconds
            if self._only_in_bursts and not self.cycle[1]:
                continue
            operation = self.draw()
            if operation is None:
                continue
            self.ledger.begin(operation)
            try:
                self.carry_out(operation)
            except Exception as error:
                self.ledger.end(operation, error)
            else:
                self.ledger.end(operation)


class AcknowledgedAppends:
    """Appends that were acknowledged, by table: what a statement may update or delete."""

    def __init__(self, settings: SoakSettings) -> None:
        self._reader = LedgerReader(settings.ledgers)
        self._by_table: dict[str, list[Operation]] = {}

    def of(self, table: str) -> list[Operation]:
        """Return those of a table, oldest first."""
        for record in self._reader.read_on():
            if record.outcome == ACKNOWLEDGED and record.operation.kind == "append":
                self._by_table.setdefault(record.operation.table, []).append(record.operation)
        return self._by_table.get(table, [])
