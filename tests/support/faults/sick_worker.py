"""A process that applies again and again, in one Spark session: ``python -m tests.support.faults.sick_worker FOLDER``.

Started with `sick_calls.c` before the C library. A line of its input is a project; the answer is a line of JSON: the
exit code and everything that was said.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

from maintainer.cli.main import run
from maintainer.delta.spark.spark_session import open_session
from maintainer.engine.session_options import SessionOptions

ROOT = Path(__file__).resolve().parents[3]


class SickWorker:
    """The test's end of such a process. Started when it is needed, and again after it has died."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Have a process that is ready, outside of any fault."""
        if self._process is not None and self._process.poll() is None:
            return
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.faults.sick_worker", str(self._folder)],
            cwd=ROOT, env={**os.environ, **self._environment}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        assert ready == "ready\n", f"the process did not start: {ready!r}"

    def apply(self, project: Path) -> tuple[int, str]:
        """Apply once; of a process that dies the code is negative and nothing was said."""
        self.start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{project}\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            return process.wait(60), ""
        document = json.loads(answer)
        return int(document["code"]), str(document["said"])

    def end(self) -> None:
        """End the process, and its JVM with it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def apply(project: str) -> dict[str, object]:
    """Apply once."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = run(["--project", project, "apply", "--yes"])
    return {"code": code, "said": said.getvalue()}


def main(folder: str) -> None:
    """Answer until the input ends."""
    options = SessionOptions(master="local[2]", conf=(("spark.driver.memory", "1g"),), log_path=Path(folder) / "log")
    with open_session(options) as lease:
        assert lease.spark is not None  # a session, and no mere JVM: it is borrowed by every apply
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for line in sys.stdin:
            sys.stdout.write(json.dumps(apply(line.rstrip("\n"))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
