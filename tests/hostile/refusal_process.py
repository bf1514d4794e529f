"""Runs ``plan`` on one project after the other in this process, and prints what each refusal cost as JSON.

``python -m tests.hostile.refusal_process PROJECT...``; its caller sets the environment and reads the output.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import sys
import time
from pathlib import Path

from tests.support.product import run

HANGS_AFTER_SECONDS = 20


def peak_kib() -> int:
    """Return the peak of this process's memory; what ``getrusage`` says may be the peak of the process that forked."""
    match = re.search(r"^VmHWM:\s+([0-9]+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    assert match is not None
    return int(match[1])


def refuse(project: str) -> dict[str, object]:
    """Plan a project and return exit code, output, processor seconds and whether Spark was loaded."""
    out, err = io.StringIO(), io.StringIO()
    started = time.process_time()
    signal.alarm(HANGS_AFTER_SECONDS)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(["--project", project, "--color", "never", "plan"])
    signal.alarm(0)
    return {
        "project": project,
        "exit_code": int(code),
        "out": out.getvalue(),
        "err": err.getvalue(),
        "seconds": time.process_time() - started,
        "peak_kib": peak_kib(),
        "spark_loaded": "pyspark" in sys.modules or "py4j" in sys.modules,
    }


if __name__ == "__main__":
    json.dump([refuse(project) for project in sys.argv[1:]], sys.stdout)
