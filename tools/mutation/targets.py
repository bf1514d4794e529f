"""What is mutated: the code that decides which rows and files are touched; and by which tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or some of its functions: the others need Spark."""

    file: str
    names: tuple[str, ...] = ()


TARGETS: dict[str, tuple[Source, ...]] = {
    "selection": (
        Source("maintainer/planning/selection/decision.py"),
        Source("maintainer/planning/selection/schema_columns.py"),
        Source("maintainer/planning/selection/supported_features.py"),
        Source("maintainer/planning/operations/compaction.py"),
    ),
    "packing": (Source("maintainer/planning/selection/file_selection.py"),),
    "fingerprint": (
        Source("maintainer/delta/proof/fingerprint.py"),
        Source("maintainer/delta/proof/row_comparison.py", ("comparable", "_literal", "_figures", "FEW_COLUMNS")),
    ),
    "lanes": (
        Source("maintainer/planning/selection/lane_choice.py"),
        Source("maintainer/model/plan/lanes.py"),
        Source("maintainer/delta/rewrite/bin_work.py"),
    ),
    "protection": (
        Source("maintainer/planning/vacuum/deletion_limits.py"),
        Source("maintainer/planning/vacuum/vacuum_plan.py"),
        Source("maintainer/planning/budget/other_writers.py"),
    ),
}

SUITES = (
    "tests/unit/planning",
    "tests/unit/model",
    "tests/unit/delta/log",
    "tests/unit/delta/proof",
    "tests/unit/delta/rewrite",
    "tests/property/test_packing.py",
    "tests/property/test_planner.py",
)
"""The tests that mirror the targets; none needs Spark. What only others would notice counts as living."""
