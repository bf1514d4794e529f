"""Re-check before applying: refused when the ground moved, reduced when only files did."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.errors import ExitCode, Refused
from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Batch, Bin, CompactStep, SetPropertiesStep, VacuumStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy, ZOrderTurn
from maintainer.model.table.table_facts import DataFile, Protocol, RemovedFile, TableFacts, TableRef
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import assemble, plan_table
from maintainer.planning.recheck.staleness import MAX_CHANGES, StaleReasons, check_age, recheck, refusal
from maintainer.planning.selection.schema_columns import planned_columns
from maintainer.policy.resolve.resolved import AutoCompactPolicy, policy_values
from tests.support.tables.builders import (
    DAY_MS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_policy,
    make_schema,
    make_vacuum,
)

AUTO = "delta.autoOptimize.autoCompact"
OLD = RemovedFile("old-1", 10, NOW_MS - 9 * DAY_MS), RemovedFile("old-2", 20, NOW_MS - 9 * DAY_MS)
POLICY = make_policy(vacuum=make_vacuum(), auto_compact=AutoCompactPolicy(True))
FILES = (
    *make_files(10, 20, prefix="a", partition={"p": "1"}),
    *make_files(30, 30, prefix="b", partition={"p": "2"}),
)
FACTS = make_facts(files=FILES, partitioned_by=("p",), removed_files=OLD)


def planned() -> TablePlan:
    return plan_table(TableInput(POLICY, FACTS, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))


def stale(facts: TableFacts, digest: str | None = "sha256:aa", *, exact: bool = False) -> list[str]:
    checked = recheck(planned(), facts, digest, exact=exact)
    return list(checked.reasons) if isinstance(checked, StaleReasons) else []


def reduced(facts: TableFacts) -> TablePlan:
    checked = recheck(planned(), facts, "sha256:aa")
    assert isinstance(checked, TablePlan)
    return checked


REMADE = "the table was dropped and made again (table id 11111111-2222-3333-4444-555555555555, now x)"
MOVED = "the table is at another place (file:/lake/orders, now file:/moved)"


def with_schema(columns: dict[str, Any]) -> TableFacts:
    return replace(FACTS, schema_json=make_schema(columns))


def test_the_same_table_gives_the_same_plan() -> None:
    assert [step.kind for step in planned().steps] == ["set_properties", "compact", "vacuum"]
    assert reduced(FACTS) == planned()


def test_appends_do_not_make_it_stale() -> None:
    facts = replace(FACTS, version=9, files=(*FILES, make_file("new", partition={"p": "1"})))
    assert reduced(facts) == planned()
    assert stale(facts, exact=True) == ["the table is at version 9, the plan was made at version 7 (--exact)"]


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        (replace(FACTS, table_id="x"), [REMADE]),
        (replace(FACTS, location="file:/moved"), [MOVED]),
        (with_schema({"id": "long", "p": "integer"}), ["column p was of type string, now integer"]),
        (replace(FACTS, partition_columns=()), ["the partition columns were p, now none"]),
        (replace(FACTS, version=6), ["the table went back from version 7 to 6"]),
        (replace(FACTS, properties=((AUTO, "false"),)), [f"table property {AUTO} was not set, now false"]),
        (
            replace(FACTS, properties=(("delta.logRetentionDuration", "interval 60 days"),)),
            ["table property delta.logRetentionDuration was not set, now interval 60 days"],
        ),
        (replace(FACTS, properties=(("not.managed", "1"),)), []),
        (replace(FACTS, table_id="x", location="file:/moved"), [REMADE, MOVED]),
    ],
)
def test_moved_ground_is_refused_with_all_reasons(facts: TableFacts, what: list[str]) -> None:
    assert stale(facts) == what


@pytest.mark.parametrize("digest", ["sha256:bb", None])
def test_another_policy_or_none_is_refused(digest: str | None) -> None:
    changed = "its policy was changed (orders.yml)"
    assert stale(FACTS, digest) == [changed if digest else "no policy matches the table any more"]


def test_what_changed_in_the_policy_is_named_key_by_key() -> None:
    changed = replace(POLICY, vacuum=make_vacuum(retention_seconds=8 * 86_400), tags=("gold",), digest="sha256:bb")
    checked = recheck(planned(), FACTS, "sha256:bb", policy_values_now=policy_values(changed))
    assert isinstance(checked, StaleReasons)
    assert checked.reasons == (
        "policy key tags was not set, now gold",
        "policy key vacuum.retention was 7d, now 8d",
    )


def test_a_change_without_a_name_and_many_changes_are_said_too() -> None:
    plan = planned()
    same = recheck(plan, FACTS, "sha256:bb", policy_values_now=plan.policy_values)
    assert isinstance(same, StaleReasons)
    assert same.reasons == ("its policy was changed (orders.yml)",)
    other = tuple((f"properties.{number:02}", "1") for number in range(20))
    many = recheck(plan, FACTS, "sha256:bb", policy_values_now=(*plan.policy_values, *other))
    assert isinstance(many, StaleReasons)
    assert many.reasons[0] == "policy key properties.00 was not set, now 1"
    assert many.reasons[MAX_CHANGES:] == ("10 more changes of its policy",)


def test_features_and_versions_of_the_protocol_are_named() -> None:
    assert stale(replace(FACTS, protocol=Protocol(3, 7, ("deletionVectors",), ("deletionVectors",)))) == [
        "the table feature deletionVectors was added",
        "the protocol's reader version was 1, now 3",
        "the protocol's writer version was 2, now 7",
    ]
    old = replace(FACTS, protocol=Protocol(3, 7, ("a",), ("a", "b")))
    plan = plan_table(TableInput(POLICY, old, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    assert plan.problem is not None  # nobody knows these features: nothing is carried out, nothing is pinned
    pinned = replace(planned(), observed=replace(planned().observed, protocol=old.protocol))  # type: ignore[type-var]
    for now, says in (
        (Protocol(3, 7, ("a",), ("a",)), "the table feature b was removed"),
        (Protocol(3, 7, ("a", "b"), ("a", "b")), "the reader features were a, now a, b"),
    ):
        checked = recheck(pinned, replace(FACTS, protocol=now), "sha256:aa")
        assert isinstance(checked, StaleReasons)
        assert checked.reasons == (says,)


def test_a_table_without_steps_pins_no_columns() -> None:
    healthy = plan_table(TableInput(make_policy(), make_facts(), NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    assert healthy.observed is not None
    assert (healthy.steps, healthy.observed.columns) == ((), ())
    assert recheck(healthy, make_facts(columns={"new": "string"}), None) is healthy


def test_bins_with_a_file_that_is_gone_are_dropped_and_the_others_kept() -> None:
    facts = replace(FACTS, version=8, files=FILES[1:])
    checked = reduced(facts)
    step = checked.steps[1]
    assert isinstance(step, CompactStep)
    assert [bin_.files for batch in step.batches for bin_ in batch.bins] == [FILES[2:]]
    text = "a bin of 2 files, of which 1 changed since the plan was made"
    assert checked.left_alone[-1] == LeftAlone(Reason(ReasonCode.NO_LONGER_LIVE, text), 2, 30, (("p", "1"),))


def test_a_turn_keeps_the_numbers_of_files_of_the_bins_that_are_left() -> None:
    turn = ZOrderTurn(Strategy.LEVELED, "1:ab", 999, (7, 3), level=1, cube="01")
    step = ZOrderStep((Batch((Bin(FILES[:2]), Bin(FILES[2:]))),), ("id",), 1000, 2, (), planned_turn=turn)
    before = replace(planned(), steps=(step,))
    assert recheck(before, FACTS, "sha256:aa") == before
    checked = recheck(before, replace(FACTS, version=8, files=FILES[1:]), "sha256:aa")
    assert isinstance(checked, TablePlan)
    (left,) = checked.steps
    assert isinstance(left, ZOrderStep)
    assert left.planned_turn is not None
    assert [bin_.files for bin_ in left.batches[0].bins] == [FILES[2:]]
    assert left.planned_turn == replace(
        turn, num_files=(3,), elements=sum(file.live_records or 0 for file in FILES[2:])
    )
    assert left.num_files_added == 3


def test_bins_are_looked_up_and_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of a table with tiny files has thousands of bins; each with each is minutes before every try."""
    gone = FACTS.files[-1]
    facts = replace(FACTS, files=tuple(file for file in FILES if file != gone))
    plan = planned()

    def compared(bin_: Bin, other: object) -> bool:
        raise AssertionError("a bin was compared with another")

    monkeypatch.setattr(Bin, "__eq__", compared)
    checked = recheck(plan, facts, "sha256:aa")
    assert isinstance(checked, TablePlan)
    assert [len(step.bins) for step in checked.steps if isinstance(step, CompactStep)] == [1]


