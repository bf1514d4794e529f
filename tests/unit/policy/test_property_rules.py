"""Properties in a file: what Delta knows, their types, and values that keep too little."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.policy.diagnostics import Severity
from tests.support.policies.policy_reading import HEAD, findings_of, only_finding
from tests.support.policies.projects import loaded


def test_a_property_that_keeps_deleted_files_for_hours_is_a_warning() -> None:
    finding = only_finding(HEAD + "properties: {delta.deletedFileRetentionDuration: interval 24 hours}\n")
    assert (finding.code, finding.severity) == ("P320", Severity.WARNING)
    assert "1d is below 7d: a VACUUM by others may take files that are still used" in finding.message
    assert findings_of(HEAD + "properties: {delta.deletedFileRetentionDuration: interval 7 days}\n") == []
    meant = (
        "properties: {delta.deletedFileRetentionDuration: 1 day}\nvacuum: {retention: 1d, allowShortRetention: true}"
    )
    assert findings_of(HEAD + meant) == []
    assert findings_of(HEAD + "properties: {delta.logRetentionDuration: interval 1 hour}\n") == []


def test_a_short_retention_that_is_meant_passes_unless_it_is_0() -> None:
    assert findings_of(HEAD + "vacuum: {retention: 1h, allowShortRetention: true}\n") == []


@pytest.mark.parametrize(
    ("line", "code", "message", "help"),
    [
        (
            "delta.logRetentionDuraton: interval 3 days",
            "P321",
            "delta.logRetentionDuraton: is not a table property of Delta",
            "did you mean `delta.logRetentionDuration`?",
        ),
        (
            "delta.mine: 1",
            "P321",
            "delta.mine: is not a table property of Delta",
            "a property of your own cannot begin with `delta.`",
        ),
        (
            "delta.appendOnly: tru",
            "P318",
            "delta.appendOnly: must be `true` or `false`, not `tru`",
            "write `true` or `false`",
        ),
        (
            'delta.enableDeletionVectors: "yes"',
            "P318",
            "delta.enableDeletionVectors: must be `true` or `false`, not `yes`",
            "write `true` or `false`",
        ),
        (
            "delta.writepartitioncolumnstoparquet: 1",
            "P318",
            'delta.writepartitioncolumnstoparquet: must be `true` or `false`, not `"1"`',
            "write `true` or `false`",
        ),
        (
            "delta.checkpointInterval: ten",
            "P318",
            "delta.checkpointInterval: must be a whole number from 1, not `ten`",
            "write a whole number from 1",
        ),
        (
            "delta.dataSkippingNumIndexedCols: -2",
            "P318",
            'delta.dataSkippingNumIndexedCols: must be a whole number from -1, not `"-2"`',
            "write a whole number from -1",
        ),
        (
            "delta.columnMapping.mode: names",
            "P318",
            "delta.columnMapping.mode: must be `none` or `id` or `name`, not `names`",
            "write `none` or `id` or `name`",
        ),
        (
            "delta.checkpointRetentionDuration: 2d",
            "P318",
            "delta.checkpointRetentionDuration: is not an interval of Delta",
            "write `interval 2 days`",
        ),
    ],
)
def test_a_property_of_delta_is_known_and_has_its_type(line: str, code: str, message: str, help: str) -> None:
    finding = only_finding(f"{HEAD}properties: {{{line}}}\n")
    assert (finding.code, finding.message, finding.help) == (code, f"properties.{message}", help)


def test_properties_that_delta_takes_and_free_names_are_valid() -> None:
    properties = [
        "delta.appendOnly: true",
        "DELTA.CHECKPOINTINTERVAL: 20",
        "delta.enableDeletionVectors: 'TRUE'",
        "delta.dataSkippingNumIndexedCols: -1",
        "delta.columnMapping.mode: name",
        "delta.constraints.positive: amount > 0",
        "delta.sampleRetentionDuration: 0 days",
        "owner.team: tru",
        "deltaish: x",
    ]
    assert findings_of(HEAD + "properties:\n" + "".join(f"  {line}\n" for line in properties)) == []


@pytest.mark.parametrize(
    ("properties", "vacuum", "said"),
    [
        ("delta.deletedFileRetentionDuration: interval 13 days", "retention: 14d", "vacuum.retention, 14d"),
        ("delta.logretentionduration: 13 days", "retention: 14d", "vacuum.retention, 14d"),
        ("delta.logRetentionDuration: interval 6 days", "", "vacuum.retention, 7d"),
        ("delta.logRetentionDuration: interval 2 weeks", "retention: 14d", None),
        ("delta.deletedFileRetentionDuration: interval 30 days", "retention: 14d", None),
        ("delta.sampleRetentionDuration: interval 1 day", "retention: 14d", None),
    ],
)
def test_a_property_that_keeps_less_than_the_vacuum_of_the_table_is_told_before_the_plan_refuses_it(
    tmp_path: Path, properties: str, vacuum: str, said: str | None
) -> None:
    files = {
        "maintainer.yml": f"defaults: {{properties: {{{properties}}}}}\n",
        "policies/a.yml": f"table: s.a\nvacuum: {{{vacuum}}}\n",
        "policies/b.yml": "table: s.b\n",
    }
    name = f"properties.{properties.partition(':')[0]}"
    found = [finding.message for finding in loaded(tmp_path, files).diagnostics if not finding.is_error]
    setting = "vacuum.retention" if vacuum else name
    told = f"{setting} of `s.a`: {name} is shorter than {said}: `plan` refuses the table"
    assert found == ([told] if said else [])


def test_a_log_that_is_kept_shorter_than_deleted_files_is_told_in_the_file_that_says_both(tmp_path: Path) -> None:
    both = "delta.logRetentionDuration: interval 9 days, delta.deletedFileRetentionDuration: interval 10 days"
    (finding,) = loaded(tmp_path, {"policies/a.yml": f"table: s.a\nproperties: {{{both}}}\n"}).diagnostics
    assert (finding.code, finding.is_error) == ("P307", False)
    name = "properties.delta.deletedFileRetentionDuration"
    assert finding.message == (
        f"properties.delta.logRetentionDuration: is shorter than {name}, 10d: `plan` refuses the table"
    )
