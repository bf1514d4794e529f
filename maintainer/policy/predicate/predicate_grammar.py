"""Cut a partition predicate into words with their places, define the tree of it, and spell that in one canonical way.

A character that begins no word is refused with what to write instead. Days and times are those of Delta's log and of
our literals, and no others. ``date.fromisoformat`` reads more forms, so it is used only after a pattern.

A leaf always compares one column with values, never a value with a value and never two columns: what such a comparison
means depends on casts, and nothing a partition filter needs is lost without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import assert_never

MAX_LENGTH = 8_192
"""Characters of one predicate: far above what a person writes, far below what hurts."""

ALLOWED = "comparisons, IN, BETWEEN, IS NULL, AND, OR, NOT, parentheses, literals and current_date() +/- days"
"""What messages offer instead of what they refuse."""

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<number>\d+(?:\.\d+)?(?![\w.]))
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*(?![A-Za-z0-9_]|[^\x00-\x7f]))
      | (?P<operator><=>|<=|>=|<>|!=|==|=|<|>)
      | (?P<mark>[(),+-])
    """,
    re.VERBOSE | re.ASCII,
)


_TYPOGRAPHIC_QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2032\u2033\u00b4"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212"
"""What word processors and chats put in the place of straight quotes and of the minus sign."""


