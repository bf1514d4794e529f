"""Who decides the horizon of a vacuum, and how that is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep, VacuumStep
from maintainer.model.table.storage_facts import StreamPosition, VacuumHistory
from maintainer.planning.plan_input import TableInput
from maintainer.planning.vacuum.deletion_limits import Horizon, vacuum_horizon
from maintainer.policy.resolve.resolved import Consumer
from tests.support.tables.builders import DAY_MS, DAY_SECONDS, NEVER_TOUCHED, NOW_MS, make_facts
from tests.unit.planning.vacuum.vacuum_plans import FILES_PROPERTY, TODAY, plan, policy_of, removed


@pytest.mark.parametrize(
    ("vacuum", "property_", "consumers", "days", "decided_by"),
    [
        ({"retention_seconds": 14 * DAY_SECONDS}, None, (), 14, "vacuum.retention (orders.yml:12)"),
        ({}, "interval 30 days", (), 30, f"table property {FILES_PROPERTY}"),
        ({}, None, (), 7, "vacuum.retention (orders.yml:12)"),
        (
            {"retention_seconds": 3600, "allow_short_retention": True},
            None,
            (),
            7,
            f"table property {FILES_PROPERTY} (Delta's default)",
        ),
        (
            {"retention_seconds": 2 * DAY_SECONDS, "allow_short_retention": True},
            "interval 1 days",
            (),
            2,
            "vacuum.retention (orders.yml:12)",
        ),
        ({"retention_seconds": DAY_SECONDS}, "interval 2 days", (), 7, "the floor of seven days"),
        (
            {},
            None,
            (Consumer("a", 3 * DAY_SECONDS), Consumer("late", 10 * DAY_SECONDS)),
            10,
            "consumer late (orders.yml:15)",
        ),
    ],
)
def test_the_longest_wish_decides_and_is_named(
    vacuum: dict[str, Any], property_: str | None, consumers: tuple[Consumer, ...], days: int, decided_by: str
) -> None:
    facts = make_facts(properties={FILES_PROPERTY: property_} if property_ else {})
    horizon = vacuum_horizon(TableInput(policy_of(consumers=consumers, **vacuum), facts, NEVER_TOUCHED, NOW_MS, TODAY))
    origins = {"vacuum.retention": "orders.yml:12", "the floor": "orders.yml:11", "consumer": "orders.yml:15"}
    origin = next((line for name, line in origins.items() if decided_by.startswith(name)), None)
    assert horizon == Horizon(NOW_MS - days * DAY_MS, days * DAY_SECONDS, decided_by, origin)


def test_twice_the_longest_write_is_kept() -> None:
    facts = replace(make_facts(), history=VacuumHistory(5 * DAY_MS, 41))
    horizon = vacuum_horizon(TableInput(policy_of(), facts, NEVER_TOUCHED, NOW_MS, TODAY))
    decided_by = "2 times the longest write in the log (5d, version 41)"
    assert horizon == Horizon(NOW_MS - 10 * DAY_MS, 10 * DAY_SECONDS, decided_by)


def test_an_unreadable_table_property_is_a_problem() -> None:
    planned = plan(policy_of(), make_facts(properties={FILES_PROPERTY: "a while"}, removed_files=()))
    assert planned.problem is not None
    assert planned.problem.code == "T418"


def test_a_table_that_keeps_less_than_the_policy_is_raised_first_and_its_log_with_it() -> None:
    policy = policy_of(retention_seconds=45 * DAY_SECONDS)
    facts = make_facts(removed_files=(removed("old", days_ago=50),))
    properties, vacuum = plan(policy, facts).steps
    assert isinstance(vacuum, VacuumStep)
    text = "{} keeps {}, the policy needs 45d"
    assert properties == SetPropertiesStep(
        before=((FILES_PROPERTY, None), ("delta.logRetentionDuration", None)),
        after=((FILES_PROPERTY, "interval 45 days"), ("delta.logRetentionDuration", "interval 45 days")),
        reasons=(
            Reason(ReasonCode.RETENTION_TOO_SHORT_ON_TABLE, text.format(FILES_PROPERTY, "7d"), "orders.yml:12"),
            Reason(
                ReasonCode.RETENTION_TOO_SHORT_ON_TABLE,
                text.format("delta.logRetentionDuration", "30d"),
                "orders.yml:12",
            ),
        ),
    )


@pytest.mark.parametrize("name", [FILES_PROPERTY, FILES_PROPERTY.upper()])
@pytest.mark.parametrize("now", [None, "interval 10 days"])
def test_what_the_policy_sets_the_table_to_counts_before_it_is_set(name: str, now: str | None) -> None:
    """The property is set first: a deletion by the shorter one would be refused, or take what it is to keep."""
    policy = replace(policy_of(), properties=((name, "interval 30 days"),))
    gone = (removed("younger", days_ago=20), removed("older", days_ago=31))
    facts = make_facts(properties={FILES_PROPERTY: now} if now else {}, removed_files=gone)
    properties, vacuum = plan(policy, facts).steps
    assert isinstance(properties, SetPropertiesStep)
    assert isinstance(vacuum, VacuumStep)
    assert [file.path for file in vacuum.files] == ["older"]
    assert vacuum.retention_seconds == 30 * DAY_SECONDS
    assert vacuum.decided_by == f"table property {FILES_PROPERTY} (as the policy sets it)"


def test_a_shorter_property_of_the_policy_counts_once_the_table_has_it() -> None:
    policy = replace(policy_of(), properties=((FILES_PROPERTY, "interval 8 days"),))
    facts = make_facts(properties={FILES_PROPERTY: "interval 30 days"}, removed_files=(removed("a", days_ago=20),))
    assert [type(step) for step in plan(policy, facts).steps] == [SetPropertiesStep]


def test_a_consumer_that_is_as_new_as_now_needs_nothing_longer() -> None:
    """A position that is ahead of our clock asks for no time, and one a second back for a second."""
    policy = policy_of(retention_seconds=0, allow_short_retention=True)
    facts = make_facts(properties={FILES_PROPERTY: "interval 0 seconds"})
    for ago_ms, seconds in ((-5_000, 0), (0, 0), (1, 1), (1000, 1), (1001, 2)):
        position = StreamPosition("s", version=3, needed_since_ms=NOW_MS - ago_ms)
        history = VacuumHistory(positions=(position,))
        asked = TableInput(policy, replace(facts, history=history), NEVER_TOUCHED, NOW_MS, TODAY)
        assert vacuum_horizon(asked).retention_seconds == seconds


def test_nothing_expired_names_who_decides() -> None:
    planned = plan(policy_of(retention_seconds=1), make_facts(removed_files=()))
    assert planned.left_alone[0].reason.text == (
        "nothing removed more than 7d ago is left on storage (table property delta.deletedFileRetentionDuration "
        "(Delta's default) decides)"
    )
