"""Fit a plan into budgets: the best rewrites stay, the others wait with their place in the queue.

Property changes and vacuum rewrite nothing and always stay. The caller passes what is learned from past runs.

How long a plan's rewrites are expected to take: by the speed of past runs, and how far that was off before.

A speed is known for a kind of step in a lane, else for the kind. What a run took against what the runs before it made
one expect is its miss. The range of the last misses is the range that is said. A first guess says that it is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from maintainer.model.plan.plan import LeftAlone, Plan, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import (
    Batch,
    BatchedStep,
    Bin,
    Step,
    ZOrderStep,
)
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.budget.other_writers import lost_ratio
from maintainer.planning.budget.ranking import (
    DEFAULT_BYTES_PER_SECOND,
    Candidate,
    Choice,
    Spent,
    Timed,
    Waiting,
    choose,
    pace_of,
)
from maintainer.policy.project.project_settings import Budget, Budgets
from maintainer.units import count_of, format_size

_DAY_MS = 86_400_000


@dataclass(slots=True)
class Learned:
    """What past runs say. Times are milliseconds since 1970 UTC.

    ``commit_seconds`` is what each commit of a kind of step takes whatever its size, ``bytes_per_second`` what it
    rewrites beyond that; both also by kind and lane, ``compact/local``. ``num_commits`` were timed, and ``misses`` say
    how far that was off, see ``expected_time``.
    """

    bytes_per_second: dict[str, float] = field(default_factory=dict)
    yielded: dict[str, tuple[int, int]] = field(default_factory=dict)
    waiting_since_ms: dict[str, int] = field(default_factory=dict)
    commit_seconds: dict[str, float] = field(default_factory=dict)
    num_commits: int = 0
    misses: tuple[float, ...] = ()

    def seconds_of(self, kind: str, size_bytes: int, *, num_commits: int = 1) -> float:
        """Return how long a kind of step takes for so many bytes in so many commits."""
        rate = self.bytes_per_second.get(kind, DEFAULT_BYTES_PER_SECOND)
        return self.commit_seconds.get(kind, 0.0) * num_commits + size_bytes / rate


def within_budget(plan: Plan, budgets: Budgets, learned: Learned) -> tuple[Plan, Choice]:
    """Return the plan with those rewrites that the budgets have room for, and what was chosen.

    A table's own budget cuts its rewrites, bin by bin; those of the run and of owners take a table's rewrites whole or
    not at all. Our own ledger is no table of the user's: it has no part in a budget.

    Args:
        plan: With everything that could be done.
        budgets: Of the run, of owners and of single tables.
        learned: What past runs say.
    """
    tables = [
        table if table.is_ledger else cut_to(table, budgets.of_table(table.ref), learned) for table in plan.tables
    ]
    candidates = [
        candidate
        for table in tables
        if not table.is_ledger and (candidate := candidate_of(table, plan.created_at_ms, learned)) is not None
    ]
    choice = choose(candidates, budgets)
    waiting = {entry.candidate.name: entry for entry in choice.waiting}
    fitted = tuple(
        _waits(table, waiting[table.ref.identifier], len(choice.waiting)) if table.ref.identifier in waiting else table
        for table in tables
    )
    return replace(plan, tables=fitted), choice


def cut_to(table: TablePlan, budget: Budget, learned: Learned) -> TablePlan:
    """Return the table with those bins of its rewrites that its own budget has room for, in their order.

    A bin that does not fit is passed over and the next is tried. A turn of incremental Z-order is one whole.
    """
    if not budget.bounded:
        return table
    room = _Room(budget, learned)
    steps = [fitted for step in table.steps if (fitted := room.fit(step)) is not None]
    if not room.num_left:
        return table
    text = f"waits for the next run: the table's own budget has no room for {format_size(room.left_bytes)} more"
    if room.too_large_bytes:
        text += f"; {format_size(room.too_large_bytes)} of it do not fit until that budget is larger"
    over_budget = LeftAlone(Reason(ReasonCode.OVER_BUDGET, text), room.num_left, room.left_bytes)
    return replace(table, steps=tuple(steps), left_alone=(*table.left_alone, over_budget))


@dataclass(slots=True)
class _Room:
    """What is left of one table's budget, and what did not fit: files and bytes, and those of bins above all of it."""

    budget: Budget
    learned: Learned
    spent: Spent = Spent()  # noqa: RUF009 (frozen)
    num_left: int = 0
    left_bytes: int = 0
    too_large_bytes: int = 0

    def fit(self, step: Step) -> Step | None:
        """Return the step with the bins that fit; None if none does, the step itself if it rewrites nothing."""
        if not isinstance(step, BatchedStep):
            return step
        if isinstance(step, ZOrderStep) and step.settings is not None:
            return step if self._takes(step.kind, step.bins) else None
        batches = []
        for batch in step.batches:
            bins = tuple(bin_ for bin_ in batch.bins if self._takes(step.kind, [bin_]))
            if bins:
                batches.append(replace(batch, bins=bins))
        return replace(step, batches=tuple(batches)) if batches else None

    def _takes(self, kind: str, bins: Sequence[Bin]) -> bool:
        size, files = sum(bin_.size_bytes for bin_ in bins), sum(len(bin_.files) for bin_ in bins)
        # What a commit takes by itself is counted with the first bin: the others go into the same one, or a few more.
        seconds = self.learned.seconds_of(kind, size, num_commits=0 if self.spent.num_files else 1)
        alone = Spent(size, files, seconds)
        if (self.spent + alone).exceeds(self.budget):
            self.num_left += files
            self.left_bytes += size
            if alone.exceeds(self.budget):
                self.too_large_bytes += size
            return False
        self.spent += alone
        return True


