"""Whose statistics are exact, and whose bounds cannot be trusted for some types, by what ``engineInfo`` says.

The one list of both: the rule for statistics, the plan and the pages go by it.
"""

from __future__ import annotations

EXACT_WRITERS = ("Delta-Lake/4.4.",)
"""Writers whose bounds are known to be reached by a row. Our own commits say it, too."""

DOUBTFUL_WRITERS: tuple[tuple[tuple[str, ...], frozenset[str], str], ...] = (
    (("delta-rs", "DuckDB"), frozenset({"float", "double"}), "it leaves NaN out"),
    (("Delta-Lake/3.2.", "Delta-Lake/3.3."), frozenset({"timestamp"}), "it cuts the seconds of old zone offsets"),
)
"""Marks of writers, the types whose bounds rows may lie outside of, and why."""


def doubtful_bounds(engine: str) -> tuple[frozenset[str], str]:
    """Return the types whose bounds by a writer cannot be trusted, and why; no types where nothing is known of it."""
    for marks, kinds, why in DOUBTFUL_WRITERS:
        if any(mark in engine for mark in marks):
            return kinds, why
    return frozenset(), ""
