"""What is known of a table over time, from plans and outcomes, and its curves.

Every figure is one that a run read or wrote down: the table as a plan met it, as the check of a saved plan found it,
as the steps of a run met it, and as they left it. Outcomes of several runs are of one table also where its policy gave
it another name meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import groupby
from operator import attrgetter, itemgetter

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import ZOrderStep
from maintainer.model.plan.zorder_turn import LayoutFigures
from maintainer.model.run.outcome import RunOutcome, TableOutcome
from maintainer.model.table.table_facts import FilesSeen
from maintainer.report.document.blocks import Span
from maintainer.report.html.charts import line_chart
from maintainer.report.run.outcome_text import WorkDone
from maintainer.report.text_layout import moment, short_share
from maintainer.units import format_size

Spelled = Callable[[float], str]
"""How a figure is written."""

TableKey = Callable[[TablePlan], object | None]
"""What is equal for one table in the plans of several runs; None for a table that a run could not read."""

MAX_FIGURES_IN_WORDS = 8
"""A curve's description names its newest figures."""

MAX_POINTS = 20
"""A longer curve is drawn from every n-th figure, the newest always among them."""


@dataclass(frozen=True, slots=True)
class PastPoint:
    """A table as one run met it, or left it.

    ``small_files`` are those under the policy's ``minFileSize``; None where nobody counted.
    """

    at_ms: int
    num_files: int
    size_bytes: int
    small_files: int | None = None


LayoutPoint = tuple[int, LayoutFigures]
"""When, and how the files of a table with a Z-order lay then."""


@dataclass(frozen=True, slots=True)
class TableTimeline:
    """All that is known of a table over time, oldest first."""

    points: tuple[PastPoint, ...] = ()
    layout: tuple[LayoutPoint, ...] = ()


def recorded_key(table: TablePlan) -> object | None:
    """Return the table's id and its location as written; None where the run could not read it."""
    return None if table.observed is None else (table.observed.table_id, table.observed.location)


def past_of(runs: Sequence[tuple[Plan, RunOutcome]], key_of: TableKey = recorded_key) -> dict[str, TableTimeline]:
    """Return each table as every run met it and left it, by each identifier of a policy, in the order of time.

    A saved plan shows a table as it was when the plan was made. When it is applied the table is read again, and that
    is a point of its own. So is what the steps began with and what they left.

    Args:
        runs: The oldest first.
        key_of: Which tables of two plans are one.
    """
    timelines: dict[object, tuple[list[PastPoint], list[LayoutPoint]]] = {}
    keys: dict[str, object] = {}
    for plan, outcome in runs:
        ended = {table.ref: table for table in outcome.tables}
        drawn: set[object] = set()
        for table in plan.tables:
            key = key_of(table)
            if table.observed is None or key is None:
                continue
            keys[table.ref.identifier] = key
            if key in drawn:  # two policies of one table: a run touches it for neither
                continue
            drawn.add(key)
            points, layout = timelines.setdefault(key, ([], []))
            points += _points(plan, table, outcome, ended.get(table.ref))
            layout += _layouts(plan, table, outcome, ended.get(table.ref))
    for points, layout in timelines.values():
        points.sort(key=attrgetter("at_ms"))
        layout.sort(key=itemgetter(0))
    known = {key: TableTimeline(_each_once(points), tuple(layout)) for key, (points, layout) in timelines.items()}
    return {name: known[key] for name, key in keys.items()}


def _points(plan: Plan, table: TablePlan, outcome: RunOutcome, ended: TableOutcome | None) -> list[PastPoint]:
    seen = table.observed
    assert seen is not None
    met = PastPoint(plan.created_at_ms, seen.num_files, seen.size_bytes, seen.small_files)
    points = [met]
    if table.checked is not None:
        points.append(_of_look(table.checked))
    if ended is None or not any(step.commits for step in ended.steps):
        return points
    first, last = ended.files_before, ended.files_after
    if first is not None and last is not None:
        return [*points, _of_look(first), _of_look(last)]
    # Whatever ended the steps, it took the figures with it: the commits alone say what was done.
    work = WorkDone(ended.steps)
    at_ms = max(outcome.started_at_ms + round(outcome.duration_seconds * 1000), met.at_ms + 1)
    num_files = met.num_files + work.files_added - work.files_removed
    size_bytes = met.size_bytes + work.bytes_added - work.bytes_removed
    return [*points, PastPoint(at_ms, num_files, size_bytes)]


def _of_look(seen: FilesSeen) -> PastPoint:
    return PastPoint(seen.at_ms, seen.num_files, seen.size_bytes)


def _each_once(points: Sequence[PastPoint]) -> tuple[PastPoint, ...]:
    """Leave out what says no more than its neighbours: a table that did not change between two looks."""
    shown: list[PastPoint] = []
    for _, same in groupby(points, key=lambda point: (point.num_files, point.size_bytes)):
        first, *others = same
        shown += [first, *others[-1:]]
    return tuple(shown)


