"""Every row of the table of exit codes in docs/commands.md, on real tables: the command ends with the code it says.

Commands run in this process and borrow the tests' session. With ``-o json`` each prints one document, also when it
fails. What a table holds is made with deltalake, or written by hand.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.policies.projects import write_project
from tests.support.product import DeltaEngine, ExitCode, TableStorage, WrittenFile, run
from tests.support.pseudo_terminal import MAINTAINER, on_terminal
from tests.support.tables.delta_tables import age, forget_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

PAGE = (Path(__file__).parents[3] / "docs" / "commands.md").read_text(encoding="utf-8")
NO_SUCH_RUN = "20200101T000000Z-ffff"


@dataclass(frozen=True)
class Row:
    """A row of the page."""

    commands: str
    happened: str
    code: int


ROWS = [
    Row(commands, happened, int(code))
    for commands, happened, code in re.findall(r"^\| ([^|]+) \| ([^|]+) \| (\d+) \|$", PAGE, flags=re.MULTILINE)
]


EVERY_RUN = [row for row in ROWS if row.commands in ("`status`", "`verify`") and row.code]
"""What a look and a proof that fail end with, in each `make test`."""


@dataclass
class Lake:
    """A project with tables, and the commands on it."""

    root: Path
    spark: SparkSession
    capsys: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    def project(self, settings: str = "", **policies: str) -> Lake:
        """Write a policy for each table; what is given beside its name."""
        files = {f"policies/{name}.yml": f"table: lake/{name}\n{more}" for name, more in policies.items()}
        write_project(self.root, {"maintainer.yml": f"name: lake\n{settings}", **files})
        return self

    def table(self, name: str, num_files: int = 4) -> Path:
        """Append small files to a table."""
        path = self.root / "lake" / name
        for number in range(num_files):
            write_deltalake(str(path), pa.table({"id": [number * 2, number * 2 + 1]}), mode="append")
        return path

    def run(self, *arguments: str) -> int:
        """Run a command, and return its code; as JSON it prints one document whatever the code is."""
        self.capsys.readouterr()
        code = run(["--project", str(self.root), *arguments])
        out = self.capsys.readouterr().out
        if arguments[-2:] == ("-o", "json"):
            self.document: dict[str, Any] = json.loads(out)
        return int(code)


def gone(lake: Lake) -> Lake:
    """One table of two is not there."""
    lake.table("good")
    return lake.project(good="", gone="")


def over_a_limit(lake: Lake, *more: str) -> Lake:
    """A table that a limit of its policy keeps from being changed."""
    lake.table("big")
    return lake.project(big="limits: {maxFiles: 1}\n", **dict.fromkeys(more, ""))


def unsearched(lake: Lake) -> Lake:
    """A root that is not there, beside one with a table."""
    lake.table("found")
    lake.project("roots: [gone, lake]\n")
    write_project(lake.root, {"policies/_all.yml": "match: {tables: ['*']}\nmanage: true\n"})
    return lake


def rule_without_effect(lake: Lake) -> None:
    lake.table("found")
    lake.project("roots: [lake]\n")
    write_project(lake.root, {
        "policies/_all.yml": "match: {tables: ['*']}\nmanage: true\n",
        "policies/_none.yml": "match: {tables: ['none.*']}\npriority: 1\nlimits: {maxFiles: 9}\n",
    })  # fmt: skip


def with_damaged_run(lake: Lake) -> Lake:
    """A project of which a past run cannot be read."""
    lake.table("t")
    assert lake.project(t="").run("apply", "--yes") == 0
    (folder,) = lake.root.glob(".maintainer/runs/*")
    (folder / "results.json").write_text("{")
    return lake


def lose_a_row(storage: TableStorage, written: list[WrittenFile]) -> None:
    """Take the first row out of a file that was written and not proven yet."""
    path = Path(storage.uri(written[0].path).removeprefix("file:"))
    pq.write_table(pq.read_table(path).slice(1), path)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    written[0].add["size"] = path.stat().st_size


def proof_fails(lake: Lake, *arguments: str) -> int:
    lake.table("t")
    lake.project(t="optimize: {lanes: [spark]}\n")
    forged = partialmethod(DeltaEngine.__init__, between_write_and_proof=lose_a_row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaEngine, "__init__", forged)
        return lake.run(*arguments)


def lost_rows(lake: Lake) -> Lake:
    """A table whose newest commit says that it rewrote three files, and has the rows of two of them."""
    path = lake.table("t", 3)
    adds = [json.loads(line)["add"] for file in sorted((path / "_delta_log").glob("*.json"))
            for line in file.read_text().splitlines() if "add" in json.loads(line)]  # fmt: skip
    kept = pa.concat_tables(pq.read_table(path / add["path"]) for add in adds[:2])
    pq.write_table(kept, path / "part-new.parquet")
    size = (path / "part-new.parquet").stat().st_size
    bounds = {"minValues": {"id": 0}, "maxValues": {"id": 3}, "nullCount": {"id": 0}}
    stats = json.dumps({"numRecords": kept.num_rows, **bounds})
    now, file = int(time.time() * 1000), {"dataChange": False, "partitionValues": {}}
    actions = [
        {"commitInfo": {"timestamp": now, "operation": "OPTIMIZE", "operationParameters": {"predicate": "[]"}}},
        *({"remove": {**file, "path": add["path"], "size": add["size"], "deletionTimestamp": now}} for add in adds),
        {"add": {**file, "path": "part-new.parquet", "size": size, "modificationTime": now, "stats": stats}},
    ]
    (path / "_delta_log" / f"{3:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return lake.project(t="")


def trashed(lake: Lake) -> str:
    """A table of which a vacuum moved files into the trash; returns the run."""
    path = lake.table("t", 3)
    DeltaTable(str(path)).optimize.compact()
    age(path, 10)
    forget_logs(lake.spark)
    lake.project(t="vacuum: {retention: 7d, trash: 7d, allowLargeDelete: rewritten}\n")
    assert lake.run("apply", "--yes", "-o", "json") == 0
    return str(lake.document["run_id"])


def by_a_signal(lake: Lake, sent: signal.Signals) -> int:
    lake.table("t")
    lake.project(t="")
    threading.Timer(2.0, os.kill, (os.getpid(), sent)).start()
    return lake.run("status", "--watch", "--interval", "1s")


def answered_no(lake: Lake) -> int:
    lake.project(t="")
    command = (*MAINTAINER, "--project", str(lake.root), "undelete", "lake/t", "--run", NO_SUCH_RUN)
    with on_terminal(command) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type(b"n\n")
        return terminal.read_to_end()


def bug(lake: Lake) -> int:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    lake.patch.setattr("maintainer.cli.inspect.policy_commands.search_tables", broken)
    lake.patch.chdir(lake.root)
    return lake.project(t="").run("list", "-o", "json")


def refused_and_done(lake: Lake, *arguments: str) -> int:
    lake.table("small")
    return over_a_limit(lake, "small").run(*arguments)


def edited_plan(lake: Lake) -> int:
    lake.table("t")
    assert lake.project(t="").run("plan", "--out", str(lake.root / "plan.json")) == 0
    text = (lake.root / "plan.json").read_text()
    (lake.root / "plan.json").write_text(text.replace("lake/t", "lake/u"))
    return lake.run("apply", str(lake.root / "plan.json"), "-o", "json")


def codes_of(lake: Lake, *commands: tuple[str, ...]) -> Iterator[int]:
    for command in commands:
        yield lake.run(*command)


APPLY = ("apply", "--yes")
WATCH = ("watch", "--yes", "--until-idle", "--interval", "1s")
JSON = ("-o", "json")

Scene = Callable[[Lake], "int | Iterator[int]"]


def each(made: Callable[[Lake], object], *commands: tuple[str, ...]) -> Scene:
    """Make something once, and run commands on it, one after another."""

    def scene(lake: Lake) -> Iterator[int]:
        made(lake)
        yield from codes_of(lake, *commands)

    return scene


def healthy(lake: Lake) -> Lake:
    lake.table("t")
    return lake.project(t="")


def wrong_and_accepted(lake: Lake) -> Iterator[int]:
    assert lost_rows(lake).run("verify", "lake/t") == 5
    yield lake.run("verify", "lake/t", "--accept", "restored", *JSON)


def undeleted_twice(lake: Lake) -> Iterator[int]:
    run_id = trashed(lake)
    assert lake.run("undelete", "--yes", "lake/t", "--run", run_id) == 0
    yield lake.run("undelete", "--yes", "lake/t", "--run", run_id)


SCENES: dict[tuple[str, str], Scene] = {
    ("every command", "the command line is wrong"): each(healthy, ("plan", "--ouput", "x"), ("apply", "--lane", "x")),
    ("every command", "there is no project, or a policy has an error"): each(
        lambda lake: lake.project(t="optimise: {}\n"), *((*command, *JSON) for command in (
            ("list",), ("plan",), APPLY, ("retry", "--yes"), ("status",), ("history",), ("verify",), ("inventory",),
            ("explain", "lake/t"),
        ))),
    ("every command with a selection", "it selects nothing, and `--allow-empty` was not given"): each(
        healthy, *((*command, "-s", "tag:none", *JSON) for command in (
            ("list",), ("plan",), APPLY, ("status",), ("verify",),
        ))),
    ("every command", "a bug in maintainer"): bug,
    ("`apply`, `retry`, `watch`, `undelete`", "no terminal to ask on, and no `--yes`"): each(
        healthy, ("apply", *JSON), ("retry", *JSON), ("watch",), ("undelete", "lake/t", "--run", NO_SUCH_RUN)),
    ("`apply`, `retry`, `watch`, `undelete`", "the answer was no"): answered_no,
    ("`apply`, `retry`, `watch`, `status --watch`", "Ctrl-C, or `--timeout`"): lambda lake: by_a_signal(
        lake, signal.SIGINT),
    ("`apply`, `retry`, `watch`, `status --watch`", "SIGTERM"): lambda lake: by_a_signal(lake, signal.SIGTERM),
    ("`init`", "made a project; with `--renew`, showed what differs"): lambda lake: codes_of(
        lake, ("init", str(lake.root / "new")), ("init", "--renew", str(lake.root / "new"))),
    ("`init`", "there is a project already"): lambda lake: lake.run("init", str(healthy(lake).root)),
    ("`validate`", "no error"): each(healthy, ("validate", *JSON)),
    ("`validate`", "an error, or a warning with `--strict`"): each(
        lambda lake: lake.project(t="optimise: {}\n"), ("validate", *JSON)),
    ("`explain`", "showed a policy"): each(healthy, ("explain", "lake/t", *JSON)),
    ("`explain`, `why`, `history TABLE`", "no policy reaches the table"): each(
        healthy, ("explain", "lake/u", *JSON), ("why", "lake/u"), ("history", "lake/u", *JSON)),
    ("`list`, `inventory`", "listed what is there; where files name every table, `list` asks no store"): each(
        healthy, ("list", *JSON), ("inventory", *JSON)),
    ("`list`, `inventory`", "a folder or a catalog could not be searched"): each(
        unsearched, ("list", *JSON), ("inventory", *JSON)),
    ("`plan`", "nothing to do, or changes"): each(healthy, ("plan", *JSON)),
    ("`plan --detailed-exitcode`", "changes"): each(healthy, ("plan", "--detailed-exitcode", *JSON)),
    ("`plan --strict`", "a rule has no effect on any table"): each(
        rule_without_effect,
        ("plan", "--strict", *JSON)),
    ("`plan`, `why`", "a table or a place could not be read"): each(gone, ("plan", *JSON), ("why", "lake/gone")),
    ("`plan`, `why`", "a table is in quarantine, or over a limit"): each(
        over_a_limit, ("plan", *JSON), ("why", "lake/big")),
    ("`why`", "showed what is decided"): each(healthy, ("why", "lake/t")),
    ("`status`", "showed every table, whatever its state"): each(over_a_limit, ("status", *JSON)),
    ("`status`", "a table, a place, a past run or the ledger could not be read"): each(
        gone, ("status", *JSON), ("status",), ("status", "-o", "prometheus")),
    ("`show`, `report`", "showed it"): lambda lake: codes_of(
        with_a_run(lake), ("report",), ("show", run_of(lake), *JSON)),
    ("`show`, `report`, `retry RUN`", "no such run"): each(
        healthy, ("show", NO_SUCH_RUN, *JSON), ("report", NO_SUCH_RUN), ("retry", "--yes", NO_SUCH_RUN, *JSON)),
    ("`history`", "showed all steps"): each(healthy, ("history", *JSON), ("history", "lake/t", *JSON)),
    ("`history`", "a past run, or the table's log, could not be read"): each(
        with_damaged_run, ("history", *JSON), ("history",)),
    ("`report --fleet`", "a past run could not be read"): each(
        lambda lake: with_a_run(with_damaged_run(lake)), ("report", "--fleet")),
    ("`apply`, `retry`, `watch --until-idle`", "everything is done, or nothing was due"): each(
        healthy, (*APPLY, *JSON), ("retry", "--yes", *JSON), WATCH),
    ("`apply`, `retry`, `watch --until-idle`",
     "a step, a table, a place or the ledger failed, or a table was not reached"): each(
        gone, (*APPLY, *JSON), ("retry", "--yes", *JSON), WATCH),
    ("`apply`, `retry`, `watch --until-idle`", "tables were refused, and none was changed"): each(
        over_a_limit, (*APPLY, *JSON), ("retry", "--yes", *JSON), WATCH),
    ("`apply`, `retry`, `watch --until-idle`", "tables were refused, and others were changed"): lambda lake:
        refused_and_done(lake, *APPLY, *JSON),
    ("`apply`, `retry`, `watch`", "a verification failed"): lambda lake: proof_fails(lake, *APPLY, *JSON),
    ("`apply PLAN`", "the plan was edited"): edited_plan,
    ("`verify`", "proven"): each(lambda lake: with_a_run(healthy(lake)), ("verify", *JSON)),
    ("`verify`", "could not be checked, or a place could not be searched"): each(
        lambda lake: with_a_run(unsearched(lake), 1), ("verify", *JSON)),
    ("`verify`", "wrong"): each(lost_rows, ("verify", *JSON)),
    ("`verify --accept`", "accepted"): wrong_and_accepted,
    ("`verify --accept`", "there is nothing to accept"): each(
        lambda lake: with_a_run(healthy(lake)), ("verify", "lake/t", "--accept", "why", *JSON)),
    ("`undelete`", "every file is back"): lambda lake: lake.run("undelete", "--yes", "lake/t", "--run", trashed(lake)),
    ("`undelete`", "a file is not back, or none of this run can come back"): undeleted_twice,
    ("`leases list`, `leases break`", "done"): each(healthy, ("leases", "list")),
    ("`leases break`", "no run has a lease on the table"): each(
        healthy, ("leases", "break", "lake/t", "--reason", "none")),
    ("`stop`", "the run was asked"): lambda lake: asked_to_stop(with_a_run(healthy(lake))),
    ("`stop`", "the run is over"): lambda lake: lake.run("stop", run_of(with_a_run(healthy(lake)))),
    ("`ledger rebuild`", "every run and every table's history was read"): each(
        lambda lake: with_a_run(healthy(lake)), ("ledger", "rebuild", "--dry-run")),
    ("`ledger rebuild`", "a run, a table or a place could not be read"): each(
        lambda lake: with_a_run(unsearched(lake), 1), ("ledger", "rebuild", "--dry-run")),
    ("`doctor`", "no failure; a warning is none"): each(healthy, ("doctor", "--no-spark", *JSON)),
    ("`doctor`", "a failure"): each(
        lambda lake: lake.project(t="optimise: {}\n"), ("doctor", "--no-spark", *JSON)),
}  # fmt: skip


def with_a_run(lake: Lake, code: int = 0) -> Lake:
    if not (lake.root / "maintainer.yml").is_file():
        healthy(lake)
    assert lake.run(*APPLY) == code
    return lake


def run_of(lake: Lake) -> str:
    return max(path.name for path in lake.root.glob(".maintainer/runs/*"))


def asked_to_stop(lake: Lake) -> int:
    """Ask a run whose record is still held open."""
    with (lake.root / ".maintainer" / "runs" / run_of(lake) / "events.jsonl").open() as record:
        fcntl.flock(record, fcntl.LOCK_EX)
        return lake.run("stop", run_of(lake))


@pytest.mark.every_run
def test_every_row_has_its_scene() -> None:
    assert [(row.commands, row.happened) for row in ROWS] == list(SCENES)
    assert {row.code for row in ROWS} == set(map(int, ExitCode))


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row, id=f"{row.code}-{row.commands}-{row.happened}", marks=pytest.mark.every_run if row in EVERY_RUN else ()
        )
        for row in ROWS
    ],
)
def test_a_command_ends_with_the_code_of_its_row(
    row: Row,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes = SCENES[row.commands, row.happened](Lake(tmp_path, spark, capsys, monkeypatch))
    assert ({codes} if isinstance(codes, int) else set(codes)) == {row.code}
    for results in tmp_path.glob(".maintainer/runs/*/results.json"):
        if results.read_text() == "{":
            shutil.rmtree(tmp_path)  # whoever looks for contradictions can read it as little
            break
