"""The places of all policies are asked for once, side by side; what does not answer costs one table."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import cast

from maintainer.app.planning.policy_places import PolicyPlaces
from maintainer.delta.log.table_place import SpelledPlaces
from maintainer.engine.protocols import TableReader
from maintainer.model.plan.plan import Observed, TablePlan
from maintainer.model.table.table_facts import Protocol, TableRef
from tests.support.runs.planned_steps import vacuum
from tests.support.tables.builders import make_policy

NAMES = tuple(f"s.t{number}" for number in range(6))
POLICIES = tuple(replace(make_policy(name=name), file=f"{name}.yml") for name in NAMES)
SECONDS = 2.0


class Catalog:
    """Knows where tables are; asked for one of them it does not answer before it may, and t5 is where t0 is."""

    def __init__(self, slow: str) -> None:
        self.asked: Counter[str] = Counter()
        self.is_asked, self.may_answer = threading.Event(), threading.Event()
        self._slow = slow

    def location_of(self, ref: TableRef) -> str:
        self.asked[ref.identifier] += 1
        if ref.identifier == self._slow:
            self.is_asked.set()
            assert self.may_answer.wait(10 * SECONDS)
        return location_of(ref.identifier)


def location_of(name: str) -> str:
    return f"s3a://lake/{NAMES[0] if name == NAMES[5] else name}"


def with_deletion(name: str) -> TablePlan:
    observed = Observed(location_of(name), name, 0, (), (), Protocol(1, 2), 0, 0)
    return TablePlan(TableRef(name), f"{name}.yml", "d", observed, steps=(vacuum("old"),))


def test_a_place_that_is_not_told_holds_up_the_table_that_asks_and_no_other() -> None:
    catalog = Catalog(slow=NAMES[5])
    reader, places = cast(TableReader, catalog), PolicyPlaces(POLICIES, SpelledPlaces())
    plans = [with_deletion(name) for name in NAMES[:2]]
    first, second = (threading.Thread(target=places.opened, args=(plan, reader), daemon=True) for plan in plans)
    checked: list[TablePlan] = []
    check = threading.Thread(target=lambda: checked.extend(places.each_once(plans)), daemon=True)
    first.start()
    assert catalog.is_asked.wait(SECONDS)
    for thread in (second, check):
        thread.start()
        thread.join(SECONDS)
    try:
        assert [first.is_alive(), second.is_alive(), check.is_alive()] == [True, False, False]
        assert [plan.problem for plan in checked] == [None, None]
        assert set(NAMES[2:]) <= catalog.asked.keys()
    finally:
        catalog.may_answer.set()
    first.join(SECONDS)
    assert max(catalog.asked.values()) == 1
    # What is told late counts for whoever looks later.
    assert [plan.problem and plan.problem.code for plan in places.each_once(plans)] == ["T409", None]


def test_nothing_is_asked_where_nothing_is_deleted() -> None:
    catalog = Catalog(slow="")
    places = PolicyPlaces(POLICIES, SpelledPlaces())
    places.opened(replace(with_deletion(NAMES[0]), steps=()), cast(TableReader, catalog))
    assert not catalog.asked
    places.opened(with_deletion(NAMES[1]), cast(TableReader, catalog))
    assert catalog.asked == Counter(NAMES[2:])
