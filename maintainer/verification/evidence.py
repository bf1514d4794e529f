"""Evidence: measured figures that must be equal, in a form that Great Expectations can assert.

Figures are text: sums of hashes exceed 64 bits, and a data frame would turn them into floats. A figure that was not
measured is None, and None never equals None: a measurement that failed on both sides proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """Two figures that must be equal, with the names under which a result shows them."""

    name_before: str
    before: str | None
    name_after: str
    after: str | None

    @property
    def holds(self) -> bool:
        """Whether both were measured and are equal."""
        return self.before is not None and self.before == self.after


def as_row(pairs: tuple[Pair, ...]) -> dict[str, str | None]:
    """The figures as one row of a frame, a column each.

    Raises:
        ValueError: Two figures carry one name; one of them would be lost.
    """
    row: dict[str, str | None] = {}
    for pair in pairs:
        for name, value in ((pair.name_before, pair.before), (pair.name_after, pair.after)):
            if name in row:
                raise ValueError(f"two figures are named {name!r}")
            row[name] = value
    return row
