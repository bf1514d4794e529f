"""Rank rewrites by benefit for each byte, and estimate how long each takes.

A score is absolute: it does not depend on other tables, so a plan can be compared with yesterday's. Waiting raises it,
so every table gets its turn. A budget is a hard limit: what does not fit is passed over, the next rewrite is tried,
and each waiting table gets its place in the queue. ``autocomp_scores`` is the score of OpenHouse's AutoComp for
comparison; it is relative to the other candidates of the same night.

A rewrite takes a fixed time for each commit and a time for each byte. A single rate would be wrong: learned from small
tables it is too slow for large ones, learned from large tables it makes small ones free. Both figures are fitted to
past steps by least squares, from five sums for each kind of step, so that runs can be added up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from operator import add
from typing import assert_never

from maintainer.policy.project.project_settings import Budget, Budgets, Scorer

STARTUP_BYTES = 32 * 1024 * 1024
"""What a rewrite costs before it has read anything, as bytes: a small table is not free."""

ROWS_PER_OPEN = 250_000
"""So many soft-deleted rows cost a reader about as much as opening one more file."""

LAYOUT_SHARE = 0.5
"""A file that is put in order is worth so many file opens: a query that filters leaves about every second one out."""

LEAST_BENEFIT = 1.0
"""What a policy asks for is worth one file open at least: worth nothing, it would never be chosen, however long it
waits."""

AGEING_PER_DAY = 0.1
"""A table that has waited ten days counts twice."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table's rewrites as ranking sees them.

    Args:
        name: The table's identifier.
        owner: Whose budget it is taken from; None for nobody's.
        files_fewer: Files that a reader has less to open, from the exact bins.
        deleted_rows: Soft-deleted rows that are purged.
        size_bytes: Bytes rewritten.
        num_files: Files rewritten.
        seconds: How long it is expected to take.
        conflict_ratio: Probability, 0 to 1, that another writer wins and the work is lost.
        waiting_days: Days since it was first passed over, 0 for never.
        layout_files: Files that are put in order: by Z-order, by clustering, or sorted.
    """

    name: str
    owner: str | None
    files_fewer: int
    deleted_rows: int
    size_bytes: int
    num_files: int
    seconds: float = 0.0
    conflict_ratio: float = 0.0
    waiting_days: float = 0.0
    layout_files: int = 0

    @property
    def spent(self) -> Spent:
        """What it takes from a budget."""
        return Spent(self.size_bytes, self.num_files, self.seconds)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A candidate that did not fit: its place among those that wait, from 1, and which budget it exceeds.

    ``alone`` says that it exceeds that budget by itself: waiting does not help it.
    """

    candidate: Candidate
    place: int
    budget: str
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """Candidates that fit, the best first, and those that wait, the best first."""

    chosen: tuple[Candidate, ...]
    waiting: tuple[Waiting, ...]


def score(candidate: Candidate) -> float:
    """Return the benefit for each byte, in file opens saved a GiB; 0 where it is certain to be lost."""
    saved = candidate.files_fewer + candidate.deleted_rows / ROWS_PER_OPEN + candidate.layout_files * LAYOUT_SHARE
    benefit = max(LEAST_BENEFIT, saved)
    cost_gib = (candidate.size_bytes + STARTUP_BYTES) / 2**30
    ageing = 1 + AGEING_PER_DAY * candidate.waiting_days
    return benefit * (1 - candidate.conflict_ratio) * ageing / cost_gib


def choose(
    candidates: Sequence[Candidate], budgets: Budgets, *, by_score: Callable[[Candidate], float] | None = None
) -> Choice:
    """Take the best candidates that fit into every budget; pass over what does not fit.

    The order of candidates does not matter: equal scores are taken by name. Each candidate is taken whole or not.

    Args:
        candidates: What could be done.
        budgets: Of the run and of owners.
        by_score: The higher, the earlier; what the budgets' scorer says if None.
    """
    by_score = by_score or scorer_of(budgets.scorer, candidates)
    nothing = spent = Spent()
    owners: dict[str | None, Spent] = {}
    chosen: list[Candidate] = []
    waiting: list[Waiting] = []
    for candidate in sorted(candidates, key=lambda each: (-by_score(each), each.name)):
        share = owners.get(candidate.owner, nothing)
        alone = _exceeded(candidate, budgets, nothing, nothing)
        exceeded = alone or _exceeded(candidate, budgets, spent, share)
        if exceeded:
            waiting.append(Waiting(candidate, len(waiting) + 1, exceeded, alone is not None))
            continue
        spent, owners[candidate.owner] = spent + candidate.spent, share + candidate.spent
        chosen.append(candidate)
    return Choice(tuple(chosen), tuple(waiting))


