"""Names that are valid and hardly meant: which are warned of, and which are what people write on purpose."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from maintainer.policy.project.doubtful_policies import check_suspension
from maintainer.policy.project.policy_project import LoadedProject, load_project


def project(folder: Path, *policies: str) -> LoadedProject:
    (folder / "policies").mkdir()
    for number, text in enumerate(policies):
        (folder / "policies" / f"p{number}.yml").write_text(f"version: 1\n{text}\n", encoding="utf-8")
    return load_project(folder)


def codes(loaded: LoadedProject) -> list[str]:
    return [finding.code for finding in loaded.diagnostics]


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("/", "P388"), ("s3://bucket", "P388"), ("abfss://c@a.dfs.core.windows.net/", "P388"),
        ("hdfs://n:8020/", "P388"),
        ("s3://bucket/t", None), ("/t", None), ("lake/*", "P389"), ("lake/a?", None),
        ("a.b.c.d", "P390"), ("a.b.c", None), ("`a.b.c.d`.e", None),
    ],
)  # fmt: skip
def test_a_name_that_hardly_names_a_table(tmp_path: Path, table: str, code: str | None) -> None:
    assert codes(project(tmp_path, f"table: '{table}'")) == ([code] if code else [])


@pytest.mark.parametrize(
    ("outer", "inner", "within"),
    [
        ("lake/x", "lake/x/y", True),
        ("lake/x", "./lake/x/a/b", True),
        ("s3://b/x", "s3a://b/x/y", True),
        ("lake/x", "lake/xy", False),
        ("lake.x", "lake/x/y", False),
    ],
)
def test_a_table_within_another_one(tmp_path: Path, outer: str, inner: str, within: bool) -> None:
    loaded = project(tmp_path, f"table: {outer}", f"table: {inner}")
    assert [(finding.code, finding.file) for finding in loaded.diagnostics] == (
        [("P391", "policies/p1.yml")] if within else []
    )


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("sаles", True), ("sΑles", True), ("a\u200bb", True), ("продажи", False), ("sales_продажи", False),
        ("größe", False), ("数据", False), ("Ελλάδα", False),
    ],
)  # fmt: skip
def test_a_letter_that_looks_like_another_one(tmp_path: Path, text: str, odd: bool) -> None:
    assert codes(project(tmp_path, f"table: a.b\nowner: '{text}'")) == (["P392"] if odd else [])


def test_every_place_of_a_name_is_looked_at(tmp_path: Path) -> None:
    loaded = project(
        tmp_path,
        "table: sаles.orders\ntags: [ok, nіght]",
        "match: {tables: ['*', 'sаles.*'], exclude: ['x'], tags: [ok]}",
    )
    assert [
        (finding.file, finding.span.line, finding.span.column)
        for finding in loaded.diagnostics
        if finding.code == "P392"
    ] == [("policies/p0.yml", 2, 8), ("policies/p0.yml", 3, 12), ("policies/p1.yml", 2, 23)]


@pytest.mark.parametrize(
    ("suspend", "today", "over"),
    [
        ("{until: 2026-05-02, reason: x}", date(2026, 5, 1), False),
        ("{until: 2026-05-02, reason: x}", date(2026, 5, 2), True),
        ("{reason: migration}", date(2026, 5, 2), False),
    ],
)
def test_a_suspension_ends_on_its_day(tmp_path: Path, suspend: str, today: date, over: bool) -> None:
    (resolution,) = project(tmp_path, f"table: a.b\nsuspend: {suspend}").each_resolution()
    assert [finding.code for finding in check_suspension(resolution, today)] == (["P393"] if over else [])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("b.json", True), ("b.JSONC", True), ("t.yml.txt", True), ("t.yml~", True), ("t.yaml.orig", True),
        ("README.md", False), (".t.yml.swp", False), ("notes.txt", False), ("t.ymlx", True),
    ],
)  # fmt: skip
def test_a_file_that_somebody_may_take_for_a_policy(tmp_path: Path, name: str, said: bool) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "t.yml").write_text("version: 1\ntable: a.b\n")
    (tmp_path / "policies" / name).write_text("")
    assert codes(load_project(tmp_path)) == (["P394"] if said else [])


@pytest.mark.parametrize(
    ("name", "said"), [("_tests/sales/a.yml", False), ("sales/_tests/a.yml", True), ("_profiles/_tests/a.yml", True)]
)
def test_a_folder_of_tests_that_nobody_reads_is_told(tmp_path: Path, name: str, said: bool) -> None:
    for path, text in (("t.yml", "version: 1\ntable: a.b\n"), (name, "not read\n")):
        (tmp_path / "policies" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "policies" / path).write_text(text)
    folder = f"policies/{name.partition('_tests')[0]}_tests"
    found = [(finding.code, finding.file, finding.is_error) for finding in load_project(tmp_path).diagnostics]
    assert found == ([("P394", folder, False)] if said else [])


@pytest.mark.parametrize(
    ("table", "match", "said"),
    [
        ("Sales.Orders", 'tables: ["sales.*"]', True),
        ("sales.orders", 'tables: ["Sales.*"]', True),
        ("sales.tmp", 'tables: ["*"], exclude: ["SALES.TMP*"]', True),
        ("Sales.Orders", 'tables: ["Sales.*"]', False),
        ("Sales.Orders", 'tables: ["hr.*", "a.b"]', False),
        ("lake/Sales", 'tables: ["lake/sales", "a.b"]', False),  # two folders
    ],
)
def test_a_table_that_a_glob_misses_by_case_alone_is_told(tmp_path: Path, table: str, match: str, said: bool) -> None:
    """Spark's names have no case, and globs do: a table that is called otherwise has none of the rule's limits."""
    (tmp_path / "policies").mkdir()
    policies = {"t": f"table: {table}", "u": "table: a.b", "r": f"match: {{{match}}}\nlimits: {{maxFiles: 3}}"}
    for name, text in policies.items():
        (tmp_path / "policies" / f"{name}.yml").write_text(f"version: 1\n{text}\n")
    found = [finding for finding in load_project(tmp_path).diagnostics if "case" in finding.message]
    assert [(finding.code, finding.file, finding.is_error) for finding in found] == (
        [("P357", "policies/r.yml", False)] if said else []
    )
    assert all(f"`{table}`" in finding.message for finding in found)
