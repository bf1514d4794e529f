"""Read and evaluate partition predicates (``optimize.where``): a small grammar of our own, never SQL for an engine.

Binding checks every literal against the type of its column once, so that a mismatch is found even where ``OR`` would
never reach it; the function that binding returns then only reads values and compares, with SQL's three-valued logic:
``None`` is its unknown throughout.

Example:
    >>> predicate = parse_predicate("order_day >= current_date() - 7")
    >>> selects = predicate.bind({"order_day": "date"}, date(2026, 11, 21))
    >>> selects({"order_day": "2026-11-20"})
    True
"""

from __future__ import annotations

import math
import operator as operators
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, ClassVar, TypeVar, assert_never

from maintainer.errors import TableError
from maintainer.policy.predicate.predicate_grammar import (
    Comparison,
    Conjunction,
    CurrentDate,
    Disjunction,
    Literal,
    Membership,
    Negation,
    Node,
    NullCheck,
    PredicateError,
    Range,
    Value,
    columns_of,
    format_node,
    format_value,
    names_zone,
    read_date,
    read_timestamp,
    reads_as_null,
    time_distances,
)
from maintainer.policy.predicate.predicate_parse import parse_node
from maintainer.units import has_plain_digits

Row = Mapping[str, "str | None"]
_T = TypeVar("_T")
Evaluator = Callable[[Row], "bool | None"]

_INTEGERS = frozenset({"byte", "short", "integer", "int", "long", "tinyint", "smallint", "bigint"})
_FLOATS = frozenset({"float", "double"})
_TIMES = frozenset({"timestamp", "timestamp_ntz"})

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


class PredicateTypeError(TableError):
    """A predicate that does not fit the table: no such partition column, or a literal of another type."""

    default_code: ClassVar[str] = "T410"


def bind_node(node: Node, types: Mapping[str, str], today: date) -> Evaluator:
    """Turn a tree into a function of partition values.

    Args:
        node: The tree.
        types: Spark's type name of each partition column (``string``, ``date``, ``decimal(10,2)``, ...).
        today: What ``current_date()`` means.

    Raises:
        PredicateTypeError: A column is not a partition column, or a literal does not fit its type.
    """
    match node:
        case Comparison():
            return _bind_comparison(node.column, node.operator, node.value, types, today)
        case Membership():
            choices = [_bind_comparison(node.column, "=", value, types, today) for value in node.values]
            chosen = partial(_joined, choices, True)
            return _negated(chosen) if node.negated else chosen
        case Range():
            low = _bind_comparison(node.column, ">=", node.low, types, today)
            high = _bind_comparison(node.column, "<=", node.high, types, today)
            inside = partial(_joined, [low, high], False)
            return _negated(inside) if node.negated else inside
        case NullCheck():
            name, wanted = _find(node.column, types), not node.negated
            return lambda row: reads_as_null(row.get(name), types[name]) is wanted
        case Conjunction():
            return partial(_joined, [bind_node(term, types, today) for term in node.terms], False)
        case Disjunction():
            return partial(_joined, [bind_node(term, types, today) for term in node.terms], True)
        case Negation():
            return _negated(bind_node(node.term, types, today))
        case _:
            assert_never(node)


def _joined(terms: list[Evaluator], decisive: bool, row: Row) -> bool | None:
    """Join truths: one that is decisive decides, else one that is unknown. False decides AND, True decides OR."""
    unknown = False
    for term in terms:
        truth = term(row)
        if truth is decisive:
            return decisive
        unknown = unknown or truth is None
    return None if unknown else not decisive


def _negated(term: Evaluator) -> Evaluator:
    def negation(row: Row) -> bool | None:
        truth = term(row)
        return None if truth is None else not truth

    return negation


def _find(column: str, types: Mapping[str, str]) -> str:
    """Return the partition column that is meant: the exact name, else the only one that differs in case."""
    if column in types:
        return column
    alike = [name for name in types if name.lower() == column.lower()]
    if len(alike) == 1:
        return alike[0]
    what, allowed = f"`{column}` is not a partition column", ", ".join(types) or "none: the table is not partitioned"
    help = "`where` chooses whole partitions, so it may name partition columns only"
    raise PredicateTypeError(what, found=column, allowed=allowed, help=help)


def _bind_comparison(column: str, operator: str, value: Value, types: Mapping[str, str], today: date) -> Evaluator:
    name = _find(column, types)
    type_name = types[name].strip().lower()
    read, wanted = _reader_and_value(name, type_name, value, today)
    compare = _OPERATORS[operator]

    def comparison(row: Row) -> bool | None:
        text = row.get(name)
        if text is None or reads_as_null(text, type_name) or (text == "" and read is not str):
            return None  # an empty text is no day
        if type_name not in _TIMES:
            return compare(read(text), wanted)
        truths = {compare(distance, wanted) for distance in read(text)}
        return truths.pop() if len(truths) == 1 else None

    return comparison


