"""Findings of the schema: code, place, words and the way to write it right."""

from __future__ import annotations

import pytest

from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.schema.formats import check_format
from maintainer.policy.schema.known_expectations import EXPECTATIONS
from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.schema.schema_keys import MANY_TABLES
from maintainer.policy.yaml.yaml_reader import read_text
from tests.support.policies.policy_reading import findings_of

HEAD = "version: 1\ntable: a.b\n"


def only(content: str, file: str = "policies/t.yml") -> Diagnostic:
    (finding,) = findings_of(content, file)
    return finding


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
    finding = only(f"{HEAD}{line}\n")
    assert (finding.code, finding.span.line, finding.span.column) == (code, 3, column)
    assert finding.message == message
    if help is not None:
        assert finding.help == help


def test_an_expectation_is_never_mistaken_for_its_opposite() -> None:
    for name in EXPECTATIONS:
        words = name.split("_")
        for moved in range(len(words)) if "not" in words else ():
            rest = [word for word in words if word != "not"]
            mistyped = "_".join([*rest[:moved], "not", *rest[moved:]])
            problem = check_format("expectation", mistyped)
            if problem is not None:
                assert problem.help == f"did you mean `{name}`?"


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("22", "write `22:00`"),
        ("9:30", "write `09:30`"),
        ("9", "write `09:00`"),
        ("10pm", "write `22:00`"),
        ("12 am", "write `00:00`"),
        ("2230", "write `22:30`"),
        ("25", "write a time of day with two digits each, like `22:00`"),
        ("22:60", "write a time of day with two digits each, like `22:00`"),
        ("13pm", "write a time of day with two digits each, like `22:00`"),
    ],
)
def test_a_time_of_day_is_offered_where_one_is_meant(text: str, help: str) -> None:
    problem = check_format("time", text)
    assert problem is not None
    assert (problem.code, problem.help) == ("P205", help)


def test_a_key_of_another_map_is_sent_home() -> None:
    assert only(HEAD + "retention: 7d\n").help == "`retention` belongs under `vacuum`"
    assert only(HEAD + "optimize: {tables: [x]}\n").help == "`tables` belongs under `match`"
    assert only(HEAD + "optimize: {owner: x}\n").help == "`owner` belongs at the top level"


def test_a_property_of_delta_is_sent_to_the_properties() -> None:
    finding = only(HEAD + "delta.deletedFileRetentionDuration: interval 7 days\n")
    assert finding.help == (
        "`delta.deletedFileRetentionDuration` belongs under `properties`; how long maintainer keeps files is "
        "`vacuum: {retention: 7d}`"
    )
    assert only(HEAD + "delta.appendOnly: true\n").help == "`delta.appendOnly` belongs under `properties`"


@pytest.mark.parametrize(
    ("content", "file", "helps"),
    [
        (HEAD + 'tags: ["", "a b"]\n', "policies/t.yml", ["write it like `nightly`"] * 2),
        (HEAD + "extends: [a/b]\n", "policies/t.yml", ["write it like `big-fact-table`"]),
        ("version: 1\nbatches: [1, 5, 120%]\n", "maintainer.yml", ["write it like `20%`"]),
    ],
)
def test_an_item_in_the_wrong_form_has_help(content: str, file: str, helps: list[str]) -> None:
    assert [finding.help for finding in findings_of(content, file)] == helps


def test_null_falls_back_where_it_may_and_is_an_error_where_not() -> None:
    assert findings_of(HEAD + "owner:\noptimize:\nvacuum: {retention: null}\nautoCompact: ~\n") == []
    assert only("version: 1\ntable:\n").message == "table has no value"
    assert only("version:\ntable: a\n").message == "version has no value"


def test_a_refused_value_is_not_called_missing() -> None:
    assert [one.code for one in findings_of("version: 010\ntable: *x\n")] == ["Y117", "Y109"]
    assert [one.code for one in findings_of(HEAD + "optimize: {zorder: {mode: full, columns: [*x]}}\n")] == ["Y109"]


@pytest.mark.parametrize(
    ("file", "text", "kind"),
    [
        ("policies/a.yml", "table: a", DocumentKind.POLICY),
        ("policies/a.yml", "owner: a", DocumentKind.POLICY),
        ("policies/a.yml", "match: {}", DocumentKind.RULE),
        ("policies/a.yml", "match: *x\nowner: y", DocumentKind.RULE),
        ("policies/a.yml", "match: {}\ntable: a", DocumentKind.POLICY),
        ("policies/_profiles/a.yml", "table: a", DocumentKind.PROFILE),
        ("policies/sales/_profiles/a.yml", "owner: a", DocumentKind.PROFILE),
        ("maintainer.yml", "table: a", DocumentKind.PROJECT),
        ("_profiles", "table: a", DocumentKind.POLICY),
    ],
)
def test_kinds_of_files(file: str, text: str, kind: DocumentKind) -> None:
    document, _ = read_text(text, file)
    assert document is not None
    assert kind_of(document) is kind


@pytest.mark.parametrize(
    ("file", "content", "key"),
    [
        ("policies/a.yml", HEAD + "match: {tables: [a]}\n", "match"),
        ("policies/a.yml", HEAD + "priority: 1\n", "priority"),
        ("policies/a.yml", "version: 1\nmatch: {tables: [a]}\nextends: [x]\n", "extends"),
        ("policies/_profiles/a.yml", "version: 1\nextends: [x]\n", "extends"),
        ("policies/_profiles/a.yml", "version: 1\ntable: x\n", "table"),
    ],
)
def test_keys_that_do_not_belong(file: str, content: str, key: str) -> None:
    finding = only(content, file)
    assert finding.code == "P208"
    assert key in finding.message


