"""The comparison in a pull request's comment: who comes in, goes out, changes, and what keeps less, in bold."""

from __future__ import annotations

import re
from dataclasses import replace

from markdown_it import MarkdownIt

from maintainer.errors import ExitCode
from maintainer.model.plan.plan import LeftAlone, Plan, TableState
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep
from maintainer.model.run.exit_codes import plan_exit_code
from maintainer.planning.planner import absent_plan
from maintainer.policy.project.policy_changes import PolicyChanges, PolicyWork, SharedChange, policy_changes, work_of
from maintainer.policy.resolve.resolved import (
    BUILT_IN,
    AutoCompactPolicy,
    Expectation,
    Origin,
    PurgePolicy,
    ResolvedPolicy,
    RewritePolicy,
    VacuumMode,
    VacuumPolicy,
    ValueChange,
    ZOrderPolicy,
)
from maintainer.report.document.markdown_writer import markdown_text
from maintainer.report.plan.plan_markdown import (
    MARKER,
    MAX_VALUE,
    PlanComparison,
    comparison_blocks,
    render_failure_markdown,
    render_plan_markdown,
)
from tests.support.runs import sample_plans
from tests.support.tables.builders import make_optimize, make_policy

DAY = 86_400
MIB = 2**20
SIZES = make_optimize(min_size=64 * MIB, max_size=256 * MIB)
SMALLER = make_optimize(min_size=32 * MIB, max_size=256 * MIB)


def vacuum(days: int) -> VacuumPolicy:
    return VacuumPolicy(days * DAY, False, 0, VacuumMode.AUTO, False, 30 * DAY)


def test_every_changed_value_is_named_before_and_after() -> None:
    before = [
        make_policy(name="a", digest="1", optimize=SIZES, vacuum=vacuum(14), lines={"vacuum": 4}),
        make_policy(name="b", digest="1"),
        make_policy(name="c", digest="1"),
        make_policy(name="gone", digest="1", optimize=SIZES, vacuum=vacuum(7)),
    ]  # fmt: skip
    now = [
        make_policy(name="a", digest="2", optimize=SMALLER, vacuum=vacuum(7), lines={"vacuum": 4}),
        make_policy(name="b", digest="2", vacuum=vacuum(30), tags=("nightly", "gold"), lines={"tags": 3, "vacuum": 4}),
        make_policy(name="c", digest="1"),
        make_policy(name="new", digest="1", optimize=SIZES),
    ]  # fmt: skip
    changes = policy_changes(before, now)
    assert changes.added == (PolicyWork("new", "orders.yml", ("compaction of files under 64 MiB",)),)
    assert changes.removed == (
        PolicyWork("gone", "orders.yml", ("compaction of files under 64 MiB", "vacuum with retention 7d")),
    )
    a, b = changes.changed
    assert a.values == (
        ValueChange("optimize.minFileSize", "64 MiB", "32 MiB"),
        ValueChange("vacuum.retention", "14d", "7d"),
    )
    assert a.shorter_retention == ("14d", "7d")
    assert b.shorter_retention == ("nothing was deleted", "30d")
    assert ValueChange("tags", "not set", "nightly, gold") in b.values
    assert not policy_changes(now, now).any


def test_defaults_that_come_and_go_with_their_map_are_not_named() -> None:
    without = make_policy(digest="1")
    inside = replace(
        make_policy(digest="2", vacuum=vacuum(7)),
        origins={
            "vacuum": Origin("orders.yml", 4),
            "vacuum.retention": Origin("orders.yml", 4),
            "vacuum.every": BUILT_IN,
            "vacuum.mode": BUILT_IN,
        },
    )
    keys = {value.key for value in policy_changes([without], [inside]).changed[0].values}
    assert "vacuum.retention" in keys
    assert not {"vacuum.every", "vacuum.mode"} & keys
    assert {value.key for value in policy_changes([inside], [without]).changed[0].values} == keys


def test_what_a_policy_asks_for_is_said_in_its_order() -> None:
    everything = make_policy(
        optimize=replace(SIZES, zorder=ZOrderPolicy(("a", "b")), purge=PurgePolicy()),
        properties=(("delta.appendOnly", "true"),),
        auto_compact=AutoCompactPolicy(True),
        vacuum=vacuum(7),
    )
    assert work_of(with_expectations(everything, Expectation("expect_x", {}))) == (
        "1 table property",
        "auto compaction on",
        "Z-order by a, b",
        "purge of deleted rows and dropped columns",
        "vacuum with retention 7d",
        "1 expectation after each change",
    )
    rewrite = make_policy(optimize=replace(SIZES, rewrite=RewritePolicy(4)), auto_compact=AutoCompactPolicy(False))
    assert work_of(rewrite) == ("auto compaction off", "partitions in files of a number or size")


def with_expectations(policy: ResolvedPolicy, *expectations: Expectation) -> ResolvedPolicy:
    return replace(policy, verify=replace(policy.verify, expectations=expectations))


