"""Edited plans: without a new digest each is refused unread; with one, nothing leaves the table or the policy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.policies.edited_documents import digest_of, edited, leaves, other
from tests.support.policies.projects import write_project
from tests.support.product import (
    FOLDER,
    CompactStep,
    MaintainerError,
    Plan,
    Project,
    PurgeStep,
    Refused,
    StaleReasons,
    TableState,
    VacuumStep,
    ZOrderStep,
    check_saved_plan,
    from_json,
    recheck,
    run,
    to_json,
)  # fmt: skip
from tests.support.runs import sample_plans
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.planned_steps import compact, plan_for, properties, vacuum
from tests.support.tables.aged_tables import AgedTable, now_ms, tree
from tests.support.tables.builders import NOW_MS
from tests.support.tables.local_vacuum import Vacuuming
from tests.support.tables.vacuum_cases import is_own_commit, old_table, policies

Json = dict[str, Any]
Place = tuple[str | int, ...]


def signed(document: Json) -> str:
    """The document with the digest that belongs to it, as whoever edits it would write."""
    return json.dumps({**document, "digest": digest_of(document)})


WHOLE = json.loads(to_json(sample_plans.full_plan()))
EDITS = [place for place, _ in leaves(WHOLE)]


FIRST = {tuple(part for part in place if isinstance(part, str)): place for place in reversed(EDITS)}
# `make test` has each field once, `make hostile` each place.
PLACES = [pytest.param(p, marks=pytest.mark.every_run if p in FIRST.values() else ()) for p in EDITS]


def test_there_are_enough() -> None:
    assert len(EDITS) >= 50
    assert len(FIRST) >= 50
    assert len(STEP_EDITS) + len(PATHS) >= 50


@pytest.mark.sampled(100)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_an_edit_of_any_field_is_refused_unread(place: Place) -> None:
    value = dict(leaves(WHOLE))[place]
    with pytest.raises(Refused) as caught:
        from_json(json.dumps(edited(WHOLE, place, other(value))))
    assert (caught.value.code, caught.value.exit_code) == ("A402", 4)
    assert caught.value.help


FORMS: dict[str, Callable[[str], str]] = {
    "a field of the plan": lambda text: text.replace('"environment": "prod"', '"environment": "test"'),
    "a field more": lambda text: text.replace("{", '{"sql":"DROP TABLE x",', 1),
    "a field twice": lambda text: text.replace("{", '{"digest":"sha256:0",', 1),
    "no digest": lambda text: text.replace('"digest"', '"digets"'),
    "another format": lambda text: text.replace('"format_version": 1', '"format_version": 2'),
    "half of it": lambda text: text[: len(text) // 2],
    "nothing": lambda text: "",
    "infinity": lambda text: text.replace('"created_at_ms":', '"created_at_ms":Infinity,"x":', 1),
    "a list": lambda text: f"[{text}]",
    "100,000 deep": lambda text: "[" * 100_000,
}


@pytest.mark.parametrize("form", FORMS)
def test_apply_ends_in_4_before_anything_is_touched(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path / "project", {"policies/t.yml": "table: sales.orders\n"})
    text = FORMS[form](to_json(sample_plans.full_plan()))
    assert text != to_json(sample_plans.full_plan())
    (root / "night.json").write_text(text)
    assert run(["--project", str(root), "apply", str(root / "night.json")]) == 4
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error[A402]: ")
    assert "= help: " in shown.err
    assert not (root / ".maintainer").exists()


# From here on with a digest that belongs to the edit.


@pytest.mark.sampled(100)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_what_is_counted_is_counted_anew_and_the_rest_is_read_strictly(place: Place) -> None:
    """`totals` and `state` have no effect; a field is read as what it is, or the plan is refused."""
    value = dict(leaves(WHOLE))[place]
    counted = "totals" in place or place[-1] == "state"
    for replacement in (other(value), ["x"]):
        text = signed(edited(WHOLE, place, replacement))
        plan = _read(text)
        if plan is None:
            assert not counted
        else:
            assert counted or place == ("digest",) or replacement != ["x"]
            assert (plan == sample_plans.full_plan()) is (counted or place == ("digest",))


def _read(text: str) -> Plan | None:
    """Read a plan; None where it is refused as no plan of ours."""
    try:
        return from_json(text)
    except Refused as error:
        refused = error
    assert refused.code == "A402"
    return None


@dataclass
class Lake:
    """A table with a file to delete, another table beside it, and files outside."""

    folder: Path
    table: AgedTable
    work: Vacuuming
    document: Json

    def carry_out(self, document: Json) -> str:
        """Read, check and delete as `apply` does with a saved plan; return how it ended."""
        try:
            plan = from_json(signed(document))
        except Refused as error:
            return error.code
        (table_plan,) = plan.tables
        facts = self.work.reader.facts(self.table.ref)
        checked = recheck(table_plan, facts, "sha256:policy")
        if isinstance(checked, StaleReasons):
            return "A403"
        try:
            for step in checked.steps:
                assert isinstance(step, VacuumStep)
                self.work.delete(self.table, step)
        except MaintainerError as error:
            return error.code
        return "done"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    folder = tmp_path / "lake"
    folder.mkdir()
    table = old_table(folder / "t")
    table.file("_delta_log/notes.txt", 60)
    table.file("untracked.parquet", 60)
    neighbour = old_table(folder / "other")
    neighbour.file("orphan.parquet", 60)
    (folder / "secret.parquet").write_bytes(b"secret")
    os.utime(folder / "secret.parquet", (1_600_000_000, 1_600_000_000))
    (table.path / "link").symlink_to(folder / "other")
    (table.path / "link.parquet").symlink_to(folder / "secret.parquet")
    work = Vacuuming(policies(), (table.ref, neighbour.ref))
    step = work.step(table)
    assert step is not None
    facts = work.reader.facts(table.ref)
    plan = Plan(now_ms() - 1000, now_ms() + 86_400_000, (plan_for(facts, step, policy_digest="sha256:policy"),))
    return Lake(folder, table, work, json.loads(to_json(plan)))


STEP: Place = ("tables", 0, "steps", 0)
FILE: Place = (*STEP, "files", 0)
FREE = "t/a.parquet"

PATHS = (
    "../secret.parquet", "../other/b.parquet", "../other/orphan.parquet", "../../lake/secret.parquet",
    "./../secret.parquet",
    "x/../../secret.parquet", "..%2Fsecret.parquet", "%2e%2e/secret.parquet", "%2E%2E%2Fsecret.parquet",
    "..\\secret.parquet",
    "LAKE/secret.parquet", "file:LAKE/secret.parquet", "file://LAKE/secret.parquet", "file:///LAKE/secret.parquet",
    "file://localhost/LAKE/secret.parquet",
    "FILE:LAKE/secret.parquet", "s3a://bucket/secret.parquet", "hdfs://host/secret.parquet", "http://127.0.0.1:9/x",
    "//LAKE/secret.parquet",
    "link/b.parquet", "link/orphan.parquet", "link.parquet", "link", "ab.parquet", "b.parquet", "./ab.parquet",
    "x/../ab.parquet", "AB.parquet",
    "_delta_log/00000000000000000000.json", "_delta_log/notes.txt", "./_delta_log/notes.txt",
    "x/../_delta_log/notes.txt", "_delta_log", "%5Fdelta_log/notes.txt",
    "untracked.parquet", "gone.parquet", "", ".", "..", "/", "~/x", "a.parquet/", "a.parquet?x", "a.parquet#x",
    "a.parquet\x00", "\n", "x" * 5000,
)  # fmt: skip


def _only_the_free_file_went(lake: Lake, before: dict[str, str], outcome: str) -> None:
    after = tree(lake.folder)
    gone = {path for path in before if path not in after}
    assert gone <= ({FREE} if outcome == "done" else set()), (outcome, gone)
    assert all(after[path] == content for path, content in before.items() if path in after)
    made = after.keys() - before.keys()
    assert all(is_own_commit(path) or path.startswith(f"{FOLDER}/") for path in made), made


@pytest.mark.parametrize("kind", ["data", "untracked", "deletion_vector"])
@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
def test_no_path_in_a_signed_plan_reaches_anything_else(path: str, kind: str, lake: Lake) -> None:
    before = tree(lake.folder)
    document = edited(lake.document, (*FILE, "path"), path.replace("LAKE", str(lake.folder)))
    document = edited(document, (*FILE, "kind"), kind)
    outcome = lake.carry_out(document)
    _only_the_free_file_went(lake, before, outcome)


def _trashed(folder: str) -> list[Json]:
    return [{"run_id": "r", "folder": folder, "num_files": 1, "size_bytes": 1, "keep_until_ms": 0}]


STEP_EDITS: dict[str, tuple[Place, object]] = {
    "table id": (("tables", 0, "observed", "table_id"), "another"),
    "location": (("tables", 0, "observed", "location"), "file:/lake/other"),
    "version ahead": (("tables", 0, "observed", "version"), 99),
    "columns": (("tables", 0, "observed", "columns"), []),
    "partition columns": (("tables", 0, "observed", "partition_columns"), ["p"]),
    "protocol": (("tables", 0, "observed", "protocol", "min_writer_version"), 1),
    "digest of the policy": (("tables", 0, "policy_digest"), "sha256:other"),
    "no look at the table": (("tables", 0, "observed"), None),
    "removed in the future": ((*STEP, "removed_before_ms"), 2**60),
    "removed now": ((*FILE, "removed_at_ms"), now_ms()),
    "removed long ago": ((*FILE, "removed_at_ms"), 0),
    "removed before everything": ((*STEP, "removed_before_ms"), -1),
    "no retention": ((*STEP, "retention_seconds"), 0),
    "negative retention": ((*STEP, "retention_seconds"), -(10**12)),
    "retention as text": ((*STEP, "retention_seconds"), "0"),
    "untracked in the future": ((*STEP, "untracked_before_ms"), 2**60),
    "size": ((*FILE, "size_bytes"), 2**60),
    "kind that is none": ((*FILE, "kind"), "folder"),
    "step that is none": ((*STEP, "kind"), "drop_table"),
    "trash of others": ((*STEP, "emptied"), _trashed("file:/lake/other")),
    "trash that is the table": ((*STEP, "emptied"), _trashed("LAKE/t")),
    "trash above": ((*STEP, "emptied"), _trashed("LAKE/.maintainer_trash/../other")),
    "files twice": ((*STEP, "files"), "twice"),
    "no files": ((*STEP, "files"), []),
}


@pytest.mark.parametrize("name", STEP_EDITS)
def test_no_field_of_a_signed_plan_reaches_anything_else(name: str, lake: Lake) -> None:
    before = tree(lake.folder)
    place, value = STEP_EDITS[name]
    if value == "twice":
        value = lake.document["tables"][0]["steps"][0]["files"] * 2
    text = json.dumps(value).replace("LAKE", f"file:{lake.folder}")
    outcome = lake.carry_out(edited(lake.document, place, json.loads(text)))
    _only_the_free_file_went(lake, before, outcome)


def test_the_plan_itself_does_delete_the_file(lake: Lake) -> None:
    before = tree(lake.folder)
    assert lake.carry_out(lake.document) == "done"
    assert before.keys() - tree(lake.folder).keys() == {FREE}


POLICY = (
    "table: s.t\noptimize: {maxFileSize: 1MiB}\nvacuum: {retention: 30d, trash: 14d}\n"
    "properties: {delta.logRetentionDuration: interval 60 days}\n"
)


def _checked(tmp_path: Path, lake: FakeLake, *steps: Any, policy: str = POLICY) -> tuple[TableState, str]:
    """What `apply` makes of a signed plan by these steps: the table's state, and why it is blocked."""
    project = Project.load(write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": policy}))
    (digest,) = [resolved.digest for resolved in project.policies if resolved.table.identifier == "s.t"]
    facts = lake.tables["s.t"].facts()
    plan = Plan(NOW_MS, NOW_MS + 86_400_000, (plan_for(facts, *steps, policy_digest=digest),))
    (table, *_) = check_saved_plan(project, lake, from_json(to_json(plan)), {}, now_ms=NOW_MS + 1).tables
    return table.state, "; ".join(reason.text for reason in table.blocked)


BEYOND = {
    "a property": (properties(**{"delta.appendOnly": "false"}), "which the policy does not ask for"),
    "another value": (
        properties(**{"delta.logRetentionDuration": "interval 0 days"}),
        "which the policy does not ask for",
    ),
    "a shorter retention": (vacuum("gone"), "keep removed files for 7d, the policy for 30d"),
    "no trash": (replace(vacuum("gone"), retention_seconds=30 * 86400), "moves into the trash"),
    "untracked files": (
        replace(
            vacuum("gone"),
            files=tuple(replace(file, kind="untracked") for file in vacuum("gone").files),
            retention_seconds=30 * 86400,
            trash_seconds=14 * 86400,
        ),
        "which the policy does not allow",
    ),
}


REWRITES = {
    "a purge": (PurgeStep((), max_file_size_bytes=1 << 20, max_threads=1, reasons=()), "no `optimize.purge:`"),
    "a Z-order": (ZOrderStep((), ("id",), 1 << 20, 1, ()), "of the kind zorder, the policy asks for compact"),
    "another size": (CompactStep((), max_file_size_bytes=1, max_threads=1, reasons=()), "files of up to 1 B"),
    "threads": (CompactStep((), max_file_size_bytes=1 << 20, max_threads=999, reasons=()), "999 threads"),
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_signed_plan_rewrites_as_the_policy_does(name: str, tmp_path: Path) -> None:
    lake = FakeLake()
    table = lake.table("s.t", (1,), (2,))
    step, why = REWRITES[name]
    state, text = _checked(tmp_path, lake, replace(step, batches=compact(table).batches))
    assert (state, why in text) == (TableState.BLOCKED, True), text


@pytest.mark.parametrize("name", BEYOND)
def test_a_signed_plan_does_nothing_that_the_policy_does_not_ask_for(name: str, tmp_path: Path) -> None:
    lake = FakeLake()
    lake.table("s.t", (1,), (2,))
    step, why = BEYOND[name]
    state, text = _checked(tmp_path, lake, step)
    assert (state, why in text) == (TableState.BLOCKED, True), text


def test_a_signed_plan_deletes_nothing_where_the_policy_has_no_vacuum(tmp_path: Path) -> None:
    lake = FakeLake()
    lake.table("s.t", (1,), (2,))
    state, text = _checked(tmp_path, lake, vacuum("gone"), policy="table: s.t\n")
    assert (state, text) == (
        TableState.BLOCKED,
        "not as planned: it would delete files, and the policy has no `vacuum:`",
    )


def test_a_signed_plan_checks_what_the_policy_asks_for(tmp_path: Path) -> None:
    lake = FakeLake()
    lake.table("s.t", (1,), (2,))
    asked = replace(vacuum("gone"), retention_seconds=30 * 86400, trash_seconds=14 * 86400)
    state, text = _checked(tmp_path, lake, asked, policy=POLICY + "verify: {content: exact}\n")
    assert state is TableState.BLOCKED
    assert text == "not as planned: it would check the work by other checks than the policy's `verify:`"


def test_what_the_policy_asks_for_is_done(tmp_path: Path) -> None:
    lake = FakeLake()
    table = lake.table("s.t", (1,), (2,))
    asked = replace(vacuum("gone"), retention_seconds=30 * 86400, trash_seconds=14 * 86400)
    steps = (properties(**{"delta.logRetentionDuration": "interval 60 days"}), compact(table), asked)
    assert _checked(tmp_path, lake, *steps) == (TableState.CHANGES, "")


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
def test_a_rewrite_reads_only_what_is_live(path: str, tmp_path: Path) -> None:
    """A bin with a file that the log does not name as live is left out as a whole."""
    lake = FakeLake()
    table = lake.table("s.t", (1,), (2,))
    step = compact(table)
    (batch,) = step.batches
    (bin_,) = batch.bins
    files = (replace(bin_.files[0], path=path), *bin_.files[1:])
    forged = replace(step, batches=(replace(batch, bins=(replace(bin_, files=files),)),))
    state, _ = _checked(tmp_path, lake, forged)
    assert state is not TableState.CHANGES
    assert table.version == 1
