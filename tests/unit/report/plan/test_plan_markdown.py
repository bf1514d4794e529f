"""The comparison in a pull request's comment: who comes in, goes out, changes, and what keeps less, in bold."""

from __future__ import annotations

from dataclasses import replace

from maintainer.policy.project.policy_changes import PolicyChanges, ValueChange, policy_changes
from maintainer.policy.resolve.resolved import VacuumMode, VacuumPolicy
from maintainer.report.plan.plan_markdown import Comparison, render_comparison, render_plan_markdown
from tests.support.runs import sample_runs as samples
from tests.support.tables.builders import make_optimize, make_policy

DAY = 86_400
MIB = 2**20
SIZES = make_optimize(min_size=64 * MIB, max_size=256 * MIB)
SMALLER = make_optimize(min_size=32 * MIB, max_size=256 * MIB)


def vacuum(days: int) -> VacuumPolicy:
    return VacuumPolicy(days * DAY, False, 0, VacuumMode.AUTO, False, 30 * DAY)


def test_what_differs_is_told_in_the_words_of_a_policy_file() -> None:
    before = [
        make_policy(name="a", digest="1", optimize=SIZES, vacuum=vacuum(14)),
        make_policy(name="b", digest="1"),
        make_policy(name="c", digest="1"),
        make_policy(name="gone", digest="1"),
    ]  # fmt: skip
    now = [
        make_policy(name="a", digest="2", optimize=SMALLER, vacuum=vacuum(7)),
        make_policy(name="b", digest="2", vacuum=vacuum(30), tags=("nightly",)),
        make_policy(name="c", digest="1"),
        make_policy(name="new", digest="1"),
    ]  # fmt: skip
    changes = policy_changes(before, now)
    assert (changes.added, changes.removed) == (("new",), ("gone",))
    a, b = changes.changed
    assert a.values == (
        ValueChange("optimize.minFileSize", "64 MiB", "32 MiB"),
        ValueChange("vacuum.retention", "14d", "7d"),
    )
    assert a.shorter_retention == ("14d", "7d")
    assert b.shorter_retention == ("nothing was deleted", "30d")
    assert ValueChange("tags", "not set", '["nightly"]') in b.values
    assert not policy_changes(now, now).any


def test_longer_retention_and_no_vacuum_any_more_are_not_shorter() -> None:
    (longer,) = policy_changes(
        [make_policy(digest="1", vacuum=vacuum(7))], [make_policy(digest="2", vacuum=vacuum(8))]
    ).changed
    (off,) = policy_changes([make_policy(digest="1", vacuum=vacuum(7))], [make_policy(digest="2")]).changed
    assert (longer.shorter_retention, off.shorter_retention) == (None, None)


def test_the_comment_has_it_after_the_totals_and_stays_stable() -> None:
    plan = samples.full_plan()
    nothing = replace(plan, tables=tuple(replace(one, steps=()) for one in plan.tables))
    before = [make_policy(name="a|b", digest="1", vacuum=vacuum(14))]
    changes = policy_changes(before, [make_policy(name="a|b", digest="2", vacuum=vacuum(7)), make_policy(name="<x>")])
    compared = Comparison("main", changes, nothing)
    text = render_plan_markdown(plan, compared=compared)
    lines = render_comparison(plan, compared)
    assert "\n".join(lines) in text
    assert lines[0] == "Compared with `main`:"
    assert "* 1 table comes in: &#60;x&#62;" in lines
    assert "* **a&#124;b keeps less: retention 14d -&gt; 7d**" in lines
    assert any(line.startswith("* tonight ") and " more rewritten: 0 B -&gt; " in line for line in lines)
    assert any(line.startswith("* tonight ") and " more deleted: 0 B -&gt; " in line for line in lines)
    assert "| a&#124;b | `vacuum.retention` | `14d` | `7d` |" in lines
    later = replace(plan, created_at_ms=plan.created_at_ms + 86_400_000)
    assert render_plan_markdown(later, compared=compared) == text


def test_nothing_changes() -> None:
    compared = Comparison("main", PolicyChanges((), (), ()), samples.full_plan())
    assert render_comparison(samples.full_plan(), compared) == ["Compared with `main`: no table's policy changes."]