def test_longer_retention_and_no_vacuum_any_more_are_not_shorter() -> None:
    (longer,) = policy_changes(
        [make_policy(digest="1", vacuum=vacuum(7))], [make_policy(digest="2", vacuum=vacuum(8))]
    ).changed
    (off,) = policy_changes(
        [make_policy(digest="1", vacuum=vacuum(7), lines={"vacuum": 4})], [make_policy(digest="2")]
    ).changed
    assert (longer.shorter_retention, off.shorter_retention) == (None, None)


def hostile_comparison() -> PlanComparison:
    plan = sample_plans.full_plan()
    nothing = replace(plan, tables=tuple(replace(table, steps=()) for table in plan.tables))
    before = [make_policy(name="a|b", digest="1", vacuum=vacuum(14)), make_policy(name="gone", optimize=SIZES)]
    return PlanComparison(
        "main",
        policy_changes(
            before, [make_policy(name="a|b", digest="2", vacuum=vacuum(7)), make_policy(name="<x>", optimize=SIZES)]
        ),
        nothing,
    )


def compared_lines(plan: Plan, compared: PlanComparison, room: int) -> list[str]:
    return markdown_text(comparison_blocks(plan, compared), room).splitlines()


def test_the_comment_has_it_after_the_totals_and_stays_stable() -> None:
    plan, compared = sample_plans.full_plan(), hostile_comparison()
    text = render_plan_markdown(plan, compared=compared)
    lines = compared_lines(plan, compared, 30_000)
    assert "\n".join(lines) in text
    assert lines[0] == "#### Changed policies, compared with `main`"
    assert r"* **`a`\|`b` keeps less: retention 14d -> 7d**" in lines
    assert any(line.startswith("* the next apply rewrites ") and " more: 0 B -> " in line for line in lines)
    assert any(line.startswith("* the next apply deletes ") and " more: 0 B -> " in line for line in lines)
    assert r"| `a`\|`b` | `vacuum.retention` | `14d` | `7d` |" in lines
    assert "| `<x>` | `orders.yml` | compaction of files under 64 MiB |" in lines
    assert "| `gone` | `orders.yml` | compaction of files under 64 MiB |" in lines
    assert lines[-1].startswith("What was done to these tables stays")
    later = replace(plan, created_at_ms=plan.created_at_ms + 86_400_000)
    assert render_plan_markdown(later, compared=compared) == text


def test_it_is_read_without_entities_and_by_a_reader_of_markdown() -> None:
    text = render_plan_markdown(sample_plans.full_plan(), compared=hostile_comparison())
    assert not re.search(r"&#?\w+;", text)
    assert "<code>" not in text
    assert "<br>" not in text
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert sum(token.type == "table_open" for token in tokens) == 6
    widths: list[int] = []
    for token in tokens:
        if token.type == "tr_open":
            widths.append(0)
        elif token.type in ("td_open", "th_open"):
            widths[-1] += 1
    assert set(widths) == {3, 4, 5}


def test_tables_that_change_alike_share_their_lines() -> None:
    names = [f"t{number}" for number in range(1, 8)]
    before = [make_policy(name=name, digest="1", vacuum=vacuum(14), lines={"vacuum.retention": 4}) for name in names]
    now = [make_policy(name=name, digest="2", vacuum=vacuum(7), lines={"vacuum.retention": 4}) for name in names]
    now[-1] = make_policy(name="t7", digest="2", vacuum=vacuum(8), lines={"vacuum.retention": 4})
    compared = PlanComparison("main", policy_changes(before, now), sample_plans.full_plan())
    lines = compared_lines(sample_plans.full_plan(), compared, 30_000)
    six = "`t1`, `t2`, `t3`, `t4`, `t5` and 1 more"
    assert f"* **{six} keep less: retention 14d -> 7d**" in lines
    assert "* **`t7` keeps less: retention 14d -> 8d**" in lines
    assert f"| {six} | `vacuum.retention` | `14d` | `7d` |" in lines
    assert "| `t7` | `vacuum.retention` | `14d` | `8d` |" in lines
    assert sum("vacuum.retention" in line for line in lines) == 2


def test_what_does_not_fit_is_counted() -> None:
    compared = hostile_comparison()
    lines = compared_lines(sample_plans.full_plan(), compared, 0)
    end = "did not fit: see the saved plan."
    assert {f"3 more changes {end}", f"1 more changed value {end}", f"1 more new policy {end}"} <= {*lines}
    values = tuple(ValueChange(f"properties.{number}", "x" * 900, "y") for number in range(400))
    large = replace(compared.changes, changed=(replace(compared.changes.changed[0], values=values),))
    text = render_plan_markdown(sample_plans.full_plan(), compared=replace(compared, changes=large))
    assert len(text) <= 60_000
    assert re.search(r"\d+ more changed values did not fit", text)
    assert f"`{'x' * MAX_VALUE}... (900 characters)`" in text
    assert "`sales.orders`" in text


