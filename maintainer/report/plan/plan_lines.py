"""The lines that ``plan`` and ``why`` share: facts, reasons, bins, what is left alone, and other writers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from maintainer.model.closed_types import assert_never
from maintainer.model.plan.plan import LeftAlone, Problem
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import (
    BatchedStep,
    SetPropertiesStep,
    Step,
    VacuumStep,
)
from maintainer.model.table.commit_records import WriterRhythm
from maintainer.model.table.table_facts import TableRef
from maintainer.report.plan.step_text import StepText, group_left_alone, how_much, with_code
from maintainer.report.text.style import Role, Style, Symbol
from maintainer.report.text.text_layout import UTC, columns, count, display_width, pad, partition, printable
from maintainer.units import format_duration, format_size

_STEP_INDENT = 6
_WORD_WIDTH = 10
ONLY_APPLY_CAN_TELL = "only apply checks: both clocks, other tables' logs, whether each file is still the same"
_FACT_COLUMN = _STEP_INDENT + 2 + _WORD_WIDTH + 2


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a rendering of a plan needs beside the plan.

    ``saved_to`` is where the plan was saved, None if it was not; ``applied_next`` leaves out what is said about that.
    ``width`` is where a reason goes to a line of its own; names are never cut, whatever the width.
    ``expected_seconds`` is how long the rewrites take at the speed of past runs, None where nobody knows.
    ``lost_ratios`` are the shares of tables' rewrites (0 to 1) that are expected to be lost to other writers.
    """

    project: str = "maintainer.yml"
    num_policies: int | None = None
    saved_to: str | None = None
    applied_next: bool = False
    verbose: bool = False
    tz: tzinfo = UTC
    width: int = 120
    expected_seconds: float | None = None
    lost_ratios: Mapping[TableRef, float] = field(default_factory=dict)


def problem_lines(problem: Problem, style: Style) -> Iterator[str]:
    """Yield the lines under a table that could not be planned: code, what, where, help."""
    yield _fact_line(Symbol.PROBLEM, printable(problem.code), printable(problem.what), style)
    for label, text in (("at", problem.where), ("help", problem.help)):
        if text:
            yield " " * _FACT_COLUMN + f"{label}: {printable(text)}"


def step_lines(text: StepText, options: PlanOptions, style: Style) -> Iterator[str]:
    """Yield the lines of one step; only the first has the symbol and the word."""
    for index, (facts, reasons) in enumerate(zip(text.facts, text.reasons, strict=True)):
        symbol, word = (text.symbol, text.word) if index == 0 else (" ", "")
        yield from fact_lines(symbol, word, facts, tuple(reason_text(reason) for reason in reasons), options, style)


def reason_text(reason: Reason) -> tuple[str, str]:
    """Return a reason as its sentence and its policy line (empty without one)."""
    return (printable(reason.text), printable(reason.origin or ""))


def fact_lines(
    symbol: str,
    word: str,
    facts: str,
    reasons: Sequence[tuple[str, str]],
    options: PlanOptions,
    style: Style,
) -> Iterator[str]:
    """Yield facts and reasons on one line where they fit, else each reason on a line of its own below.

    Each reason is its sentence and its policy line, either of which may be empty.
    """
    tails = ["   ".join(part for part in reason if part) for reason in reasons]
    tails = [tail for tail in tails if tail]
    one_line = "   ".join([facts, *tails]) if facts else "   ".join(tails)
    if len(tails) <= 1 and _FACT_COLUMN + display_width(one_line) <= options.width:
        painted = [style.paint(tail, Role.DIM) for tail in tails]
        yield _fact_line(symbol, word, "   ".join([facts, *painted] if facts else painted), style)
        return
    yield _fact_line(symbol, word, facts, style)
    for tail in tails:
        yield " " * _FACT_COLUMN + style.paint(tail, Role.DIM)


def _fact_line(symbol: str, word: str, facts: str, style: Style) -> str:
    mark = style.symbol(symbol) if symbol.strip() else symbol
    return f"{' ' * _STEP_INDENT}{mark} {pad(word, _WORD_WIDTH)}  {facts}".rstrip()


