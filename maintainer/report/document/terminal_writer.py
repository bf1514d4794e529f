"""Writes a document for a terminal: aligned columns, and words that colour only repeats.

Nothing is cut: a name that is too wide stays whole and does not push the columns of other lines.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import assert_never

from maintainer.policy.diagnostics import Severity
from maintainer.report.document.blocks import (
    Block,
    Bullets,
    CodeBlock,
    Document,
    Findings,
    Fold,
    Heading,
    Line,
    Statement,
    Subjects,
    TableBlock,
    Text,
    Tiles,
    spans,
)
from maintainer.report.document.folding import MAX_FOLDED_NAMES, first_names
from maintainer.report.findings import Finding
from maintainer.report.style import PLAIN, Role, Style
from maintainer.report.text_layout import columns, display_width, pad, pad_left, padded_width, printable

WIDTH = 120
"""Where a reason goes to a line of its own."""

_INDENT, _WORD = 6, 10
_FACTS = _INDENT + 2 + _WORD + 2
_LEAST_LAST = 24
"""Where fewer columns are left of a line, its last cell stands below it."""


def terminal_text(document: Document, style: Style = PLAIN) -> str:
    """Return a document as lines, each ending in a newline."""
    lines: list[str] = []
    for block in document:
        if isinstance(block, Heading) and lines:
            lines.append("")
        lines += _lines(block, style)
    return "".join(f"{line}\n" for line in lines)


def _lines(block: Block, style: Style) -> Iterator[str]:
    match block:
        case Heading(text):
            yield style.paint(plain(text), Role.BOLD)
        case Line(text):
            yield painted(text, style)
        case Bullets(items):
            yield from (f"  - {painted(item, style)}" for item in items)
        case TableBlock():
            yield from (" " * block.indent + line for line in _table(block, style))
        case Tiles():
            yield from _table(block.table, style)
        case Subjects():
            yield from _subjects(block, style)
        case Findings(findings, at_most):
            for finding in findings[:at_most]:
                yield from _finding(finding, style)
            yield from (printable(line) for line in [block.counted] if line)
        case CodeBlock(lines):
            yield from (f"    {printable(line)}".rstrip() for line in lines)
        case Fold(summary, blocks):
            yield painted(summary, style)
            for inner in blocks:
                yield from _lines(inner, style)
        case _:
            assert_never(block)


def painted(text: Text, style: Style) -> str:
    """Return a text as a terminal shows it."""
    pieces = ((printable(span.text), span.role) for span in spans(text))
    return "".join(style.paint(piece, role) if role else piece for piece, role in pieces)


def plain(text: Text) -> str:
    """Return a text as it is read where nothing has a meaning of its own."""
    return painted(text, PLAIN)


def _table(table: TableBlock, style: Style) -> Iterator[str]:
    rows = [[painted(cell, style) for cell in row.cells] for row in table.rows]
    roles = [row.role for row in table.rows]
    if table.heading:
        rows, roles = [list(table.heading), *rows], [Role.BOLD, *roles]
    if table.width is not None:
        yield from _with_last_below(rows, roles, table, style)
        return
    for line, role in zip(columns(rows, table.right, table.gap, widest=table.widest), roles, strict=True):
        yield style.paint(line, role) if role else line


def _with_last_below(
    rows: Sequence[Sequence[str]], roles: Sequence[Role | None], table: TableBlock, style: Style
) -> Iterator[str]:
    """Yield rows of at most ``table.width``: a name, figures, and the last cell beside them or below."""
    most = table.width or WIDTH
    figures = columns([row[1:-1] for row in rows], right=frozenset(place - 1 for place in table.right))
    wide = max(map(display_width, figures))
    width = max((size for size in (display_width(row[0]) for row in rows) if size <= most - wide - 2), default=0)
    for (name, *_, last), figure, role in zip(rows, figures, roles, strict=True):
        if display_width(name) > width:  # it has a line of its own, and is whole
            yield name
            name = ""
        head = f"{pad(name, width)}  {pad(figure, wide)}"
        left = most - display_width(head) - 2
        fits = role is Role.BOLD or (left >= _LEAST_LAST and display_width(last) <= left)
        line = f"{head}  {last if fits else ''}".rstrip()
        yield style.paint(line, role) if role else line
        if not fits:
            indent = " " * 4
            yield from textwrap.wrap(
                last,
                most,
                initial_indent=indent,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,  # a name with one is copied whole
            )


def _subjects(block: Subjects, style: Style) -> Iterator[str]:
    subjects = block.subjects
    titles = [printable(subject.title) for subject in subjects]
    figures = zip(*(subject.figures for subject in subjects), strict=True)
    widths = [padded_width(titles), *map(padded_width, figures)]
    for title, subject in zip(titles, subjects, strict=True):
        if not block.is_one:
            cells = [style.symbol(subject.symbol), style.paint(pad(title, widths[0]), Role.BOLD)]
            version, size, files = subject.figures
            if any(widths[1:]):
                numbers = f"{pad_left(size, widths[2])}{' in ' if size else '    '}{pad_left(files, widths[3])}"
                cells += [f"  {pad(version, widths[1])}", f"  {numbers}"]
            yield f"  {' '.join(cells)}   {style.paint(printable(subject.place), Role.DIM)}".rstrip()
            if len(subject.names) > 1:
                more = "   (`-v` names each)" if len(subject.names) > MAX_FOLDED_NAMES else ""
                yield f"{' ' * _INDENT}{printable(first_names(subject.names))}{style.paint(more, Role.DIM)}"
        for statement in subject.statements:
            yield from _statement(statement, style)


def _statement(statement: Statement, style: Style) -> Iterator[str]:
    """Yield facts and reasons on one line where they fit, else each reason on a line of its own below."""
    symbol = " " if statement.goes_on else style.symbol(statement.symbol)
    head = f"{' ' * _INDENT}{symbol} {pad('' if statement.goes_on else printable(statement.word), _WORD)}"
    *before, facts = [painted(fact, style) for fact in statement.facts] or [""]
    tails = ["   ".join(part for part in map(printable, reason) if part) for reason in statement.reasons]
    for fact in before:
        yield f"{head}  {fact}".rstrip()
        head = " " * (_FACTS - 2)
    alone = len(tails) == 1 and _FACTS + display_width("   ".join(part for part in (facts, tails[0]) if part)) <= WIDTH
    inline = [style.paint(tails.pop(), Role.DIM)] if alone else []
    yield f"{head}  {'   '.join(part for part in (facts, *inline) if part)}".rstrip()
    below = [style.paint(tail, Role.DIM) for tail in tails if tail]
    labelled = (("at", statement.where), ("help", statement.help))
    below += [f"{label}: {printable(text)}" for label, text in labelled if text]
    for line in (*below, *map(printable, statement.below)):
        yield f"{' ' * _FACTS}{line}"


def _finding(finding: Finding, style: Style) -> Iterator[str]:
    """Lay a finding out as `MaintainerError.render` does, with the table in front of the sentence."""
    code = f"[{printable(finding.code)}]" if finding.code else ""
    role = Role.BAD if finding.severity is Severity.ERROR else Role.WARN
    yield f"{style.paint(f'{finding.severity.value}{code}', role)}: {printable(finding.headline)}"
    where = finding.where or finding.file
    yield from [f"  --> {printable(where)}"] if where else []
    yield from (f"   = {printable(line)}" for line in finding.lines)
    for number, line in enumerate(finding.help.split("\n") if finding.help else []):
        yield f"           {printable(line)}" if number else f"   = help: {printable(line)}"
