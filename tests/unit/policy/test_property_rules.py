"""Properties in a file: what Delta knows, their types, and values that keep too little."""

from __future__ import annotations

import pytest

from maintainer.policy.diagnostics import Severity
from tests.support.policies.policy_reading import HEAD, findings_of, only_finding


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
