"""A small project with one table and two runs, written by hand: everything in it is true until a test changes it."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMPACTED, VACUUMED = "20261121T220000Z-aaaa", "20261121T230000Z-bbbb"
TABLE, TABLE_ID, POLICY = "lake/orders", "11111111-2222-3333-4444-555555555555", "sha256:00"
OLD, NEW = ("part-0.parquet", "part-1.parquet"), "part-2.parquet"
OLD_BYTES, NEW_BYTES, ROWS = 100, 150, 10
PLANNED_AT_MS = 1_795_298_400_000
PROOF_FIGURES = {"rows_read": 2 * ROWS, "rows_written": 2 * ROWS, "sums_read": ["7"], "sums_written": ["7"]}
LEDGER_COLUMNS = (
    "run_id", "table", "table_id", "location", "step_id", "kind", "status", "version_before", "version_after",
    "num_files_removed", "num_files_added", "bytes_removed", "bytes_added", "proof_level", "proof_result", "source",
)  # fmt: skip


def stamp(run_id: str, kind: str, batch: int = 0) -> str:
    """The `userMetadata` of a commit of ours."""
    return json.dumps({"maintainer": {"run": run_id, "step": f"{TABLE}/{kind}", "batch": batch, "policy": POLICY}})


def event(name: str, /, **fields: Any) -> dict[str, Any]:
    """An event without its checksum."""
    return {"type": name, "at_ms": 0, **fields}


def event_line(fields: dict[str, Any]) -> str:
    """An event as a line, with its checksum."""
    fields = _as_written(fields)
    body = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return json.dumps({**fields, "crc": f"{zlib.crc32(body.encode()):08x}"})


def _as_written(fields: dict[str, Any]) -> dict[str, Any]:
    """An event with its stamp, receipt and outcome as values of their own, as a record has them."""
    event, kind = dict(fields), fields["type"]
    if kind in ("intent", "result", "settled"):
        names = {"run": "run_id", "step": "step_id", "batch": "batch", "policy": "policy_digest"}
        event["stamp"] = {name: event.pop(key, None) for key, name in names.items()}
        proof = event.get("proof")
        if proof is not None:
            read, written = (
                {"rows": proof[f"rows_{which}"], "sums": proof[f"sums_{which}"]} for which in ("read", "written")
            )
            event["proof"] = {"read": read, "written": written}
    if kind in ("result", "settled"):
        own = ("type", "at_ms", "stamp", "kind", "table", "table_id", "location", "fate", "error", "detail", "by")
        event["receipt"] = {name: event.pop(name) for name in list(event) if name not in own} or None
    if kind in ("verified", "deleting") and "step" in event:
        event["step_id"] = event.pop("step")
    if kind == "step_finished":
        event["outcome"] = {"step_id": event.pop("step"), "status": event.pop("status")}
    if kind == "table_finished":
        event["outcome"] = {"ref": {"identifier": event.pop("table")}, "status": event.pop("status")}
    if kind == "run_finished":
        event["outcome"] = {"run_id": event.pop("run"), "interrupted_by": event.pop("interrupted_by")}
    return event


@dataclass
class ForgedRun:
    """One run's record, still to be written. A None is not written."""

    plan: dict[str, Any] | None
    results: dict[str, Any] | None
    events: list[dict[str, Any]]
    pending: list[dict[str, Any]] = field(default_factory=list)
    junit: str | None = None
    report: str | None = None
    damage: str = ""


