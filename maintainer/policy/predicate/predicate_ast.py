"""Define the tree of a partition predicate, and its canonical spelling.

A leaf always compares one column with values, never a value with a value and never two columns: what such
a comparison means depends on casts, and nothing a partition filter needs is lost without it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from maintainer.model.closed_types import assert_never

RESERVED = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE"})
"""Words that are a column name only in back-ticks."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Column:
    """A column as written; which partition column it means is settled when the predicate is bound."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, an exact number, TRUE or FALSE, a day, or a time in UTC; it has a zone if the predicate names one.

    A text that is compared with a column of days or times is read as one.
    """

    value: str | Decimal | bool | date | datetime


@dataclass(frozen=True, slots=True)
class CurrentDate:
    """``current_date()``, moved by a number of days; the day itself is given when the predicate is bound."""

    days: int = 0


Value = Literal | CurrentDate


@dataclass(frozen=True, slots=True)
class Comparison:
    """``column operator value``; the operator is one of ``= != < <= > >=``."""

    column: Column
    operator: str
    value: Value


@dataclass(frozen=True, slots=True)
class Membership:
    """``column [NOT] IN (values)``."""

    column: Column
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """``column [NOT] BETWEEN low AND high``, both ends included."""

    column: Column
    low: Value
    high: Value
    negated: bool = False


@dataclass(frozen=True, slots=True)
class NullCheck:
    """``column IS [NOT] NULL``: the only leaf that is never unknown."""

    column: Column
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Two or more terms joined by AND."""

    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Two or more terms joined by OR."""

    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """NOT of a term."""

    term: Node


Node = Comparison | Membership | Range | NullCheck | Conjunction | Disjunction | Negation


def columns_of(node: Node) -> tuple[Column, ...]:
    """Return every mention of a column, in the order of the text."""
    match node:
        case Comparison() | Membership() | Range() | NullCheck():
            return (node.column,)
        case Conjunction() | Disjunction():
            return tuple(column for term in node.terms for column in columns_of(term))
        case Negation():
            return columns_of(node.term)
        case _:
            assert_never(node)


def format_node(node: Node) -> str:
    """Spell a tree in the one canonical way: reading the text again gives an equal tree."""
    match node:
        case Comparison():
            return f"{format_name(node.column)} {node.operator} {format_value(node.value)}"
        case Membership():
            values = ", ".join(format_value(value) for value in node.values)
            return f"{format_name(node.column)} {'NOT ' if node.negated else ''}IN ({values})"
        case Range():
            ends = f"{format_value(node.low)} AND {format_value(node.high)}"
            return f"{format_name(node.column)} {'NOT ' if node.negated else ''}BETWEEN {ends}"
        case NullCheck():
            return f"{format_name(node.column)} IS {'NOT ' if node.negated else ''}NULL"
        case Conjunction():
            return " AND ".join(_bracketed(term, Disjunction, Conjunction) for term in node.terms)
        case Disjunction():
            return " OR ".join(_bracketed(term, Disjunction) for term in node.terms)
        case Negation():
            return f"NOT {_bracketed(node.term, Conjunction, Disjunction)}"
        case _:
            assert_never(node)


def _bracketed(node: Node, *weaker: type[Node]) -> str:
    text = format_node(node)
    return f"({text})" if isinstance(node, weaker) else text


def format_name(column: Column) -> str:
    """Spell a column's name, in back-ticks where it could not be read otherwise."""
    if _PLAIN_NAME.match(column.name) and column.name.upper() not in RESERVED:
        return column.name
    return "`" + column.name.replace("`", "``") + "`"


def format_value(value: Value) -> str:
    """Spell a value."""
    if isinstance(value, CurrentDate):
        days = "" if value.days == 0 else f" {'-' if value.days < 0 else '+'} {abs(value.days)}"
        return f"current_date(){days}"
    match value.value:
        case str(text):
            return "'" + text.replace("'", "''") + "'"
        case bool(truth):
            return "TRUE" if truth else "FALSE"
        case Decimal() as number:
            return format(number, "f")
        case datetime() as moment:
            return f"TIMESTAMP '{moment.isoformat(' ').replace('+00:00', 'Z')}'"
        case date() as day:
            return f"DATE '{day.isoformat()}'"
        case _:
            assert_never(value.value)
