"""What a proof measured of both sides, whichever library read them."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.delta.proof.statistics_figures import FileFigures, StatisticsColumn
from maintainer.model.run.outcome import Fingerprint


@dataclass(frozen=True, slots=True)
class Measured:
    """Both sides as they were measured; ``files`` are the figures of the written files, in their order.

    ``sources`` are those of the files that were read, where their statistics are judged, too; None for a file whose
    statistics could not be compared.
    """

    read: Fingerprint
    written: Fingerprint
    columns: tuple[StatisticsColumn, ...]
    files: tuple[FileFigures, ...]
    uncovered_columns: tuple[str, ...]
    sources: tuple[FileFigures | None, ...] = ()
