"""Check disks for ``doctor``: free space, clock, the run folder, and each table's storage.

A probe is one small file that is removed at once, and only where we write anyway.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from maintainer.delta.doctor.doctor_model import Check, Status
from maintainer.delta.storage.table_log import local_folder, look_into
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.units import by_cause, named

MIN_FREE_BYTES = 512 << 20
ROOMY_FREE_BYTES = 5 << 30
MAX_CLOCK_SKEW_SECONDS = 60.0
MAX_NAMED_TABLES = 12
MIN_ALIKE = 3
"""As many tables with the same fault are said in one check."""

_FIRST_PLAUSIBLE_SECONDS = 1_750_000_000  # June 2025: before this version was written


def check_disk(root: Path) -> Iterator[Check]:
    """Check the free space where Spark sorts and where the run folder lies."""
    for name, folder in (("disk: temp", Path(tempfile.gettempdir())), ("disk: project", nearest_existing(root))):
        free = shutil.disk_usage(folder).free
        detail = f"{free / (1 << 30):.1f} GiB free at {folder}"
        fix = "free some space" + ("; or set TMPDIR to a larger disk" if name == "disk: temp" else "")
        if free < MIN_FREE_BYTES:
            yield Check(name, Status.FAIL, detail, fix)
        elif free < ROOMY_FREE_BYTES:
            yield Check(name, Status.WARN, f"{detail}; large tables need room to sort", fix)
        else:
            yield Check(name, Status.OK, detail)


def check_run_folder(runs_dir: Path) -> Iterator[Check]:
    """Whether a run can be recorded in the folder of all runs, and whether that disk's clock agrees with ours."""
    folder = nearest_existing(runs_dir)
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".maintainer-probe-") as probe:
            probe.write(b"probe")
            probe.flush()
            os.fsync(probe.fileno())
            written_at = os.stat(probe.name).st_mtime
    except OSError as error:
        fix = f'chmod u+w "{folder}", or run in a project folder that is yours'
        yield Check("run folder", Status.FAIL, f"{folder} cannot be written: {error.strerror}", fix)
    else:
        yield Check("run folder", Status.OK, f"{runs_dir} can be written")
        yield _clock(written_at)


def _clock(written_at: float) -> Check:
    now = time.time()
    if now < _FIRST_PLAUSIBLE_SECONDS:
        text = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
        return Check("clock", Status.FAIL, f"this machine says it is {text}", "sudo timedatectl set-ntp true")
    skew = abs(now - written_at)
    if skew > MAX_CLOCK_SKEW_SECONDS:
        detail = f"the project's disk and this machine differ by {skew:.0f} s; retention counts on one time"
        return Check("clock", Status.WARN, detail, "sudo timedatectl set-ntp true, on both machines")
    return Check("clock", Status.OK, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)))


def check_tables(root: Path, locations: Sequence[str]) -> Iterator[Check]:
    """Check the permissions of tables on local paths; names and other storage are left to Spark.

    Args:
        root: What relative paths are relative to.
        locations: Tables as policies name them: catalog names, paths or URIs.
    """
    local = [path for location in locations if (path := local_path(root, location)) is not None]
    found = [fault for path in local if (fault := _fault_of(path)) is not None]
    if local and len(found) < len(local):
        yield Check("tables", Status.OK, f"{len(local) - len(found)} of {len(local)} on local paths can be read")
    for faults in by_cause(found, lambda fault: (fault.status, fault.what)):
        yield from _said(faults)


@dataclass(frozen=True, slots=True)
class _Fault:
    """What is wrong with the folder ``where``, in words that are equal for tables with the same fault."""

    status: Status
    where: str
    what: str
    fix: str


def _said(faults: Sequence[_Fault]) -> Iterator[Check]:
    """Return a check for each table, or one for three or more: a disk that is not there is one cause."""
    if len(faults) < MIN_ALIKE:
        yield from (Check("table", fault.status, f"{fault.where} {fault.what}", fault.fix) for fault in faults)
        return
    first, *others = faults
    names = named([fault.where for fault in others], MAX_NAMED_TABLES)
    detail = f"{first.where} {first.what}\nthe same of {len(others)} more tables: {names}"
    yield Check("table", first.status, detail, f"{first.fix}; then alike for the others")


def _fault_of(path: Path) -> _Fault | None:
    """Return what is wrong with one table's folder, or None. Writing is asked of the system, not tried."""
    log = path / LOG_FOLDER
    try:
        os.stat(path)
    except PermissionError:
        return _Fault(Status.FAIL, str(path), "cannot be reached", f'chmod u+rx "{path.parent}"')
    except OSError:
        return _Fault(Status.FAIL, str(path), "does not exist", "correct `table:` in its policy, or remove it")
    try:
        look_into(str(path))
        if not stat.S_ISDIR(os.stat(log).st_mode):
            raise NotADirectoryError(log)
    except PermissionError as error:
        where = error.filename or str(path)
        return _Fault(Status.FAIL, where, "cannot be read: permission denied", f'chmod -R u+rX "{path}"')
    except OSError:
        return _Fault(Status.FAIL, str(path), f"is not a Delta table: it has no {LOG_FOLDER}", "correct `table:`")
    for folder in (path, log):
        if not os.access(folder, os.R_OK | os.X_OK):
            return _Fault(Status.FAIL, str(folder), "cannot be read", f'chmod -R u+rX "{folder}"')
    for folder in (path, log):
        if not os.access(folder, os.W_OK):
            what = "cannot be written: plan works, apply does not"
            return _Fault(Status.WARN, str(folder), what, f'chmod -R u+w "{folder}"')
    with contextlib.suppress(OSError):
        if not any(entry.name.endswith((".json", ".parquet")) for entry in os.scandir(log)):
            return _Fault(Status.FAIL, str(log), "holds no commit", "restore the log, or remove the policy")
    return None


def local_path(root: Path, location: str) -> Path | None:
    """Return where a table lies on this machine, or None for a catalog name or another kind of storage."""
    folder = local_folder(location) if "/" in location or os.sep in location else None
    return None if folder is None else root / folder


def nearest_existing(path: Path) -> Path:
    """Return the path itself or its nearest ancestor that exists."""
    for candidate in (path, *path.parents):
        with contextlib.suppress(OSError):
            if candidate.exists():
                return candidate
    return Path(path.anchor or ".")
