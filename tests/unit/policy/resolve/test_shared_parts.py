"""Parts of policies are one object where they say the same, and only there."""

from __future__ import annotations

from pathlib import Path

from tests.support.policies.projects import loaded


def test_policies_that_say_the_same_share_their_parts_and_their_origins_have_their_own_files(tmp_path: Path) -> None:
    text = "vacuum: {retention: 9d}\noptimize: {maxFileSize: 32MiB}\n"
    project = loaded(tmp_path, {f"policies/{name}.yml": f"table: s.{name}\n{text}" for name in "ab"})
    first, second = project.resolved()
    assert (first.optimize is second.optimize, first.vacuum is second.vacuum) == (True, True)
    assert [policy.place_of("vacuum.retention") for policy in (first, second)] == [
        "policies/a.yml:3",
        "policies/b.yml:3",
    ]
    assert dict(first.origins) != dict(second.origins)


def test_expectations_of_two_tables_are_never_taken_for_the_same(tmp_path: Path) -> None:
    text = "verify: {{expectations: [{{type: expect_column_values_to_be_in_set, column: c, value_set: [{}]}}]}}\n"
    values = {"a": "1", "b": "true", "c": "1.0"}
    files = {f"policies/{name}.yml": f"table: s.{name}\n{text.format(value)}" for name, value in values.items()}
    policies = loaded(tmp_path, files).resolved()
    arguments = [policy.verify.expectations[0].arguments["value_set"] for policy in policies]
    assert list(map(repr, arguments)) == ["[1]", "[True]", "[1.0]"]
