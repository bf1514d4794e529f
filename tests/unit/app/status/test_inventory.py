"""Tables found against tables managed, the walk through folders, and the stubs that are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.status.inventory import Care, InventoryEntry, LocatedTable, inventory, located_at, stub, write_stubs
from maintainer.delta.snapshot.find_tables import tables_below
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import LoadedProject
from tests.support.policies.projects import loaded


@pytest.fixture
def project(tmp_path: Path) -> LoadedProject:
    return loaded(
        tmp_path,
        {
            "policies/a.yml": "table: sales.orders\n",
            "policies/b.yml": "table: lake/lines\n",
            "policies/c.yml": "table: sales.gone\n",
            "policies/d.yml": "table: lake/by_path\n",
            "policies/e.yml": "table: s3://b/x y\n",
            "policies/r.yml": "match: {tables: ['bronze.*']}\npriority: 1\n",
        },
    )


def cares(entries: tuple[InventoryEntry, ...]) -> dict[str, tuple[str, str | None]]:
    return {entry.table.identifier: (entry.care.value, entry.policy_file) for entry in entries}


def test_what_is_found_is_managed_ruled_or_unmanaged_and_what_is_not_found_is_missing(
    project: LoadedProject, tmp_path: Path
) -> None:
    located_tables = [
        LocatedTable(TableRef("Sales.Orders"), f"file:{tmp_path}/w/orders"),
        LocatedTable(TableRef("bronze.raw"), f"file:{tmp_path}/w/raw"),
        LocatedTable(TableRef("sales.new"), f"file:{tmp_path}/w/new"),
        located_at(f"file:{tmp_path}/lake/lines", tmp_path),
        located_at(f"file:{tmp_path}/lake/more%20of%25it", tmp_path),
    ]
    assert cares(inventory(project, located_tables, whole_catalog=True)) == {
        "bronze.raw": ("ruled", "policies/r.yml"),
        "lake/lines": ("managed", "policies/b.yml"),
        "lake/more of%it": ("unmanaged", None),
        "sales.gone": ("missing", "policies/c.yml"),
        "sales.new": ("unmanaged", None),
        "sales.orders": ("managed", "policies/a.yml"),
    }
    assert Care.MISSING not in {entry.care for entry in inventory(project, located_tables, whole_catalog=False)}


def test_a_table_that_a_rule_excludes_by_another_name_is_managed_by_none(tmp_path: Path) -> None:
    rule = "match: {tables: ['lake/*'], exclude: [sales.pii]}\nmanage: true\n"
    project = loaded(tmp_path, {"policies/r.yml": rule, "maintainer.yml": "roots: [lake]\n"})
    found = [located_at(f"file:{tmp_path}/lake/pii", tmp_path)]
    assert cares(inventory(project, found, whole_catalog=False)) == {"lake/pii": ("managed", "policies/r.yml:2")}
    found.append(LocatedTable(TableRef("sales.pii"), f"file:{tmp_path}/lake/pii"))
    assert cares(inventory(project, found, whole_catalog=False)) == {"sales.pii": ("unmanaged", None)}


def test_the_ledger_is_managed_by_a_policy_of_its_own(tmp_path: Path) -> None:
    (tmp_path / ".maintainer" / "ledger" / "_delta_log").mkdir(parents=True)
    (tmp_path / ".maintainer" / "ledger" / "_delta_log" / "00000000000000000000.json").write_text("")
    project = loaded(tmp_path, {"policies/a.yml": "table: lake/a\n"})
    located_tables = [located_at(f"file:{tmp_path}/.maintainer/ledger", tmp_path)]
    entries = inventory(project, located_tables, whole_catalog=False)
    assert cares(entries) == {".maintainer/ledger": ("managed", "built-in")}
    assert write_stubs(tmp_path, entries) == ()


def test_a_table_found_by_name_and_by_folder_counts_once(project: LoadedProject, tmp_path: Path) -> None:
    located_tables = [
        LocatedTable(TableRef("sales.orders"), f"file:///{str(tmp_path)[1:]}/w/orders"),
        located_at(f"file:{tmp_path}/w/orders/", tmp_path),
        # In the catalog, and managed by its path.
        LocatedTable(TableRef("sales.by_path"), f"file:{tmp_path}/lake/by_path"),
        located_at(f"file:{tmp_path}/lake/by_path", tmp_path),
        LocatedTable(TableRef("sales.by_address"), "s3a://b/x%20y"),
        # Nobody manages it: the catalog's name is shorter.
        located_at(f"file:{tmp_path}/w/new", tmp_path),
        LocatedTable(TableRef("sales.new"), f"file:{tmp_path}/w/new"),
    ]
    assert cares(inventory(project, located_tables, whole_catalog=False)) == {
        "lake/by_path": ("managed", "policies/d.yml"),
        "s3://b/x y": ("managed", "policies/e.yml"),
        "sales.new": ("unmanaged", None),
        "sales.orders": ("managed", "policies/a.yml"),
    }


def make_lake(root: Path, *tables: str) -> None:
    for table in tables:
        (root / table / "_delta_log").mkdir(parents=True)


def below(root: Path) -> list[str]:
    return [uri.removeprefix(f"file:{root}/") for uri in tables_below(LocalFiles(), f"file:{root}")]


def test_folders_with_a_log_are_tables_and_nothing_below_them_is_looked_at(tmp_path: Path) -> None:
    make_lake(tmp_path, "b", "a/x", "a/y z", "b/inside", "_old/t", ".trash/t", "a/day=1/t")
    (tmp_path / "c" / "d").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert below(tmp_path) == ["b", "a/x", "a/y%20z"]
    assert list(tables_below(LocalFiles(), f"file:{tmp_path}/b/")) == [f"file:{tmp_path}/b"]


def test_stubs_are_policies_and_never_replace_a_file(tmp_path: Path) -> None:
    def entry(name: str, care: Care = Care.UNMANAGED) -> InventoryEntry:
        return InventoryEntry(TableRef(name), care, "file:/x", None)

    entries = [
        entry("sales.new"), entry("lake/it's: odd"), entry("lake/it's/ odd"), entry("b.r", Care.RULED),
        entry("sales.orders", Care.MANAGED), entry("gone", Care.MISSING), entry("123"),
    ]  # fmt: skip
    own_file = tmp_path / "policies" / "inventory" / "b_r.yml"
    own_file.parent.mkdir(parents=True)
    own_file.write_text("version: 1\ntable: b.r\nowner: me\n")
    written = write_stubs(tmp_path, entries)
    assert [path.name for path in written] == ["sales_new.yml", "lake_it_s_odd.yml", "lake_it_s_odd_2.yml", "123.yml"]
    assert own_file.read_text().endswith("owner: me\n")
    assert write_stubs(tmp_path, entries) == ()
    project = loaded(tmp_path, {})
    assert project.diagnostics == ()
    assert sorted(policy.table.identifier for policy in project.resolved()) == sorted(
        ["sales.new", "lake/it's: odd", "lake/it's/ odd", "b.r", "123"]
    )


def test_a_table_that_comes_later_gets_a_name_that_no_other_table_has(tmp_path: Path) -> None:
    """Two tables may give one name, and the first one's file says nothing of the second."""
    first, second, third = (
        InventoryEntry(TableRef(name), Care.UNMANAGED, "file:/x", None)
        for name in ("sales.new_orders", "sales_new.orders", "sales.new.orders")
    )
    names = [[path.name for path in write_stubs(tmp_path, entries)] for entries in ([first], [second], [third, first])]
    assert names == [["sales_new_orders.yml"], ["sales_new_orders_2.yml"], ["sales_new_orders_3.yml"]]
    assert write_stubs(tmp_path, [third, second, first]) == ()
    assert {policy.table for policy in loaded(tmp_path, {}).resolved()} == {first.table, second.table, third.table}


def test_a_stub_is_two_lines() -> None:
    assert stub(TableRef("sales.new")) == "version: 1\ntable: sales.new\n"
    assert stub(TableRef("./lake/t")) == "version: 1\ntable: ./lake/t\n"
    assert stub(TableRef("`a b`.c")) == "version: 1\ntable: '`a b`.c'\n"