def _exceeded(candidate: Candidate, budgets: Budgets, spent: Spent, share: Spent) -> str | None:
    """Return which budget a candidate would exceed, the run's or its owner's; tables of nobody share none."""
    if (why := (spent + candidate.spent).exceeds(budgets.run)) is not None:
        return why
    why = (share + candidate.spent).exceeds(budgets.of_owner(candidate.owner))
    return None if why is None else f"{why} of {candidate.owner}"


def scorer_of(scorer: Scorer, candidates: Sequence[Candidate]) -> Callable[[Candidate], float]:
    """Return the function that scores a candidate. AutoComp's is relative to all; its cost is the expected time."""
    match scorer:
        case Scorer.BENEFIT:
            return score
        case Scorer.AUTOCOMP:
            scores = autocomp_scores(
                {candidate.name: (float(candidate.files_fewer), candidate.seconds) for candidate in candidates}
            )
            return lambda candidate: scores[candidate.name]
        case _:
            assert_never(scorer)


@dataclass(frozen=True, slots=True)
class Spent:
    """What was taken from a budget, or would be: bytes, files and seconds."""

    size_bytes: int = 0
    num_files: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*map(add, astuple(self), astuple(other)))

    def exceeds(self, budget: Budget) -> str | None:
        """Return the first bound that is broken, in words."""
        bounds = (
            ("bytes", self.size_bytes, budget.size_bytes),
            ("files", self.num_files, budget.num_files),
            ("time", self.seconds, budget.seconds),
        )
        broken = (f"the budget of {what}" for what, spent, most in bounds if most is not None and spent > most)
        return next(broken, None)


GAIN_WEIGHT, COST_WEIGHT = 0.7, 0.3


def autocomp_scores(gain_and_cost: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Return AutoComp's scores as OpenHouse computes them: weighted min-max over all candidates of this run.

    Args:
        gain_and_cost: Files reduced and compute cost, by name.
    """
    if not gain_and_cost:
        return {}

    def scaled(values: Sequence[float]) -> list[float]:
        low, high = min(values), max(values)
        return [0.0 if high == low else (value - low) / (high - low) for value in values]

    gains = scaled([gain for gain, _ in gain_and_cost.values()])
    costs = scaled([cost for _, cost in gain_and_cost.values()])
    return {
        name: GAIN_WEIGHT * gain - COST_WEIGHT * cost
        for name, gain, cost in zip(gain_and_cost, gains, costs, strict=True)
    }


DEFAULT_BYTES_PER_SECOND = 20 * 1024 * 1024
"""Until steps of different sizes have been timed: reading, writing and proving on a small machine."""

FASTEST_BYTES_PER_SECOND = 1024 * 1024 * 1024
"""No byte is believed to cost less: steps whose time seems to fall with their size say nothing of larger ones."""

_LEAST_SPREAD = 1e-6
"""Sizes that differ by less, as a share of their squares, are the same size."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Past steps of one kind as sums over their commits.

    ``squares`` is the sum of the squares of the commits' bytes, ``products`` that of bytes times seconds. A step of
    several commits counts as so many equal ones.
    """

    num_commits: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    @staticmethod
    def of_step(num_commits: int, size_bytes: int, seconds: float) -> Timed:
        """Sum up one step: its commits (at least one), the bytes they took and the seconds of the whole."""
        squares, products = float(size_bytes) ** 2 / num_commits, size_bytes * seconds / num_commits
        return Timed(num_commits, size_bytes, seconds, squares, products)

    def __add__(self, other: Timed) -> Timed:
        return Timed(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds for each commit (0 or more), and bytes a second beyond that."""

    commit_seconds: float
    bytes_per_second: float


def pace_of(timed: Timed) -> Pace:
    """Fit a pace to past steps. For those steps together it always gives the time that they took.

    Args:
        timed: At least one commit, with bytes and time.
    """
    number, size, seconds = timed.num_commits, timed.size_bytes, timed.seconds
    spread = number * timed.squares - float(size) ** 2
    if number > 1 and spread > _LEAST_SPREAD * number * timed.squares:
        for_byte = (number * timed.products - size * seconds) / spread
        for_byte = max(for_byte, 1 / FASTEST_BYTES_PER_SECOND)
    else:
        for_byte = 1 / DEFAULT_BYTES_PER_SECOND
    rest = seconds - for_byte * size
    if rest < 0:
        return Pace(0.0, size / seconds)
    return Pace(rest / number, 1 / for_byte)
