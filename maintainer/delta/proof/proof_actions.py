"""Check the actions of a rewrite before the commit, against the plan and storage (level L1 of a proof). Pure.

Counts and hashes prove the rows of the files that were read. These checks prove that the commit names these files and
no others. A right file in the wrong partition, a file that is already live, or one removal too many would lose or
double rows, and no hash of the new files shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from maintainer.delta.log.actions import live_rows, removed_key
from maintainer.delta.log.staged_file import Marks, WrittenFile
from maintainer.model.plan.steps import Batch
from maintainer.model.table.table_facts import FileKey
from maintainer.units import count_of, named

ADD_KEYS = frozenset(
    {"path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags", "clusteringProvider"}
)
"""All that the ``add`` of a rewritten file says: row ids are given at the commit, deletion vectors if expected."""

_TEXTS_NAMED = 3

MAX_ZONED_TEXTS = 1_000
"""Partitions of a commit for which a time zone is looked for."""

UTC_ZONE = "UTC"

_FARTHEST_ZONES = (timezone(timedelta(hours=14)), timezone(timedelta(hours=-11)))
"""What is the same in UTC and in both of these is so everywhere: it says its zone itself, or has none on both sides."""

OWN_TAGS = "maintainer."
"""What the names of our own tags begin with; Delta's writer has tags of its own, such as for Iceberg compatibility."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the plan and the table say about a batch's new files.

    Attributes:
        batch: The batch.
        marks: Tags that the new files of each bin carry, and no others of ours, and who clustered them.
        physical_names: Partition columns as the log names them, by their logical names.
        is_live: Whether a path is live already.
        is_below_root: Whether a path of the log lies in the table's folder.
        curve_tags: The tags of a file on a Z-order curve, worked out anew from its statistics; none elsewhere.
        vectors: The deletion vectors of new files, by path: others deleted these rows after they were read.
    """

    batch: Batch
    marks: Sequence[Marks]
    physical_names: Mapping[str, str]
    is_live: Callable[[str], bool]
    is_below_root: Callable[[str], bool]
    curve_tags: Callable[[str | None], Mapping[str, str]] = lambda stats: {}
    vectors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def check_adds(written: Sequence[WrittenFile], expected: Expected) -> list[str]:
    """Return what is wrong with the new files' actions, as sentences; empty if nothing is."""
    adds = [file.to_commit() for file in written]
    problems = files_that_differ((), (), adds)
    sources = {file.path for file in expected.batch.files}
    for file, add in zip(written, adds, strict=True):
        name = str(add.get("path"))
        if name in sources or expected.is_live(name):
            problems.append(f"{name} is a file of the table already")
        problems += [f"{name}: {text}" for text in _check_add(add, file.bin_number, expected)]
    return problems


def _check_add(add: Mapping[str, Any], bin_number: int, expected: Expected) -> Iterator[str]:
    path = str(add.get("path") or "")
    if not path or path.startswith("/") or ":" in path.split("/")[0] or not expected.is_below_root(path):
        yield "it is not a path below the table's folder"
    vector = expected.vectors.get(path)
    allowed = ADD_KEYS | {"deletionVector"} if vector is not None else ADD_KEYS
    strange = sorted(key for key, value in add.items() if key not in allowed and value is not None)
    if add.get("deletionVector") != vector and vector is not None:
        yield "its deletion vector is not the one that was written for it"
    if strange:
        yield f"it carries {', '.join(strange)}"
    if add.get("dataChange") is not False:
        yield "dataChange is not false"
    size = add.get("size")
    if not isinstance(size, int) or size <= 0:
        yield f"its size is {size}"
    if not 0 <= bin_number < len(expected.batch.bins):
        yield "it belongs to no bin of the batch"
        return
    yield from _check_marks(add, expected.marks[bin_number], expected.curve_tags(add.get("stats")))
    planned = dict(expected.batch.bins[bin_number].partition_texts)
    values = add.get("partitionValues") or {}
    if set(values) != set(expected.physical_names.values()):
        yield f"its partition columns are {sorted(values)}"
        return
    for name, physical in expected.physical_names.items():
        # Letter for letter: another text of the same value is another value for some readers.
        if name not in planned or values[physical] != planned[name]:
            yield f"partition {name} is {values[physical]!r}, its rows are of {planned.get(name)!r}"


def _check_marks(add: Mapping[str, Any], marks: Marks, on_curve: Mapping[str, str]) -> Iterator[str]:
    expected_tags = dict(sorted({**dict(marks.tags), **on_curve}.items()))
    tags = sorted((add.get("tags") or {}).items())
    own_tags = {name: value for name, value in tags if name.startswith(OWN_TAGS) or name in expected_tags}
    if own_tags != expected_tags:
        yield f"its tags are {own_tags}, the step's are {expected_tags}"
    if add.get("clusteringProvider") != marks.clustering_provider:
        yield f"it is clustered by {add.get('clusteringProvider')}, the step's files by {marks.clustering_provider}"


def check_sizes(written: Iterable[WrittenFile], size_of: Callable[[str], int]) -> list[str]:
    """Return new files whose size on storage is not the size in their actions."""
    problems = []
    for file in written:
        size = size_of(file.path)
        if size != file.size_bytes:
            problems.append(f"{file.path} has {size} bytes on storage, its action says {file.size_bytes}")
    return problems


