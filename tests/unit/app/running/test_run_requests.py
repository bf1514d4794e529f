"""What a run asked of stores: our own requests since it began, Hadoop's where they are known, and the price of both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, cast

import pytest

from maintainer.app.engine_access import OpenedEngine
from maintainer.app.running import run_listener
from maintainer.app.running.run_listener import PreparationClock
from maintainer.engine.store.request_count import REQUEST_COUNT
from maintainer.model.table.store_requests import RunRequests, StoreRequests
from maintainer.planning.budget.request_estimate import run_requests
from maintainer.policy.project.project_sections import Prices
from tests.support.runs import sample_plans

READS = StoreRequests(reads=2)
PRICES = Prices("EUR", thousand_reads=1.0, thousand_writes=10.0)


def opened(hadoops: Callable[[Collection[str]], StoreRequests | None]) -> OpenedEngine:
    nothing = cast("Any", None)
    return OpenedEngine(nothing, nothing, nothing, nothing, nothing, hadoop_requests=hadoops)


def plan_at(location: str) -> Any:
    plan = sample_plans.plan(sample_plans.orders())
    (table,) = plan.tables
    assert table.observed is not None
    return replace(plan, tables=(replace(table, observed=replace(table.observed, location=location)),))


def test_only_what_came_since_the_clock_was_made_counts_and_has_a_price() -> None:
    REQUEST_COUNT.add(StoreRequests(writes=9))
    clock = PreparationClock()
    REQUEST_COUNT.add(READS)
    asked: list[Collection[str]] = []

    def hadoops(places: Collection[str]) -> StoreRequests:
        asked.append(places)
        return StoreRequests(lists=1)

    plan = plan_at("s3a://lake/orders")
    counted = clock.requests(opened(hadoops), plan, "s3://state/ledger", PRICES)
    expected = run_requests(plan, "s3://state/ledger").total
    assert counted == RunRequests(READS, StoreRequests(lists=1), 0.012, "EUR", expected)
    assert list(map(set, asked)) == [{"s3a://lake/orders", "s3://state/ledger"}]
    on_disk = clock.requests(opened(hadoops), plan, "/disk/ledger", Prices())
    assert on_disk == RunRequests(READS, StoreRequests(lists=1), expected=run_requests(plan, "/disk/ledger").total)
    assert 0 < (on_disk.expected or 0) < expected


def test_a_run_on_a_disk_asked_nothing() -> None:
    assert PreparationClock().requests(opened(lambda places: None), plan_at("file:/lake/orders"), "/l", PRICES) is None


def test_a_jvm_that_is_gone_or_hangs_leaves_its_requests_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_listener, "JVM_ANSWERS_SECONDS", 0.05)
    hanging = threading.Event()

    def gone(places: Collection[str]) -> StoreRequests:
        raise ConnectionError

    def hangs(places: Collection[str]) -> StoreRequests:
        hanging.wait(20)
        return StoreRequests()

    for hadoops in (gone, hangs):
        clock = PreparationClock()
        REQUEST_COUNT.add(READS)
        plan = plan_at("s3a://lake/orders")
        unknown = RunRequests(READS, expected=run_requests(plan, "/l").total)
        assert clock.requests(opened(hadoops), plan, "/l", Prices()) == unknown
    hanging.set()
