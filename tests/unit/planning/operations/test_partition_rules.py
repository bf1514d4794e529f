"""Rules for partitions in a plan of compaction (bins of 100 bytes, small files under 75)."""

from __future__ import annotations

import pytest

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.table.table_facts import TableFacts
from maintainer.policy.predicate.partition_predicate import parse_predicate
from tests.support.tables.builders import DAY_MS, NOW_MS, make_facts, make_file, make_files, make_optimize, make_policy
from tests.unit.planning.operations.compaction_plans import bins_of, left_of, plan


class TestPartitionRules:
    DAYS = ("2026-11-01", "2026-11-20", "2026-11-21")

    def facts(self, *, newest_ms: int = NOW_MS - 10 * DAY_MS, type_: str = "date") -> TableFacts:
        files = [
            make_file(
                f"{day}-{i}", size=10, partition={"day": day}, modified_at_ms=newest_ms if day[-2:] == "21" else 0
            )
            for day in self.DAYS
            for i in range(2)
        ]
        return make_facts(files=files, columns={"id": "long", "day": type_}, partitioned_by=("day",))

    def test_where_selects_by_typed_value(self) -> None:
        optimize = make_optimize(where=parse_predicate("day >= current_date() - 1"))
        planned = plan(make_policy(optimize=optimize, lines={"optimize.where": 9}), self.facts())
        assert bins_of(planned) == [["2026-11-20-0", "2026-11-20-1"], ["2026-11-21-0", "2026-11-21-1"]]
        assert planned.left_alone == (
            LeftAlone(
                Reason(ReasonCode.OUTSIDE_WHERE, "2 files outside where: day >= current_date() - 1", "orders.yml:9"),
                2,
                20,
                (("day", "2026-11-01"),),
            ),
        )

    def test_where_on_a_data_column_is_a_problem_at_the_policy_line(self) -> None:
        optimize = make_optimize(where=parse_predicate("id > 4"))
        planned = plan(make_policy(optimize=optimize, lines={"optimize.where": 9}), self.facts())
        assert planned.problem is not None
        assert (planned.problem.code, planned.problem.where) == ("T410", "orders.yml:9")
        assert planned.state == "problem"

    @pytest.mark.parametrize("type_", ["date", "string"])
    def test_newest_partitions_are_left(self, type_: str) -> None:
        policy = make_policy(optimize=make_optimize(skip_newest_partitions=2))
        planned = plan(policy, self.facts(type_=type_))
        assert bins_of(planned) == [["2026-11-01-0", "2026-11-01-1"]]
        assert left_of(planned) == [("newest_partition", 2, 20), ("newest_partition", 2, 20)]

    def test_newest_is_by_number_not_by_text(self) -> None:
        files = [make_file(f"{n}-{i}", size=10, partition={"n": n}) for n in ("9", "10", None) for i in range(2)]
        facts = make_facts(files=files, columns={"id": "long", "n": "integer"}, partitioned_by=("n",))
        policy = make_policy(optimize=make_optimize(skip_newest_partitions=1))
        assert bins_of(plan(policy, facts)) == [["9-0", "9-1"], ["None-0", "None-1"]]

    def test_of_several_columns_the_date_decides_and_takes_all_its_partitions(self) -> None:
        files = [
            make_file(f"{country}{day}{i}", size=10, partition={"country": country, "day": f"2026-11-0{day}"})
            for country in ("de", "us")
            for day in (1, 2)
            for i in range(2)
        ]
        facts = make_facts(
            files=files, columns={"id": "long", "country": "string", "day": "date"}, partitioned_by=("country", "day")
        )
        policy = make_policy(optimize=make_optimize(skip_newest_partitions=1))
        assert bins_of(plan(policy, facts)) == [["de10", "de11"], ["us10", "us11"]]

    def test_without_a_date_all_columns_decide_left_to_right(self) -> None:
        files = [
            make_file(f"{year}-{month}-{i}", size=10, partition={"year": str(year), "month": str(month)})
            for year, month in ((2025, 12), (2026, 2), (2026, 10))
            for i in range(2)
        ]
        facts = make_facts(
            files=files,
            columns={"id": "long", "year": "integer", "month": "integer"},
            partitioned_by=("year", "month"),
        )
        policy = make_policy(optimize=make_optimize(skip_newest_partitions=1))
        assert bins_of(plan(policy, facts)) == [["2025-12-0", "2025-12-1"], ["2026-2-0", "2026-2-1"]]

    def test_an_unpartitioned_table_has_no_newest_partition(self) -> None:
        policy = make_policy(optimize=make_optimize(skip_newest_partitions=3))
        assert bins_of(plan(policy, make_facts(files=make_files(10, 20)))) == [["f0", "f1"]]

    @pytest.mark.parametrize(("age_ms", "hot"), [(1_799_999, True), (1_800_000, False)])
    def test_quiet_for_counts_from_the_newest_file_of_the_partition(self, age_ms: int, hot: bool) -> None:
        policy = make_policy(optimize=make_optimize(quiet_for_seconds=1800))
        planned = plan(policy, self.facts(newest_ms=NOW_MS - age_ms))
        assert len(bins_of(planned)) == (2 if hot else 3)
        assert [left.reason.text for left in planned.left_alone] == (
            ["2 files where data was written less than 30m ago (quietFor)"] if hot else []
        )

    def test_many_partitions_of_one_reason_are_counted_together(self) -> None:
        files = [make_file(f"f{day}", size=10, partition={"n": str(day)}) for day in range(21)]
        planned = plan(make_policy(), make_facts(files=files, partitioned_by=("n",)))
        assert left_of(planned) == [("no_partner", 21, 210)]
        planned = plan(make_policy(), make_facts(files=files[:20], partitioned_by=("n",)))
        assert left_of(planned) == [("no_partner", 1, 10)] * 20