def test_a_new_deletion_vector_makes_it_another_file() -> None:
    changed: tuple[DataFile, ...] = (make_file("a0", size=10, partition={"p": "1"}, deleted=1), *FILES[1:])
    facts = replace(FACTS, files=changed)
    before, after = planned().steps[1], reduced(facts).steps[1]
    assert isinstance(before, CompactStep)
    assert isinstance(after, CompactStep)
    assert [bin_ for bin_ in before.batches[0].bins if FILES[0] not in bin_.files] == list(after.batches[0].bins)
    assert (len(before.batches[0].bins), len(after.batches[0].bins)) == (2, 1)


def test_with_no_bin_left_the_step_is_dropped() -> None:
    assert [step.kind for step in reduced(replace(FACTS, files=())).steps] == ["set_properties", "vacuum"]


def test_a_property_that_already_has_its_value_is_done() -> None:
    """So that a plan of which a part was applied can be applied again."""
    facts = replace(FACTS, version=8, properties=((AUTO, "TRUE"),))
    assert [step.kind for step in reduced(facts).steps] == ["compact", "vacuum"]


def test_removed_files_that_are_live_again_or_gone_are_dropped() -> None:
    facts = replace(FACTS, files=(*FILES, make_file("old-1", partition={"p": "1"})), removed_files=None)
    checked = reduced(facts)
    step = checked.steps[-1]
    assert isinstance(step, VacuumStep)
    assert step.files == OLD[1:]
    assert checked.left_alone[-1].reason == Reason(ReasonCode.LIVE_AGAIN, "1 file removed once and live again")
    assert [step.kind for step in reduced(replace(FACTS, removed_files=())).steps] == ["set_properties", "compact"]


