"""Writes a document as Markdown for GitHub and GitLab; what does not fit is counted, never dropped silently."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from maintainer.model.closed_types import assert_never
from maintainer.report.document.blocks import (
    Block,
    Bullets,
    CodeBlock,
    Document,
    Findings,
    Fold,
    Heading,
    Line,
    Row,
    Subject,
    Subjects,
    Table,
    Text,
    Tiles,
    finding_table,
    spans,
    subject_table,
)
from maintainer.report.markdown_text import code, code_block, escaped, fitting, folded, table
from maintainer.report.style import ROLE_OF_SYMBOL, Role, Symbol
from maintainer.units import count_of

_LOUD = (Role.BOLD, Role.BAD)
_NO_LIMIT = 1 << 60


def markdown_text(document: Document, room: int = _NO_LIMIT) -> str:
    """Return a document as Markdown, ending in a newline; rows and items take at most so many characters."""
    writer, lines = _Writer(room), list[str]()
    for block in document:
        written = writer.lines(block)
        lines += ["", *written] if lines and written else written
    return "\n".join(lines) + "\n"


def inline(text: Text) -> str:
    """Return a text for a paragraph or a cell."""
    parts = []
    for is_loud, pieces in groupby(spans(text), key=lambda span: span.role in _LOUD):
        part = "".join(code(span.text) if span.is_code else _prose(span.text) for span in pieces)
        parts.append(f"**{part}**" if is_loud and part.strip() else part)
    return "".join(parts)


def _prose(text: str) -> str:
    return " " if text.isspace() else escaped(text)


class _Writer:
    def __init__(self, room: int) -> None:
        self._room = room

    def lines(self, block: Block) -> list[str]:
        match block:
            case Heading(text, level):
                return [f"{'#' * (level + 2)} {inline(text)}"]
            case Line(text):
                return [inline(text)] if text else []
            case Bullets(items, nouns):
                shown = self._fitting([(f"* {inline(item)}",) for item in items])
                return [*(line for (line,) in shown), *_left_out(len(items) - len(shown), nouns, with_gap=bool(shown))]
            case Table():
                return self._table(block)
            case Tiles():
                return self._table(block.table)
            case Subjects(subjects):
                return self._subjects(subjects)
            case Findings(findings, at_most):
                counted = ["", escaped(block.counted)] if block.counted else []
                return [*self._table(finding_table(findings[:at_most])), *counted]
            case CodeBlock(lines):
                return code_block(lines)
            case Fold(summary, blocks):
                inner = [line for part in blocks for line in self.lines(part)]
                return folded("".join(span.text for span in spans(summary)), inner) if inner else []
            case _:
                assert_never(block)

    def _fitting(self, rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        shown, self._room = fitting(rows, self._room)
        return shown

    def _table(self, block: Table) -> list[str]:
        rows = [tuple(map(_cell, row.cells)) for row in block.rows]
        shown = self._fitting(rows)
        lines = table(block.heading, shown, block.right) if shown else []
        return [*lines, *_left_out(len(rows) - len(shown), block.nouns, with_gap=bool(shown))]

    def _subjects(self, subjects: Sequence[Subject]) -> list[str]:
        lines = self.lines(subject_table(subjects))
        aside = [subject for subject in subjects if any(statement.is_aside for statement in subject.statements)]
        if aside:
            number = count_of(sum(len(subject.names) for subject in aside), "table")
            rows = [Row((row.cells[1], *row.cells[3:])) for row in subject_table(aside, is_aside=True).rows]
            inner = self.lines(Table(("table", "left alone", "why"), rows))
            lines += ["", *folded(f"Left alone in {number}", inner)]
        return lines


def _left_out(number: int, nouns: tuple[str, str], *, with_gap: bool) -> list[str]:
    more = f"{count_of(number, *(f'more {noun}' for noun in nouns))} did not fit: see the saved plan."
    return [*([""] if with_gap else []), more] if number else []


def _cell(cell: Text) -> str:
    """Return a cell; one of our symbols has no meaning in a cell, and stands as it is."""
    text = "".join(span.text for span in spans(cell))
    return inline(cell) if text not in ROLE_OF_SYMBOL else f"**{text}**" if text == Symbol.BLOCKED else text
