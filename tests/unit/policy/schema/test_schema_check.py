"""Findings of the schema, one a line of a file: code, place, words and the way to write it right."""

from __future__ import annotations

import pytest

from tests.support.policies.policy_reading import HEAD, findings_of, only_finding


@pytest.mark.parametrize(
    ("line", "code", "column", "message", "help"),
    [
        ("autoCompact: yes", "P203", 14, "autoCompact must be `true`, `false` or a map, not `yes`", "write `true`"),
        ("autoCompact: NO", "P203", 14, "autoCompact must be `true`, `false` or a map, not `NO`", "write `false`"),
        (
            "vacuum: {retention: 7}",
            "P203",
            21,
            "vacuum.retention must be a duration, not `7`",
            "write `7d` for days or `7h` for hours",
        ),
        (
            'vacuum: {retention: "7"}',
            "P205",
            21,
            "vacuum.retention: the duration 7 has no unit",
            "write `7d` for days or `7h` for hours",
        ),
        (
            "optimize: {maxThreads: 8.0}",
            "P203",
            24,
            "optimize.maxThreads must be a whole number, not `8.0`",
            "write `8`",
        ),
        (
            "optimize: {maxThreads: 0}",
            "P206",
            24,
            "optimize.maxThreads must be at least 1, not `0`",
            "write it like `8`",
        ),
        ("optimize: {minFileSize: -1}", "P205", 25, "optimize.minFileSize: a size cannot be negative", None),
        (
            "optimize: {minFileSize: 64mib}",
            "P205",
            25,
            "optimize.minFileSize: unknown unit `mib` of a size",
            "write `64MiB`",
        ),
        (
            "optimize: {maxFileSize: 256MB}",
            "P301",
            25,
            "optimize.maxFileSize: `256MB` is read as `256MiB`, as Spark does",
            "write `256MiB` to say so",
        ),
        (
            "verify: {rowCount: scna}",
            "P204",
            20,
            "verify.rowCount must be `log`, `scan` or `off`, not `scna`",
            "did you mean `scan`?",
        ),
        (
            "verify: {rowCount: false}",
            "P204",
            20,
            "verify.rowCount must be `log`, `scan` or `off`, not `false`",
            "write `off`",
        ),
        ("tags: nightly", "P203", 7, "tags must be a list, not `nightly`", "write a list: `[nightly]`"),
        ("tags: '*'", "P203", 7, "tags must be a list, not `*`", 'write a list: `["*"]`'),
        ("tags: [a, 1]", "P203", 11, "tags[1] must be text, not `1`", 'put it in quotes: `"1"`'),
        ("tags: [a, b, a]", "P207", 14, "tags has `a` twice", "remove one of the two"),
        ("tags: [a b]", "P205", 8, "tags[0] cannot be `a b`", None),
        ("owner: {}", "P203", 1, "owner must be text, not a map", "write it like `team-sales`"),
        ("owner: ''", "P206", 8, "owner is empty", "write it like `team-sales`"),
        ("optimize: []", "P203", 1, "optimize must be a map, not a list", None),
        (
            "optimize: {zorder: {columns: []}}",
            "P206",
            21,
            "optimize.zorder.columns is empty",
            "it needs at least 1 item",
        ),
        ("window: [{from: 22:00}]", "P202", 10, "`to` is missing in window[0]", "add `to: 04:00`"),
        (
            "suspend: {until: 2026-02-30, reason: x}",
            "P313",
            18,
            "suspend.until: `2026-02-30` is not in the calendar",
            None,
        ),
        ("suspend: {until: 1 Dec, reason: x}", "P205", 18, "suspend.until: `1 Dec` is not a date", None),
        (
            "window: [{from: 22:00, to: 04:00, timezone: Europe/Berln}]",
            "P314",
            45,
            "window[0].timezone: `Europe/Berln` is not a time zone",
            "did you mean `Europe/Berlin`?",
        ),
        (
            'optimize: {where: "day >= reflect(1)"}',
            "P310",
            27,
            "optimize.where: `reflect(...)`: functions are not part of the grammar",
            None,
        ),
        (
            "verify: {expectations: [{type: expect_column_to_exit, column: a}]}",
            "P311",
            32,
            "verify.expectations[0].type: Great Expectations has no `expect_column_to_exit`",
            "did you mean `expect_column_to_exist`?",
        ),
        ("owner: ${env:TEAM}", "P309", 8, "owner uses an environment variable", None),
        ("minFileSize: 64MiB", "P201", 1, "unknown key `minFileSize` at the top level", None),
        (
            "window: [{from: 22, to: 04:00}]",
            "P203",
            17,
            "window[0].from must be a time of day, not `22`",
            "write `22:00`",
        ),
        (
            "window: [{from: 22.30, to: 04:00}]",
            "P203",
            17,
            "window[0].from must be a time of day, not `22.30`",
            "write `22:30`",
        ),
        (
            "window: [{from: 99, to: 04:00}]",
            "P203",
            17,
            "window[0].from must be a time of day, not `99`",
            "write a time of day with two digits each, like `22:00`",
        ),
        ("optimise: {}", "P201", 1, "unknown key `optimise` at the top level", "did you mean `optimize`?"),
        (
            "optimize: {minFileSzie: 1}",
            "P201",
            12,
            "unknown key `minFileSzie` in optimize",
            "did you mean `minFileSize`?",
        ),
        (
            "optimize: {maxFileSize: 2.5e8}",
            "P203",
            25,
            "optimize.maxFileSize must be a size, not `2.5e8`",
            "write `250000000`, or a size like `128MiB`",
        ),
        (
            "optimize: {maxFileSize: 1.50}",
            "P203",
            25,
            "optimize.maxFileSize must be a size, not `1.50`",
            "write a size like `128MiB` or `1GiB`",
        ),
        ("owner: 1.10", "P203", 8, "owner must be text, not `1.10`", 'put it in quotes: `"1.10"`'),
        (
            "optimize: {maxDeletedRowsRatio: 20%}",
            "P203",
            33,
            "optimize.maxDeletedRowsRatio must be a number, not `20%`",
            "write `0.2`",
        ),
        (
            "optimize: {maxDeletedRowsRatio: 120%}",
            "P203",
            33,
            "optimize.maxDeletedRowsRatio must be a number, not `120%`",
            "write it like `0.05`",
        ),
        (
            "v\u0430cuum: {retention: 7d}",
            "P201",
            1,
            "unknown key `v\u0430cuum` at the top level",
            "did you mean `vacuum`? What is written has the character U+0430, cyrillic small letter a",
        ),
        (
            "vacuum: {mode: l\u0456te}",
            "P204",
            16,
            "vacuum.mode must be `auto`, `full` or `lite`, not `l\u0456te`",
            "did you mean `lite`? What is written has the character U+0456, cyrillic small letter "
            "byelorussian-ukrainian i",
        ),
        (
            "verify: {expectations: [{type: expect_column_values_to_be_not_null, column: a}]}",
            "P311",
            32,
            "verify.expectations[0].type: Great Expectations has no `expect_column_values_to_be_not_null`",
            "did you mean `expect_column_values_to_not_be_null`?",
        ),
        *(
            (
                f"verify: {{expectations: [{{type: {name}, column: a}}]}}",
                "P311",
                32,
                f"verify.expectations[0].type: Great Expectations has no `{name}`",
                "did you mean `expect_column_values_to_not_be_null`?",
            )
            for name in ("ExpectColumnValuesToNotBeNull", "expect_column_values_to_be_notnull")
        ),
        *(
            (
                f"window: [{{from: 22:00, to: 04:00, timezone: {zone}}}]",
                "P314",
                45,
                f"window[0].timezone: `{zone}` is not a time zone",
                help,
            )
            for zone, help in (
                ("CEST", "abbreviations and offsets are no time zones: write a place, like `Europe/Berlin`; or `UTC`"),
                ("UTC+1", "abbreviations and offsets are no time zones: write a place, like `Europe/Berlin`; or `UTC`"),
                ("berlin", "did you mean `Europe/Berlin`?"),
                ("localtime", "write an IANA name, like `Europe/Berlin` or `UTC`"),
            )
        ),
        ("properties: {a b: c}", "P205", 14, "`a b` is not a name for a key here", None),
        (
            "properties: {a: [1]}",
            "P203",
            14,
            "properties.a must be `true`, `false`, text or a whole number, not a list",
            None,
        ),
        (
            "properties: {a: 1.5}",
            "P203",
            17,
            "properties.a must be `true`, `false`, text or a whole number, not `1.5`",
            'put it in quotes: `"1.5"`',
        ),
    ],
)
def test_one_finding(line: str, code: str, column: int, message: str, help: str | None) -> None:
    finding = only_finding(f"{HEAD}{line}\n")
    assert (finding.code, finding.span.line, finding.span.column) == (code, 3, column)
    assert finding.message == message
    if help is not None:
        assert finding.help == help


