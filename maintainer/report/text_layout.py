"""Escaping, widths, columns, numbers and times of everything that is printed.

Names and values come from outside (catalogs, logs, other people's files). Everything printed passes through
`printable`, so that no name can move the cursor, colour a line, break one or turn its direction.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from maintainer.errors.foreign_text import printable as printable
from maintainer.model.plan.plan import DIRTY, FromPolicyFile, is_place
from maintainer.model.table.table_facts import PartitionValues
from maintainer.units import count_of, named

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OUR_COLORS = re.compile(r"\x1b\[[0-9;]*m")
WIDEST_PADDED_NAME = 48

PROOF_WORDS = {"fail": "failed", "error": "could not check", "spelled_anew": "SPELLED ANEW", "pass": "proven"}
"""How a proof that is on record ended, the worst first; ``verify`` says the same, but ``WRONG``."""


def proof_word(proof: str | None) -> str:
    """Say how a proof ended, in the words of ``verify``; any other word stays as it is."""
    return PROOF_WORDS.get(proof, proof) if proof else "-"


"""A longer name is printed whole but does not push the columns of all other lines."""


def display_width(text: str) -> int:
    """Count terminal cells: two for wide East Asian characters, none for combining marks and for our own colours."""
    if "\x1b" in text:
        text = _OUR_COLORS.sub("", text)
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def pad(text: str, cells: int) -> str:
    """Fill up with blanks on the right; a longer text stays whole."""
    return text + " " * (cells - display_width(text))


def pad_left(text: str, cells: int) -> str:
    """Fill up with blanks on the left, for numbers."""
    return " " * (cells - display_width(text)) + text


def padded_width(texts: Iterable[str], widest: int = WIDEST_PADDED_NAME) -> int:
    """Return the width of a column: the widest text that is not wider than ``widest``."""
    return max((width for width in map(display_width, texts) if width <= widest), default=0)


def columns(
    rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset(), gap: int = 2, *, widest: int | None = None
) -> list[str]:
    """Lay rows out as columns; ``right`` holds the indexes of right-aligned ones. The last column is not padded.

    Nothing is cut: the widest cell makes its column as wide as it is, but one that is wider than ``widest``.
    """
    if not rows:
        return []
    cells_of = list(zip(*rows, strict=True))
    widths = [max(map(display_width, cells)) if widest is None else padded_width(cells, widest) for cells in cells_of]
    fills = [pad_left if index in right else pad for index in range(len(widths))]
    lines = []
    for row in rows:
        cells = [fill(cell, width) for fill, cell, width in zip(fills, row, widths, strict=True)]
        lines.append((" " * gap).join(cells).rstrip())
    return lines


def tables_and_ledger(num_tables: int, *, with_ledger: bool) -> str:
    """Say how many tables there are, and that our own ledger is one of them: it is none of the user's tables."""
    if not with_ledger:
        return count_of(num_tables, "table")
    return f"{count_of(num_tables - 1, 'table')} and our own ledger" if num_tables > 1 else "our own ledger"


def noun_of(entry: FromPolicyFile) -> str:
    """Return what a table is called where several are counted: it may be a place that could not be searched."""
    return "place" if is_place(entry) else "table"


def unsearched(num_places: int) -> str:
    """Say behind a number of tables how many places could not be searched; nothing where all were."""
    return f"; {count_of(num_places, 'place')} could not be searched" if num_places else ""


MAX_ALIKE = 12
"""Tables that a message about several names beside the first."""


def alike(names: Sequence[str]) -> str:
    """Name the tables that one message is about: the first stands in it, the others are listed or counted."""
    return f"the same of {count_of(len(names), 'more table')}: {named(names, MAX_ALIKE)}"


def short_share(ratio: float) -> str:
    """Print a share in whole per cent; neither little nor nearly all is rounded to nothing or to all.

    >>> short_share(0.0), short_share(0.0004), short_share(0.118), short_share(0.9962), short_share(1.0)
    ('0%', '<1%', '12%', '>99%', '100%')
    """
    if 0 < ratio < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= ratio < 1 else f"{ratio:.0%}"


def moment(at_ms: int, tz: tzinfo) -> datetime:
    """Return a time of the log as a datetime; times past year 9999 are held at its edge."""
    try:
        return (_EPOCH + timedelta(milliseconds=at_ms)).astimezone(tz)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if at_ms > 0 else datetime.min.replace(tzinfo=UTC)


def when(at_ms: int, tz: tzinfo) -> str:
    """Print a time for people, with its zone: ``2026-11-22 22:58 CET``."""
    return f"{moment(at_ms, tz):%Y-%m-%d %H:%M %Z}".rstrip()


def clock_time(at_ms: int, tz: tzinfo) -> str:
    """Print the time of day: ``22:00:05``."""
    return f"{moment(at_ms, tz):%H:%M:%S}"


def iso_utc(at_ms: int) -> str:
    """Print a time for machines: ``2026-11-21T22:00:05.123Z``."""
    text = moment(at_ms, UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def short_commit(git_commit: str) -> str:
    """Return twelve digits of a commit, with the mark of policies that had changes beside it."""
    commit, dirty, _ = git_commit.partition(DIRTY)
    return f"{printable(commit[:12])}{dirty}"


def partition(values: PartitionValues) -> str:
    """Print a partition: ``order_day=2026-11-20/region=EU``; quoted where the value could be misread (``null``)."""
    if not values:
        return "(whole table)"
    return "/".join(f"{printable(column)}={_partition_value(value)}" for column, value in values)


def _partition_value(value: str | None) -> str:
    if value is None:
        return "null"
    shown = printable(value)
    if shown in ("", "null") or any(character in "/= '" for character in shown):
        return "'" + shown.replace("'", "''") + "'"
    return shown
