"""Every order in which our steps, a kill at each of them, and the steps of others can come; the promises in each state.

The promises are those of ``docs/promises.md``. Each scene says what others do; all orders are visited, none is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from tests.model import maintainer_process
from tests.model.lake_state import Commit, Event, Lake
from tests.model.maintainer_process import Process, State, day_ms, steps
from tests.model.other_writers_steps import Statement, moves

MAX_STATES = 400_000
MAX_RUNS_TO_CONVERGE = 5
FIRST = (("a", (1, 2, 3)), ("b", (4, 5)))


@dataclass(frozen=True, slots=True)
class Scene:
    """One state of everybody: the lake, our process (None when it was killed), and what others still do."""

    lake: Lake
    process: Process | None
    others: tuple[Statement, ...]
    kills_left: int

    def next(self) -> Iterator[Scene]:
        """Every scene that may follow."""
        if self.process is None:
            killed = self.lake.journal.count(Event("killed", ""))
            yield replace(self, process=Process(run=killed))
        else:
            for lake, process in steps((self.lake, self.process)):
                yield replace(self, lake=lake, process=process)
            if self.kills_left and self.process.at != "end":
                lake = self.lake.noted(Event("killed", ""))
                yield replace(self, lake=lake, process=None, kills_left=self.kills_left - 1)
        for place, statement in enumerate(self.others):
            rest = (*self.others[:place], *self.others[place + 1 :])
            for lake, after in moves(self.lake, statement):
                yield replace(self, lake=lake, others=rest if after is None else (*rest, after))


def first_lake() -> Lake:
    """Two small files, which the policy joins."""
    commits = tuple(Commit(((name, ()),), (), 0) for name, _ in FIRST)
    rows = frozenset(row for _, listed in FIRST for row in listed)
    return Lake(commits, FIRST, frozenset(name for name, _ in FIRST), expected=rows)


def explore(first: Scene, check: Callable[[Scene], None]) -> tuple[set[Scene], list[Scene]]:
    """Visit every scene once; returns all, and those after which nothing comes."""
    seen, todo, last = {first}, [first], []
    while todo:
        scene = todo.pop()
        check(scene)
        following = list(scene.next())
        if not following:
            last.append(scene)
        for after in following:
            if after not in seen:
                assert len(seen) < MAX_STATES, "the model is larger than was meant"
                seen.add(after)
                todo.append(after)
    return seen, last


def hold(scene: Scene) -> None:
    """What is promised at every moment."""
    lake = scene.lake
    # 2 and 3: a reader sees the rows that acknowledged statements of others left, whatever we do.
    assert lake.visible(lake.live()) == sorted(lake.expected), scene
    # 4: every file of a version that was the newest within the retention is there.
    now_ms = day_ms(lake.clock)
    for version in range(lake.head + 1):
        until = lake.log[version + 1].at if version < lake.head else lake.clock
        if now_ms - day_ms(until) <= 7 * 86_400_000:
            assert {name for name, _ in lake.live(version)} <= lake.storage, (version, scene)
    # 4: and no file that a rewrite of ours replaced is gone before that rewrite was proven.
    for version in lake.unproven_versions():
        assert {name for name, _ in lake.log[version].removes} <= lake.storage, (version, scene)
    # 6: at most one commit for each attempt, and none that was not written down before.
    stamps = [commit.stamp for commit in lake.log if commit.stamp is not None]
    assert len(stamps) == len(set(stamps)), scene
    assert set(stamps) <= {event.stamp for event in lake.journal if event.kind == "intent"}, scene
    # 6: what is written down is true.
    for event in lake.journal:
        if event.kind in ("result", "settled"):
            assert event.version == lake.version_of(event.stamp), (event, scene)


def converges(lake: Lake) -> None:
    """Killed or not, the next runs settle everything, and then there is nothing to do."""
    for run in range(100, 100 + MAX_RUNS_TO_CONVERGE):
        before = lake
        state: State = (lake, Process(run=run))
        while state[1].at != "end":
            state = next(steps(state))
        lake = state[0]
        hold(Scene(lake, None, (), 0))
        if lake == before:
            break
    else:
        raise AssertionError(f"{MAX_RUNS_TO_CONVERGE} runs did not come to an end: {lake}")
    open_intents = {event.stamp for event in lake.journal if event.kind == "intent"}
    assert open_intents == {event.stamp for event in lake.journal if event.kind in ("result", "settled")}, lake
    assert lake.unproven_versions() == (), lake


SCENES: dict[str, tuple[tuple[Statement, ...], int]] = {
    "an append and a delete": ((Statement("append", 10), Statement("delete", 2)), 1),
    "two deletes of one file": ((Statement("delete", 1), Statement("delete", 3)), 1),
    "a delete of a whole file": ((Statement("delete", 4), Statement("delete", 5)), 1),
    "somebody else's OPTIMIZE": ((Statement("compact"), Statement("delete", 2)), 1),
    "a RESTORE": ((Statement("delete", 2), Statement("restore")), 1),
    "time goes by": ((Statement("append", 10), Statement("tick"), Statement("tick")), 2),
    "a vacuum beside a delete": ((Statement("delete", 2), Statement("tick"), Statement("tick")), 1),
    "two kills": ((Statement("delete", 2),), 2),
}


@pytest.mark.parametrize("name", SCENES)
def test_the_promises_hold_in_every_order(name: str) -> None:
    others, kills = SCENES[name]
    seen, last = explore(Scene(first_lake(), Process(), others, kills), hold)
    assert len(seen) > 500
    lakes = {scene.lake for scene in last}
    for lake in lakes:
        converges(lake)
    landed = {commit.stamp for scene in seen for commit in scene.lake.log if commit.stamp is not None}
    assert landed, "no order let our commit land"


def _blind_try(lake: Lake, process: Process) -> State:
    """A commit that takes no notice of versions that came meanwhile."""
    assert process.new is not None
    removes = [key for key in process.now if key is not None]
    return lake.committed([process.new], removes, process.stamp), replace(process, at="result")


def _overwriting_try(lake: Lake, process: Process) -> State:
    """A commit in the place of the one that follows the version that was read."""
    return _blind_try(replace(lake, log=lake.log[: process.head + 1]), process)


def _carry_nothing(lake: Lake, process: Process) -> Process:
    """A new try with the files of now, in which nothing is deleted."""
    live = dict(lake.live())
    now = tuple((name, live[name]) if name in live else None for name, _ in process.sources)
    return replace(process, now=now, head=lake.head, at="try")


MUTANTS: dict[str, tuple[str, object, str]] = {
    # what is wrong: the step that has it, what it does instead, the scene in which it shows
    "no proof": ("_proof", lambda lake, process: replace(process, proven=True, at="intent"), "two kills"),
    "no look at newer versions": ("_tried", _blind_try, "two deletes of one file"),
    "a commit in the place of another": ("_tried", _overwriting_try, "an append and a delete"),
    "deletes are not carried over": ("_carried", _carry_nothing, "two deletes of one file"),
    "nothing is settled": ("_recover", lambda lake, proves: lake, "two kills"),
    "unproven versions are forgotten": ("unproven_versions", lambda lake: (), "time goes by"),
    "files count as older than they are": ("removed_at_ms", lambda at: 0, "time goes by"),
}


def _forget_what_was_derived() -> None:
    maintainer_process.facts_of.cache_clear()
    maintainer_process.plan_of.cache_clear()


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_model_finds(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, replacement, scene = MUTANTS[mutant]
    monkeypatch.setattr(maintainer_process, name, replacement)
    _forget_what_was_derived()
    with pytest.raises(AssertionError) as failure:
        test_the_promises_hold_in_every_order(scene)
    _forget_what_was_derived()
    assert "the model is larger" not in str(failure.value)