@pytest.mark.parametrize("table", ["sales.*", "bronze.[ab]"])
def test_a_pattern_is_no_table(table: str) -> None:
    finding = only(f'version: 1\ntable: "{table}"\n')
    assert finding.code == "P205"
    assert finding.help == f'for many tables write `match: {{tables: ["{table}"]}}`; {MANY_TABLES}'


def test_a_list_of_tables_is_led_to_policies_of_their_own() -> None:
    missing, unknown = findings_of("version: 1\ntables: [s.a, s.b]\n")
    assert (missing.code, unknown.code) == ("P202", "P201")
    assert unknown.help == f"`tables` belongs under `match`; {MANY_TABLES}"
    assert "`maintainer inventory --write`" in MANY_TABLES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("table: ${LAKE}/orders\n", "table: `${LAKE}` is not filled in, and would be part of the name"),
        ('table: "{{ env }}.orders"\n', "table: `{{ env }}` is not filled in, and would be part of the name"),
        ("table: a.b\nowner: ${USER}\n", "owner: `${USER}` is not filled in, and would be part of the name"),
        ("table: a.b\ntags: [a, '${T}']\n", "tags[1]: `${T}` is not filled in, and would be part of the name"),
        (
            "match: {tables: ['{{ s }}.*']}\n",
            "match.tables[0]: `{{ s }}` is not filled in, and would be part of the name",
        ),
    ],
)
def test_a_template_is_no_name(content: str, message: str) -> None:
    finding = only(f"version: 1\n{content}")
    assert (finding.code, finding.message) == ("P309", message)
    assert finding.help == "write the name itself; only maintainer.yml may use variables, as `${env:NAME}`"


def test_a_template_in_a_description_is_text() -> None:
    assert findings_of(HEAD + "description: ${USER} writes {{ this }}\n") == []


def test_a_template_without_quotes_is_named() -> None:
    key, _ = findings_of("version: 1\ntable: {{ env }}.orders\n")
    assert key.code == "Y114"
    assert key.help == "keys are text; a template such as `{{ name }}` is not filled in: write the name itself"


@pytest.mark.parametrize("table", ["s3://lake/sales/orders", "../lake/o", "/lake/a[1]/b", "c.s.t", "`odd name`.t"])
def test_tables(table: str) -> None:
    assert findings_of(f'version: 1\ntable: "{table}"\n') == []


def test_the_place_inside_a_predicate_is_exact_only_where_the_text_is_shown_as_it_is() -> None:
    plain = only(HEAD + "optimize: {where: day = f(1)}\n")
    assert plain.span.column == 25
    quoted = only(HEAD + "optimize: {where: 'day = f(1)'}\n")
    assert quoted.span.column == 26
    escaped = only(HEAD + 'optimize: {where: "day\\u0020= f(1)"}\n')
    assert escaped.span.column == 19
    folded = only(HEAD + "optimize:\n  where: >-\n    day =\n    f(1)\n")
    assert (folded.span.line, folded.span.column) == (4, 10)


def test_findings_are_bounded_and_sorted() -> None:
    findings = findings_of(HEAD + "".join(f"k{number:04}: 1\n" for number in range(500)))
    assert len(findings) == 100
    assert findings == sorted(findings)


def test_the_whole_vocabulary_is_accepted() -> None:
    from pathlib import Path

    assert (
        findings_of((Path(__file__).parents[4] / "tests" / "support" / "policies" / "every_key.yml").read_text()) == []
    )


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (f"owner: {'x' * 201}", "P206", "owner has 201 characters; at most 200 are allowed"),
        (f"tags: [{', '.join(f't{n}' for n in range(101))}]", "P206", "tags has 101 items; at most 100 are allowed"),
        ("match: {tables: ['a.*'], minSize: 1GiB}", "P312", "match.minSize: not supported yet"),
    ],
)
def test_bounds_are_said_with_what_was_found(line: str, code: str, message: str) -> None:
    head = "version: 1\n" if line.startswith("match") else HEAD
    finding = only(f"{head}{line}\n")
    assert (finding.code, finding.message) == (code, message)


def test_items_of_a_wrong_type_are_not_also_called_twice() -> None:
    assert [finding.code for finding in findings_of(f"{HEAD}tags: [[a], [a], {{a: 1}}, {{a: 1}}]\n")] == ["P203"] * 4
    assert [finding.code for finding in findings_of(f"{HEAD}tags: [a, a]\n")] == ["P207"]


def test_what_is_not_supported_may_be_set_to_nothing() -> None:
    findings = findings_of("version: 1\nmatch: {tables: ['a.*'], minSize: null}\n")
    assert "P312" not in [finding.code for finding in findings]


def test_what_was_right_once_is_right_again_and_what_was_wrong_is_wrong_again() -> None:
    for _ in range(3):
        assert findings_of(f"{HEAD}optimize: {{maxThreads: 3}}\n") == []
        assert [finding.code for finding in findings_of(f"{HEAD}optimize: {{maxThreads: true}}\n")] == ["P203"]
        assert [finding.code for finding in findings_of(f"{HEAD}optimize: {{maxThreads: 3.0}}\n")] == ["P203"]
        assert [finding.code for finding in findings_of(f"{HEAD}unknown: 1\nowner: a\n")] == ["P201"]
        assert [finding.code for finding in findings_of("owner: a\ntable: a.b\n")] == ["P202"]
        assert findings_of(f"{HEAD}owner: a\n") == []
