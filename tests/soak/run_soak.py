"""Write, read, maintain and kill for a while, and check that nothing was lost.

``python -m tests.soak.run_soak --minutes 60 --seed 1 --out soak.md``. Exit code 0: all is as it must be; 1: it is not,
and the page says what.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.soak.judgement.soak_page import page
from tests.soak.judgement.soak_verdict import Verdict, files_kept_too_long, judge
from tests.soak.soak_lake import write_soak_project
from tests.soak.soak_settings import SoakSettings
from tests.soak.traffic.rust_appender import RustAppender
from tests.soak.watched_process import REPOSITORY, WatchedProcess, command, environment

READY_SECONDS = 180
DRAIN_SECONDS = 900
APPLY_SECONDS = 600
LOG_TAIL = 1500


def run_soak(settings: SoakSettings) -> Verdict:
    """Run the soak in its folder and judge it."""
    write_soak_project(settings)
    shared = settings.root / "soak"
    settings.write(shared / "settings.json")
    complaints: list[str] = []
    with (shared / "spark.log").open("wb") as log:
        spark = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.traffic.spark_process", str(shared / "settings.json")],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment(), cwd=REPOSITORY,
        )  # fmt: skip
    watch = None
    appenders = [
        RustAppender(settings, "rust-appender-1", 1, ("plain", "small")),
        RustAppender(settings, "rust-appender-2", 2, ("partitioned", "small")),
    ]
    try:
        _wait_until_ready(settings, spark)
        begun = time.monotonic()
        watch = WatchedProcess(settings, begun)
        for appender in appenders:
            appender.start()
        watch.start()
        while time.monotonic() < begun + settings.seconds and spark.poll() is None:
            time.sleep(0.5)
        complaints += [f"{appender.name} did not end" for appender in appenders if not appender.stop()]
        settings.stop_file.touch()
        complaints += _wait_for_spark(settings, spark)
    finally:
        if watch is not None:
            watch.stop()
        if spark.poll() is None:
            spark.kill()
            spark.wait()
    complaints += files_kept_too_long(settings)
    return judge(settings, watch.life, complaints, _last_apply(settings))


def _wait_until_ready(settings: SoakSettings, spark: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not settings.ready_file.exists():
        if spark.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the tables could not be made:\n{_tail(settings.root / 'soak' / 'spark.log')}")
        time.sleep(0.2)


def _wait_for_spark(settings: SoakSettings, spark: subprocess.Popen[bytes]) -> list[str]:
    try:
        code = spark.wait(DRAIN_SECONDS)
    except subprocess.TimeoutExpired:
        return [f"the writers and readers in Spark did not end in {DRAIN_SECONDS} s"]
    if code == 0:
        return []
    return [f"the writers and readers in Spark ended with {code}: {_tail(settings.root / 'soak' / 'spark.log')}"]


def _last_apply(settings: SoakSettings) -> int:
    """Settle what the last life of the watch left, as the next run would."""
    with (settings.root / "soak" / "last-apply.log").open("wb") as log:
        return subprocess.run(
            command(settings, "apply", "--yes"), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env=environment(), cwd=REPOSITORY, timeout=APPLY_SECONDS, check=False,
        ).returncode  # fmt: skip


def _tail(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL:]


def main(arguments: list[str] | None = None) -> int:
    """Run a soak as the command line says, and write its page."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.run_soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="where the page goes")
    parser.add_argument(
        "--folder",
        type=Path,
        help="work here and leave everything behind; default: a new folder, which stays only after a failure",
    )
    options = parser.parse_args(arguments)
    folder = Path(options.folder or tempfile.mkdtemp(prefix="maintainer-soak-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    verdict = run_soak(SoakSettings(str(folder), options.minutes * 60, options.seed))
    command = f"python -m tests.soak.run_soak --minutes {options.minutes:g} --seed {options.seed} --out {options.out}"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(page(verdict, command), encoding="utf-8")
    if verdict.failures:
        sys.stdout.write(f"{options.out}: FAILED; its tables and records are in {folder}\n")
        return 1
    if options.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(f"{options.out}: PASSED\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
