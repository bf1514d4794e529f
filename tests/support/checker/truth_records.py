"""What runs left behind, read as plain JSON, XML and text: run folders, leases, ledger.

Nothing is imported from what is tested; formats are those that the documentation states.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

from tests.support.checker.truth_log import LOG, LogTable, LogUnreadable, replay_table

RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-z]{4}")
REWRITES = ("compact", "zorder", "rewrite", "cluster", "purge")
LEDGER_COLUMNS = frozenset({"run_id", "step_id", "proof_level", "proof_result"})


@dataclass(frozen=True)
class Contradiction:
    """Two things that cannot both be true; `rule` is the name of the check that noticed."""

    rule: str
    text: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.rule}: {self.text}"


@dataclass(frozen=True)
class RunRecord:
    """One run folder."""

    path: Path

    @property
    def run_id(self) -> str:
        """The folder's name."""
        return self.path.name

    @cached_property
    def event_lines(self) -> tuple[tuple[dict[str, Any], ...], int]:
        """Whole events, and how many lines in the middle are damaged. A torn last line is no damage."""
        data = self._bytes("events.jsonl")
        lines = data.split(b"\n")
        events, damaged = [], 0
        for number, line in enumerate(lines):
            event = _event(line) if line else None
            if event is not None:
                events.append(event)
            elif line and number < len(lines) - 1:
                after = next((whole for text in lines[number + 1 :] if (whole := _event(text)) is not None), None)
                damaged += 0 if after is not None and after["type"] == "reopened" else 1
        return tuple(events), damaged

    @property
    def events(self) -> tuple[dict[str, Any], ...]:
        """Its events, in order."""
        return self.event_lines[0]

    def of_type(self, *kinds: str) -> list[dict[str, Any]]:
        """Events of some types, in order."""
        return [event for event in self.events if event["type"] in kinds]

    @cached_property
    def is_finished(self) -> bool:
        """Whether the run closed its record."""
        return bool(self.of_type("run_finished"))

    @cached_property
    def is_alive(self) -> bool:
        """Whether a process holds the record locked."""
        try:
            handle = os.open(self.path / "events.jsonl", os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    @cached_property
    def plan(self) -> dict[str, Any] | None:
        """`plan.json`; None where there is none."""
        return self._json("plan.json")

    @cached_property
    def results(self) -> dict[str, Any] | None:
        """`results.json`; None where there is none."""
        return self._json("results.json")

    @property
    def tables(self) -> list[dict[str, Any]]:
        """Outcomes of tables, of `results.json`."""
        return list(self.results["tables"]) if self.results is not None else []

    def steps(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Each outcome of a step, with its table's."""
        for table in self.tables:
            for step in table["steps"]:
                yield table, step

    @cached_property
    def pending(self) -> tuple[dict[str, Any], ...]:
        """Rows that wait for the ledger."""
        return tuple(json.loads(line) for line in self._bytes("ledger_pending.jsonl").splitlines() if line)

    @property
    def planned_tables(self) -> list[dict[str, Any]]:
        """Tables of `plan.json`."""
        return list(self.plan["tables"]) if self.plan is not None else []

    def text_of(self, name: str) -> str:
        """A file of the folder as text; empty where there is none."""
        return self._bytes(name).decode("utf-8", "replace")

    @cached_property
    def span_ns(self) -> tuple[int, int]:
        """When the folder was made and last written, by the file system's own clock."""
        times = [path.stat().st_mtime_ns for path in (self.path, *self.path.iterdir()) if path.exists()]
        return min(times), max(times)

    def _json(self, name: str) -> dict[str, Any] | None:
        data = self._bytes(name)
        return dict(json.loads(data)) if data else None

    def _bytes(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return b""


def _event(line: bytes) -> dict[str, Any] | None:
    """An event whose checksum is right: CRC-32 of the object without `crc`, as JSON with sorted keys and no spaces."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    if not isinstance(event, dict):
        return None
    checksum = event.pop("crc", None)
    body = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    right = f"{zlib.crc32(body.encode('utf-8', 'surrogatepass')):08x}"
    return flat(event) if checksum == right and isinstance(event.get("type"), str) else None


def flat(event: dict[str, Any]) -> dict[str, Any]:
    """An event with the fields of what is in it (the stamp, the receipt, the outcome) beside its own."""
    receipt, proof = event.get("receipt") or {}, event.get("proof")
    flat = {**(event.get("outcome") or {}), **receipt, **event.get("stamp", {}), **event}
    for name, other in (("run", "run_id"), ("step", "step_id"), ("policy", "policy_digest")):
        if other in flat:
            flat[name] = flat[other]
    if event["type"] == "table_finished":
        flat["table"] = flat["ref"]["identifier"]
    if event["type"] in ("result", "settled"):
        flat["version"] = receipt.get("version", receipt.get("version_after"))
    if proof is not None:
        read, written = proof["read"], proof["written"]
        flat["proof"] = {"rows_read": read["rows"], "rows_written": written["rows"]}
        flat["proof"] |= {"sums_read": read["sums"], "sums_written": written["sums"]}
    return flat


@dataclass(frozen=True)
class Evidence:
    """Everything that is compared: a project's records, and the tables that they speak of.

    Args:
        root: The project's folder.
        below: Tables are looked for in this folder, too.
        exit_codes: What processes ended with, by run.
        stdout: What the newest run printed.
        histories: The JSON of `history` by table; "" is that of all tables.
        before: Files that were there before the first run.
    """

    root: Path
    below: Path | None = None
    exit_codes: Mapping[str, int] = field(default_factory=dict)
    stdout: str | None = None
    histories: Mapping[str, Any] = field(default_factory=dict)
    before: frozenset[Path] = frozenset()

    @cached_property
    def settings(self) -> dict[str, Any]:
        """`maintainer.yml`; empty where there is none or it is no map."""
        try:
            settings = yaml.safe_load((self.root / "maintainer.yml").read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError):
            return {}
        return settings if isinstance(settings, dict) else {}

    @property
    def runs_dir(self) -> Path:
        """The folder of all run folders."""
        return self.root / str(self.settings.get("state") or ".maintainer") / "runs"

    @cached_property
    def runs(self) -> tuple[RunRecord, ...]:
        """All runs, oldest first."""
        if not self.runs_dir.is_dir():
            return ()
        names = sorted(path.name for path in self.runs_dir.iterdir() if path.is_dir() and RUN_ID.fullmatch(path.name))
        return tuple(RunRecord(self.runs_dir / name) for name in names)

    def run(self, run_id: str) -> RunRecord | None:
        """One run by its id."""
        return next((run for run in self.runs if run.run_id == run_id), None)

    @cached_property
    def _logs(self) -> dict[Path, LogTable | LogUnreadable]:
        tops = [top for top in (self.root, self.below) if top is not None]
        folders = [folder for top in tops for folder in folders_of_tables(top)]
        logs: dict[Path, LogTable | LogUnreadable] = {}
        for folder in dict.fromkeys(folders):
            try:
                logs[folder] = replay_table(folder)
            except LogUnreadable as error:
                logs[folder] = error
        return logs

    @property
    def tables(self) -> list[LogTable]:
        """Every table whose log can be read; the ledger is among them."""
        return [log for log in self._logs.values() if isinstance(log, LogTable)]

    @property
    def unreadable(self) -> dict[Path, LogUnreadable]:
        """Tables whose log cannot be read."""
        return {folder: log for folder, log in self._logs.items() if isinstance(log, LogUnreadable)}

    def table_at(self, location: object, table_id: object = None) -> LogTable | None:
        """The table at a location; None if it is gone, or another one lies there."""
        for log in self._at(str(location)):
            if table_id in (None, log.table_id):
                return log
        return None

    def _at(self, location: str) -> list[LogTable]:
        """Tables that a location may mean: as it stands, and decoded as a URI."""
        if location not in self._places:
            plain = location
            if plain.startswith("file:"):
                plain = "/" + plain.removeprefix("file:").lstrip("/")
            folders = [Path(os.path.realpath(text)) for text in dict.fromkeys((plain, unquote(plain)))]
            logs = (self._logs.get(folder) for folder in folders)
            self._places[location] = [log for log in logs if isinstance(log, LogTable)]
        return self._places[location]

    @cached_property
    def _places(self) -> dict[str, list[LogTable]]:
        return {}

    @cached_property
    def ledgers(self) -> dict[Path, list[dict[str, Any]]]:
        """Rows of each ledger, in no order; those without a run or a step are somebody else's."""
        import deltalake

        return {
            table.root: [
                row
                for row in deltalake.DeltaTable(str(table.root)).to_pyarrow_table().to_pylist()
                if row["run_id"] and row["step_id"]
            ]
            for table in self.tables
            if set(table.columns) >= LEDGER_COLUMNS
        }

    @property
    def ledger_rows(self) -> list[dict[str, Any]]:
        """Rows of all ledgers."""
        return [row for rows in self.ledgers.values() for row in rows]


def folders_of_tables(top: Path) -> Iterator[Path]:
    """Folders with a log, at or below a folder, each by its real path."""
    for folder, names, _ in os.walk(top):
        if LOG in names:
            names.remove(LOG)
            yield Path(os.path.realpath(folder))


def folders_of_projects(top: Path) -> list[Path]:
    """Folders with a `maintainer.yml` or a `.maintainer/runs`, at or below a folder."""
    projects = []
    for folder, names, files in os.walk(top):
        if LOG in names:
            names.remove(LOG)
        if "maintainer.yml" in files or (Path(folder) / ".maintainer" / "runs").is_dir():
            projects.append(Path(folder))
    return projects
