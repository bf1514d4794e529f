"""What a predicate means on partition values: typed comparison, and SQL's three-valued logic.

Binding checks every literal against the type of its column once, so that a mismatch is found even where
``OR`` would never reach it; the function that binding returns then only reads values and compares.
``None`` is SQL's unknown throughout.
"""

from __future__ import annotations

import math
import operator as operators
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, ClassVar, TypeVar

from maintainer.errors import TableError
from maintainer.model.closed_types import assert_never
from maintainer.policy.predicate.predicate_ast import (
    BooleanValue,
    Column,
    Comparison,
    Conjunction,
    CurrentDate,
    DateValue,
    Disjunction,
    Membership,
    Negation,
    Node,
    NullCheck,
    NumberValue,
    Range,
    TextValue,
    TimestampValue,
    Value,
    format_value,
)
from maintainer.policy.predicate.predicate_time import read_date, read_timestamp

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
            return _negated(partial(_any, choices)) if node.negated else partial(_any, choices)
        case Range():
            low = _bind_comparison(node.column, ">=", node.low, types, today)
            high = _bind_comparison(node.column, "<=", node.high, types, today)
            return _negated(partial(_all, [low, high])) if node.negated else partial(_all, [low, high])
        case NullCheck():
            name, wanted = _find(node.column, types), not node.negated
            return lambda row: (not row.get(name)) is wanted
        case Conjunction():
            return partial(_all, [bind_node(term, types, today) for term in node.terms])
        case Disjunction():
            return partial(_any, [bind_node(term, types, today) for term in node.terms])
        case Negation():
            return _negated(bind_node(node.term, types, today))
        case _:
            assert_never(node)


def _all(terms: list[Evaluator], row: Row) -> bool | None:
    unknown = False
    for term in terms:
        truth = term(row)
        if truth is False:
            return False
        unknown = unknown or truth is None
    return None if unknown else True


def _any(terms: list[Evaluator], row: Row) -> bool | None:
    unknown = False
    for term in terms:
        truth = term(row)
        if truth is True:
            return True
        unknown = unknown or truth is None
    return None if unknown else False


def _negated(term: Evaluator) -> Evaluator:
    def negation(row: Row) -> bool | None:
        truth = term(row)
        return None if truth is None else not truth

    return negation


def _find(column: Column, types: Mapping[str, str]) -> str:
    """Return the partition column that is meant: the exact name, else the only one that differs in case."""
    if column.name in types:
        return column.name
    alike = [name for name in types if name.lower() == column.name.lower()]
    if len(alike) == 1:
        return alike[0]
    raise PredicateTypeError(
        f"`{column.name}` is not a partition column",
        found=column.name,
        allowed=", ".join(types) or "none: the table is not partitioned",
        help="`where` chooses whole partitions, so it may name partition columns only",
    )


def _bind_comparison(column: Column, operator: str, value: Value, types: Mapping[str, str], today: date) -> Evaluator:
    name = _find(column, types)
    read, wanted = _reader_and_value(name, types[name].strip().lower(), value, today)
    compare = _OPERATORS[operator]

    def comparison(row: Row) -> bool | None:
        text = row.get(name)
        # The protocol: an empty string in partitionValues is a null, whatever the type.
        return compare(read(text), wanted) if text else None

    return comparison


def _reader_and_value(name: str, type_name: str, value: Value, today: date) -> tuple[Callable[[str], Any], Any]:
    """Pair the reading of a column's values with the literal in the same Python type."""
    if isinstance(value, CurrentDate):
        value = DateValue(today + timedelta(days=value.days))
    if type_name in ("string",) or type_name.startswith(("varchar", "char")):
        if isinstance(value, TextValue):
            # Python orders text by code point, which is the order of its UTF-8 bytes, which is Spark's.
            return str, value.value
        if isinstance(value, DateValue):
            return _strict(name, "a date", read_date), value.value
        raise _mismatch(name, type_name, value, "'text' or DATE '...'")
    if type_name in _INTEGERS or type_name.startswith("decimal"):
        if isinstance(value, NumberValue):
            return _strict(name, "a number", _read_decimal), value.value
        raise _mismatch(name, type_name, value, "a number without quotes")
    if type_name in _FLOATS:
        if isinstance(value, NumberValue):
            return _strict(name, "a number", _read_float), _ordered(float(value.value))
        raise _mismatch(name, type_name, value, "a number without quotes")
    if type_name == "boolean":
        if isinstance(value, BooleanValue):
            return _strict(name, "true or false", _read_boolean), value.value
        raise _mismatch(name, type_name, value, "TRUE or FALSE")
    if type_name == "date":
        day = read_date(value.value) if isinstance(value, TextValue) else value.value
        if isinstance(day, date) and not isinstance(day, datetime):
            return _strict(name, "a date", read_date), day
        raise _mismatch(name, type_name, value, "DATE 'yyyy-mm-dd', 'yyyy-mm-dd' or current_date()")
    if type_name in _TIMES:
        moment = _moment(value)
        if moment is not None:
            return _strict(name, "a time", read_timestamp), moment
        raise _mismatch(name, type_name, value, "TIMESTAMP 'yyyy-mm-dd hh:mm:ss' (UTC), a date or current_date()")
    raise PredicateTypeError(
        f"partition column `{name}` has the type {type_name}, which `where` cannot compare",
        allowed="string, integer types, date, timestamp, decimal, float, double, boolean; IS NULL on any type",
        help="choose the partitions by another partition column",
    )


def _moment(value: Value) -> datetime | None:
    if isinstance(value, TimestampValue):
        return value.value
    if isinstance(value, TextValue):
        return read_timestamp(value.value)
    if isinstance(value, DateValue):
        return datetime(value.value.year, value.value.month, value.value.day, tzinfo=timezone.utc)
    return None


def _mismatch(name: str, type_name: str, value: Value, allowed: str) -> PredicateTypeError:
    return PredicateTypeError(
        f"partition column `{name}` is {type_name} and cannot be compared with {format_value(value)}",
        found=format_value(value),
        allowed=allowed,
        help="write the value in the column's own type",
    )


def _strict(name: str, what: str, read: Callable[[str], _T | None]) -> Callable[[str], _T]:
    """Wrap a reader: a value in the log that it cannot read is an error and never a partition left out."""

    def reader(text: str) -> _T:
        value = read(text)
        if value is None:
            raise PredicateTypeError(
                f"the log has {text!r} in partition column `{name}`, which is not {what}",
                found=text,
                help="choose the partitions by another partition column, or leave `where` out",
            )
        return value

    return reader


def _read_decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _read_float(text: str) -> tuple[bool, float] | None:
    try:
        return _ordered(float(text))
    except ValueError:
        return None


def _ordered(number: float) -> tuple[bool, float]:
    """Make a float comparable as in Spark: NaN equals itself and is larger than every other number."""
    return (True, 0.0) if math.isnan(number) else (False, number)


def _read_boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())