def candidate_of(table: TablePlan, now_ms: int, learned: Learned) -> Candidate | None:
    """Return a table's rewrites as ranking sees them; None for a table without any."""
    rewrites = table.rewrites
    if not rewrites:
        return None
    name = table.ref.identifier
    files = [file for step in rewrites for file in step.files]
    added = sum(step.num_files_added for step in rewrites)
    seconds = sum(learned.seconds_of(step.kind, batch.size_bytes) for step in rewrites for batch in step.batches)
    since = learned.waiting_since_ms.get(name)
    return Candidate(
        name=name,
        owner=table.owner,
        files_fewer=max(0, len(files) - added),
        deleted_rows=sum(file.deleted_records for file in files),
        size_bytes=sum(step.size_bytes for step in rewrites),
        num_files=len(files),
        seconds=seconds,
        conflict_ratio=expected_loss(table, now_ms, learned),
        waiting_days=0.0 if since is None else max(0.0, (now_ms - since) / _DAY_MS),
        layout_files=sum(step.num_files for step in rewrites if step.order_columns),
    )


def expected_loss(table: TablePlan, now_ms: int, learned: Learned) -> float:
    """Return the share of a table's rewrites, 0 to 1, that is expected to be lost to other writers.

    What their rhythm says counts as one try; each rewrite of ours that was tried counts as much. So a single lost race
    is no proof that all are lost, and a table whose writers never touch what we rewrite is soon believed.

    Args:
        table: With its steps and the rhythm of its writers.
        now_ms: When the first rewrite begins, milliseconds since 1970 UTC.
        learned: What past runs say.
    """
    work = [
        (learned.seconds_of(step.kind, batch.size_bytes), batch.size_bytes)
        for step in table.rewrites
        for batch in step.batches
    ]
    if not work:
        return 0.0
    tries, lost = learned.yielded.get(table.ref.identifier, (0, 0))
    return (lost + lost_ratio(table.writers, now_ms, work)) / (tries + 1)


def expected_losses(plan: Plan, learned: Learned) -> dict[TableRef, float]:
    """Return `expected_loss` of every table that is rewritten, were it the first."""
    ratios = {table.ref: expected_loss(table, plan.created_at_ms, learned) for table in plan.tables if table.steps}
    return {ref: ratio for ref, ratio in ratios.items() if ratio > 0}