def _reader_and_value(name: str, type_name: str, value: Value, today: date) -> tuple[Callable[[str], Any], Any]:
    """Pair the reading of a column's values with the literal in the same Python type; of times, distances with none."""
    literal = today + timedelta(days=value.days) if isinstance(value, CurrentDate) else value.value
    is_day = isinstance(literal, date) and not isinstance(literal, datetime)
    if type_name in ("string",) or type_name.startswith(("varchar", "char")):
        if isinstance(literal, str):
            # Python orders text by code point, which is the order of its UTF-8 bytes, which is Spark's.
            return str, literal
        if is_day:
            return _strict(name, "a date", read_date), literal
        raise _mismatch(name, type_name, literal, "'text' or DATE '...'")
    if type_name in _INTEGERS or type_name.startswith("decimal"):
        if isinstance(literal, Decimal):
            return _strict(name, "a number", _read_decimal), literal
        raise _mismatch(name, type_name, literal, "a number without quotes")
    if type_name in _FLOATS:
        if isinstance(literal, Decimal):
            return _strict(name, "a number", _read_float), _ordered(float(literal))
        raise _mismatch(name, type_name, literal, "a number without quotes")
    if type_name == "boolean":
        if isinstance(literal, bool):
            truths = {"true": True, "false": False}
            return _strict(name, "true or false", lambda text: truths.get(text.lower())), literal
        raise _mismatch(name, type_name, literal, "TRUE or FALSE")
    if type_name == "date":
        day = read_date(literal) if isinstance(literal, str) else literal if is_day else None
        if day is not None:
            return _strict(name, "a date", read_date), day
        raise _mismatch(name, type_name, literal, "DATE 'yyyy-mm-dd', 'yyyy-mm-dd' or current_date()")
    if type_name in _TIMES:
        spelled = literal.isoformat(" ") if isinstance(literal, datetime) else str(literal)
        # Without a zone a literal is in UTC beside a value that names one, and in the reader's zone beside any other.
        kind = type_name if names_zone(spelled) else "timestamp_ntz"
        if isinstance(literal, str | date) and read_timestamp(spelled) is not None:
            return _strict(name, "a time", lambda text: time_distances(text, spelled, kind)), timedelta(0)
        raise _mismatch(name, type_name, literal, "TIMESTAMP 'yyyy-mm-dd hh:mm:ss' (UTC), a date or current_date()")
    raise PredicateTypeError(
        f"partition column `{name}` has the type {type_name}, which `where` cannot compare",
        allowed="string, integer types, date, timestamp, decimal, float, double, boolean; IS NULL on any type",
        help="choose the partitions by another partition column",
    )


def _mismatch(
    name: str, type_name: str, literal: str | Decimal | bool | date | datetime, allowed: str
) -> PredicateTypeError:
    shown, help = format_value(Literal(literal)), "write the value in the column's own type"
    what = f"partition column `{name}` is {type_name} and cannot be compared with {shown}"
    return PredicateTypeError(what, found=shown, allowed=allowed, help=help)


def _strict(name: str, what: str, read: Callable[[str], _T | None]) -> Callable[[str], _T]:
    """Wrap a reader: a value in the log that it cannot read is an error and never a partition left out."""

    def reader(text: str) -> _T:
        value = read(text)
        if value is None:
            message = f"the log has {text!r} in partition column `{name}`, which is not {what}"
            help = "choose the partitions by another partition column, or leave `where` out"
            raise PredicateTypeError(message, found=text, help=help)
        return value

    return reader


def _read_decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and has_plain_digits(text) else None


def _read_float(text: str) -> tuple[bool, float] | None:
    try:
        return _ordered(float(text)) if has_plain_digits(text) else None
    except ValueError:
        return None


def _ordered(number: float) -> tuple[bool, float]:
    """Make a float comparable as in Spark: NaN equals itself and is larger than every other number."""
    return (True, 0.0) if math.isnan(number) else (False, number)


__all__ = ["Predicate", "PredicateError", "PredicateTypeError", "parse_predicate"]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate that has been read; two are equal when their trees are."""

    root: Node

    @property
    def text(self) -> str:
        """The canonical spelling: reading it again gives an equal predicate."""
        return format_node(self.root)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns it mentions, each once, in the order of the text, as written."""
        return tuple(dict.fromkeys(columns_of(self.root)))

    def bind(self, types: Mapping[str, str], today: date) -> Callable[[Mapping[str, str | None]], bool]:
        """Check the predicate against a table's partition columns, and return the test of one partition.

        Use this to test many partitions: literals are checked and converted once.

        Args:
            types: Spark's type name of each partition column, by logical name. Names that differ from the
                predicate's only in case are found, as Spark does.
            today: What ``current_date()`` means, in the zone of the project.

        Returns:
            A function of partition values as the log serializes them. A missing value is null, and an empty one where
            Spark reads it so. Only a predicate that is true selects, one that is unknown does not. If the literal names
            a zone and a value does not, what differs between readers is unknown.

        Raises:
            PredicateTypeError: A column is no partition column, or a literal does not fit its type. The
                function raises it for a value in the log that is not of its column's type.
        """
        evaluator = bind_node(self.root, types, today)
        return lambda partition_values: evaluator(partition_values) is True

    def __str__(self) -> str:
        return self.text


def parse_predicate(text: str) -> Predicate:
    """Read a predicate.

    Args:
        text: What a policy's ``where`` says; at most 8,192 characters and 32 levels.

    Raises:
        PredicateError: The text is not in the grammar; carries offset, length and help.
    """
    return Predicate(parse_node(text))
