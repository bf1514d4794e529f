"""A policy as keys with values in words, and what differs between two: each member of a list by its own name."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.policy.resolve.resolved import ValueChange, base_settings, policy_values, value_changes
from tests.support.policies.projects import loaded

WHOLE = """\
table: s.t
owner: team
description: what it is
tags: [gold, nightly]
optimize:
  where: "day > current_date() - 7"
  zorder: {columns: [a, b], tableProperties: honour}
vacuum: {retention: 8d, allowLargeDelete: rewritten}
properties: {delta.appendOnly: false}
consumers: [{name: bi, maxLag: 3d}, {name: ml, maxLag: 1d}]
window: [{days: [mon, fri], from: "22:00", to: "06:00", timezone: Europe/Berlin}, {from: "01:00", to: "02:00"}]
verify:
  expectations:
    - {type: expect_column_values_to_not_be_null, column: id}
    - {type: expect_column_values_to_be_between, column: k, min_value: 1, max_value: 9}
    - {type: expect_column_values_to_be_between, column: k, min_value: 2, mostly: 0.5}
    - {type: expect_column_values_to_be_in_set, column: c, value_set: [x, y]}
    - {type: expect_table_row_count_to_be_between, min_value: 1}
"""


def values(root: Path, text: str) -> tuple[tuple[str, str], ...]:
    project = loaded(root, {"policies/t.yml": text})
    assert project.diagnostics == ()
    (policy,) = project.resolved()
    return policy_values(policy)


def test_every_value_has_a_key_of_its_own(tmp_path: Path) -> None:
    written = dict(values(tmp_path, WHOLE))
    assert list(written) == sorted(written)
    assert {
        "owner": "team",
        "description": "what it is",
        "tags": "gold, nightly",
        "optimize.where": "day > current_date() - 7",
        "optimize.zorder.columns": "a, b",
        "optimize.zorder.tableProperties": "honour",
        "optimize.maxFileSize": "256 MiB",
        "vacuum.retention": "8d",
        "vacuum.allowLargeDelete": "rewritten",
        "properties.delta.appendOnly": "false",
        "consumers.bi": "maxLag: 3d",
        "consumers.ml": "maxLag: 1d",
        "window": "Mon, Fri 22:00 to 06:00 Europe/Berlin; every day 01:00 to 02:00 UTC",
        "verify.expectations.expect_column_values_to_not_be_null(id)": "expected",
        "verify.expectations.expect_column_values_to_be_between(k)": (
            "min_value: 1, max_value: 9; min_value: 2, mostly: 0.5"
        ),
        "verify.expectations.expect_column_values_to_be_in_set(c)": 'value_set: ["x", "y"]',
        "verify.expectations.expect_table_row_count_to_be_between": "min_value: 1",
    }.items() <= written.items()
    assert not {"table.identifier", "file", "digest", "vacuum.allowRewritten"} & set(written)


def test_scripts_get_base_units_under_the_names_of_the_schema(tmp_path: Path) -> None:
    """Numbers are numbers: what ``jq`` compares, and what the digest is taken of."""
    project = loaded(tmp_path, {"policies/t.yml": WHOLE})
    (policy,) = project.resolved()
    written = dict(base_settings(policy))
    assert {
        "optimize.maxFileSize": 256 << 20,
        "optimize.maxDeletedRowsRatio": 0.05,
        "optimize.quietAfterUpdates": 600,
        "optimize.where": "day > current_date() - 7",
        "optimize.zorder.columns": ["a", "b"],
        "vacuum.retention": 8 * 86400,
        "vacuum.trash": 0,
        "vacuum.deleteUntracked": False,
        "vacuum.allowLargeDelete": "rewritten",
        "properties.delta.appendOnly": "false",
        "consumers": [{"name": "bi", "maxLag": 3 * 86400}, {"name": "ml", "maxLag": 86400}],
        "tags": ["gold", "nightly"],
    }.items() <= written.items()
    assert written["window"][0] == {"days": ["mon", "fri"], "from": "22:00", "to": "06:00", "timezone": "Europe/Berlin"}
    assert written["verify.expectations"][0] == {"type": "expect_column_values_to_not_be_null", "column": "id"}
    resolved = {key: value for key, value in project.resolution_of("s.t").values.items() if key != "window"}
    assert {key: written[key] for key in resolved} == resolved


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        ("retention: 8d", "retention: 7d", [("vacuum.retention", "8d", "7d")]),
        ("mostly: 0.5", "mostly: 0.9", [("verify.expectations.expect_column_values_to_be_between(k)", "0.5", "0.9")]),
        ("consumers: [{name: bi, maxLag: 3d}, ", "consumers: [", [("consumers.bi", "maxLag: 3d", "not set")]),
        ("what it is", "something else", [("description", "what it is", "something else")]),
        ("allowLargeDelete: rewritten", "allowLargeDelete: true", [("vacuum.allowLargeDelete", "rewritten", "true")]),
    ],
)
def test_a_change_is_named_by_key_and_both_values(
    before: str, now: str, changes: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    other = WHOLE.replace(before, now)
    assert other != WHOLE
    differences = value_changes(values(tmp_path / "a", WHOLE), values(tmp_path / "b", other))
    assert [change.key for change in differences] == [key for key, _, _ in changes]
    for change, (_, old, new) in zip(differences, changes, strict=True):
        assert old in change.before
        assert new in change.now
        assert str(change) == f"{change.key} was {change.before}, now {change.now}"


def test_nothing_differs(tmp_path: Path) -> None:
    same = values(tmp_path, WHOLE)
    assert value_changes(same, same) == ()
    assert value_changes((), (("a", "1"),)) == (ValueChange("a", "not set", "1"),)
