"""How long a soak runs, and every time in it that follows from that."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

WHOLE_RUN_SECONDS = 1200.0
"""From this length on there is a part without kills that is long enough to judge memory."""
MAX_EXTRA_FAILURES = 0.01
WATCH_INTERVAL_SECONDS = 5
WATCH_MEMORY = "640m"
SPARK_MEMORY = "1g"


def _between(low: float, value: float, high: float) -> float:
    return max(low, min(value, high))


@dataclass(frozen=True)
class SoakSettings:
    """One soak. All processes derive their times and random numbers from it.

    Args:
        folder: Everything that the soak writes lies below it.
        seconds: How long the writers write.
        seed: Drives every random choice.
    """

    folder: str
    seconds: float
    seed: int

    @property
    def root(self) -> Path:
        """The folder; it is the project of `maintainer` as well."""
        return Path(self.folder)

    @property
    def ledgers(self) -> Path:
        """Where each writer keeps its ledger."""
        return self.root / "soak" / "ledgers"

    @property
    def streams(self) -> Path:
        """Where readers keep what they saw."""
        return self.root / "soak" / "streams"

    @property
    def checkpoints(self) -> Path:
        """Where readers keep their offsets."""
        return self.root / "soak" / "checkpoints"

    @property
    def stop_file(self) -> Path:
        """Once it is there the writers in Spark stop, and the readers read to the end."""
        return self.root / "soak" / "stop"

    @property
    def ready_file(self) -> Path:
        """Written when the tables are there."""
        return self.root / "soak" / "ready"

    @property
    def retention_seconds(self) -> int:
        """How long vacuum keeps removed files."""
        return round(_between(30, self.seconds / 20, 120))

    @property
    def quiet_seconds(self) -> int:
        """`quietAfterUpdates` of the policies."""
        return round(_between(10, self.seconds / 40, 60))

    @property
    def burst_seconds(self) -> float:
        """How long updates come one after another."""
        return 1.5 * self.quiet_seconds

    @property
    def calm_seconds(self) -> float:
        """How long no updates come."""
        return 2.5 * self.quiet_seconds

    @property
    def life_seconds(self) -> float:
        """How long the watch lives on average, until it is killed."""
        return min(0.45 * self.seconds, _between(45, self.seconds / 15, 240))

    @property
    def kill_seconds(self) -> float:
        """No kill comes later: memory and disk are judged in the part after it."""
        return 0.6 * self.seconds

    @property
    def reader_pause_seconds(self) -> float:
        """How long a reader is away now and then: longer than files are kept for those who declare nothing."""
        return 1.5 * self.retention_seconds

    def write(self, path: Path) -> None:
        """Write the settings for another process."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> SoakSettings:
        """Read what `write` wrote."""
        return SoakSettings(**json.loads(path.read_text(encoding="utf-8")))
