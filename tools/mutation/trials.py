"""Run the tests of each mutant's lines in a process of its own, forked from one that has collected all tests.

First all tests run once, unchanged, to learn which lines each of them runs and how long it takes. A mutant gets the
tests of its lines, first those that run little else, up to the first failure. A failure or the time limit kills it.
"""

from __future__ import annotations

import ast
import contextlib
import faulthandler
import os
import pickle
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from typing import TextIO

import pytest
from coverage import Coverage

from tools.mutation.mutants import Mutant
from tools.mutation.transplant import NoTransplantError, transplant

LEAST_SECONDS = 30.0
TIMES_SLOWER = 20
"""A mutant's tests may take so many times the processor time that they need unchanged, and ``LEAST_SECONDS`` at least:
wide enough for a busy machine, and only a loop without an end ever gets there."""

SLOW_SECONDS = 0.25
"""A test that needs more is not asked: simulations of many nights and thousands of examples notice much, and say little
about where."""


class Fate(Enum):
    """What became of a mutant; the number is the exit status of its process."""

    SURVIVED = 0
    KILLED = 1
    NOT_RUN = 3
    TIMED_OUT = 4


KILLED = (Fate.KILLED, Fate.TIMED_OUT)


@dataclass
class Learned:
    """Which tests run which lines of the files, by their places, and how long each takes."""

    tests_by_line: dict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[int, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def tests_of(self, mutant: Mutant, *, everywhere: bool) -> list[int]:
        """Return the tests that run a mutant's lines, first those that run little else."""
        first, last = mutant.lines
        tests: set[int] = set()
        for (file, line), runs in self.tests_by_line.items():
            if file == mutant.file and (everywhere or first <= line <= last):
                tests |= runs
        quick = [place for place in tests if self.seconds[place] <= SLOW_SECONDS]
        return sorted(quick, key=lambda place: (self.num_lines[place], self.seconds[place], place))

    @cached_property
    def num_lines(self) -> Counter[int]:
        """How many lines each test runs: one that runs few is about them."""
        return Counter(test for tests in self.tests_by_line.values() for test in tests)


class Trials:
    """A plugin of pytest that runs mutants in the place of the tests."""

    def __init__(self, root: Path, mutants: Sequence[Mutant], jobs: int, report: Callable[[str], None]) -> None:
        self._root, self._mutants, self._jobs, self._report = root, mutants, jobs, report
        self._trees = {mutant.file: ast.parse((root / mutant.file).read_text(encoding="utf-8")) for mutant in mutants}
        self.fates: dict[Mutant, Fate] = {}
        self.failed: list[str] = []
        self.num_tests = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Learn, then run every mutant."""
        self.num_tests = len(session.items)
        started = time.monotonic()
        learned = self._learn(session)
        self.failed = learned.failed
        slow = sum(seconds > SLOW_SECONDS for seconds in learned.seconds.values())
        took = time.monotonic() - started
        self._report(
            f"{len(session.items):,} tests ran unchanged in {took:.0f} s, {slow} of them are slow and not asked"
        )
        if not learned.failed:
            self._run_all(session, learned)
        return True

    def _learn(self, session: pytest.Session) -> Learned:
        """Run all tests unchanged, shared out among processes."""
        with tempfile.TemporaryDirectory() as folder:
            parts = [list(range(start, len(session.items), self._jobs)) for start in range(self._jobs)]
            children = []
            for number, part in enumerate(parts):
                result = Path(folder, str(number))
                child = _forked(partial(self._learn_part, session, part, result))
                children.append((child, result))
            learned = Learned()
            for child, result in children:
                os.waitpid(child, 0)
                lines, seconds, failed = pickle.loads(result.read_bytes())
                for key, tests in lines.items():
                    learned.tests_by_line[key] |= tests
                learned.seconds |= seconds
                learned.failed += failed
        return learned

    def _learn_part(self, session: pytest.Session, part: Sequence[int], result: Path) -> int:
        watched = Coverage(data_file=None, config_file=False, include=[str(self._root / file) for file in self._trees])
        seconds: dict[int, float] = {}
        failed = []
        watched.start()
        for place, following in zip(part, [*part[1:], None], strict=True):
            watched.switch_context(str(place))
            before, started = session.testsfailed, time.process_time()
            _run_test(session, place, following)
            seconds[place] = time.process_time() - started
            if session.testsfailed > before:
                failed.append(session.items[place].nodeid)
        watched.stop()
        lines: dict[tuple[str, int], set[int]] = {}
        data = watched.get_data()
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                name = Path(file).relative_to(self._root).as_posix()
                lines[name, line] = {int(context) for context in contexts if context}
        result.write_bytes(pickle.dumps((lines, seconds, failed)))
        return 0

    def _run_all(self, session: pytest.Session, learned: Learned) -> None:
        waiting = list(reversed(self._mutants))
        running: dict[int, tuple[Mutant, float]] = {}
        while waiting or running:
            while waiting and len(running) < self._jobs:
                mutant = waiting.pop()
                tests = learned.tests_of(mutant, everywhere=_is_outside_functions(mutant, self._trees[mutant.file]))
                limit = max(LEAST_SECONDS, TIMES_SLOWER * sum(learned.seconds[place] for place in tests))
                child = _forked(partial(self._run_one, session, mutant, tests))
                running[child] = (mutant, time.monotonic() + limit)
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended in running:
                mutant, _ = running.pop(ended)
                self._note(mutant, _fate(status))
            for child, (mutant, deadline) in list(running.items()):
                if time.monotonic() > deadline:
                    os.killpg(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    del running[child]
                    self._note(mutant, Fate.TIMED_OUT)
            if not ended:
                time.sleep(0.005)

    def _note(self, mutant: Mutant, fate: Fate) -> None:
        self.fates[mutant] = fate
        if fate in (Fate.SURVIVED, Fate.NOT_RUN):
            self._report(f"{fate.name.lower()}: {mutant.file}:{mutant.line}: {mutant.change}")
        if len(self.fates) % 100 == 0:
            self._report(f"{len(self.fates):,} of {len(self._mutants):,} mutants")

    def _run_one(self, session: pytest.Session, mutant: Mutant, tests: Sequence[int]) -> int:
        try:
            transplant(mutant, self._trees[mutant.file])
        except NoTransplantError as error:
            print(f"{mutant.file}:{mutant.line}: {error}", file=_screen, flush=True)
            return Fate.NOT_RUN.value
        except Exception:  # a value that cannot even be made, as an import would fail
            return Fate.KILLED.value
        for place, following in zip(tests, [*tests[1:], None], strict=True):
            _run_test(session, place, following)
            if session.testsfailed:
                return Fate.KILLED.value
        return Fate.SURVIVED.value


def _run_test(session: pytest.Session, place: int, following: int | None) -> None:
    item = session.items[place]
    nextitem = None if following is None else session.items[following]
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)


_screen: TextIO = sys.stderr


def screen() -> TextIO:
    """Return where progress is written, which the silence of the tests does not reach."""
    return _screen


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Send what pytest, the tests and their processes print to nowhere within the block."""
    global _screen
    _screen = os.fdopen(os.dup(1), "w")
    descriptors = os.dup(1), os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, descriptor in enumerate(descriptors, start=1):
            os.dup2(descriptor, number)


def _forked(work: Callable[[], int]) -> int:
    """Run work in a process and group of its own, which writes nothing; return its id."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        os.setpgid(0, 0)
        faulthandler.disable()
        status = work()
    finally:
        os._exit(status)


def _fate(status: int) -> Fate:
    code = os.waitstatus_to_exitcode(status)
    return Fate(code) if code in (0, 1, 3) else Fate.KILLED


def _is_outside_functions(mutant: Mutant, tree: ast.Module) -> bool:
    """Whether a change is in what runs when the module is imported: values, defaults of fields and of arguments."""
    node: ast.AST = tree
    for field_name, place in mutant.path:
        if isinstance(node, ast.FunctionDef):
            return field_name == "args"
        value = getattr(node, field_name)
        node = value if place is None else value[place]
    return True
