"""Find recent updates by other writers and the partitions they read: commits that may conflict with a rewrite.

A commit with a ``remove`` is an update, whatever its operation; a pure append, also of a stream, is not. In Delta an
update fails when a rewrite lands before it and removed a file that the update *read*. What it read is bounded only by
those parts of its predicate that compare partition columns with literals, in the text that Spark or delta-rs logged. A
part that is not understood narrows nothing: the answer is never less than what was read.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from itertools import product
from typing import Any, TypeAlias

from maintainer.delta.log.actions import PartitionNames
from maintainer.delta.log.commit_history import commit_time_ms
from maintainer.delta.storage.table_log import TableLog, commits_among
from maintainer.model.table.commit_records import MAINTENANCE, CommitStamp
from maintainer.model.table.table_facts import PartitionValues, TableFacts, Update
from maintainer.planning.selection.schema_columns import partition_types
from maintainer.policy.predicate.predicate_grammar import read_date, read_timestamp, reads_as_null, time_distances
from maintainer.units import has_plain_digits

_ATOM = re.compile(
    r"""^(?:[\w`]+\.)?`?(?P<column>[^`#()=<>]+?)`?(?P<id>\#\d+L?)?\s*(?P<op><=|>=|=|<|>)\s*
        (?:(?:DATE|TIMESTAMP|TIMESTAMP_NTZ)\s*)?(?P<quote>'?)(?P<literal>[^'"\#()<>=]*)(?P=quote)(?:(?<=')::\w+)?$""",
    re.VERBOSE | re.IGNORECASE,
)
_AMONG = re.compile(r"^`?(?P<column>[^`#()=<>]+?)`?(?P<id>#\d+L?) (?:IN \((?P<list>[^#()]*)\)|INSET (?P<set>[^#()]*))$")
_Key: TypeAlias = Decimal | date | str
_Compare: TypeAlias = Callable[[_Key | timedelta, _Key | timedelta], bool]
_COMPARE: Mapping[str, _Compare] = {
    "=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NUMBERS = ("byte", "short", "integer", "long", "decimal")


def bounded_partitions(
    predicates: Sequence[str], types: Mapping[str, str], partitions: Mapping[PartitionValues, PartitionValues]
) -> frozenset[PartitionValues] | None:
    """Return the values of those partitions in which rows may fulfil all predicates; None where nothing bounds them.

    Args:
        predicates: Texts that must all hold, such as ``((day#12 = 2026-11-22) AND (id#1L = 5))``.
        types: The type of each partition column.
        partitions: The texts of the table's partitions as the log has them, and the values that each stands for.
    """
    tests = [test for text in predicates for part in _split(text) if (test := _test(*part, types)) is not None]
    if not tests:
        return None
    return frozenset(values for texts, values in partitions.items() if all(test(dict(texts)) for test in tests))


_Test = Callable[[Mapping[str, "str | None"]], bool]


def _split(text: str) -> list[tuple[str, bool]]:
    """The parts of a conjunction without their parentheses, and whether there were any; else the text as its only part.

    Spark writes texts without quotes, and they may hold anything.
    """
    text, enclosed = text.strip(), False
    while text.startswith("(") and _closes(text) == len(text) - 1:
        text, enclosed = text[1:-1].strip(), True
    parts, start = [], 0
    for at, depth in _depths(text):
        if depth < 0:
            return []  # a parenthesis of a text
        if depth == 0 and text[at : at + 5].upper() == " AND ":
            parts.append(text[start:at])
            start = at + 5
    if not parts:
        return [(text, enclosed)]
    return [piece for part in (*parts, text[start:]) for piece in _split(part)]


def _closes(text: str) -> int:
    """Return where the parenthesis that opens the text is closed; -1 if it is not."""
    return next((at for at, depth in _depths(text) if depth == 0), -1)


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """Yield each place outside of quotes, and in how many parentheses it is."""
    depth, quoted = 0, False
    for at, sign in enumerate(text):
        if sign == "'":
            quoted = not quoted
        elif not quoted:
            depth += (sign == "(") - (sign == ")")
            yield at, depth


def _test(part: str, enclosed: bool, types: Mapping[str, str]) -> _Test | None:
    """A comparison of a partition column with literals; None for anything else."""
    among = _AMONG.match(part)
    if among is not None:
        column, type_name = _column(among["column"], types)
        texts = (among["list"] if among["list"] is not None else among["set"]).split(",")
        keys = [] if type_name == "string" else [text.strip() for text in texts]
        tests = [] if column is None else [_comparison(column, type_name, operator.eq, key) for key in keys]
        if column is None or not keys or any(_key(key, type_name) is None for key in keys):
            return None
        return lambda values: any(test(values) for test in tests)
    atom = _ATOM.match(part)
    if atom is None:
        return None
    if atom["id"] and not enclosed:
        return None  # Spark encloses each comparison, so this is a piece of a text with AND in it
    if not (atom["id"] or atom["quote"] or atom["literal"][:1].isdigit()):
        return None  # without Spark's number behind the column, a word on the right may be another one
    column, type_name = _column(atom["column"], types)
    if column is None or _key(atom["literal"], type_name) is None:
        return None
    return _comparison(column, type_name, _COMPARE[atom["op"]], atom["literal"])


def _comparison(column: str, type_name: str, compare: _Compare, literal: str) -> _Test:
    key = _key(literal, type_name)

    def test(values: Mapping[str, str | None]) -> bool:
        value = values.get(column)
        if value is None or reads_as_null(value, type_name):
            return False  # null fulfils no comparison
        if type_name.startswith("timestamp"):
            distances = time_distances(value, literal, type_name)
            return distances is None or any(compare(distance, timedelta(0)) for distance in distances)
        own = _key(value, type_name)
        # A value that cannot be read might fulfil any.
        return own is None or key is None or compare(own, key)

    return test


def _column(name: str, types: Mapping[str, str]) -> tuple[str | None, str]:
    column = next((type_ for type_ in types if type_.casefold() == name.strip().casefold()), None)
    return column, types.get(column, "") if column is not None else ""


def _key(value: str | None, type_name: str) -> _Key | None:
    """Convert a value so that it compares as in Spark; None if that is not possible."""
    if value is None:
        return None
    try:
        if type_name.startswith(_NUMBERS):
            number = Decimal(value)
            return number if number.is_finite() and has_plain_digits(value) else None
        if type_name == "date":
            return read_date(value)  # Python's own also takes 20261120, and weeks
    except InvalidOperation:
        return None
    if type_name.startswith("timestamp"):
        return read_timestamp(value)
    return value if type_name == "string" else None


MAX_COMMITS_LOOKED_AT = 1000
"""The newest; on object storage each is a request. A table with more appends than that in the time looked at may have
an update that is not seen: the commit itself still finds every conflict."""

MAX_UPDATES = 50
"""Only the newest so many are read whole."""


def read_updates(
    log: TableLog, facts: TableFacts, *, since_ms: int, after_version: int, until_version: int | None = None
) -> tuple[Update, ...]:
    """Return the updates of others that were committed since a moment or above a version, newest first.

    Args:
        log: The table's log.
        facts: The table: its partition columns, and the partitions that hold live files.
        since_ms: Milliseconds since 1970 UTC. A clock that runs ahead makes no commit younger than its file.
        after_version: Everything above it is looked at, however old it says it is.
        until_version: See ``TableReader.updates``.
    """
    names = PartitionNames.of_facts(facts)
    live = {file.partition_texts: file.partition_values for file in facts.files}
    updates: list[Update] = []
    if until_version is None:
        entries = log.commits(after_version=max(facts.version - MAX_COMMITS_LOOKED_AT, -1))
    else:
        entries = commits_among(log.listed_with(until_version).values())
    for entry, info in log.infos(entries[::-1][:MAX_COMMITS_LOOKED_AT]):
        at_ms = min(commit_time_ms(entry, info), entry.modification_time_ms)
        if (at_ms < since_ms and entry.version <= after_version) or len(updates) >= MAX_UPDATES:
            break
        if info.get("isBlindAppend") is True or CommitStamp.from_json(info.get("userMetadata")) is not None:
            continue
        removes = [action["remove"] for action in log.actions(entry) if "remove" in action]
        if removes:
            operation = str(info.get("operation") or "a commit that does not name itself")
            updates.append(Update(entry.version, at_ms, operation, _read(info, removes, names, live, facts)))
    return tuple(updates)


def _read(
    info: Mapping[str, Any],
    removes: Sequence[Mapping[str, Any]],
    names: PartitionNames,
    live: Mapping[PartitionValues, PartitionValues],
    facts: TableFacts,
) -> frozenset[PartitionValues] | None:
    """The partitions that the commit read or changed; None where nothing in the log bounds them."""
    if not facts.partition_columns or any(remove.get("partitionValues") is None for remove in removes):
        return None
    touched = _touched([remove["partitionValues"] for remove in removes], names, live, partition_types(facts))
    operation = str(info.get("operation") or "").upper()
    parameters = info.get("operationParameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    if operation in MAINTENANCE or str(parameters.get("isDynamicPartitionOverwrite")).lower() == "true":
        return touched  # these read the very files that they replace
    if operation == "MERGE" and parameters.get("notMatchedBySourcePredicates") not in (None, "[]", []):
        return None  # rows of the target without a match are read wherever they are
    read = bounded_partitions(_conjuncts(parameters.get("predicate")), partition_types(facts), live)
    return None if read is None else read | touched


def _touched(
    removed: Sequence[Mapping[str, str | None]],
    names: PartitionNames,
    live: Mapping[PartitionValues, PartitionValues],
    types: Mapping[str, str],
) -> frozenset[PartitionValues]:
    """The partitions that files were removed from, and the live ones that are the same to a reader in some zone."""
    gone = {names.texts_of(stored): names.values_of(stored) for stored in removed}
    touched = set(gone.values())
    if "timestamp" in types.values():
        near: dict[tuple[object, ...], list[PartitionValues]] = {}
        for texts, values in gone.items():
            near.setdefault(tuple(_days(value, types[column])[0] for column, value in values), []).append(texts)
        for texts, values in live.items():
            keys = product(*(_days(value, types[column]) for column, value in values))
            if any(_may_be(texts, other, types) for key in keys for other in near.get(key, ())):
                touched.add(values)
    return frozenset(touched)


def _days(value: str | None, type_name: str) -> tuple[object, ...]:
    """A value; of a time stamp its day in UTC, and those beside it that it may have in other zones."""
    moment = read_timestamp(value or "") if type_name == "timestamp" else None
    return (value,) if moment is None else tuple(moment.toordinal() + day for day in (0, -1, 1))


def _may_be(texts: PartitionValues, other: PartitionValues, types: Mapping[str, str]) -> bool:
    """Whether all time stamps of two partitions are the same moments to some reader."""
    others = dict(other)
    distances = (time_distances(text or "", others.get(name) or "", types[name]) for name, text in texts)
    return all(distance is None or timedelta(0) in distance for distance in distances)


def _conjuncts(predicate: object) -> list[str]:
    """The commit's predicate: a JSON list of texts that must all hold, or one text."""
    if not isinstance(predicate, str):
        return []
    try:
        listed = json.loads(predicate)
    except (ValueError, RecursionError):
        return [predicate]
    return [str(condition) for condition in listed] if isinstance(listed, list) else [predicate]
