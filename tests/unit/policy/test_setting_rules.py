"""What the values of one file mean together."""

from __future__ import annotations

import pytest

from maintainer.policy.diagnostics import Severity
from tests.support.policies.policy_reading import HEAD, findings_of, only_finding


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
            "autoCompact: {minFileSize: 2B, maxFileSize: 1B}",
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
            "vacuum: {retention: 1h, allowShortRetention: false}",
            "P304",
            21,
            "vacuum.retention: 1h is below 7d: files that a reader or writer still uses could be deleted",
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
        ("autoCompact: {maxFileSize: 0}", "P307", 28, "autoCompact.maxFileSize: must be larger than 0"),
        ("autoCompact: {minFileSize: 0B}", "P307", 28, "autoCompact.minFileSize: must be larger than 0"),
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
    findings = findings_of(f"{HEAD}{line}\n")
    assert [(finding.code, finding.span.line, finding.span.column, finding.message) for finding in findings] == [
        (code, 3, column, message)
    ]
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
    finding = only_finding(f"{HEAD}{line}\n")
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


@pytest.mark.parametrize(
    ("limit", "help"),
    [
        ("maxBytes: 0", "remove it for no limit; `suspend:` leaves a table alone"),
        ("maxFiles: 0", "remove it for no limit"),
        ("maxDeletes: -1", "remove it for no limit"),
        ("timeout: 0s", "write the longest time, such as `12h`; without it, that is 3h"),
    ],
)
def test_the_help_for_a_limit_of_nothing_is_what_holds_without_it(limit: str, help: str) -> None:
    assert only_finding(f"{HEAD}limits: {{{limit}}}\n").help == help


def test_a_retention_below_a_consumers_lag_names_the_line_of_the_lag() -> None:
    finding = only_finding(HEAD + "vacuum: {retention: 7d}\nconsumers:\n- name: a\n  maxLag: 10d\n")
    assert (finding.code, finding.span.line) == ("P305", 3)
    assert finding.help == "consumers[0].maxLag is on line 6; make the retention at least `10d`"


def test_the_help_for_a_whole_day_is_a_policy_that_is_valid_and_open_all_day() -> None:
    help = only_finding(HEAD + "window: [{days: [sat], from: 00:00, to: 00:00}]\n").help
    written = "[{from: 00:00, to: 12:00}, {from: 12:00, to: 00:00}]"
    assert help == (
        f"window[0].from is on line 3; change one of the two; a whole day is two windows, `{written}`, each with its "
        "`days`"
    )
    assert findings_of(f"{HEAD}window: {written.replace('{', '{days: [sat], ')}\n") == []


def test_the_help_for_an_interval_is_the_interval() -> None:
    assert (
        only_finding(HEAD + "properties: {delta.logRetentionDuration: P1DT12H}\n").help
        == "write `interval 1 day 12 hours`"
    )
    assert (
        only_finding(HEAD + "properties: {delta.logRetentionDuration: 30}\n").help == "write it like `interval 30 days`"
    )


@pytest.mark.parametrize(
    "line", ["optimize: {zorder: {columns: [a]}}", "optimize: {zorder: {columns: [a], mode: incremental}}"]
)
def test_zorder_is_incremental_unless_a_policy_says_full(line: str) -> None:
    assert findings_of(f"{HEAD}{line}\n") == []
    assert findings_of(f"version: 1\ndefaults: {{{line}}}\n", "maintainer.yml") == []


def test_a_rule_by_size_sets_nothing_that_tables_are_selected_by() -> None:
    assert findings_of("version: 1\nmatch: {minSize: 1GiB}\noptimize: {maxThreads: 2}\n") == []
    findings = findings_of("version: 1\nmatch: {tables: [a.*], minSize: 1GiB}\nowner: x\ntags: [large]\n")
    assert [(finding.code, finding.span.line, finding.is_error) for finding in findings] == [
        ("P324", 3, True),
        ("P324", 4, True),
    ]


@pytest.mark.parametrize("key", ["tables", "exclude"])
@pytest.mark.parametrize(
    "glob", ["!s.tmp", "s.tmp, s.old", "s.{tmp,old}", " s.tmp", "s.tmp ", "s.%", "%_tmp", "^s.tmp", ".*_tmp"]
)
def test_what_other_tools_read_as_more_than_a_glob_is_no_item_that_matches_nothing(key: str, glob: str) -> None:
    """Of several items nobody would notice the one that matches nothing: what it excludes is deleted in."""
    items = {"tables": '["s.*"]', key: f'["s.a", "{glob}"]'}
    match = ", ".join(f"{name}: {item}" for name, item in items.items())
    finding = only_finding(f"version: 1\nmatch: {{{match}}}\nvacuum: {{}}\n")
    assert (finding.code, finding.is_error, finding.span.line) == ("P205", True, 2)
    assert finding.message.startswith(f"match.{key}[1]: `{glob}` ")


@pytest.mark.parametrize("glob", ["*_tmp", "s.t[!0-9]*", "lake/a,b/*", "s3://bucket/{id}/*", "./tmp/*", "s.été?"])
def test_globs_that_are_right(glob: str) -> None:
    assert findings_of(f'version: 1\nmatch: {{tables: ["s.*"], exclude: ["{glob}"]}}\nvacuum: {{}}\n') == []


def test_an_environment_has_no_catalog() -> None:
    finding = only_finding("version: 1\nenvironments: {dev: {catalog: c}}\n", "maintainer.yml")
    assert (finding.code, finding.message) == ("P201", "unknown key `catalog` in environments.dev")


def test_a_rule_says_what_it_reaches() -> None:
    finding = only_finding('version: 1\nmatch: {exclude: ["*.tmp"]}\n')
    assert (finding.code, finding.span.line, finding.span.column) == ("P307", 2, 1)
    assert findings_of("version: 1\nmatch: {tags: [a]}\n") == []
    assert [finding.code for finding in findings_of("version: 1\nmatch: {exclude: [a], tables: *x}\n")] == ["Y109"]


def test_settings_of_a_project_are_checked_wherever_they_stand() -> None:
    content = (
        "version: 1\nmaxPlanAge: 0h\nlimits: {timeout: 0h}\n"
        "defaults: {vacuum: {retention: 1d}}\n"
        "environments: {dev: {overrides: {window: [{from: 01:00, to: 01:00}], limits: {maxBytes: 0}}}}\n"
    )
    findings = findings_of(content, "maintainer.yml")
    assert [(finding.code, finding.span.line, finding.message.partition(":")[0]) for finding in findings] == [
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
    assert [finding.code for finding in findings_of(content)] == ["P203", "P205", "P203", "P203", "P203", "P203"]
