"""`leases`: who works on what is shown, and a lease that nobody gives back is broken and recorded."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from maintainer.cli.main import run
from maintainer.errors import Refused
from maintainer.journal.event_log import EVENTS_FILE, EventLog
from maintainer.journal.folder.run_folder import LEASES
from maintainer.journal.leases import Leases
from tests.support.policies.projects import write_project

OTHER_RUN, NEXT_RUN = "20261121T220000Z-7f3a", "20261121T230000Z-7f3a"
KEY = "5c0e@file:/lake/t"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def leases_of(runs: Path, run_id: str) -> tuple[Leases, EventLog]:
    """The leases of a run that is alive: it holds its events file."""
    (runs / run_id).mkdir(parents=True)
    return Leases(runs, run_id, now_ms), EventLog(runs / run_id / EVENTS_FILE)


def test_a_lease_is_shown_broken_and_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n", "policies/c.yml": "table: crm.leads\n"})
    runs = root / ".maintainer" / "runs"
    holder, alive = leases_of(runs, OTHER_RUN)
    lease = holder.acquire(KEY, str(root / "lake" / "t"))
    try:
        assert run(["--project", str(root), "leases", "list"]) == 0
        assert f"lake/t: run {OTHER_RUN} on " in capsys.readouterr().out

        assert run(["--project", str(root), "leases", "break", "lake/./t", "--reason", "its machine burned down"]) == 0
        assert f"held by run {OTHER_RUN} on " in capsys.readouterr().out
        with pytest.raises(Refused) as caught:
            holder.check(lease, "lake/t")
        assert caught.value.code == "A407"
        other, also_alive = leases_of(runs, NEXT_RUN)
        assert other.acquire(KEY, "lake/t").token == lease.token + 2
        other.close()
        also_alive.close()

        notes = [
            event
            for path in sorted(runs.glob(f"*/{EVENTS_FILE}"))
            for event in map(json.loads, path.read_text().splitlines())
            if event.get("about") == "lease_broken"
        ]
        (note,) = notes
        assert note["of_run"] == OTHER_RUN
        assert note["what"].endswith(": its machine burned down")
    finally:
        holder.close()
        alive.close()


def test_nothing_to_break_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    assert run(["--project", str(root), "leases", "list"]) == 0
    assert capsys.readouterr().out == "No run works on a table now.\n"
    assert run(["--project", str(root), "leases", "break", "lake/t", "--reason", "x"]) == 1
    assert "No run has a lease on lake/t" in capsys.readouterr().out
    assert run(["--project", str(root), "leases", "break", "lake/t", "--reason", " "]) == 2
    assert run(["--project", str(root), "leases", "break", "t", "--reason", "x"]) == 2
    assert "= help: write `lake/t`\n" in capsys.readouterr().err
    assert not (root / ".maintainer" / LEASES).exists()


def test_the_end_of_a_name_needs_the_whole_one_whether_a_run_has_a_lease_or_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n", "policies/u.yml": "table: eu/lake/t\n"})
    holder, alive = leases_of(root / ".maintainer" / "runs", OTHER_RUN)
    lease = holder.acquire(KEY, str(root / "eu" / "lake" / "t"))
    try:
        # The whole name of one table is the end of another one's, which has the lease.
        assert run(["--project", str(root), "leases", "break", "lake/t", "--reason", "x"]) == 1
        assert "No run has a lease on lake/t" in capsys.readouterr().out
        assert run(["--project", str(root), "leases", "break", "t", "--reason", "x"]) == 2
        assert "E613" in capsys.readouterr().err
        holder.check(lease, "eu/lake/t")
    finally:
        holder.close()
        alive.close()


def test_a_lease_that_cannot_be_read_does_not_look_like_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    (root / ".maintainer" / "runs").mkdir(parents=True)
    (root / ".maintainer" / LEASES / "a.json").mkdir(parents=True)  # a folder cannot be read, by nobody
    assert run(["--project", str(root), "leases", "list"]) == 2
    printed = capsys.readouterr()
    assert (printed.out, "E641" in printed.err) == ("", True)
    assert run(["--project", str(root), "leases", "break", "lake/t", "--reason", "its machine burned down"]) == 2
    assert "E651" in capsys.readouterr().err


def test_a_lease_is_ended_by_the_whole_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    holder, alive = leases_of(root / ".maintainer" / "runs", OTHER_RUN)
    lease = holder.acquire(KEY, str(root / "lake" / "t"))
    try:
        assert run(["--project", str(root), "leases", "break", "t", "--reason", "x"]) == 2
        assert "= help: write `lake/t`\n" in capsys.readouterr().err
        holder.check(lease, "lake/t")
    finally:
        holder.close()
        alive.close()
