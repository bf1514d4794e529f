"""The blocks of a document: what is said is built once, and a terminal, Markdown and a page print the same.

Texts are as they came: each writer makes them printable and escapes them. A text is prose, in which our own sentences
mark code with back-ticks, or a ``Span``. A block that a writer cannot show has no place here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from maintainer.report.document.folding import MAX_FOLDED_NAMES
from maintainer.report.findings import MAX_NAMES, Finding
from maintainer.report.style import Role, Symbol
from maintainer.units import count_of


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text. ``is_code`` is for names, values, places and commands: they stand as they are.

    ``link`` is where it leads on a page, and ``drawing`` is an image that a page shows above it.
    """

    text: str
    role: Role | None = None
    is_code: bool = False
    link: str = ""
    drawing: str = ""


Text = str | Span | tuple[str | Span, ...]


def literal(text: str) -> Span:
    """Return a name, a value, a place or a command."""
    return Span(text, is_code=True)


def spans(text: Text) -> tuple[Span, ...]:
    """Return the pieces of a text."""
    pieces = text if isinstance(text, tuple) else (text,)
    return tuple(Span(piece) if isinstance(piece, str) else piece for piece in pieces)


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows; ``level`` is 1 for the document's own, ``anchor`` the place on a page for links."""

    text: Text
    level: int = 2
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of its own; an empty one parts lines on a terminal and is nothing elsewhere."""

    text: Text = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    """Lines of a list. ``nouns`` are one of them and several, for what does not fit."""

    items: Sequence[Text]
    nouns: tuple[str, str] = ("line", "lines")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; ``role`` is the whole row's."""

    cells: tuple[Text, ...]
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Rows under a heading, none for columns that speak for themselves. ``right`` are the places of figures.

    ``width`` is how wide a terminal's line may be: a last cell that does not fit then stands below its row.
    ``nouns`` are as those of ``Bullets``. With a ``caption`` a page lets people sort it by its columns.
    On a terminal a cell that is wider than ``widest`` does not widen its column.
    """

    heading: tuple[str, ...]
    rows: Sequence[Row]
    right: frozenset[int] = frozenset()
    nouns: tuple[str, str] = ("row", "rows")
    width: int | None = None
    gap: int = 2
    indent: int = 0
    widest: int | None = None
    caption: str = ""


Tile = tuple[str, str, Role | None]
"""A figure, what it is, and whether it is good or bad."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """The figures that matter most, for the head of a page."""

    tiles: Sequence[Tile]

    @property
    def table(self) -> TableBlock:
        """The same as rows."""
        return TableBlock((), [Row((Span(figure, role), what)) for figure, what, role in self.tiles])


@dataclass(frozen=True, slots=True)
class Statement:
    """What is done to a subject, or why not: a word, facts, and the reasons with the policy lines behind them.

    ``reasons`` are pairs of a sentence and its place, either of which may be empty. ``where`` and ``help`` are an
    error's. ``below`` are lines for who wants to see everything. ``is_aside`` is what a reader in a hurry may pass
    over, ``goes_on`` that the word stands above.
    """

    symbol: str
    word: str
    facts: tuple[Text, ...] = ()
    reasons: tuple[tuple[str, str], ...] = ()
    where: str = ""
    help: str = ""
    below: tuple[str, ...] = ()
    is_aside: bool = False
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """A table, or several of which the same holds, and what is said of them. ``names`` has all of them.

    ``figures`` are version, size and number of files; ``place`` is the policy line, ``noun`` what several of them are.
    """

    symbol: str
    names: tuple[str, ...]
    statements: tuple[Statement, ...]
    figures: tuple[str, str, str] = ("", "", "")
    place: str = ""
    owner: str = ""
    noun: str = "table"

    @property
    def title(self) -> str:
        """The name, or how many there are."""
        if len(self.names) == 1:
            return self.names[0]
        return count_of(len(self.names), self.noun) + (f" of {self.owner}" if self.owner else "")


@dataclass(frozen=True, slots=True)
class Subjects:
    """Tables with what is said of each; without a heading of their own where ``is_one`` table is spoken of."""

    subjects: Sequence[Subject]
    is_one: bool = False


@dataclass(frozen=True, slots=True)
class Findings:
    """What a person has to know, the worst first. More than ``at_most`` are counted by their codes."""

    findings: Sequence[Finding]
    at_most: int = 50

    @property
    def counted(self) -> str:
        """What is said of those that are not shown; empty where all are."""
        rest = self.findings[self.at_most :]
        codes = Counter(finding.code for finding in rest)
        by_code = ", ".join(f"{code} {number:,}" for code, number in codes.items())
        return f"... and {len(rest):,} more ({by_code}): all in results.json of the run folder" if rest else ""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Lines as they are."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Fold:
    """What is shown folded under a summary, where that can be. One with an ``anchor`` is a box that links lead to.

    ``repeats`` says again, one by one, what stands above for all: a page prints it only where a reader opened it.
    """

    summary: Text
    blocks: Sequence[Block]
    anchor: str = ""
    is_open: bool = False
    repeats: bool = False


Block = Heading | Line | Bullets | TableBlock | Tiles | Subjects | Findings | CodeBlock | Fold
"""Closed: each writer ends in ``assert_never``, and so does ``blocks.html``."""

Document = Sequence[Block]


def joined_texts(texts: Iterable[Text], between: str) -> Text:
    """Put texts behind one another; empty ones are left out."""
    pieces: list[str | Span] = []
    for text in (each for each in texts if each):
        pieces += [between, *spans(text)]
    return tuple(pieces[1:])


def named_literals(names: Sequence[str], at_most: int) -> tuple[str | Span, ...]:
    """Name the first ones as they stand, and count the others."""
    return named_texts(list(map(literal, names)), at_most)


def named_texts(texts: Sequence[Text], at_most: int) -> tuple[str | Span, ...]:
    """Put the first ones behind one another, and count the others."""
    shown = spans(joined_texts(texts[:at_most], ", "))
    rest = len(texts) - at_most
    return (*shown, f" and {rest:,} more") if rest > 0 else shown


def subject_table(subjects: Iterable[Subject], *, is_aside: bool = False) -> TableBlock:
    """Return what is said of tables as rows, one for each statement that a reader in a hurry reads, or passes over."""
    heading = ("", "table", "step", "what", "why")
    return TableBlock(heading, [row for subject in subjects for row in _rows(subject, is_aside)])


def finding_table(findings: Iterable[Finding]) -> TableBlock:
    """Return findings as rows."""
    rows = [
        Row((each.severity.value, each.table and literal(each.table), each.step,
             joined_texts((f"{each.code} {each.what}", *each.notes, named_literals(each.tables, MAX_NAMES)), "; ")))
        for each in findings
    ]  # fmt: skip
    return TableBlock(("", "table", "step", "what"), rows)


def _rows(subject: Subject, is_aside: bool) -> Iterator[Row]:
    title: Text = literal(subject.title)
    if len(subject.names) > 1:
        title = (f"{subject.title}: ", *named_literals(subject.names, MAX_FOLDED_NAMES))
    for statement in subject.statements:
        if statement.is_aside is is_aside:
            symbol = Span(statement.symbol, Role.BOLD if statement.symbol == Symbol.BLOCKED else None)
            places = [joined_texts((text, place and literal(place)), " ") for text, place in statement.reasons]
            why = joined_texts([*places, statement.where and literal(statement.where)], "; ")
            help_text = statement.help and f"{statement.help[:1].upper()}{statement.help[1:]}"
            what = joined_texts((joined_texts(statement.facts, "; "), help_text), ". ")
            yield Row((symbol, title, statement.word, what, why))
