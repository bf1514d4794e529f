"""Properties beside other writers: what somebody changed on purpose is left as it is."""

from __future__ import annotations

import pytest

from maintainer.delta.transaction.property_commit import check_as_planned
from maintainer.errors import CommitConflict
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep

STEP = SetPropertiesStep((("team", "a"),), (("team", "b"),), (Reason(ReasonCode.PROPERTY_DRIFT, ""),))


@pytest.mark.parametrize("value", ["a", "b"])
def test_as_planned_or_as_wanted_is_no_change(value: str) -> None:
    check_as_planned({"team": value}, STEP, "t")


@pytest.mark.parametrize("configuration", [{"team": "c"}, {}])
def test_a_property_that_another_writer_changed_is_left_as_it_is(configuration: dict[str, str]) -> None:
    with pytest.raises(CommitConflict):
        check_as_planned(configuration, STEP, "t")
