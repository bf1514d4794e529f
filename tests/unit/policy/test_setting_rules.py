"""What the values of one file mean together."""

from __future__ import annotations

import re

import pytest

from maintainer.policy.diagnostics import Diagnostic, Severity
from maintainer.policy.schema.known_expectations import EXPECTATIONS, WITHOUT_SPARK
from tests.support.policies.policy_reading import findings_of

HEAD = "version: 1\ntable: a.b\n"


def only(content: str, file: str = "policies/t.yml") -> Diagnostic:
    (finding,) = findings_of(content, file)
    return finding


@pytest.mark.parametrize(
    ("line", "code", "column", "message"),
    [
        (
            "optimize: {minFileSize: 1GiB, maxFileSize: 256MiB}",
            "P302",
            25,
            "optimize.minFileSize: is larger than maxFileSize: compacted files would count as small again",
        ),
        (
            "autoCompact: {minFileSize: 2, maxFileSize: 1}",
            "P302",
            28,
            "autoCompact.minFileSize: is larger than maxFileSize: compacted files would count as small again",
        ),
        ("optimize: {maxFileSize: 0}", "P307", 25, "optimize.maxFileSize: must be larger than 0"),
        ("optimize: {maxFileSize: 2TiB}", "P307", 25, "optimize.maxFileSize: is larger than 1 TiB"),
        ("optimize: {batchSize: 0}", "P307", 23, "optimize.batchSize: must be larger than 0"),
        ("limits: {maxBytes: 0}", "P307", 20, "limits.maxBytes: must be larger than 0"),
        ("limits: {timeout: 0s}", "P307", 19, "limits.timeout: must be longer than 0"),
        (
            "vacuum: {retention: 167h}",
            "P304",
            21,
            "vacuum.retention: 6d 23h is below 7d: files that a reader or writer still uses could be deleted",
        ),
        (
            "vacuum: {retention: 0d, allowShortRetention: false}",
            "P304",
            21,
            "vacuum.retention: 0s is below 7d: files that a reader or writer still uses could be deleted",
        ),
        (
            "vacuum: {retention: 0h, allowShortRetention: true}",
            "P304",
            21,
            "vacuum.retention: must be longer than 0: a reader or writer loses files at the very moment that they are "
            "replaced",
        ),
        (
            "properties: {delta.deletedFileRetentionDuration: interval 0 hours}",
            "P320",
            50,
            "properties.delta.deletedFileRetentionDuration: is 0: any VACUUM deletes files that a reader or a writer "
            "still uses",
        ),
        (
            "properties: {delta.logretentionduration: 0 days}",
            "P320",
            42,
            "properties.delta.logretentionduration: is 0: versions are forgotten at the next checkpoint, also those "
            "that a reader still needs",
        ),
        (
            "properties: {delta.setTransactionRetentionDuration: interval 0 days}",
            "P320",
            53,
            "properties.delta.setTransactionRetentionDuration: is 0: a stream that starts again may write its last "
            "batch a second time",
        ),
        (
            "optimize: {zorder: {columns: [a, A], mode: full}}",
            "P306",
            34,
            "optimize.zorder.columns[1]: is the same column as `a`: Delta's names have no case",
        ),
        (
            "optimize: {rewrite: {files: 4, fileSize: 1MiB}}",
            "P319",
            29,
            "optimize.rewrite.files: `files` and `fileSize` cannot both be set",
        ),
        (
            "optimize: {zorder: {columns: [a], mode: full}, rewrite: {files: 4}}",
            "P319",
            48,
            "optimize.rewrite: a partition cannot be in Z-order and as `rewrite` asks",
        ),
        ("optimize: {rewrite: {}}", "P319", 12, "optimize.rewrite: asks for nothing"),
        ("optimize: {rewrite: {files: null}}", "P319", 12, "optimize.rewrite: asks for nothing"),
        ("optimize: {rewrite: {fileSize: 0}}", "P307", 32, "optimize.rewrite.fileSize: must be larger than 0"),
        (
            "optimize: {rewrite: {sortBy: [a, A]}}",
            "P319",
            34,
            "optimize.rewrite.sortBy[1]: is the same column as `a`: Delta's names have no case",
        ),
        ("optimize: {cluster: {minCubeSize: 0}}", "P307", 35, "optimize.cluster.minCubeSize: must be larger than 0"),
        ("window: [{from: 22:00, to: 22:00}]", "P308", 28, "window[0].to: the window closes when it opens"),
        ("consumers: [{name: a}]", "P317", 13, "consumers[0]: says nothing about what vacuum must keep"),
        (
            "consumers: [{name: a, maxLag: 1d}, {name: a, maxLag: 2d}]",
            "P207",
            43,
            "consumers[1].name: a second consumer named `a`",
        ),
        (
            "properties: {delta.autoOptimize.autoCompact: true}",
            "P315",
            14,
            "properties.delta.autoOptimize.autoCompact: is managed by another key",
        ),
        (
            "properties: {delta.feature.rowTracking: supported}",
            "P315",
            14,
            "properties.delta.feature.rowTracking: changes the table's protocol, which cannot be undone",
        ),
        (
            "properties: {delta.logRetentionDuration: 36h}",
            "P318",
            42,
            "properties.delta.logRetentionDuration: is not an interval of Delta",
        ),
        (
            "vacuum: {retention: 40d, untrackedAge: 30d}",
            "P307",
            40,
            "vacuum.untrackedAge: 30d is shorter than the retention of 40d",
        ),
        (
            "vacuum: {untrackedAge: 6d}",
            "P307",
            24,
            "vacuum.untrackedAge: 6d is shorter than the retention of 7d",
        ),
        (
            "vacuum: {mode: lite, deleteUntracked: true}",
            "P307",
            39,
            "vacuum.deleteUntracked: is never done in mode lite, which does not list the folder",
        ),
        ("vacuum: {trash: 0s}", "P307", 17, "vacuum.trash: must be longer than 0"),
        (
            "verify: {expectations: [{type: expect_column_to_exist}]}",
            "P316",
            32,
            "verify.expectations[0].type: needs `column`",
        ),
        (
            "verify: {expectations: [{type: expect_column_to_exist, column: a, row_condition: 1=1}]}",
            "P316",
            67,
            "verify.expectations[0].row_condition: cannot be set in a policy",
        ),
        (
            "verify: {expectations: [{type: expect_column_values_to_be_null, column: a, mostly: 2}]}",
            "P316",
            84,
            "verify.expectations[0].mostly: must be a number from 0 to 1",
        ),
        (
            "verify: {expectations: [{type: unexpected_rows_expectation, unexpected_rows_query: x}]}",
            "P316",
            32,
            "verify.expectations[0].type: `unexpected_rows_expectation` cannot be used: it runs SQL text, "
            "which a policy must not contain",
        ),
    ],
)
def test_one_error(line: str, code: str, column: int, message: str) -> None:
    findings = [one for one in findings_of(f"{HEAD}{line}\n") if one.code != "P312"]
    assert [(one.code, one.span.line, one.span.column, one.message) for one in findings] == [(code, 3, column, message)]
    assert findings[0].is_error
    assert findings[0].help


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("optimize: {minFileSize: 193MiB, maxFileSize: 256MiB}", "P303"),
        ("optimize: {batchSize: 100MiB, maxFileSize: 256MiB}", "P307"),
        ("optimize: {zorder: {columns: [a, b, c, d, e], mode: full}}", "P306"),
        ("optimize: {cluster: {minCubeSize: 2GiB, targetCubeSize: 1GiB}}", "P307"),
        ("optimize: {maxFileSize: 128m}", "P301"),
    ],
)
def test_one_warning(line: str, code: str) -> None:
    finding = only(f"{HEAD}{line}\n")
    assert (finding.code, finding.severity) == (code, Severity.WARNING)


