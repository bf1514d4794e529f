"""Table properties: drift by meaning, Delta's own spelling, and what is refused."""

from __future__ import annotations

import pytest

from maintainer.errors import TableError
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep
from maintainer.planning.property_plan import managed_properties, plan_properties
from maintainer.policy.resolve.resolved import AutoCompactPolicy, ResolvedPolicy
from tests.support.tables.builders import DAY_SECONDS, make_facts, make_policy, make_vacuum

AUTO = "delta.autoOptimize.autoCompact"


def held(**properties: str) -> ResolvedPolicy:
    items = tuple((key.replace("__", "."), value) for key, value in properties.items())
    return make_policy(properties=items, lines={f"properties.{key}": 30 + i for i, (key, _) in enumerate(items)})


def changes(policy: ResolvedPolicy, **table: str) -> dict[str, tuple[str | None, str]]:
    facts = make_facts(properties={key.replace("__", "."): value for key, value in table.items()})
    step = plan_properties(policy, facts)
    return (
        {}
        if step is None
        else {name: (old, new) for (name, old), (_, new) in zip(step.before, step.after, strict=True)}
    )


def test_drift_is_one_step_with_before_and_after() -> None:
    policy = held(delta__checkpointInterval="20", team__owner="sales")
    assert plan_properties(policy, make_facts(properties={"team.owner": "ops"})) == SetPropertiesStep(
        before=(("delta.checkpointInterval", None), ("team.owner", "ops")),
        after=(("delta.checkpointInterval", "20"), ("team.owner", "sales")),
        reasons=(
            Reason(
                ReasonCode.PROPERTY_DRIFT, "delta.checkpointInterval is not set, the policy says 20", "orders.yml:30"
            ),
            Reason(ReasonCode.PROPERTY_DRIFT, "team.owner is ops, the policy says sales", "orders.yml:31"),
        ),
    )


def test_no_drift_no_step() -> None:
    assert changes(held(own__key="1"), own__key="1") == {}


@pytest.mark.parametrize(
    ("key", "wanted", "has"),
    [
        ("delta.logRetentionDuration", "interval 4 weeks", "INTERVAL 28 days"),
        ("delta.logRetentionDuration", "interval 30 days", "30 days"),
        ("DELTA.LOGRETENTIONDURATION", "interval 30 days", "interval 30 days"),
        ("delta.enableExpiredLogCleanup", "TRUE", "true"),
        ("delta.enableChangeDataFeed", "true", "true"),
    ],
)
def test_values_are_compared_by_meaning(key: str, wanted: str, has: str) -> None:
    policy = make_policy(properties=((key, wanted),))
    stored = "delta.logRetentionDuration" if "retention" in key.lower() else key
    assert plan_properties(policy, make_facts(properties={stored: has})) is None


def test_keys_are_written_as_delta_spells_them_and_own_keys_as_they_are() -> None:
    assert changes(make_policy(properties=(("Delta.CHECKPOINTinterval", "5"), ("Own.Key", "X")))) == {
        "delta.checkpointInterval": (None, "5"),
        "Own.Key": (None, "X"),
    }


_HOOK_SETTINGS = ("minNumFiles", "minFileSize", "modifiedPartitionsOnly")


class TestAutoCompact:
    @pytest.mark.parametrize(
        ("enabled", "table", "expected"),
        [
            (True, {}, {AUTO: (None, "true")}),
            (True, {AUTO: "false"}, {AUTO: ("false", "true")}),
            (True, {AUTO: "tRue"}, {}),
            (False, {}, {}),
            (False, {AUTO: "true"}, {AUTO: ("true", "false")}),
            (False, {"delta.autoOptimize": "true"}, {"delta.autoOptimize": ("true", "false")}),
            (True, {"delta.autoOptimize": "true"}, {AUTO: (None, "true")}),
        ],
    )
    def test_the_property_follows_the_policy(
        self, enabled: bool, table: dict[str, str], expected: dict[str, tuple[str | None, str]]
    ) -> None:
        policy = make_policy(auto_compact=AutoCompactPolicy(enabled))
        assert changes(policy, **{key.replace(".", "__"): value for key, value in table.items()}) == expected

    def test_a_map_also_holds_what_our_hook_decides_by(self) -> None:
        policy = make_policy(auto_compact=AutoCompactPolicy(True, 20, 1000, None, False))
        own = "maintainer.autoCompact."
        assert changes(policy, delta__autoOptimize__autoCompact="true") == {
            own + "minNumFiles": (None, "20"),
            own + "minFileSize": (None, "1000"),
            own + "modifiedPartitionsOnly": (None, "false"),
        }
        step = plan_properties(policy, make_facts())
        assert step is not None
        after = make_facts(properties=dict(step.after))
        assert plan_properties(policy, after) is None
        assert set(managed_properties(policy, after)) >= {*step.after, (own + "maxFileSize", None)}
        # What the policy no longer says goes back to the default, and then nothing is left to do.
        plain = make_policy(auto_compact=AutoCompactPolicy(True))
        back = plan_properties(plain, after)
        assert back is not None
        assert dict(back.after) == {own + name: "default" for name in _HOOK_SETTINGS}
        assert plan_properties(plain, make_facts(properties={**dict(step.after), **dict(back.after)})) is None
        # Switched off, they have no say and are left as they are.
        assert dict(plan_properties(make_policy(auto_compact=AutoCompactPolicy(False)), after).after) == {AUTO: "false"}  # type: ignore[union-attr]

    def test_unmanaged_is_left_alone(self) -> None:
        assert changes(make_policy(), delta__autoOptimize__autoCompact="true") == {}

    def test_disagreement_with_properties_names_both_lines(self) -> None:
        policy = make_policy(
            auto_compact=AutoCompactPolicy(True),
            properties=((AUTO, "false"),),
            lines={"autoCompact": 3, f"properties.{AUTO}": 9},
        )
        with pytest.raises(TableError) as error:
            plan_properties(policy, make_facts())
        assert (error.value.code, error.value.where) == ("T417", "orders.yml:3")
        assert error.value.found == "true and false (orders.yml:9)"