@pytest.mark.parametrize(
    ("zone", "offset"), [("EST", "-5"), ("HST", "-10"), ("Etc/GMT+2", "-2"), ("Etc/GMT-14", "+14")]
)
def test_a_zone_that_is_one_offset_all_year_is_told_with_its_sign(zone: str, offset: str) -> None:
    """`Etc/GMT+2` is behind UTC, and with EST a window in New York opens an hour late all summer."""
    finding = only_finding(f"{HEAD}window: [{{from: 22:00, to: 04:00, timezone: {zone}}}]\n")
    assert (finding.code, finding.is_error, finding.span.column) == ("P314", False, 45)
    assert finding.message == f"window[0].timezone: `{zone}` is UTC{offset} all year"
    assert only_finding(f"version: 1\ntimezone: {zone}\n", "maintainer.yml").code == "P314"


@pytest.mark.parametrize("zone", ["UTC", "GMT", "Etc/UTC", "Etc/GMT", "EST5EDT", "CET", "America/Panama"])
def test_a_zone_in_which_nobody_errs_is_right(zone: str) -> None:
    assert findings_of(f"{HEAD}window: [{{from: 22:00, to: 04:00, timezone: {zone}}}]\n") == []


def test_a_key_of_another_map_is_sent_home() -> None:
    assert only_finding(HEAD + "retention: 7d\n").help == "`retention` belongs under `vacuum`"
    assert only_finding(HEAD + "optimize: {tables: [x]}\n").help == "`tables` belongs under `match`"
    rule = "each rule is a file of its own with `match:` at the top"
    assert only_finding(HEAD + "rules: []\n").help == rule
    assert only_finding(HEAD + "optimize: {owner: x}\n").help == "`owner` belongs at the top level"


def test_a_property_of_delta_is_sent_to_the_properties() -> None:
    finding = only_finding(HEAD + "delta.deletedFileRetentionDuration: interval 7 days\n")
    assert finding.help == (
        "`delta.deletedFileRetentionDuration` belongs under `properties`; how long maintainer keeps files is "
        "`vacuum: {retention: 7d}`"
    )
    assert only_finding(HEAD + "delta.appendOnly: true\n").help == "`delta.appendOnly` belongs under `properties`"


def test_findings_are_bounded_and_sorted() -> None:
    findings = findings_of(HEAD + "".join(f"k{number:04}: 1\n" for number in range(500)))
    assert len(findings) == 100
    assert findings == sorted(findings)


def test_the_whole_vocabulary_is_accepted() -> None:
    from pathlib import Path

    assert (
        findings_of((Path(__file__).parents[4] / "tests" / "support" / "policies" / "every_key.yml").read_text()) == []
    )