def bin_lines(step: Step) -> Iterator[str]:
    """Yield a line for each bin or deleted file: exactly what the step takes."""
    match step:
        case SetPropertiesStep():
            return
        case BatchedStep():
            rows = [
                (
                    f"commit {number}/{len(step.batches)}",
                    f"{count(len(bin_.files), 'file')}",
                    format_size(bin_.size_bytes),
                    partition(bin_.partition_values),
                )
                for number, batch in enumerate(step.batches, start=1)
                for bin_ in batch.bins
            ]
        case VacuumStep():
            rows = [("delete", file.kind, format_size(file.size_bytes), printable(file.path)) for file in step.files]
        case _:
            assert_never(step)
    for line in columns(rows, right=frozenset({1, 2})):
        yield " " * _FACT_COLUMN + line
    if isinstance(step, VacuumStep) and step.files:
        yield " " * _FACT_COLUMN + ONLY_APPLY_CAN_TELL


def left_alone_lines(entries: Sequence[LeftAlone], options: PlanOptions, style: Style) -> Iterator[str]:
    """Yield a line for each reason why something is left alone, or with ``verbose`` for each entry."""
    if not options.verbose:
        for group in group_left_alone(entries):
            amount = how_much(group.num_files, group.size_bytes, group.num_partitions)
            origin = ", ".join(printable(origin) for origin in group.origins)
            yield from _left_line(amount, group.code, group.text, origin, options, style)
        return
    for entry in entries:
        amount = how_much(entry.num_files, entry.size_bytes)
        if entry.partition_values:
            amount = f"{partition(entry.partition_values)}  {amount}".rstrip()
        yield from _left_line(amount, entry.reason.code, entry.reason.text, entry.reason.origin or "", options, style)


def _left_line(
    amount: str, code: ReasonCode, text: str, origin: str, options: PlanOptions, style: Style
) -> Iterator[str]:
    reason = (with_code(code, printable(text)), printable(origin))
    yield from fact_lines(Symbol.LEFT, "left alone", amount, (reason,), options, style)


WORTH_A_LINE = 0.01
"""A plan says nothing of less than this; `why` does."""


def share(ratio: float) -> str:
    """Print a probability or a share in per cent.

    >>> share(0.0), share(0.002), share(0.118), share(0.999)
    ('none', 'less than 1 %', '12 %', 'more than 99 %')
    """
    if ratio <= 0:
        return "none"
    if ratio < WORTH_A_LINE:
        return "less than 1 %"
    return f"{ratio:.0%}".replace("%", " %") if ratio < 0.995 else "more than 99 %"


def conflict_line(rhythm: WriterRhythm | None, lost_ratio: float) -> str | None:
    """Say how much of a rewrite is expected to be lost to other writers; None for less than ``WORTH_A_LINE``."""
    if lost_ratio < WORTH_A_LINE:
        return None
    text = f"{share(lost_ratio)} of this is expected to be lost to other writers"
    if rhythm is None or not rhythm.num_taking:
        return f"{text}, as past runs were"
    return f"{text}: {_seen(rhythm)}"


def rhythm_lines(rhythm: WriterRhythm, lost_ratio: float) -> list[str]:
    """Say everything about other writers, for ``why``."""
    lines = [_seen(rhythm)]
    if rhythm.num_taking:
        busiest = max(range(len(rhythm.taking_by_hour)), key=rhythm.taking_by_hour.__getitem__)
        most = rhythm.taking_by_hour[busiest]
        lines.append(
            f"most from {busiest:02d}:00 to {(busiest + 1) % 24:02d}:00 UTC: {most:,} of {rhythm.num_taking:,}"
        )
    lines.append(f"expected to be lost to them if it runs now: {share(lost_ratio)}")
    return lines


def _seen(rhythm: WriterRhythm) -> str:
    span = format_duration(max(1, round(rhythm.seconds)))
    took = "none of them" if not rhythm.num_taking else f"{rhythm.num_taking:,} of them"
    return f"{count(rhythm.num_commits, 'commit')} of others in {span}, {took} took or replaced live files"
