"""How many tables are looked at or worked on side by side follows from where they lie and from memory."""

from __future__ import annotations

import os

import pytest

from maintainer.app.selection import chosen_tables
from maintainer.app.selection.chosen_tables import tables_read_at_once, tables_run_at_once
from maintainer.model.table.table_facts import TableRef

DISK = (TableRef("/lake/orders"), TableRef("tables/x", "/project/tables/x"), TableRef("file:///lake/y"))
STORES = ("s3://lake/orders", "abfss://c@a.dfs.core.windows.net/t", "gs://lake/t", "hdfs://name/t", "S3A://lake/t")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(chosen_tables, "machine_memory_bytes", lambda: 24 << 30)


def test_tables_of_a_disk_keep_processors_busy() -> None:
    assert (tables_read_at_once(DISK), tables_run_at_once(DISK)) == (2, 2)


@pytest.mark.parametrize("address", STORES)
def test_tables_of_a_store_wait_together(address: str) -> None:
    tables = (*DISK, TableRef(address))
    assert (tables_read_at_once(tables), tables_run_at_once(tables)) == (16, 8)


def test_where_a_name_leads_is_not_known_and_asking_is_waiting() -> None:
    assert tables_read_at_once([TableRef("main.sales.orders")]) == 16


@pytest.mark.parametrize(("memory_bytes", "expected"), [(100 << 20, 1), (1 << 30, 2), (2 << 30, 4), (64 << 30, 8)])
def test_little_memory_means_fewer_tables(memory_bytes: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_tables, "machine_memory_bytes", lambda: memory_bytes)
    assert tables_run_at_once([TableRef(STORES[0])]) == expected


def test_one_processor_works_on_one_table_of_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert tables_run_at_once(DISK) == 1
