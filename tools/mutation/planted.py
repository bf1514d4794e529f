"""Take each guard of a promise out of the code, one at a time: the tests that decide about it must fail, and only then.

``guards.yml`` lists the guards and these tests, which `make test` has for everybody. Each trial runs in a copy of the
checkout and in a process of its own, for the tests may start Spark, `maintainer` or Python again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import yaml

GUARDS = Path(__file__).with_name("guards.yml")
TIMEOUT_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard of a promise.

    Attributes:
        promise: Its number in docs/promises.md.
        name: What the guard does, as a sentence.
        file: Where it is.
        text: The guard, which stands in the file once.
        becomes: What stands in its place without it.
        tests: The tests that decide about it: each fails without it.
    """

    promise: int
    name: str
    file: str
    text: str
    becomes: str
    tests: tuple[str, ...]

    def removed(self, root: Path) -> str:
        """Return the text of the file without the guard.

        Raises:
            ValueError: The guard does not stand there once.
            SyntaxError: What is left is no Python.
        """
        whole = (root / self.file).read_text(encoding="utf-8")
        if whole.count(self.text) != 1:
            raise ValueError(f"{self.file} has this {whole.count(self.text)} times, not once:\n{self.text}")
        without = whole.replace(self.text, self.becomes)
        compile(without, self.file, "exec")
        return without


def read_guards(path: Path = GUARDS) -> tuple[Guard, ...]:
    """Read the list.

    Raises:
        ValueError: A key is missing or unknown, or two guards have one name.
    """
    guards = []
    for promise, entries in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        for entry in entries:
            if entry.keys() - {"becomes"} != {"guard", "file", "text", "tests"}:
                raise ValueError(f"an entry has guard, file, text, tests and perhaps becomes: {entry}")
            tests = tuple(entry["tests"])
            guards.append(Guard(promise, entry["guard"], entry["file"], entry["text"], entry.get("becomes", ""), tests))
    names = [guard.name for guard in guards]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two guards have one name: {twice}")
    return tuple(guards)


def try_all(guards: Sequence[Guard], root: Path, jobs: int, say: Callable[[str], None]) -> list[str]:
    """Run the deciding tests as the code is, then without each guard; return what is wrong, as sentences."""
    tests = sorted({test for guard in guards for test in guard.tests})
    with copied(root) as folder:
        outcomes = outcomes_of(folder, tests)
    wrong = [f"{test} {_words(outcomes.get(test))} with all guards in place" for test in tests if outcomes.get(test, 1)]
    if wrong:
        return wrong
    say(f"{len(tests)} tests pass with all guards in place")
    with ThreadPoolExecutor(jobs) as pool:
        for guard, problems in zip(guards, pool.map(partial(_try, root=root), guards), strict=True):
            for problem in problems:
                say(f"NOT NOTICED: {guard.name} {problem}")
            if not problems:
                say(f"noticed: {guard.name} ({', '.join(guard.tests)})")
            wrong += problems
    return wrong


def _try(guard: Guard, root: Path) -> list[str]:
    with copied(root) as folder:
        (folder / guard.file).write_text(guard.removed(root), encoding="utf-8")
        outcomes = outcomes_of(folder, guard.tests)
    return [f"{test} {_words(outcomes.get(test))} without it" for test in guard.tests if not outcomes.get(test)]


def _words(failed: bool | None) -> str:
    return "did not run" if failed is None else "fails" if failed else "passes"


def outcomes_of(folder: Path, tests: Sequence[str]) -> dict[str, bool]:
    """Run tests of a checkout; return for each whether it, or one of its cells, failed. What did not run is missing."""
    with tempfile.TemporaryDirectory() as results:
        report = Path(results, "report.xml")
        options = ("-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}")
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, timeout=TIMEOUT_SECONDS, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        cases = list(ElementTree.parse(report).iter("testcase"))
    outcomes: dict[str, bool] = {}
    for case in cases:
        file = str(case.get("file"))
        in_class = str(case.get("classname"))[len(file.removesuffix(".py")) :].replace(".", "::")
        name = f"{file}{in_class}::{case.get('name')}"
        failed = case.find("failure") is not None or case.find("error") is not None
        for test in tests:
            if case.find("skipped") is None and (name == test or name.startswith(f"{test}[")):
                outcomes[test] = outcomes.get(test, False) or failed
    return outcomes


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """Copy a checkout as it is now, without what Git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="guards-") as folder:
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).exists():
                Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, Path(folder, name))
        yield Path(folder)