def test_nothing_changes() -> None:
    compared = PlanComparison("main", PolicyChanges((), (), ()), sample_plans.full_plan())
    assert compared_lines(sample_plans.full_plan(), compared, 1000) == ["No table's policy differs from `main`."]
    same = replace(hostile_comparison(), plan=sample_plans.full_plan())
    lines = compared_lines(sample_plans.full_plan(), same, 1000)
    assert "* the next apply rewrites and deletes as much as before" in lines


def test_what_zorder_remembers_is_named_and_not_printed() -> None:
    name = "maintainer.zorder.revision.1"
    step = SetPropertiesStep(
        before=((name, None), ("delta.x", "1")),
        after=((name, '{"boundaries":' + "9" * 1500 + "}"), ("delta.x", "2")),
        reasons=(
            Reason(ReasonCode.NEW_REVISION, f"{name}: id in 256 ranges", "a.yml:3"),
            Reason(ReasonCode.PROPERTY_DRIFT, "delta.x is 1, the policy says 2", "a.yml:4"),
        ),
    )
    text = render_plan_markdown(sample_plans.plan(replace(sample_plans.orders(), steps=(step,))))
    first, second = [line for line in text.splitlines() if "| properties |" in line]
    assert first.endswith("the boundaries of the Z-order, which later runs go by | id in 256 ranges `a.yml:3` |")
    assert second.endswith("| `delta.x` `1` -> `2` | delta.x is 1, the policy says 2 `a.yml:4` |")
    assert "999" not in text
    assert name not in text


def test_a_table_that_does_not_exist_yet_is_a_note() -> None:
    plan = absent_plan(make_policy(name="s.new", owner="team"), "origin/main")
    reason = Reason(
        ReasonCode.NO_TABLE_YET, "the table does not exist yet; its policy is new since `origin/main`", "orders.yml"
    )
    assert (plan.left_alone, plan.state, plan.owner) == ((LeftAlone(reason),), TableState.WAITING, "team")
    assert plan_exit_code(sample_plans.plan(plan), detailed=True) is ExitCode.OK
    text = render_plan_markdown(sample_plans.plan(plan))
    sentence = "no_table_yet: the table does not exist yet; its policy is new since `origin/main` `orders.yml`"
    assert f"| . | `s.new` | left alone |  | {sentence} |" in text.splitlines()


def test_a_failure_is_a_comment_too() -> None:
    error = "error[E626]: the policies at `x` have errors\n   = help: ```<b>@team"
    lines = render_failure_markdown(error, ["policies/a.yml:1:2: error[P201] no"], "prod").splitlines()
    assert lines[0] == MARKER
    assert lines[1] == "### maintainer plan (prod)"
    assert "**There is no plan, because of this error:**" in lines
    assert [token.type for token in MarkdownIt("commonmark").parse("\n".join(lines))][-1] == "fence"
    assert "policies/a.yml:1:2: error[P201] no" in lines
    long = render_failure_markdown("\n".join(["x" * 9000] * 300))
    assert len(long) <= 60_000
    assert "and 200 more lines" in long.splitlines()


def test_what_differs_in_shared_files_comes_before_what_it_changes_of_each_table() -> None:
    shared = (
        SharedChange("policies/_profiles/a|b.yml", "optimize.maxFileSize", "1GiB", "not set", 1),
        SharedChange("maintainer.yml", "limits.maxFailures", "not set", "3", None),
    )
    compared = replace(hostile_comparison(), shared=shared)
    lines = compared_lines(sample_plans.full_plan(), compared, 30_000)
    first = lines.index(r"| `policies/_profiles/a`\|`b.yml` | `optimize.maxFileSize` | `1GiB` | not set | 1 table |")
    assert lines[first - 2] == "| shared file | value | before | now | reaches |"
    assert lines[first + 1] == "| `maintainer.yml` | `limits.maxFailures` | not set | `3` | each run |"
    assert lines.index("| table | value | before | now |") > first
    assert "2 more changes of shared files did not fit: see the saved plan." in compared_lines(
        sample_plans.full_plan(), compared, 0
    )
    nobody = PlanComparison("main", PolicyChanges((), (), ()), sample_plans.full_plan(), shared)
    lines = compared_lines(sample_plans.full_plan(), nobody, 1000)
    assert (lines[0], lines[4:]) == ("No table's policy differs from `main`.", lines[4:6])


def test_a_vacuum_where_there_was_none_is_said_to_be_new() -> None:
    compared = PlanComparison(
        "main",
        policy_changes([make_policy(name="t", digest="1")], [make_policy(name="t", digest="2", vacuum=vacuum(7))]),
        sample_plans.full_plan(),
    )
    lines = compared_lines(sample_plans.full_plan(), compared, 30_000)
    assert "* **`t`: vacuum is new, files are deleted 7d after a commit removed them; until now none was**" in lines
