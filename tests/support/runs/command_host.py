"""A process with one Spark session, in which commands of maintainer run one after another: Spark starts once for all.

Run as a module it is that process: a line of JSON in, a line of JSON out. Each command borrows the session, and finds
the state on its store as a new process would; a function of a test gets the session as its own.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maintainer.delta.spark.spark_session import SessionLease

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Done:
    """What a command returned and printed, and how long it took."""

    returncode: int
    out: str
    err: str
    seconds: float

    @property
    def document(self) -> Any:
        """Its output as JSON."""
        assert self.out, self.err
        return json.loads(self.out)


class CommandHost:
    """The other end of the process. One command at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *arguments: str, **environment: str) -> Done:
        """Run a command line in the process, with these variables beside its own."""
        started = time.monotonic()
        answer = self._ask({"arguments": arguments, "environment": environment})
        return Done(answer["returncode"], answer["out"], answer["err"], time.monotonic() - started)

    def call(self, function: str, *arguments: object) -> Any:
        """Call a function, ``module:name``, in the process: with the lease of its session, and then these arguments."""
        answer = self._ask({"function": function, "arguments": arguments})
        assert "raised" not in answer, answer["raised"]
        return answer["returned"]

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the process ended: {self._process.wait()}"
        return json.loads(answer)


@contextlib.contextmanager
def command_host(
    conf: Mapping[str, str], storage: tuple[str, ...], environment: Mapping[str, str], log: Path
) -> Iterator[CommandHost]:
    """Start such a process for the time of a block; what it prints beside its answers goes to ``log``."""
    settings = json.dumps({"conf": dict(conf), "storage": storage})
    with log.open("w") as errors:
        process = subprocess.Popen(
            (sys.executable, "-m", __name__, settings), cwd=ROOT, env={**os.environ, **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        try:
            yield CommandHost(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _run(arguments: list[str], environment: dict[str, str]) -> dict[str, Any]:
    from maintainer.cli.main import run
    from maintainer.journal.store import state_access

    state_access._states.clear()
    before = dict(os.environ)
    os.environ.update(environment)
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            returncode = run(arguments)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return {"returncode": int(returncode), "out": out.getvalue(), "err": err.getvalue()}


def _call(lease: SessionLease, function: str, arguments: list[object]) -> dict[str, Any]:
    module, _, name = function.partition(":")
    try:
        return {"returned": getattr(importlib.import_module(module), name)(lease, *arguments)}
    except Exception:
        return {"raised": traceback.format_exc()}


def _serve(settings: dict[str, Any], questions: IO[str], answers: IO[str]) -> None:
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    options = SessionOptions("local[2]", tuple(settings["conf"].items()), storage=tuple(settings["storage"]))
    with open_session(options) as lease:
        for line in questions:
            question = json.loads(line)
            answer = _call(lease, **question) if "function" in question else _run(**question)
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    # What anything else prints must not stand among the answers.
    real = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _serve(json.loads(sys.argv[1]), sys.stdin, real)
