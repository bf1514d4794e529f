"""Find the partitions that a commit's predicate may read, from the text that Spark or delta-rs logged. Pure.

A part that is not understood narrows nothing: the answer is never less than what was read.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from maintainer.model.table.table_facts import PartitionValues
from maintainer.policy.predicate.predicate_lex import read_timestamp, reads_as_null, time_distances

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
    parts, depth, start, quoted = [], 0, 0, False
    for at, sign in enumerate(text):
        if sign == "'":
            quoted = not quoted
        elif not quoted:
            depth += (sign == "(") - (sign == ")")
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
    depth, quoted = 0, False
    for at, sign in enumerate(text):
        if sign == "'":
            quoted = not quoted
        elif not quoted:
            depth += (sign == "(") - (sign == ")")
            if depth == 0:
                return at
    return -1


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
            return number if number.is_finite() else None
        if type_name == "date":
            return date.fromisoformat(value)
    except (InvalidOperation, ValueError):
        return None
    if type_name.startswith("timestamp"):
        return read_timestamp(value)
    return value if type_name == "string" else None