@pytest.mark.parametrize(
    "lines",
    [
        "optimize: {minFileSize: 192MiB, maxFileSize: 256MiB}",
        "optimize: {minFileSize: 0}",
        "optimize: {maxFileSize: 1TiB}",
        "vacuum: {retention: 168h}",
        "vacuum: {retention: 1h, allowShortRetention: true}",
        "vacuum: {retention: 7d}\nconsumers: [{name: a, maxLag: 7d}]",
        "window: [{from: 22:00, to: 21:59}]",
        "properties: {delta.logRetentionDuration: interval 30 days, delta.appendOnly: true, a.b: 3}",
        "properties: {delta.deletedFileRetentionDuration: 2 weeks}",
        "optimize: {zorder: {columns: [a, b, c, d], mode: full}}",
        "verify: {expectations: [{type: expect_table_row_count_to_equal, value: 3}]}",
        "vacuum: {mode: auto, deleteUntracked: false}",
        "vacuum: {mode: lite, trash: 7d, allowLargeDelete: true}",
        "vacuum: {allowLargeDelete: rewritten}",
        "vacuum: {mode: full, deleteUntracked: true, untrackedAge: 30d, untrackedEvery: 14d}",
        "vacuum: {}\nconsumers: [{name: a, checkpoint: /x}]\nlimits: {maxDeletes: 5}",
        "autoCompact: {}",
    ],
)
def test_what_is_right(lines: str) -> None:
    assert findings_of(f"{HEAD}{lines}\n") == []