@dataclass
class ForgedProject:
    """The project as values: `log` of the table, `files` with their sizes, `runs`, `rows` of the ledger."""

    root: Path
    log: dict[int, list[dict[str, Any]]]
    files: dict[str, int]
    runs: dict[str, ForgedRun]
    rows: list[dict[str, Any]]
    leases: dict[str, dict[str, Any]] = field(default_factory=dict)
    exit_codes: dict[str, int] = field(default_factory=lambda: {COMPACTED: 0, VACUUMED: 0})
    stdout: str | None = None
    histories: dict[str, Any] = field(default_factory=dict)

    @property
    def location(self) -> str:
        """The table's URI."""
        return f"file:{self.root / TABLE}"

    @property
    def compacted(self) -> ForgedRun:
        """The run that compacts."""
        return self.runs[COMPACTED]

    @property
    def vacuumed(self) -> ForgedRun:
        """The run that deletes what the compaction replaced."""
        return self.runs[VACUUMED]

    def step(self, run_id: str) -> dict[str, Any]:
        """The only step of a run's results."""
        results = self.runs[run_id].results
        assert results is not None
        step: dict[str, Any] = results["tables"][0]["steps"][0]
        return step

    def table(self, run_id: str) -> dict[str, Any]:
        """The only table of a run's results."""
        results = self.runs[run_id].results
        assert results is not None
        table: dict[str, Any] = results["tables"][0]
        return table

    def events(self, run_id: str, kind: str) -> list[dict[str, Any]]:
        """Events of a type."""
        return [event for event in self.runs[run_id].events if event["type"] == kind]

    def action(self, version: int, name: str) -> dict[str, Any]:
        """The first action of a name in a commit."""
        action: dict[str, Any] = next(action[name] for action in self.log[version] if name in action)
        return action

    def write(self) -> None:
        """Put everything on disk; the table's files are written while the runs are at work."""
        (self.root / "maintainer.yml").write_text("version: 1\n")
        for run_id, run in self.runs.items():
            (self.runs_dir / run_id / "assertions").mkdir(parents=True)
            if run.plan is not None:
                (self.runs_dir / run_id / "plan.json").write_text(json.dumps(run.plan))
        log = self.root / TABLE / "_delta_log"
        log.mkdir(parents=True)
        for version, actions in self.log.items():
            (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))
        for name, size_bytes in self.files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"\0" * size_bytes)
        for run_id, run in self.runs.items():
            self._write_run(self.runs_dir / run_id, run)
        for name, lease in self.leases.items():
            path = self.root / ".maintainer" / "leases" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(lease))
        self._write_ledger()

    @property
    def runs_dir(self) -> Path:
        """The folder of all runs."""
        return self.root / ".maintainer" / "runs"

    def _write_run(self, folder: Path, run: ForgedRun) -> None:
        texts = {
            "results.json": None if run.results is None else json.dumps(run.results),
            "events.jsonl": run.damage + "".join(event_line(event) + "\n" for event in run.events),
            "junit.xml": run.junit,
            "report.html": run.report,
            "ledger_pending.jsonl": "\n".join(map(json.dumps, run.pending)) or None,
        }
        for name, text in texts.items():
            if text is not None:
                (folder / name).write_text(text)

    def _write_ledger(self) -> None:
        if not self.rows:
            return
        import deltalake
        import pyarrow

        text, number = pyarrow.string(), pyarrow.int64()
        numbers = ("version_before", "version_after", "num_files_removed", "num_files_added",
                   "bytes_removed", "bytes_added")  # fmt: skip
        schema = pyarrow.schema([(name, number if name in numbers else text) for name in LEDGER_COLUMNS])
        rows = pyarrow.Table.from_pylist(self.rows, schema=schema)
        deltalake.write_deltalake(str(self.root / ".maintainer" / "ledger"), rows)


def forged_project(root: Path) -> ForgedProject:
    """A project whose first run compacted two files into one, and whose second deleted the two."""
    location = f"file:{root / TABLE}"
    about = {"table": TABLE, "table_id": TABLE_ID, "location": location}
    fingerprint = {"rows": 2 * ROWS, "sums": [7]}
    receipt = {
        "version": 1, "read_version": 0, "num_files_removed": 2, "num_files_added": 1,
        "bytes_removed": 2 * OLD_BYTES, "bytes_added": NEW_BYTES,
        "proof": {"read": fingerprint, "written": fingerprint, "rows_in_log": 2 * ROWS, "findings": []},
    }  # fmt: skip
    vacuum = {
        "num_files_deleted": 2, "bytes_deleted": 2 * OLD_BYTES, "remaining": [], "stopped": None, "trash": None,
        "version_before": 1, "version_after": 3, "oldest_version": 1, "num_files_emptied": 0,
    }  # fmt: skip
    removed = [{"kind": "data", "path": name, "size_bytes": OLD_BYTES} for name in OLD]
    runs = {
        COMPACTED: _run(COMPACTED, about, "compact", [], [receipt], None, version=1),
        VACUUMED: _run(VACUUMED, about, "vacuum", removed, [], vacuum, version=None),
    }
    sizes = (2, 1, 2 * OLD_BYTES, NEW_BYTES)
    rows = [
        _row(COMPACTED, about, "compact", 0, 1, sizes, "fingerprint"),
        _row(VACUUMED, about, "vacuum", 1, 3, (2, 0, 2 * OLD_BYTES, 0), "none"),
    ]
    return ForgedProject(root, _log(), {f"{TABLE}/{NEW}": NEW_BYTES}, runs, rows)


