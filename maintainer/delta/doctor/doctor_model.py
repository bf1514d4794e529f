"""One result of ``doctor``, a guard that turns exceptions into results, and the checks of a Spark Connect server."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from maintainer.delta.commands.connect_session import open_connect
from maintainer.delta.spark.start_conf import remote_of
from maintainer.engine.session_options import SessionOptions
from maintainer.errors import MaintainerError


class Status(enum.StrEnum):
    """How a check ended; the value is the word that is printed."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Check:
    """The name of a check, its result, and the command that fixes the problem."""

    name: str
    status: Status
    detail: str
    fix: str | None = None
    code: str | None = None


def guarded(name: str, run_checks: Callable[[], Iterable[Check]]) -> list[Check]:
    """Run a check and return what it found; whatever it raises becomes a failed check.

    A doctor that falls over is no help on the very machines it is for.
    """
    results: list[Check] = []
    try:
        results.extend(run_checks())
    except MaintainerError as error:
        results.append(failed(name, error))
    except Exception as error:
        text = next((line.strip() for line in str(error).splitlines() if line.strip()), "no text")
        results.append(Check(name, Status.FAIL, f"{type(error).__name__}: {text[:300]}"))
    return results


def failed(name: str, error: MaintainerError) -> Check:
    """Return a failed check from an error of ours."""
    parts = [error.what]
    if error.where:
        parts.append(f"at {error.where}")
    detail = " ".join(parts) + (f"; found: {error.found}" if error.found else "")
    return Check(name, Status.FAIL, detail, error.help, error.code)


def check_connect(options: SessionOptions, env: Mapping[str, str]) -> Iterator[Check]:
    """Connect, open a worker's session with all our settings, and run one statement of Delta's in it.

    Raises:
        MaintainerError: What is wrong, with the way to fix it.
    """
    started = time.monotonic()
    with open_connect(options, env) as lease:
        version = lease.spark.version
        with lease.sessions()("doctor") as session:
            session.rows("SELECT 1 AS one")
        cores = "unknown" if lease.cores is None else str(lease.cores)
    seconds = time.monotonic() - started
    detail = f"{remote_of(options, env)}: Spark {version}, cores {cores}, Delta is there; {seconds:.1f} s"
    yield Check("spark connect", Status.OK, detail)