def check_removes(removes: Sequence[Mapping[str, Any]], batch: Batch) -> list[str]:
    """Return what is wrong with the removals: exactly the batch's files go, with their deletion vectors."""
    planned = {file.key: file.size_bytes for file in batch.files}
    problems = files_that_differ(planned, removes, (), all_go=True)
    for remove in removes:
        size = planned.get(removed_key(remove))
        if size is not None and remove.get("size") not in (None, size):
            problems.append(f"{remove['path']} is removed with {remove['size']} bytes, planned with {size}")
        if remove.get("dataChange") is not False:
            problems.append(f"{remove['path']}: dataChange is not false")
    return problems


def files_that_differ(
    promised: Collection[FileKey],
    removes: Sequence[Mapping[str, Any]],
    adds: Sequence[Mapping[str, Any]],
    promise: str = "planned",
    *,
    all_go: bool = False,
) -> list[str]:
    """Say which files a commit removes that it may not, which it leaves that must go, and which it names twice.

    Args:
        promised: The files that may go, of whatever the caller trusts.
        removes: The ``remove`` actions. With another deletion vector it is another file.
        adds: The ``add`` actions.
        promise: What the files are, for a sentence.
        all_go: Whether none of them may stay.
    """
    removed, added = Counter(map(removed_key, removes)), Counter(str(add.get("path")) for add in adds)
    return [
        *(f"{key[0]} is removed and was not {promise}" for key in removed if key not in promised),
        *(f"{key[0]} is removed twice" for key, times in removed.items() if times > 1),
        *(f"{path} is added twice" for path, times in added.items() if times > 1),
        *(f"{key[0]} was {promise} and is not removed" for key in promised if all_go and key not in removed),
    ]


def spelled_anew(removed: Sequence[Mapping[str, Any]], added: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what became of partition values that a commit did not write letter for letter as it found them.

    Readers take a time stamp without a zone to be in their own: under another text the same rows have another value for
    some of them. Rows that are equal by value do not show it.

    Args:
        removed: The ``add`` actions of the files whose rows the commit took away.
        added: Those of the files that it added.

    Returns:
        A sentence for each partition column; empty if each text has the rows that it had. Files without a count of
        rows are compared by their texts alone.
    """
    before, after = _rows_by_text(removed), _rows_by_text(added)
    is_counted = None not in (*before.values(), *after.values())
    gone, new = (
        {text: rows for text, rows in side.items() if (other.get(text) != rows if is_counted else text not in other)}
        for side, other in ((before, after), (after, before))
    )
    sentences = []
    for column in sorted({column for text in (*gone, *new) for column, _ in text}):
        old_texts, new_texts = (
            sorted({repr(dict(text).get(column, "missing")) for text in side}) for side in (gone, new)
        )
        if old_texts != new_texts:
            num_files = sum(_text_of(add) in gone for add in removed)
            rows = f" with {count_of(sum(count or 0 for count in gone.values()), 'row')}" if is_counted else ""
            was, now = named(old_texts, _TEXTS_NAMED), named(new_texts, _TEXTS_NAMED)
            sentences.append(f"{column} of {count_of(num_files, 'file')}{rows} was {was} and is {now} now")
    return sentences


def readers_of_spelling(removed: Sequence[Mapping[str, Any]], added: Sequence[Mapping[str, Any]]) -> str:
    """Return who sees the values of before under the texts that a commit wrote, as a sentence.

    Arguments are those of `spelled_anew`.
    """
    zone = zone_of_spelling(removed, added)
    if zone is None:
        return "readers may see other values than before"
    if zone != UTC_ZONE:
        return f"readers in a time zone such as {zone} see what they saw; in UTC, and elsewhere, values are others"
    before, after = _rows_by_text(removed), _rows_by_text(added)
    if all(_moments(before, far) == _moments(after, far) for far in _FARTHEST_ZONES):
        return "readers in every time zone see what they saw"
    return "readers in UTC see what they saw, and elsewhere other values: a time without a zone is in the reader's own"


def zone_of_spelling(removed: Sequence[Mapping[str, Any]], added: Sequence[Mapping[str, Any]]) -> str | None:
    """Return a time zone in which the texts that a commit wrote mean the moments of those that it found.

    A writer in that zone saw the same values before and after. Arguments are those of `spelled_anew`.

    Returns:
        UTC, or the first such zone by name; None where there is none, or too many texts to look.
    """
    before, after = _rows_by_text(removed), _rows_by_text(added)
    if not before or len(before) + len(after) > MAX_ZONED_TEXTS:
        return None
    names = sorted(available_timezones() - {"localtime"}, key=lambda name: (name != UTC_ZONE, name))
    zones = (ZoneInfo(name) for name in names)
    return next((zone.key for zone in zones if _moments(before, zone) == _moments(after, zone)), None)


def _moments(texts: Iterable[tuple[tuple[str, str | None], ...]], zone: tzinfo) -> set[tuple[object, ...]]:
    return {tuple((column, _moment(text, zone)) for column, text in values) for values in texts}


def _moment(text: str | None, zone: tzinfo) -> object:
    """The moment of a time stamp for a reader in a zone; any other text as it is."""
    if text is not None and len(text) > len("2020-05-05"):
        with suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
            return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    return text


def _text_of(add: Mapping[str, Any]) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted((add.get("partitionValues") or {}).items()))


def _rows_by_text(adds: Sequence[Mapping[str, Any]]) -> dict[tuple[tuple[str, str | None], ...], int | None]:
    """Live rows under each text; None where one file has no count. A text without rows is left out."""
    groups: dict[tuple[tuple[str, str | None], ...], list[Mapping[str, Any]]] = {}
    for add in adds:
        groups.setdefault(_text_of(add), []).append(add)
    counted = {text: live_rows(group) for text, group in groups.items()}
    return {text: rows for text, rows in counted.items() if rows != 0}