@pytest.mark.parametrize(
    ("key", "value", "code", "help"),
    [
        ("delta.checkpointIntervall", "5", "T415", "did you mean delta.checkpointInterval?"),
        ("delta.targetFileSize", "5", "T415", "keys of your own must not start with `delta.`"),
        ("location", "/x", "T415", None),
        (
            "delta.enableDeletionVectors",
            "true",
            "T416",
            "set it by hand with ALTER TABLE; once the table has this value, the policy may name it",
        ),
        ("delta.columnMapping.mode", "name", "T416", None),
        ("delta.feature.rowTracking", "supported", "T416", None),
        ("delta.constraints.positive", "id > 0", "T416", None),
        ("delta.columnMapping.maxColumnId", "4", "T416", "leave it out of the policy: Delta sets it by itself"),
        ("delta.autoOptimize.optimizeWrite", "auto", "T418", None),
        ("delta.logRetentionDuration", "1 month", "T418", None),
    ],
)
def test_what_delta_or_we_would_refuse_is_found_when_planning(
    key: str, value: str, code: str, help: str | None
) -> None:
    policy = make_policy(properties=((key, value),), lines={f"properties.{key}": 31})
    with pytest.raises(TableError) as error:
        plan_properties(policy, make_facts())
    assert (error.value.code, error.value.where) == (code, "orders.yml:31")
    assert help is None or error.value.help == help


class TestRetention:
    LOG, FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"

    def policy(self, days: int, **properties: str) -> ResolvedPolicy:
        items = tuple((getattr(self, key.upper()), value) for key, value in properties.items())
        return make_policy(vacuum=make_vacuum(retention_seconds=days * DAY_SECONDS), properties=items)

    def test_a_table_that_keeps_enough_is_left(self) -> None:
        assert changes(self.policy(7)) == {}
        assert changes(self.policy(7), delta__deletedFileRetentionDuration="interval 30 days") == {}

    def test_within_the_log_retention_only_the_files_are_raised(self) -> None:
        assert changes(self.policy(14)) == {self.FILES: (None, "interval 14 days")}

    def test_the_log_is_raised_where_it_would_be_shorter(self) -> None:
        assert changes(self.policy(14), delta__logRetentionDuration="interval 10 days") == {
            self.FILES: (None, "interval 14 days"),
            self.LOG: ("interval 10 days", "interval 14 days"),
        }

    def test_a_held_property_is_raised_with_its_log(self) -> None:
        assert changes(self.policy(7, files="interval 40 days")) == {
            self.FILES: (None, "interval 40 days"),
            self.LOG: (None, "interval 40 days"),
        }

    @pytest.mark.parametrize(
        ("days", "properties"),
        [(7, {"files": "interval 3 days"}), (14, {"log": "interval 10 days"}), (7, {"log": "interval 5 days"})],
    )
    def test_parts_that_disagree_are_an_error(self, days: int, properties: dict[str, str]) -> None:
        with pytest.raises(TableError) as error:
            plan_properties(self.policy(days, **properties), make_facts())
        assert error.value.code == "T417"

    def test_a_log_that_is_already_too_short_is_not_our_business_without_a_change(self) -> None:
        """Delta allows unrelated changes on such a table, and nobody asked."""
        assert changes(held(own__key="1"), delta__logRetentionDuration="interval 1 days") == {"own.key": (None, "1")}


def test_managed_properties_are_those_the_policy_has_a_say_in() -> None:
    policy = make_policy(properties=(("own.key", "1"),), auto_compact=AutoCompactPolicy(False), vacuum=make_vacuum())
    facts = make_facts(properties={"own.key": "2", "other": "3", AUTO: "true"})
    assert managed_properties(policy, facts) == (
        ("delta.autoOptimize", None),
        (AUTO, "true"),
        ("delta.deletedFileRetentionDuration", None),
        ("delta.logRetentionDuration", None),
        ("own.key", "2"),
    )


def test_a_property_in_two_spellings_is_refused_at_the_second() -> None:
    policy = make_policy(
        properties=(("delta.checkpointInterval", "10"), ("DELTA.checkpointinterval", "10")),
        lines={"properties.delta.checkpointInterval": 30, "properties.DELTA.checkpointinterval": 31},
    )
    with pytest.raises(TableError) as caught:
        plan_properties(policy, make_facts())
    assert (caught.value.code, caught.value.where) == ("T417", "orders.yml:31")
    assert "delta.checkpointInterval is written twice" in caught.value.what