def _layouts(plan: Plan, table: TablePlan, outcome: RunOutcome, ended: TableOutcome | None) -> Iterator[LayoutPoint]:
    turns = (step.planned_turn for step in table.steps if isinstance(step, ZOrderStep) and step.planned_turn)
    before = next((turn.before for turn in turns), None)
    changes = [step.layout_change for step in (ended.steps if ended is not None else ()) if step.layout_change]
    if before is not None:
        yield plan.created_at_ms, before
    elif changes:
        yield outcome.started_at_ms, changes[0].before
    if changes:
        yield outcome.started_at_ms + round(outcome.duration_seconds * 1000), changes[-1].after


def table_curves(past: TableTimeline, tz: tzinfo) -> tuple[Span, ...]:
    """Return all curves of a table that have two points or more, those of its layout last."""
    unindexed = [(at_ms, lay.unindexed_ratio) for at_ms, lay in past.layout]
    small = [(point.at_ms, point.small_files) for point in past.points if point.small_files is not None]
    return (
        *files_curve(past, tz),
        *_curve([(point.at_ms, point.size_bytes) for point in past.points], "bytes", _bytes, tz),
        *_curve(small, "files under minFileSize when planned", _whole, tz),
        *layout_curve(past, tz),
        *_curve([(at_ms, lay.overlap_depth) for at_ms, lay in past.layout], "files over one point", _decimal, tz),
        *_curve(unindexed, "bytes not on the curve", short_share, tz),
    )


def files_curve(past: TableTimeline, tz: tzinfo) -> Iterator[Span]:
    """Yield a table's number of files over time, with two points or more."""
    yield from _curve([(point.at_ms, point.num_files) for point in past.points], "files", _whole, tz)


def layout_curve(past: TableTimeline, tz: tzinfo) -> Iterator[Span]:
    """Yield what a query on the Z-order columns reads over time, with two points or more."""
    yield from _curve([(at_ms, lay.files_read) for at_ms, lay in past.layout], "files that a query reads", _decimal, tz)


_whole, _decimal = "{:,.0f}".format, "{:,.1f}".format


def _bytes(value: float) -> str:
    return format_size(round(value))


def _curve(figures: Sequence[tuple[int, float]], what: str, spelled: Spelled, tz: tzinfo) -> Iterator[Span]:
    if len(figures) < 2:
        return
    every = -(-(len(figures) - 1) // (MAX_POINTS - 1))
    points = [(float(at_ms), value) for at_ms, value in reversed(figures[::-every][:MAX_POINTS])]
    words = ", ".join(spelled(value) for _, value in figures[-MAX_FIGURES_IN_WORDS:])
    chart = line_chart(points, f"{what} over time", f"oldest first: {words}")
    first, last = spelled(figures[0][1]), spelled(figures[-1][1])
    change = f"{what}: {first} \u2192 {last}" if first != last else f"{what}: {last}"
    yield Span(f"{change}, {_span(moment(figures[0][0], tz), moment(figures[-1][0], tz))}", drawing=chart)


def _span(first: datetime, last: datetime) -> str:
    """Print the days that a curve spans: ``24 Nov``, ``24 to 25 Nov``, ``24 Nov to 3 Dec``."""
    if first.date() == last.date():
        return f"{last:%-d %b}"
    same_month = (first.year, first.month) == (last.year, last.month)
    return f"{first:%-d}{'' if same_month else f'{first: %b}'} to {last:%-d %b}"


TableRuns = list[tuple[RunOutcome, TableOutcome]]
"""How each run ended for a table, the oldest first; at least one. The last one has the table's newest name."""


def table_runs(runs: Sequence[tuple[Plan, RunOutcome]], key_of: TableKey) -> list[TableRuns]:
    """Return every table of some runs once, in the order in which they were first met.

    A table that no run could read is told by its name. A table that was dropped, and whose name another one has now, is
    left out: the list is of tables that may be there.

    Args:
        runs: The oldest first.
        key_of: Which tables of two plans are one.
    """
    keys: dict[str, object] = {}
    ends: dict[object, TableRuns] = {}
    unread: TableRuns = []
    for plan, outcome in runs:
        planned = {table.ref: table for table in plan.tables}
        met: set[object] = set()
        for table in outcome.tables:
            in_plan = planned.get(table.ref)
            key = None if in_plan is None else key_of(in_plan)
            if key is None:
                unread.append((outcome, table))
                continue
            keys[table.ref.identifier] = key
            if key not in met:  # two policies of one table: a run touches it for neither
                met.add(key)
                ends.setdefault(key, []).append((outcome, table))
    # What could not be read is of the table that has had the name last.
    for end in unread:
        ends.setdefault(keys.get(end[1].ref.identifier, end[1].ref), []).append(end)
    order = {id(outcome): number for number, (_, outcome) in enumerate(runs)}
    for of_table in ends.values():
        of_table.sort(key=lambda end: order[id(end[0])])
    return [of_table for key, of_table in ends.items() if keys.get(of_table[-1][1].ref.identifier, key) == key]
