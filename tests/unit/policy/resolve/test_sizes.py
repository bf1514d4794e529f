"""Rules with ``match.minSize``: which policy a table has at which size, as far as files alone can tell."""

from __future__ import annotations

from pathlib import Path

from maintainer.policy.project.policy_changes import policy_changes
from maintainer.policy.resolve.resolved import ResolvedPolicy, policy_values
from maintainer.report.policy_text import explain_json, explain_text, merged_yaml
from tests.support.policies.projects import complaints, loaded

GIB = 1 << 30
TABLE = {"policies/t.yml": "table: s.t\n"}


def rule(size: str, settings: str, priority: int = 0) -> str:
    return f"match: {{tables: ['s.*'], minSize: {size}}}\npriority: {priority}\n{settings}\n"


def threads(policy: ResolvedPolicy, *sizes: int) -> list[int]:
    return [policy.of_size(size).optimize.max_threads for size in sizes]


def test_a_rule_reaches_tables_of_its_size_and_larger_ones(tmp_path: Path) -> None:
    files = {
        "policies/a.yml": rule("10GiB", "optimize: {maxThreads: 10}"),
        "policies/b.yml": rule("1GiB", "optimize: {maxThreads: 1}", -1),
        "policies/all.yml": "match: {tables: ['*']}\npriority: -2\noptimize: {maxThreads: 3}\n",
    }
    project = loaded(tmp_path, TABLE | files)
    assert complaints(project) == []
    policy = project.resolve_table("s.t")
    assert threads(policy, 0, GIB - 1, GIB, 10 * GIB - 1, 10 * GIB, 1 << 60) == [3, 3, 1, 1, 10, 10]
    assert policy.optimize.max_threads == 3
    assert policy.of_size(10 * GIB).place_of("optimize.maxThreads") == "policies/a.yml:4"


def test_a_table_that_no_rule_by_size_reaches_has_one_policy(tmp_path: Path) -> None:
    policy = loaded(tmp_path, TABLE | {"policies/r.yml": "match: {tables: ['r.*'], minSize: 1GiB}\n"}).resolve_table(
        "s.t"
    )
    assert policy.sizes == ()
    assert policy.of_size(1 << 60) is policy


def test_the_digest_tells_what_changed_at_any_size_and_a_plan_keeps_its_own(tmp_path: Path) -> None:
    texts = ("optimize: {maxThreads: 10}", "optimize: {maxThreads: 11}")
    one, two = (
        loaded(tmp_path / text[-3:-1], TABLE | {"policies/a.yml": rule("10GiB", text)}).resolve_table("s.t")
        for text in texts
    )
    assert one.digest != two.digest
    assert one.of_size(0).digest == two.of_size(0).digest
    (change,) = policy_changes([one], [two]).changed
    assert [str(value) for value in change.values] == ["optimize.maxThreads from 10 GiB on was 10, now 11"]
    large = one.of_size(10 * GIB)
    assert one.planned(large.digest, 0) is large
    assert one.planned("sha256:other", 0) is one.sizes[0][1]
    assert ("optimize.maxThreads from 10 GiB on", "10") in policy_values(one)


def test_a_retention_that_is_shorter_for_large_tables_only_is_shorter(tmp_path: Path) -> None:
    policies = [
        loaded(tmp_path / days, TABLE | {"policies/a.yml": rule("10GiB", f"vacuum: {{retention: {days}}}")}).resolved()
        for days in ("30d", "8d")
    ]
    (change,) = policy_changes(*policies).changed
    assert change.shorter_retention == ("30d", "8d")
    (change,) = policy_changes(*reversed(policies)).changed
    assert change.shorter_retention is None


def test_what_is_wrong_at_one_size_only_is_found_without_a_table(tmp_path: Path) -> None:
    files = {
        "policies/a.yml": rule("10GiB", "optimize: {maxFileSize: 1MiB}"),
        "policies/t.yml": "table: s.t\noptimize: {minFileSize: 64MiB}\n",
    }
    assert complaints(loaded(tmp_path, files)) == ["policies/t.yml:3:25 P302"]


def test_a_higher_rule_by_size_leaves_smaller_tables_to_the_lower_one(tmp_path: Path) -> None:
    lower = "match: {tables: ['s.*']}\noptimize: {maxThreads: 2}\n"
    files = TABLE | {"policies/a.yml": lower, "policies/b.yml": rule("1GiB", "optimize: {maxThreads: 9}", 5)}
    assert complaints(loaded(tmp_path / "by-size", files)) == []
    files["policies/b.yml"] = "match: {tables: ['s.*']}\npriority: 5\noptimize: {maxThreads: 9}\n"
    assert complaints(loaded(tmp_path / "all", files)) == ["policies/a.yml:2:1 P358"]


def test_explain_shows_both_sides_of_the_size(tmp_path: Path) -> None:
    project = loaded(tmp_path, TABLE | {"policies/a.yml": rule("10GiB", "vacuum: {}\noptimize: {maxThreads: 10}")})
    resolution = project.resolution_of("s.t")
    lines = explain_text(resolution).splitlines()
    start = lines.index("if the table has 10 GiB or more (`match.minSize`, measured when planning):")
    assert ["optimize.maxThreads", "8", "built-in"] in [line.split() for line in lines[:start]]
    changed = [line.split() for line in lines[start + 1 : -1]]
    assert ["optimize.maxThreads", "10", "policies/a.yml:5"] in changed
    assert "vacuum: nothing of a smaller table is deleted, because no file has a `vacuum:` map for it" in lines[:start]
    sections = {words[0].partition(".")[0] for words in changed}
    assert sections == {"optimize", "vacuum"}
    (of_size,) = explain_json(resolution)["sizes"]
    assert of_size["min_size_bytes"] == 10 * GIB
    assert of_size["digest"] == resolution.policy.of_size(10 * GIB).digest
    assert of_size["policy"]["optimize.maxThreads"] == 10
    assert merged_yaml(resolution).startswith("# for a small table:")
