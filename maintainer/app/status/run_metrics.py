"""What ``watch --metrics-port`` serves: counters of what runs did, and the state of each table as it was last seen.

The figures of tables are those that ``status -o prometheus`` writes. Whatever is of our own ledger is not counted.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from maintainer.app.planning.make_plan import PlannedTable
from maintainer.app.project_folders import Project
from maintainer.app.status.status_look import PastSteps, status_row
from maintainer.errors import ExitCode
from maintainer.model.plan.plan import is_place
from maintainer.model.product_version import __version__
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.history_rows import StatusRow
from maintainer.model.run.outcome import RunOutcome, StepOutcome, TableStatus
from maintainer.model.run.progress import (
    ProgressEvent,
    RunFinished,
    RunStarted,
    StepFinished,
    TableFinished,
    TableStarted,
)
from maintainer.report.run.outcome_text import WorkDone
from maintainer.report.status_documents import status_series
from maintainer.report.text_layout import printable

LABELS = ("table", "owner", "state")

_WORK = (
    ("removed", "rewritten", "rewrites replaced"),
    ("added", "written", "rewrites wrote"),
    ("deleted", "deleted", "left the storage"),
)
"""Figures of the work done, with the word and the sentence of their counters: each in files and in bytes."""

STEP_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 10_800.0)
"""Bounds of the histogram of steps."""


class RunMetrics:
    """Counts the events of runs and keeps the last look at each table; memory is bounded by the number of tables.

    Args:
        project: The project, for the steps of past runs.
    """

    def __init__(self, project: Project) -> None:
        # A second series for each counter says nothing here.
        disable_created_metrics()  # type: ignore[no-untyped-call] # the library is typed but for this
        self.registry = registry = CollectorRegistry()
        self._project = project
        self._tables = _TableFigures()
        self._started: set[str] = set()
        self._past, _ = PastSteps.read(project)
        registry.register(self._tables)
        info = Gauge("maintainer_info", "1; the version is the label.", ["version"], registry=registry)
        info.labels(__version__).set(1)
        counter = partial(Counter, registry=registry)
        self._runs = counter("maintainer_runs", "Runs that ended, by exit code.", ["exit_code"])
        for code in (ExitCode.OK, ExitCode.FINDINGS, ExitCode.VERIFICATION_FAILED):
            self._runs.labels(code.value)  # there from the beginning, so that an increase can be seen
        self._ended = counter("maintainer_run_tables", "Tables of runs, by how they ended.", ["status"])
        for status in TableStatus:
            self._ended.labels(status.value)
        self._steps = counter("maintainer_steps", "Steps that ended.", ["kind", "status"])
        self._step_seconds = Histogram(
            "maintainer_step_duration_seconds", "What steps took.", ["kind"], registry=registry, buckets=STEP_SECONDS
        )
        self._commits = counter("maintainer_commits", "Commits, by whether a proof held.", ["proof"])
        for proof in ("held", "not_held", "none"):
            self._commits.labels(proof)
        self._work = {
            f"{unit}_{done}": counter(f"maintainer_{word}_{unit}", f"{unit.title()} that {what}.")
            for done, word, what in _WORK
            for unit in ("files", "bytes")
        }
        self._running = Gauge("maintainer_running_tables", "Tables that are worked on now.", registry=registry)
        self._last_run = _LastRun()
        registry.register(self._last_run)

    def table_planned(self, table: PlannedTable, at_ms: int) -> None:
        """Take the state of a table that was just planned (milliseconds since 1970 UTC)."""
        self._tables.put(status_row(table, self._past.of(table)), at_ms)

    def round_began(self, names: Collection[str]) -> None:
        """Forget all tables but these."""
        self._tables.keep(names)

    def event(self, event: ProgressEvent) -> None:
        """Count an event of a run; returns at once."""
        match event:
            case RunStarted():
                self._started.clear()  # a run that failed as a whole did not say of each table that it ended
            case TableStarted() if not event.is_ledger:
                self._started.add(event.table)
            case StepFinished() if event.number:
                self._step(event.outcome)
            case TableFinished() if not (event.outcome.is_ledger or is_place(event.outcome)):
                self._ended.labels(event.outcome.status.value).inc()
            case RunFinished():
                self._run(event.outcome, event.at_ms)
        if isinstance(event, TableFinished):
            self._started.discard(event.outcome.ref.identifier)
        self._running.set(len(self._started))

    def finished(self) -> None:
        """Read the run that has just been recorded, for the states of tables at the next look."""
        self._past, _ = PastSteps.read(self._project)

    def _step(self, step: StepOutcome) -> None:
        self._steps.labels(step.kind.value, step.status.value).inc()
        self._step_seconds.labels(step.kind.value).observe(step.duration_seconds)
        for receipt in step.commits:
            proof = "none" if receipt.proof is None else "held" if receipt.proof.holds else "not_held"
            self._commits.labels(proof).inc()
        work = WorkDone((step,))
        for figure, counter in self._work.items():
            counter.inc(getattr(work, figure))

    def _run(self, outcome: RunOutcome, at_ms: int) -> None:
        code = exit_code(outcome).value
        self._runs.labels(code).inc()
        self._last_run.figures = (at_ms / 1000, code, outcome.duration_seconds)


class _LastRun(Collector):
    """The last run, as gauges without a sample while there was none: 0 would be a run in 1970 that ended well."""

    figures: tuple[float | None, ...] = (None, None, None)
    """When it ended, its exit code and what it took."""

    def collect(self) -> Iterable[Metric]:
        """Return the gauges; called by whoever reads the metrics, on a thread of the server."""
        names = (
            ("timestamp_seconds", "When a run of this watch last ended."),
            ("exit_code", "The exit code of that run."),
            ("duration_seconds", "What it took."),
        )
        for (name, help_text), value in zip(names, self.figures, strict=True):
            yield GaugeMetricFamily(f"maintainer_last_run_{name}", help_text, value)


class _TableFigures(Collector):
    """The last look at each table, as gauges."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, StatusRow] = {}
        self._at_ms: int | None = None

    def put(self, row: StatusRow, at_ms: int) -> None:
        with self._lock:
            self._rows[row.table] = row
            self._at_ms = at_ms

    def keep(self, names: Collection[str]) -> None:
        with self._lock:
            self._rows = {name: row for name, row in self._rows.items() if name in names}

    def collect(self) -> Iterable[Metric]:
        """Return the gauges; called by whoever reads the metrics, on a thread of the server."""
        with self._lock:
            rows, at_ms = tuple(self._rows.values()), self._at_ms
        for name, help_text, samples in status_series(rows):
            gauge = GaugeMetricFamily(name, help_text, labels=LABELS if name.endswith("_state") else LABELS[:2])
            for labels, value in samples:
                gauge.add_metric([printable(text) for text in labels.values()], value)
            yield gauge
        looked = GaugeMetricFamily("maintainer_status_timestamp_seconds", "When a table was last looked at.")
        if at_ms is not None:
            looked.add_metric((), at_ms / 1000)
        yield looked