class PredicateError(ValueError):
    """A predicate that is not in the grammar.

    Args:
        message: What is wrong, one line.
        offset: Where it begins in the text, in characters from 0.
        length: How many characters it spans, at least 1.
        help: What to write instead.
    """

    def __init__(self, message: str, offset: int, length: int, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = max(length, 1)
        self.help = help


@dataclass(frozen=True, slots=True)
class Token:
    """One word, sign or literal; ``kind`` is the name of the group of the pattern that it matched."""

    kind: str
    text: str
    offset: int

    @property
    def upper(self) -> str:
        """The word or sign without regard to case; a text and a name in back-ticks have their quotes."""
        return self.text.upper()


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, ended by one of kind ``end``.

    Raises:
        PredicateError: The text is too long, or a character begins no token.
    """
    if len(text) > MAX_LENGTH:
        raise PredicateError(
            f"the predicate has {len(text)} characters", 0, len(text), f"at most {MAX_LENGTH} are read"
        )
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or text.startswith("--", position):
            raise _unreadable(text, position)
        if match.lastgroup != "space":
            yield Token(match.lastgroup or "", match.group(), position)
        position = match.end()
    yield Token("end", "", len(text))


_UNREADABLE = (
    ("'.*", "this quoted text has no end", 0, "close it with '; inside, write '' for one '"),
    ("`.*", "this back-ticked name has no end", 0, "close it with `"),
    ('"', "text must be in single quotes", 1, "write 'text'"),
    (f"[{_TYPOGRAPHIC_QUOTES}]", "`{}` is a typographic quote, U+{code:04X}", 1, "use straight quotes: 'text'"),
    (f"[{_DASHES}]", "`{}` is a typographic dash, U+{code:04X}", 1, "use the minus sign of the keyboard: -"),
    (";", "a predicate is one condition, without semicolons", 1, f"allowed: {ALLOWED}"),
    (r"/\*|#|--", "comments are not part of the grammar", 2, "write YAML comments"),
    (r"[0-9][\w.]*", "`{}` is not a number", 0, "write digits, as in 42 or 1.5; text in '...'"),
    (r"\w+", "`{}` must be quoted", 0, "a column in `back-ticks`, text in '...'"),
)
"""What begins no word: the message, its length (0 for all of it), and what to write instead."""


def _unreadable(text: str, position: int) -> PredicateError:
    rest = text[position:]
    for pattern, message, length, help in _UNREADABLE:
        if match := re.match(pattern, rest, re.DOTALL):
            shown = message.format(match[0], code=ord(rest[0]))
            return PredicateError(shown, position, length or match.end(), help)
    return PredicateError(f"`{rest[0]}` is not part of the grammar", position, 1, f"allowed: {ALLOWED}")


def unquoted(token: Token) -> str:
    """Return what stands between the quotes of a text.

    Raises:
        PredicateError: It holds a backslash.
    """
    inner = token.text[1:-1].replace("''", "'")
    if "\\" in inner:
        message = "a backslash in a text means different things to different engines"
        help = "choose the partitions by another column or by a range"
        raise PredicateError(message, token.offset, len(token.text), help)
    return inner


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T]([01]\d|2[0-3]):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
    r"(Z|[+-](?:0\d|1[0-8]):[0-5]\d)?)?\Z",
    re.ASCII,
)


def read_date(text: str) -> date | None:
    """Read ``yyyy-mm-dd``; None for anything else, also for a day that does not exist."""
    if not _DATE.match(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_timestamp(text: str) -> datetime | None:
    """Read a time to the microsecond, in UTC unless it names an offset; None for anything else.

    These are the forms of the Delta protocol for partition values: ``yyyy-mm-dd hh:mm:ss[.ffffff]`` and
    ISO 8601 with ``T`` and ``Z``. A day alone is its midnight. Digits beyond microseconds must be zero.
    """
    match = _TIMESTAMP.match(text)
    if match is None:
        return None
    day, hour, minute, second, fraction, zone = (group or "" for group in match.groups())
    if fraction[6:].strip("0"):
        return None
    try:
        clock = f"{hour or '00'}:{minute or '00'}:{second or '00'}.{fraction:0<6.6}"
        offset = "+00:00" if zone in ("", "Z") else zone
        return datetime.fromisoformat(f"{day}T{clock}{offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


ZONE_REACH = timedelta(hours=18)
"""So far from UTC the zone of a reader may be: Java, and with it Spark, takes offsets up to 18 hours on both sides.

Today's zones reach from -12 to +14 hours. Earlier days of some lie farther out: Manila at -15:56 until 1844, Metlakatla
at +15:13 until 1867.
"""


def time_distances(text: str, other: str, type_name: str) -> tuple[timedelta, ...] | None:
    """Return by how much one time may be later than another: at least, at most, and as close to 0 as it may be.

    A time stamp without a zone is a moment in the zone of whoever reads it. So the distance from one that names its
    zone depends on the reader; of two without, and of any ``timestamp_ntz``, it does not.

    Returns:
        The three distances; None where one of the texts is no time.
    """
    moment, base = read_timestamp(text), read_timestamp(other)
    if moment is None or base is None:
        return None
    distance = moment - base
    floats = type_name == "timestamp" and names_zone(text) is not names_zone(other)
    reach = ZONE_REACH if floats else timedelta(0)
    closest = max(abs(distance) - reach, timedelta(0))
    return distance - reach, distance + reach, closest if distance > timedelta(0) else -closest


def names_zone(text: str) -> bool:
    """Return whether a time that ``read_timestamp`` reads says in which zone it is."""
    match = _TIMESTAMP.match(text)
    return match is not None and match[6] is not None


def reads_as_null(text: str | None, type_name: str) -> bool:
    """Return whether Spark reads the text of a partition value as null: an empty one is a value of texts and binaries.

    The protocol calls every empty text null. Of texts and binaries neither Spark nor delta-rs goes by that.
    """
    return text is None or (text == "" and not type_name.startswith(("string", "varchar", "char", "binary")))


RESERVED = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE"})
"""Words that are a column name only in back-ticks."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


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
    """``column operator value``; the operator is one of ``= != < <= > >=``.

    A column is as written: which partition column it means is settled when the predicate is bound.
    """

    column: str
    operator: str
    value: Value


@dataclass(frozen=True, slots=True)
class Membership:
    """``column [NOT] IN (values)``."""

    column: str
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """``column [NOT] BETWEEN low AND high``, both ends included."""

    column: str
    low: Value
    high: Value
    negated: bool = False


@dataclass(frozen=True, slots=True)
class NullCheck:
    """``column IS [NOT] NULL``: the only leaf that is never unknown."""

    column: str
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


def columns_of(node: Node) -> tuple[str, ...]:
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


def format_name(column: str) -> str:
    """Spell a column's name, in back-ticks where it could not be read otherwise."""
    if _PLAIN_NAME.match(column) and column.upper() not in RESERVED:
        return column
    return "`" + column.replace("`", "``") + "`"


def format_value(value: Value) -> str:
    """Spell a value as a predicate has it, a text with its quotes."""
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