def test_a_retention_below_a_consumers_lag_names_the_line_of_the_lag() -> None:
    finding = only(HEAD + "vacuum: {retention: 7d}\nconsumers:\n- name: a\n  maxLag: 10d\n")
    assert (finding.code, finding.span.line) == ("P305", 3)
    assert finding.help == "consumers[0].maxLag is on line 6; write at least `10d`"


def test_the_help_for_an_interval_is_the_interval() -> None:
    assert only(HEAD + "properties: {delta.logRetentionDuration: P1DT12H}\n").help == "write `interval 1 day 12 hours`"
    assert only(HEAD + "properties: {delta.logRetentionDuration: 30}\n").help == "write it like `interval 30 days`"


@pytest.mark.parametrize(
    "line", ["optimize: {zorder: {columns: [a]}}", "optimize: {zorder: {columns: [a], mode: incremental}}"]
)
def test_zorder_is_incremental_unless_a_policy_says_full(line: str) -> None:
    assert findings_of(f"{HEAD}{line}\n") == []
    assert findings_of(f"version: 1\ndefaults: {{{line}}}\n", "maintainer.yml") == []


def test_not_built_keys_of_rules_and_projects() -> None:
    rule = only("version: 1\nmatch: {tables: [a.*], minSize: 1GiB}\n")
    assert (rule.code, rule.message) == ("P312", "match.minSize: not supported yet")
    assert rule.is_error
    findings = findings_of("version: 1\nenvironments: {dev: {catalog: c}}\n", "maintainer.yml")
    assert [one.message for one in findings] == ["environments.dev.catalog: not supported yet"]


def test_a_rule_says_what_it_reaches() -> None:
    finding = only('version: 1\nmatch: {exclude: ["*.tmp"]}\n')
    assert (finding.code, finding.span.line, finding.span.column) == ("P307", 2, 1)
    assert findings_of("version: 1\nmatch: {tags: [a]}\n") == []
    assert [one.code for one in findings_of("version: 1\nmatch: {exclude: [a], tables: *x}\n")] == ["Y109"]


def test_settings_of_a_project_are_checked_wherever_they_stand() -> None:
    content = (
        "version: 1\nmaxPlanAge: 0h\nlimits: {timeout: 0h}\n"
        "defaults: {vacuum: {retention: 1d}}\n"
        "environments: {dev: {overrides: {window: [{from: 01:00, to: 01:00}], limits: {maxBytes: 0}}}}\n"
    )
    findings = findings_of(content, "maintainer.yml")
    assert [(one.code, one.span.line, one.message.partition(":")[0]) for one in findings] == [
        ("P307", 2, "maxPlanAge"),
        ("P307", 3, "limits.timeout"),
        ("P304", 4, "defaults.vacuum.retention"),
        ("P308", 5, "environments.dev.overrides.window[0].to"),
        ("P307", 5, "environments.dev.overrides.limits.maxBytes"),
    ]


def test_values_of_a_wrong_type_give_one_finding_only() -> None:
    content = (
        HEAD + "optimize: {minFileSize: [1], maxFileSize: x, zorder: 7}\nvacuum: x\nconsumers: {a: b}\nwindow: [x]\n"
    )
    assert [one.code for one in findings_of(content)] == ["P203", "P205", "P203", "P203", "P203", "P203"]


