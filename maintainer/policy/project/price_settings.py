"""The key ``prices`` of maintainer.yml: what storage, scanning and computing cost, for the money in reports."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.policy.resolve.policy_fields import setting


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in one currency; None where nobody said one, and then reports show no money for it."""

    currency: str = setting("", minLength=1, maxLength=8, pattern="^\\S+$", example="EUR")
    """Printed after each amount."""
    scanned_tib: float | None = setting(key="scannedTiB", minimum=0, example=5.0)
    """Price of one TiB that queries read."""
    stored_gib_month: float | None = setting(key="storedGiBMonth", minimum=0, example=0.023)
    """Price of storing one GiB for a month."""
    compute_hour: float | None = setting(minimum=0, example=1.2)
    """Price of one hour of the machine or cluster on which runs take place."""
