"""Kinds of files, and what names a table in each: keys that do not belong, patterns, lists and templates."""

from __future__ import annotations

import pytest

from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.schema.schema_keys import MANY_TABLES
from maintainer.policy.yaml.yaml_reader import read_text
from tests.support.policies.policy_reading import HEAD, findings_of, only_finding


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
    finding = only_finding(content, file)
    assert finding.code == "P208"
    assert key in finding.message


@pytest.mark.parametrize("table", ["sales.*", "bronze.[ab]"])
def test_a_pattern_is_no_table(table: str) -> None:
    finding = only_finding(f'version: 1\ntable: "{table}"\n')
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
    finding = only_finding(f"version: 1\n{content}")
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
