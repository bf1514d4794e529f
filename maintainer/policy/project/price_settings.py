"""The key ``prices`` of maintainer.yml: what storage, scanning and computing cost, for the money in reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in one currency; None where nobody said one, and then reports show no money for it.

    ``scanned_tib`` is for a TiB that queries read, ``stored_gib_month`` for a GiB stored for a month, ``compute_hour``
    for an hour of the machine or cluster that a run takes.
    """

    currency: str = ""
    scanned_tib: float | None = None
    stored_gib_month: float | None = None
    compute_hour: float | None = None


def read_prices(data: Mapping[str, object]) -> Prices:
    """Read the checked key ``prices``; without any price where it is left out."""
    given = data.get("prices")
    prices = given if isinstance(given, dict) else {}

    def price(key: str) -> float | None:
        value = prices.get(key)
        return float(value) if isinstance(value, (int, float)) else None

    return Prices(
        currency=str(prices.get("currency") or ""),
        scanned_tib=price("scannedTiB"),
        stored_gib_month=price("storedGiBMonth"),
        compute_hour=price("computeHour"),
    )
