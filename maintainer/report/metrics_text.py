"""What each step of a past run did, with the figures of OPTIMIZE under Delta's own names: for ``show``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from maintainer.model.codec import encode
from maintainer.model.outcome import RunOutcome, StepOutcome, StepStatus
from maintainer.report.layout import printable
from maintainer.report.outcome_text import STATUS_WORD, figures, message
from maintainer.report.steps import step_word
from maintainer.report.style import PLAIN, Style
from maintainer.units import format_duration

MAX_WIDTH = 110


def render_steps(outcome: RunOutcome, style: Style = PLAIN) -> str:
    """Return one paragraph for each step of a run, in order; each line ends in a newline. Empty without steps."""
    lines: list[str] = []
    for table in outcome.tables:
        for step in table.steps:
            word, role = STATUS_WORD[step.status]
            what = figures(step)
            if not what or (step.status is not StepStatus.SUCCEEDED and step.error is not None):
                what = ", ".join(part for part in (what, message(step)) if part)
            head = f"{printable(table.ref.identifier)}  {step_word(step.kind)}  {style.paint(word, role)}"
            lines.append(f"{head}  {format_duration(step.duration_seconds)}  {what}".rstrip())
            lines += [f"    {line}" for line in metrics_lines(step)]
    return "".join(line + "\n" for line in lines)


def metrics_lines(step: StepOutcome) -> list[str]:
    """A step's metrics as ``name value`` pairs, several on a line; none for a step that rewrites nothing."""
    if step.metrics is None:
        return []
    lines: list[str] = []
    for name, value in _flat("", encode(step.metrics)):
        pair = f"{name} {value}"
        if lines and len(lines[-1]) + len(pair) + 3 <= MAX_WIDTH:
            lines[-1] += f"   {pair}"
        else:
            lines.append(pair)
    return lines


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Dotted names and their values; what is not there, or false, is passed over."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{key}.", value)
        elif value is not None and value is not False:
            yield f"{prefix}{key}", f"{value:.1f}" if isinstance(value, float) else str(value)
