"""Any spelling, link, mount, move and encoding: a file that any log still needs is there after a vacuum.

What must stay is known by construction: each test file is made needed or free, and then named in drawn spellings. It is
also read back from the logs' own text, by code that shares nothing with what is tested.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from maintainer.delta.storage.file_store import java_quote
from maintainer.model.table.table_facts import TableRef
from tests.support.suites.example_counts import examples
from tests.support.tables.aged_tables import AgedTable, tree
from tests.support.tables.bind_mounts import bind_mounts, mounts_permitted
from tests.support.tables.local_vacuum import Vacuuming
from tests.support.tables.vacuum_cases import is_own_commit, policies

FOLDERS = ("", "p=1/", "p=a b/", "p=ä%/", "p=1/q=#?/")
FATES = ("live", "removed long ago", "added again", "removed lately", "a clone's", "a link's")
REACHED = ("real", "link", "link above", *(("mount",) if mounts_permitted() else ()))


@dataclass(frozen=True)
class Case:
    """Files with their fates and the spelling of their second name, and how the table is reached."""

    files: tuple[tuple[str, str, str], ...]
    reached: str
    untracked: bool
    moved: bool


@st.composite
def spellings(draw: st.DrawFn, path: str) -> str:
    """A way to write a decoded relative path in a log, without a root before it."""
    parts = path.split("/")
    written = []
    for part in parts:
        for noise in draw(st.lists(st.sampled_from(["./", "/", "x/../"]), max_size=2)):
            written.append(noise)
        chars = []
        for char in part:
            if draw(st.integers(0, 3)) == 0:
                upper = draw(st.booleans())
                chars += [f"%{byte:02X}" if upper else f"%{byte:02x}" for byte in char.encode()]
            else:
                chars.append(java_quote(char))
        written.append("".join(chars))
        written.append(draw(st.sampled_from(["/", "/", "%2F"])))
    return "".join(written[:-1]).lstrip("/")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    files = []
    for number in range(draw(st.integers(1, 5))):
        path = f"{draw(st.sampled_from(FOLDERS))}part {number}.parquet"
        fate = draw(st.sampled_from(FATES))
        spelled = draw(spellings(path))
        base = draw(st.sampled_from(("relative", *REACHED)))
        scheme = draw(st.sampled_from(["file:", "file://", "file://localhost", ""]))
        files.append((path, fate, spelled if base == "relative" else f"{scheme}<{base}>/{spelled}"))
    return Case(tuple(files), draw(st.sampled_from(REACHED)), draw(st.booleans()), draw(st.booleans()))


def read_as_hadoop_does(root: Path, written: str) -> str:
    """The real path of a file that a log names: decoded, normalized as text, then followed."""
    path = written
    if path.lower().startswith("file:"):
        path = path[5:]
        if path.startswith("//"):
            path = "/" + path[2:].partition("/")[2]
    return os.path.realpath(os.path.normpath(os.path.join(root, unquote(path))))


def live_in(log: Path) -> set[str]:
    live: set[str] = set()
    for commit in sorted(log.glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "remove" in action:
                live.discard(action["remove"]["path"])
            if "add" in action:
                live.add(action["add"]["path"])
    return live


def act(table: AgedTable, days_ago: float, path: str, kind: str) -> None:
    """Commit an add or remove under a spelling."""
    body = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": table.at(60), "dataChange": True}
    if kind == "remove":
        body |= {"deletionTimestamp": table.at(days_ago)}
    table.commit(days_ago, {kind: body})


def make(case: Case, table: AgedTable, clone: AgedTable, roots: dict[str, Path]) -> tuple[set[str], set[str]]:
    """Write the files and logs; returns what has to stay and what has to go, by their names below the table."""
    stays: set[str] = {"always.parquet"}
    goes: set[str] = set()
    table.append(60, "always.parquet", *(path for path, _, _ in case.files))
    commits: list[tuple[AgedTable, float, str, str]] = []
    for number, (path, fate, second) in enumerate(case.files):
        (goes if fate == "removed long ago" else stays).add(path)
        for base, root in roots.items():
            second = second.replace(f"<{base}>", java_quote(str(root)))
        match fate:
            case "added again":
                commits.append((table, 25, second, "add"))
            case "removed lately":
                commits += [(table, 25, second, "add"), (table, 2, second, "remove")]
            case "a clone's":
                absolute = second.startswith(("/", "file:"))
                commits.append((clone, 15, second if absolute else f"../t/{second}", "add"))
            case "a link's":
                (table.path / f"link{number}.parquet").symlink_to(table.path / path)
                commits.append((table, 25, f"link{number}.parquet", "add"))
            case _:
                pass
    removed = [path for path, fate, _ in case.files if fate != "live"]
    if removed:
        table.delete(30, *removed)
    for version, days_ago, written, kind in sorted(commits, key=lambda commit: -commit[1]):
        act(version, days_ago, written, kind)
    return stays, goes


@settings(max_examples=examples(80), deadline=None)
@given(cases())
def test_no_needed_file_goes_under_any_name(case: Case) -> None:
    top = Path(os.path.realpath(tempfile.mkdtemp(prefix="spellings-")))
    try:
        lake = top / "disk" / "lake"
        lake.mkdir(parents=True)
        table, clone = AgedTable(lake / "t"), AgedTable(lake / "clone", created_days_ago=15)
        (top / "above").symlink_to(top / "disk")
        (top / "link").symlink_to(lake / "t")
        with bind_mounts() as mount:
            if "mount" in (case.reached, *(second for _, _, second in case.files)) or "<mount>" in str(case.files):
                mount(lake, top / "mounted")
            roots = {
                "real": lake / "t",
                "link": top / "link",
                "link above": top / "above" / "lake" / "t",
                "mount": top / "mounted" / "t",
            }
            stays, goes = make(case, table, clone, roots)
            named = {
                read_as_hadoop_does(vacuumed.path, written)
                for vacuumed in (table, clone)
                for written in live_in(vacuumed.path / "_delta_log")
            }
            if case.moved:  # absolute paths and links lead nowhere now, but for the mount
                lake = lake.rename(top / "disk" / "moved")
                roots |= dict.fromkeys(("real", "link", "link above"), lake / "t")
            before = tree(lake)
            vacuum_twice(case, AgedTable.at_path(roots[case.reached]), TableRef(str(lake / "clone")))
            after = tree(lake)
            assert {path for path in before if path not in after} == {f"t/{path}" for path in goes}
            assert all(after[path] == content for path, content in before.items() if path in after)
            assert {f"t/{path}" for path in stays} <= after.keys()
            assert all(is_own_commit(path) for path in after.keys() - before.keys())
            assert case.moved or all(os.path.isfile(path) for path in named)
    finally:
        shutil.rmtree(top)


def vacuum_twice(case: Case, table: AgedTable, clone: TableRef) -> None:
    """One vacuum of the table as it is reached, and a second that finds nothing."""
    work = Vacuuming(policies(delete_untracked=case.untracked), (table.ref, clone))
    step = work.step(table)
    if step is not None:
        receipt = work.delete(table, step)
        assert receipt.remaining == ()
    assert work.step(table) is None
