"""What the log says of a partition, letter for letter: which files may be joined, and what a command would change.

Two texts of one value are two values to some reader, so bins are made by text. What protects a partition (``where``,
updates by others, the newest) goes by its value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import product
from urllib.parse import unquote

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.table.table_facts import DataFile, PartitionValues, TableFacts
from maintainer.planning.selection.decision import Partition, leave_files, leave_partitions, partition_text
from maintainer.planning.selection.schema_columns import partition_types
from maintainer.policy.predicate.predicate_grammar import names_zone, read_date, read_timestamp, reads_as_null
from maintainer.units import count_of, grouped, has_plain_digits

MAX_NAMED_SPELLINGS = 3
"""Texts of a partition, or folders, that a reason names; more are counted."""


def value_order(values: PartitionValues) -> list[tuple[bool, str]]:
    """Order partitions by their values, null first."""
    return [(value is not None, value or "") for _, value in values]


def split_by_text(
    partitions: tuple[Partition, ...], types: Mapping[str, str]
) -> tuple[tuple[Partition, ...], tuple[LeftAlone, ...]]:
    """Split partitions by the texts of their values, and say which ones stand apart and why.

    Args:
        partitions: By value, each with its files in order.
        types: The type of each partition column.
    """
    split: list[Partition] = []
    apart: list[tuple[Partition, list[PartitionValues]]] = []
    for partition in partitions:
        if all(file.stored_values is None for file in partition.files):
            split.append(partition)
            continue
        groups = grouped(partition.files, lambda file: file.partition_texts)
        texts = sorted(groups, key=value_order)
        split += [Partition(partition.values, tuple(groups[text])) for text in texts]
        if len(texts) > 1:
            apart.append((partition, texts))
    return tuple(split), ((_spelled_apart(apart, types),) if apart else ())


def _spelled_apart(apart: list[tuple[Partition, list[PartitionValues]]], types: Mapping[str, str]) -> LeftAlone:
    first, texts = apart[0]
    named = f"partition {partition_text(first.values)} is spelled in several ways in the log: {spelled_text(texts)}"
    if len(apart) > 1:
        named = f"{len(apart):,} partitions are spelled in several ways in the log, such as {spelled_text(texts)}"
    times = [name for name, type_name in types.items() if type_name == "timestamp"]
    why = "not every reader is known to read these as one value"
    if any(len({names_zone(dict(text).get(name) or "") for text in texts}) > 1 for _, texts in apart for name in times):
        why = "readers in other time zones read these as different values"
    return LeftAlone(Reason(ReasonCode.SPELLED_APART, f"{named}; files of each stay apart, because {why}"))


def spelled_text(texts: Sequence[PartitionValues]) -> str:
    """Quote the texts of one partition as the log has them: ``"2020-05-05 00:00:00" and "2020-05-05"``."""
    quoted = [
        "/".join("null" if value is None else json.dumps(value, ensure_ascii=False) for _, value in values)
        for values in texts[:MAX_NAMED_SPELLINGS]
    ]
    more = [f"{len(texts) - MAX_NAMED_SPELLINGS:,} more"] if len(texts) > MAX_NAMED_SPELLINGS else []
    *some, last = [*quoted, *more]
    return f"{', '.join(some)} and {last}" if some else last


def without_lost_values(facts: TableFacts) -> tuple[tuple[DataFile, ...], tuple[LeftAlone, ...]]:
    """Split off the files of which the log has no value of a partition column.

    Readers see null there. Joined with files of the true null, nothing would show any more that the value was lost.

    Returns:
        The files that may be rewritten, and a reason for each set of columns that others lack.
    """
    by_columns = grouped(facts.files, lambda file: file.lost_columns)
    whole = by_columns.pop((), [])
    return tuple(whole), tuple(
        leave_files(ReasonCode.LOST_VALUE, _lost_text(columns, files), files) for columns, files in by_columns.items()
    )


def _lost_text(columns: tuple[str, ...], files: Sequence[DataFile]) -> str:
    counts = [file.live_records for file in files]
    rows = "rows that nobody counted" if None in counts else count_of(sum(filter(None, counts)), "row")
    folders = dict.fromkeys(
        segment
        for file in files
        for segment in unquote(file.path).split("/")[:-1]
        if segment.partition("=")[0] in columns and "=" in segment
    )
    said = ", ".join([*folders][:MAX_NAMED_SPELLINGS]) + (" ..." if len(folders) > MAX_NAMED_SPELLINGS else "")
    folder = f"their folder says {said}" if folders else "their folder does not say it"
    listed = " and ".join(columns)
    return f"{count_of(len(files), 'file')} ({rows}) without a value of {listed} in the log, read as null; {folder}"


_PLAIN_DECIMAL = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?", re.ASCII)
_DELTAS_TEXT: Mapping[str, re.Pattern[str]] = {
    "boolean": re.compile("true|false"),
    **dict.fromkeys(("byte", "short", "integer", "long"), re.compile(r"0|-?[1-9]\d*", re.ASCII)),
    **dict.fromkeys(("float", "double"), re.compile(r"-?(0|[1-9]\d{0,3})\.(0|\d{0,2}[1-9])|NaN|-?Infinity", re.ASCII)),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"),
    "timestamp_ntz": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{0,5}[1-9])?"),
}


def is_deltas_own(text: str | None, type_name: str) -> bool:
    """Return whether Delta's own writer, given the value that it reads from a text, writes just this text.

    False also where that is not known: of floating numbers, those with few digits are known.
    """
    if text is None:
        return True
    if type_name == "string":
        return text != ""  # written as null
    if type_name.startswith("decimal"):
        scale = int(type_name.partition(",")[2].rstrip(")") or 0)
        return bool(_PLAIN_DECIMAL.fullmatch(text)) and len(text.partition(".")[2]) == scale <= 6
    known = _DELTAS_TEXT.get(type_name)
    if known is None or known.fullmatch(text) is None or text == "-0.0":
        return False
    if type_name.startswith("timestamp"):
        return read_timestamp(text) is not None
    return type_name != "date" or read_date(text) is not None


_ANYTHING = "any"
"""Stands for a value that nobody can read: a command may take it for any other."""


def _reach(text: str | None, type_name: str) -> frozenset[str]:
    """The values that a condition of a command may take a text for; a time is its day, in whatever zone it is read."""
    if text is None or reads_as_null(text, type_name):
        return frozenset({"null"})
    if type_name in ("string", "binary"):
        return frozenset({f"={text}"})
    if type_name.startswith("timestamp"):
        moment = read_timestamp(text)
        if moment is None:
            return frozenset({_ANYTHING})
        days = (0,) if is_deltas_own(text, type_name) else (-1, 0, 1)
        return frozenset(f"={moment.toordinal() + day}" for day in days)
    if type_name == "date":
        day = read_date(text.strip())
        return frozenset({_ANYTHING if day is None else f"={day}"})
    if type_name == "boolean":
        return frozenset({f"={text}"}) if text in ("true", "false") else frozenset({"=true", "=false"})
    if not has_plain_digits(text):
        return frozenset({_ANYTHING})
    try:
        return frozenset({f"={Decimal(text.strip()).normalize():f}"})
    except InvalidOperation:
        return frozenset({_ANYTHING})


def respelled_by_commands(facts: TableFacts) -> frozenset[PartitionValues]:
    """Return the partitions that no command may rewrite: their text, or that of files it takes along, would change.

    A command names partitions by value and writes the text of each anew. So a partition is left alone if its text is
    not the one that Delta writes, and if files with such a text may have the same value to the command's session. An
    empty text of a number or a time leaves none: Spark reads it as null, but a filter by its column fails.
    """
    kinds = partition_types(facts)
    types = tuple(kinds.values())
    filters_fail = False
    own: dict[PartitionValues, PartitionValues] = {}
    changed: dict[PartitionValues, PartitionValues] = {}
    reach: set[tuple[str, ...]] = set()
    for file in facts.files:
        texts = dict(file.partition_texts)
        filters_fail |= any(text == "" and reads_as_null(text, kinds[name]) for name, text in texts.items())
        if not file.lost_columns and all(map(is_deltas_own, texts.values(), types)):
            own[file.partition_texts] = file.partition_values
        elif file.partition_texts not in changed:
            changed[file.partition_texts] = file.partition_values
            names = (name for name, _ in file.partition_values)
            reach.update(product(*(_reach(texts.get(name), kind) for name, kind in zip(names, types, strict=True))))
    caught = frozenset(
        values
        for texts, values in own.items()
        if filters_fail
        or any(
            keys in reach
            for keys in product(
                *({*_reach(text, kind), _ANYTHING} for (_, text), kind in zip(texts, types, strict=True))
            )
        )
    )
    return caught.union(changed.values())


def without_respelled(
    facts: TableFacts, files: tuple[DataFile, ...]
) -> tuple[tuple[DataFile, ...], tuple[LeftAlone, ...]]:
    """Split off those of a table's files that lie in partitions whose text a command would change, and say why."""
    changed = respelled_by_commands(facts)
    left = grouped((file for file in files if file.partition_values in changed), lambda file: file.partition_values)
    kept = tuple(file for file in files if file.partition_values not in changed)
    return kept, leave_partitions(
        ReasonCode.SPELLING_CHANGES,
        lambda files, _: (
            f"{count_of(files, 'file')} whose partition OPTIMIZE would spell in another way in the log, or cannot tell "
            "from such a one: some readers would see another value; apply with --engine transaction"
        ),
        [Partition(values, tuple(files)) for values, files in left.items()],
    )