def _log() -> dict[int, list[dict[str, Any]]]:
    stats = json.dumps({"numRecords": ROWS})
    schema = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long"}]})
    adds = [
        {"add": {"path": name, "size": OLD_BYTES, "partitionValues": {}, "dataChange": True, "stats": stats}}
        for name in OLD
    ]
    removes = [{"remove": {"path": name, "size": OLD_BYTES, "dataChange": False}} for name in OLD]
    metrics = {"numRemovedFiles": "2", "numAddedFiles": "1", "numRemovedBytes": str(2 * OLD_BYTES),
               "numAddedBytes": str(NEW_BYTES)}  # fmt: skip
    optimize = {"operation": "OPTIMIZE", "operationMetrics": metrics, "userMetadata": stamp(COMPACTED, "compact")}
    start = {"operation": "VACUUM START", "userMetadata": stamp(VACUUMED, "vacuum")}
    end = {
        "operation": "VACUUM END", "operationMetrics": {"numDeletedFiles": "2"},
        "operationParameters": {"status": "COMPLETED"}, "userMetadata": stamp(VACUUMED, "vacuum"),
    }  # fmt: skip
    new = {"path": NEW, "size": NEW_BYTES, "partitionValues": {}, "dataChange": False,
           "stats": json.dumps({"numRecords": 2 * ROWS})}  # fmt: skip
    metadata = {"id": TABLE_ID, "schemaString": schema, "partitionColumns": []}
    return {
        0: [{"commitInfo": {"operation": "WRITE"}}, {"metaData": metadata}, *adds],
        1: [{"commitInfo": optimize}, *removes, {"add": new}],
        2: [{"commitInfo": start}],
        3: [{"commitInfo": end}],
    }


def _run(
    run_id: str, about: dict[str, str], kind: str, deleted: list[dict[str, Any]], commits: list[dict[str, Any]],
    vacuum: dict[str, Any] | None, *, version: int | None,
) -> ForgedRun:  # fmt: skip
    step_id = f"{TABLE}/{kind}"
    ref = {"identifier": TABLE, "path": about["location"].removeprefix("file:")}
    check = {"expectation": "rows", "outcome": "pass"}
    step = {
        "step_id": step_id, "kind": kind, "status": "succeeded", "commits": commits, "vacuum": vacuum,
        "assertions": [check], "error": None, "turns": [],
    }  # fmt: skip
    table = {"ref": ref, "status": "done", "steps": [step], "problem": None}
    counts = {"done": 1, "failed": 0, "up_to_date": 0}
    results = {"run_id": run_id, "tables": [table], "counts": counts, "interrupted_by": None}
    planned_step = {"kind": kind, "files": deleted}
    observed = {"location": about["location"], "table_id": TABLE_ID, "version": 0 if commits else 1}
    plan = {"created_at_ms": PLANNED_AT_MS, "tables": [{"ref": ref, "observed": observed, "steps": [planned_step]}]}
    key = {"run": run_id, "step": step_id, "batch": 0, "policy": POLICY, **about, "kind": kind}
    proof = PROOF_FIGURES if commits else None
    figures = {name: value for receipt in commits for name, value in receipt.items() if name != "proof"}
    events = [
        event("run_started", run=run_id),
        event("intent", **key, read_version=0 if commits else 1, proven=bool(commits), proof=proof),
        event("result", **key, fate="landed", **({"version": 3} if vacuum else {}), **figures),
        event("verified", **about, step=step_id, version=version, result="pass"),
        event("step_finished", **about, step=step_id, status="succeeded"),
        event("table_finished", table=TABLE, status="done"),
        event("run_finished", run=run_id, interrupted_by=None),
    ]
    return ForgedRun(plan, results, events, junit=_junit(kind), report=_report(commits))


def _junit(kind: str) -> str:
    counts = 'tests="2" failures="0" errors="0" skipped="0"'
    cases = f'<testcase name="{kind}"/><testcase name="{kind}: rows"/>'
    return f'<testsuites {counts}><testsuite name="{TABLE}" {counts}>{cases}</testsuite></testsuites>'


def _report(commits: list[dict[str, Any]]) -> str:
    tiles = {
        "tables changed": "1 of 1",
        **(
            {"files in the table rewritten": "5 \u2192 4", "rewrites proven before commit": "1 of 1"} if commits else {}
        ),
        "checks passed": "1 of 1",
    }
    return "".join(f'<li><b class="calm">{figure}</b>{label}</li>' for label, figure in tiles.items())


def _row(
    run_id: str, about: dict[str, str], kind: str, before: int, after: int, sizes: tuple[int, int, int, int], level: str
) -> dict[str, Any]:
    removed, added, bytes_removed, bytes_added = sizes
    return {
        "run_id": run_id, **about, "step_id": f"{TABLE}/{kind}", "kind": kind, "status": "succeeded",
        "version_before": before, "version_after": after, "num_files_removed": removed, "num_files_added": added,
        "bytes_removed": bytes_removed, "bytes_added": bytes_added, "proof_level": level, "proof_result": "pass",
        "source": None,
    }  # fmt: skip
