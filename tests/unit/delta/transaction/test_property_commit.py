"""Properties beside other writers: what somebody changed on purpose is left as it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from maintainer.delta.transaction import property_commit
from maintainer.delta.transaction.property_commit import check_as_planned, set_properties
from maintainer.errors import CommitConflict
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep
from maintainer.model.table.commit_records import CommitStamp

STEP = SetPropertiesStep((("team", "a"),), (("team", "b"),), (Reason(ReasonCode.PROPERTY_DRIFT, ""),))


@pytest.mark.parametrize("value", ["a", "b"])
def test_as_planned_or_as_wanted_is_no_change(value: str) -> None:
    check_as_planned({"team": value}, STEP, "t")


@pytest.mark.parametrize("configuration", [{"team": "c"}, {}])
def test_a_property_that_another_writer_changed_is_left_as_it_is(configuration: dict[str, str]) -> None:
    with pytest.raises(CommitConflict):
        check_as_planned(configuration, STEP, "t")


def test_one_that_another_writer_changed_while_the_intent_was_written_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    table: dict[str, Any] = {"id": "t", "configuration": {"team": "a"}}
    jvm = SimpleNamespace(
        log_at=lambda location: None,
        update=lambda log: SimpleNamespace(version=lambda: 1),
        metadata=lambda snapshot: table,
        set_properties=lambda location, values: pytest.fail("the other writer's value is overwritten"),
    )
    monkeypatch.setattr(property_commit, "TableStorage", lambda jvm, log: SimpleNamespace())
    facts = SimpleNamespace(ref=SimpleNamespace(identifier="t"), location="file:/t", table_id="t", version=1)

    def another_changes_it(version: int, proof: object) -> None:
        table["configuration"] = {"team": "c"}

    with pytest.raises(CommitConflict, match="team was changed"):
        set_properties(
            cast(Any, jvm), cast(Any, facts), STEP, CommitStamp("run-1", "t/p", 0, "digest"), another_changes_it
        )