def _waits(table: TablePlan, waiting: Waiting, total: int) -> TablePlan:
    candidate = waiting.candidate
    days = f", for {candidate.waiting_days:.0f} days now" if candidate.waiting_days >= 1 else ""
    size = format_size(candidate.size_bytes)
    text = f"waits: {waiting.budget} has no room for {size}; place {waiting.place:,} of {total:,} in the queue{days}"
    if waiting.alone:
        files = count_of(candidate.num_files, "file")
        text = (
            f"waits{days}: its {size} in {files} alone are more than {waiting.budget}; no run takes them until that is "
        )
        text += "larger, or `budget.tables` in maintainer.yml lets a run take a part"
    over_budget = LeftAlone(Reason(ReasonCode.OVER_BUDGET, text), candidate.num_files, candidate.size_bytes)
    steps = tuple(step for step in table.steps if not isinstance(step, BatchedStep))
    return replace(table, steps=steps, left_alone=(*table.left_alone, over_budget))


MAX_MISSES = 10
"""Newest runs whose misses count: machines and tables change."""

MIN_MISSES = 3
"""With fewer nobody can say how far an estimate is off."""


@dataclass(frozen=True, slots=True)
class ExpectedTime:
    """Seconds that a plan's rewrites take one by one, and what that rests on.

    ``least_seconds`` and ``most_seconds`` are None for a first guess. ``num_commits`` were timed. ``misses`` are the
    least and the greatest of the times that past runs took, as multiples of what was expected of them.
    """

    seconds: float
    num_commits: int
    least_seconds: float | None = None
    most_seconds: float | None = None
    misses: tuple[float, float] | None = None


def speed_key(kind: str, lanes: Sequence[str]) -> str:
    """Return what a speed is remembered by: ``compact/local``, or the kind alone where lanes are mixed or unknown."""
    return f"{kind}/{lanes[0]}" if len(lanes) == 1 else kind


def kind_of(key: str) -> str:
    """Return the kind of step of a speed's key."""
    return key.partition("/")[0]


def added_up(runs: Sequence[Mapping[str, Timed]]) -> dict[str, Timed]:
    """Add up what was timed, by key and by kind."""
    sums: dict[str, Timed] = {}
    for run in runs:
        _add(sums, run)
    return sums


def _add(sums: dict[str, Timed], run: Mapping[str, Timed]) -> None:
    for key, timing in run.items():
        for name in dict.fromkeys((key, kind_of(key))):
            sums[name] = sums.get(name, Timed()) + timing


def misses_of(runs: Sequence[Mapping[str, Timed]]) -> tuple[float, ...]:
    """Return what runs took as multiples of what the runs before them made one expect, newest first.

    Args:
        runs: What each run timed, newest first.
    """
    sums: dict[str, Timed] = {}
    misses: list[float] = []
    for run in reversed(runs):
        expected = took = 0.0
        for key, timing in run.items():
            known = sums.get(key) or sums.get(kind_of(key))
            if known is not None and known.seconds > 0:
                pace = pace_of(known)
                expected += pace.commit_seconds * timing.num_commits + timing.size_bytes / pace.bytes_per_second
                took += timing.seconds
        if expected > 0:
            misses.append(took / expected)
        _add(sums, run)
    return tuple(reversed(misses))[:MAX_MISSES]


def expected_time(plan: Plan, learned: Learned) -> ExpectedTime | None:
    """Return how long the plan's rewrites take at the speed of past runs, one by one; None without such runs."""
    batches = [(_key_of(step.kind, batch, learned), batch) for step in plan.rewrites for batch in step.batches]
    known = [key for key, _ in batches if key in learned.bytes_per_second]
    if not known:
        return None
    seconds = sum(learned.seconds_of(key, batch.size_bytes) for key, batch in batches)
    if len(learned.misses) < MIN_MISSES or len(known) < len(batches):
        return ExpectedTime(seconds, learned.num_commits)
    least, most = min(learned.misses), max(learned.misses)
    return ExpectedTime(seconds, learned.num_commits, seconds * least, seconds * most, (least, most))


def _key_of(kind: str, batch: Batch, learned: Learned) -> str:
    key = speed_key(kind, sorted({bin_.lane.lane.value for bin_ in batch.bins}))
    return key if key in learned.bytes_per_second else kind
