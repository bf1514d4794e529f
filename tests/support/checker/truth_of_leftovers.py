"""Rules about what must not stay behind: leases, temporary files, files that no version of a table knows."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.checker.truth_log import LOG, LogTable
from tests.support.checker.truth_of_tables import ours
from tests.support.checker.truth_records import Evidence

_TEMPORARY = (".tmp", ".part")
_DATA = (".parquet", ".bin")
_NAMED_BY_PREFIX = re.compile(r"data files whose names begin with (part-[0-9A-Za-z-]+-) ")


def leases_are_given_back(evidence: Evidence) -> Iterator[str]:
    """A lease that still runs belongs to a run that is alive, died with nobody after it, or says that it left it."""
    folder = evidence.runs_dir.parent / "leases"
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            lease = json.loads(path.read_text(encoding="utf-8"))
            run_id, expires_at_ms = str(lease["run_id"]), int(lease["expires_at_ms"])
        except (ValueError, KeyError, TypeError):
            continue
        run = evidence.run(run_id)
        if run is None or not run.is_finished or run.is_alive or expires_at_ms <= time.time() * 1000:
            continue
        left = {event.get("table") for event in run.of_type("note") if event.get("about") == "lease_left"}
        if lease.get("table") not in left:
            yield f"{path} holds {lease.get('table')} for run {run_id}, which is finished"


def nothing_temporary_stays(evidence: Evidence) -> Iterator[str]:
    """No temporary file stays in the state folder or in a log, unless a process was killed or is at work."""
    if any(not run.is_finished for run in evidence.runs):
        return
    for folder in (evidence.runs_dir.parent, *(table.root / LOG for table in ours(evidence))):
        for top, _, names in os.walk(folder):
            for name in names:
                path = Path(top) / name
                if name.endswith(_TEMPORARY) and path not in evidence.before:
                    yield f"{path} is left, though every run has ended"


def no_unknown_files(evidence: Evidence) -> Iterator[str]:
    """A data file that was written while a run was at work is in the log, or a record names it or how it begins.

    Whoever else writes at the same time may leave files, too: then a test says so.
    """
    spans = [
        run.span_ns
        for run in evidence.runs
        if run.is_finished and not run.is_alive and run.of_type("intent", "step_finished")
    ]
    if not spans:
        return
    texts_of_runs: str | None = None
    for table in ours(evidence):
        for path in _data_files(table):
            if path in table.known or path in evidence.before:
                continue
            written = path.stat().st_mtime_ns
            if not any(start <= written <= end for start, end in spans):
                continue
            if texts_of_runs is None:
                texts_of_runs = "".join(
                    run.text_of("events.jsonl") + run.text_of("results.json") for run in evidence.runs
                )
            if path.name not in texts_of_runs and not path.name.startswith(
                tuple(_NAMED_BY_PREFIX.findall(texts_of_runs))
            ):
                yield f"{path} was written during a run; no version of {table.root} knows it, and no record names it"


def no_checksum_alone(evidence: Evidence) -> Iterator[str]:
    """A checksum file of Hadoop's that was written while a run was at work lies beside its file."""
    spans = [run.span_ns for run in evidence.runs if run.is_finished and not run.is_alive]
    for table in ours(evidence):
        for top, folders, names in os.walk(table.root):
            _skip_other_tables(table.root, top, folders)
            there = set(names)
            for name in names:
                path = Path(top) / name
                if (
                    name[:1] != "."
                    or not name.endswith(".parquet.crc")
                    or name[1:-4] in there
                    or path in evidence.before
                ):
                    continue
                written = path.stat().st_mtime_ns
                if any(start <= written <= end for start, end in spans):
                    yield f"{path} lies there without its file"


def _data_files(table: LogTable) -> Iterator[Path]:
    for top, folders, names in os.walk(table.root):
        _skip_other_tables(table.root, top, folders)
        for name in names:
            if name.endswith(_DATA) and not name.startswith("."):
                yield Path(top) / name


def _skip_other_tables(root: Path, top: str, folders: list[str]) -> None:
    """Leave out the log, the trash, and tables that lie inside this one."""
    folders[:] = [
        name
        for name in folders
        if name not in (LOG, ".maintainer-trash", ".maintainer") and not (Path(top) / name / LOG).is_dir()
    ]


RULES = (leases_are_given_back, nothing_temporary_stays, no_unknown_files, no_checksum_alone)