def test_the_refusal_names_every_table_and_reason() -> None:
    checked = recheck(planned(), replace(FACTS, table_id="x", location="file:/moved"), "sha256:aa")
    assert isinstance(checked, StaleReasons)
    other = replace(checked, ref=TableRef("sales.lines"), reasons=("something else",))
    error = refusal([checked, other])
    assert (error.code, error.exit_code) == ("A403", ExitCode.REFUSED)
    assert error.found is not None
    assert sorted(error.found.splitlines()) == [
        "sales.lines: something else",
        f"sales.orders: {MOVED}",
        f"sales.orders: {REMADE}",
    ]


def test_the_refusal_says_once_what_holds_for_many_tables() -> None:
    key = "policy key optimize.maxThreads was 8, now 2"
    many = [StaleReasons(TableRef(f"s.t{number:02}"), (key,)) for number in range(30)]
    own = StaleReasons(TableRef("s.t30"), (key, "column note (string) was added"))
    found = refusal([*many, own]).found
    assert found is not None
    assert found.splitlines() == [
        f"31 tables (s.t00, s.t01, s.t02, s.t03, s.t04 and 26 more): {key}",
        "s.t30: column note (string) was added",
    ]


@pytest.mark.parametrize(
    ("age_ms", "what"),
    [
        (0, None),
        (DAY_MS, None),
        (DAY_MS + 1, "the plan is too old"),
        (-1, "the plan was made in the future"),
    ],
)
def test_a_plan_expires_after_a_day(age_ms: int, what: str | None) -> None:
    plan = assemble([planned()], created_at_ms=NOW_MS)
    if what is None:
        check_age(plan, NOW_MS + age_ms)
        return
    with pytest.raises(Refused, match=what) as error:
        check_age(plan, NOW_MS + age_ms)
    assert error.value.code == "A404"


def test_a_problem_has_nothing_to_recheck() -> None:
    plan = replace(planned(), observed=None, steps=())
    assert recheck(plan, FACTS, None) is plan


def test_an_identity_columns_high_water_mark_is_no_schema_change() -> None:
    def schema(mark: int) -> str:
        return (
            '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,'
            f'"metadata":{{"delta.identity.start":1,"delta.identity.highWaterMark":{mark}}}}}]}}'
        )

    early, late = (replace(FACTS, schema_json=schema(mark)) for mark in (1, 900))
    assert planned_columns(early) == planned_columns(late)


def test_set_properties_keeps_what_is_still_missing() -> None:
    policy = make_policy(properties=(("a", "1"), ("b", "2")))
    facts = make_facts()
    plan = plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    checked = recheck(plan, replace(facts, properties=(("a", "1"),)), "sha256:aa")
    assert isinstance(checked, TablePlan)
    (step,) = checked.steps
    assert isinstance(step, SetPropertiesStep)
    assert (step.before, step.after) == ((("b", None),), (("b", "2"),))
    assert [reason.text for reason in step.reasons] == ["b is not set, the policy says 2"]