@pytest.mark.parametrize("name", sorted(WITHOUT_SPARK))
def test_an_expectation_that_spark_does_not_have_is_refused_with_another(name: str) -> None:
    text = f"version: 1\ntable: s.t\nverify: {{expectations: [{{type: {name}, column: a}}]}}\n"
    (found,) = findings_of(text)
    assert (found.code, found.span.line, found.span.column) == ("P316", 3, 32)
    assert "but not for Spark" in found.message
    (instead,) = re.findall(r"`(\w+)`", found.help or "")
    assert instead in EXPECTATIONS


def test_a_property_that_keeps_deleted_files_for_hours_is_a_warning() -> None:
    finding = only(HEAD + "properties: {delta.deletedFileRetentionDuration: interval 24 hours}\n")
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
    finding = only(f"{HEAD}properties: {{{line}}}\n")
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
    ("arguments", "place", "message"),
    [
        ("values_to_be_between, column: a, min_value: 9, max_value: 3", "min_value", "`9` is above max_value, `3`"),
        (
            "values_to_be_between, column: a, min_value: 2026-02-01, max_value: 2026-01-01",
            "min_value",
            "`2026-02-01` is above max_value, `2026-01-01`",
        ),
        ("values_to_be_between, column: a", "type", "has no bounds"),
        ("mean_to_be_between, column: a, strict_min: true", "type", "has no bounds"),
        (
            'values_to_match_regex, column: a, regex: "([a-z"',
            "regex",
            "`([a-z` is not a regular expression: unterminated character set at character 2",
        ),
        (
            "values_to_match_regex_list, column: a, regex_list: [ok, '*x']",
            "regex_list",
            "`*x` is not a regular expression: nothing to repeat at character 1",
        ),
        ("values_to_match_regex_list, column: a, regex_list: [ok, 7]", "regex_list", "must be text, not `7`"),
        ('values_to_be_in_set, column: a, value_set: "x,y"', "value_set", "must be a list, not `x,y`"),
        ("values_to_be_of_type, column: a, type_: 3", "type_", "must be text, not `3`"),
        ("values_to_not_be_null, column: 3", "column", "must be text, not `3`"),
    ],
)
def test_an_expectation_that_cannot_work_is_an_error(arguments: str, place: str, message: str) -> None:
    finding = only(f"{HEAD}verify: {{expectations: [{{type: expect_column_{arguments}}}]}}\n")
    assert finding.code == "P316"
    assert finding.message.startswith(f"verify.expectations[0].{place}: {message}")
    assert finding.help


def test_a_count_of_rows_is_a_whole_number() -> None:
    finding = only(f"{HEAD}verify: {{expectations: [{{type: expect_table_row_count_to_equal, value: many}}]}}\n")
    assert finding.message == "verify.expectations[0].value: must be a whole number, not `many`"


def test_expectations_that_may_work_are_valid() -> None:
    expectations = [
        "values_to_be_between, column: a, min_value: 3, max_value: 3",
        "values_to_be_between, column: a, min_value: 9, max_value: x",
        "values_to_be_between, column: a, max_value: 2026-01-01",
        "values_to_be_between, column: a, min_value: null, max_value: 3",
        "values_to_match_regex, column: a, regex: '\\p{L}++[a[b]]'",  # Java's, which Spark runs
        "values_to_be_in_set, column: a, value_set: [x, 1]",
        "quantile_values_to_be_between, column: a, quantile_ranges: {quantiles: [0.5], value_ranges: [[1, 2]]}",
    ]
    lines = "".join(f"    - {{type: expect_column_{text}}}\n" for text in expectations)
    assert findings_of(f"{HEAD}verify:\n  expectations:\n{lines}") == []


def test_an_expectation_as_text_is_shown_as_a_map() -> None:
    finding = only(f"{HEAD}verify: {{expectations: [expect_column_to_exist]}}\n")
    assert (finding.code, finding.help) == ("P203", "write a map: `{type: expect_column_to_exist, column: NAME}`")
    finding = only(f"{HEAD}verify: {{expectations: expect_column_to_exist}}\n")
    assert finding.help == "write a list of maps: `[{type: expect_column_to_exist, column: NAME}]`"
