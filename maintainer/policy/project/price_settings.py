"""The key ``prices`` of maintainer.yml: what storage, scanning and computing cost, for the money in reports."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.policy.resolve.policy_fields import setting


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in one currency; None where nobody said one, and then reports show no money for it.

    ``scanned_tib`` is for a TiB that queries read, ``stored_gib_month`` for a GiB stored for a month, ``compute_hour``
    for an hour of the machine or cluster that a run takes.
    """

    currency: str = ""
    scanned_tib: float | None = setting(key="scannedTiB")
    stored_gib_month: float | None = setting(key="storedGiBMonth")
    compute_hour: float | None = None
