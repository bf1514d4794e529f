"""Limits of one vacuum: half of the bytes, the policy's limit, three times the median, and how to allow more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.table_facts import RemovedFile, TableRecord
from tests.support.tables.builders import DAY_MS, NOW_MS, make_facts, make_file, make_policy, make_vacuum
from tests.unit.planning.vacuum.vacuum_plans import LINES, plan, policy_of, removed


class TestCaps:
    """More than half of the bytes, more than the limit, more than three times the median."""

    def blocked(
        self, *sizes: int, replaced: bool = False, live: int = 0, past: tuple[int, ...] = (), **policy: Any
    ) -> list[str]:
        files = tuple(
            replace(removed(f"f{number}", days_ago=9, size=size), replaced=replaced)
            for number, size in enumerate(sizes)
        )
        alive = [make_file("live", size=live)] if live else []
        allowed = policy.pop("allow", False)
        vacuum = replace(make_vacuum(allow_large_delete=allowed is True), allow_rewritten=allowed == "rewritten")
        made = make_policy(vacuum=vacuum, lines=LINES, optimize=None, **policy)
        planned = plan(made, make_facts(files=alive, removed_files=files), TableRecord(vacuumed_bytes=past))
        assert (planned.state == "blocked") == bool(planned.blocked)
        assert all(reason.code is ReasonCode.LARGE_DELETE for reason in planned.blocked)
        return [reason.text for reason in planned.blocked]

    def test_half_of_the_bytes_may_go_and_one_more_may_not(self) -> None:
        assert self.blocked(60, 40, live=100) == []
        assert self.blocked(60, 41, live=100) == [
            "would delete 101 B, more than half of the 201 B that live files and "
            "these have together; `vacuum.allowLargeDelete: true` allows it"
        ]

    def test_what_a_rewrite_replaced_counts_and_the_line_that_allows_it_is_named(self) -> None:
        assert self.blocked(60, 40, live=100, replaced=True) == []
        assert self.blocked(60, 41, live=100, replaced=True) == [
            "would delete 101 B (all of it replaced by rewrites), more than half of the 201 B that live files and "
            "these have together; `vacuum.allowLargeDelete: rewritten` allows it"
        ]

    def test_the_line_that_is_named_is_the_one_that_helps(self) -> None:
        files = (
            *(replace(removed(f"f{number}", days_ago=9, size=40), replaced=True) for number in range(2)),
            removed("lost", days_ago=9, size=30),
        )
        made = make_policy(vacuum=make_vacuum(allow_large_delete=False), lines=LINES, optimize=None)
        planned = plan(made, make_facts(files=[make_file("live", size=10)], removed_files=files))
        assert [reason.text for reason in planned.blocked] == [
            "would delete 110 B (80 B of it replaced by rewrites), more than half of the 120 B that live files and "
            "these have together; `vacuum.allowLargeDelete: rewritten` allows it"
        ]

    def test_a_line_allows_what_rewrites_replaced_and_nothing_else(self) -> None:
        assert self.blocked(60, 41, live=1, replaced=True, past=(1, 1, 1), allow="rewritten") == []
        assert self.blocked(60, 41, live=1, past=(1, 1, 1), allow="rewritten") == [
            "would delete 101 B that no rewrite replaced, more than half of the 102 B that live files and "
            "these have together; `vacuum.allowLargeDelete: true` allows it",
            "would delete 101 B that no rewrite replaced, more than 3 times the median of the last 3 vacuums, 1 B; "
            "`vacuum.allowLargeDelete: true` allows it",
        ]
        (text,) = self.blocked(1, 1, 1, live=100, max_deletes=2, replaced=True, allow="rewritten")
        assert text == "would delete 3 files, limits.maxDeletes is 2; `vacuum.allowLargeDelete: true` allows it"

    def test_the_limit_counts_all_files(self) -> None:
        assert self.blocked(1, 1, live=100, max_deletes=2) == []
        (text,) = self.blocked(1, 1, 1, live=100, max_deletes=2, replaced=True)
        assert text == "would delete 3 files, limits.maxDeletes is 2; `vacuum.allowLargeDelete: true` allows it"

    def test_three_times_the_median_of_at_least_three_runs(self) -> None:
        assert self.blocked(30, live=100, past=(10, 10, 1000)) == []
        (text,) = self.blocked(31, live=100, past=(10, 10, 1000))
        assert text == (
            "would delete 31 B, more than 3 times the median of the last 3 vacuums, 10 B; "
            "`vacuum.allowLargeDelete: true` allows it"
        )
        (text,) = self.blocked(31, live=100, past=(10, 10, 1000), replaced=True)
        assert "all of it replaced by rewrites" in text
        assert self.blocked(31, live=100, past=(10, 10)) == []

    def test_a_line_in_the_policy_allows_all_of_it(self) -> None:
        assert self.blocked(500, live=1, past=(1, 1, 1), max_deletes=0, allow=True) == []

    def test_other_steps_are_not_held_up(self) -> None:
        files = [make_file(f"f{number}", size=10) for number in range(3)]
        facts = make_facts(files=files, removed_files=(removed("old", days_ago=9, size=500),))
        planned = plan(make_policy(vacuum=make_vacuum(allow_large_delete=False), lines=LINES), facts)
        assert ([step.kind for step in planned.steps], planned.state) == (["compact"], "changes")
        assert ReasonCode.LARGE_DELETE in {entry.reason.code for entry in planned.left_alone}


def test_each_cap_that_is_broken_is_said_and_the_files_counted_once() -> None:
    policy = make_policy(
        vacuum=make_vacuum(allow_large_delete=False), max_deletes=1, lines={"vacuum": 11, "limits.maxDeletes": 20}
    )
    facts = make_facts(
        files=(make_file(size=100),), removed_files=tuple(removed(f"f{n}", days_ago=9) for n in range(3))
    )
    planned = plan(policy, facts, TableRecord(vacuumed_bytes=(10, 20, 30)))
    over = [left for left in planned.left_alone if left.reason.code is ReasonCode.LARGE_DELETE]
    assert [(left.num_files, left.size_bytes, left.reason.origin) for left in over] == [
        (3, 300, "orders.yml:20"), (0, 0, "orders.yml:11"), (0, 0, "orders.yml:11"),
    ]  # fmt: skip
    assert planned.blocked == tuple(left.reason for left in over)


@pytest.mark.parametrize(("lost", "line"), [(200, "rewritten"), (201, "true")])
def test_the_line_that_would_allow_it_is_the_least_that_does(lost: int, line: str) -> None:
    """Half of what storage holds may go; what a rewrite replaced is not lost."""
    policy = policy_of(allow_large_delete=False)
    files = (
        RemovedFile("l", lost, NOW_MS - 9 * DAY_MS, removed_in_version=5),
        RemovedFile("r", 200, NOW_MS - 9 * DAY_MS, removed_in_version=5, replaced=True),
    )
    (reason,) = plan(policy, make_facts(removed_files=files)).blocked
    assert reason.text.endswith(f"`vacuum.allowLargeDelete: {line}` allows it")
