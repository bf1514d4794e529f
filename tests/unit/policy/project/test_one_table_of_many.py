"""A project that is read for one table alone: files of other tables are not read, and everything else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.errors import ProjectError
from maintainer.policy.project.policy_project import load_project
from tests.support.policies.projects import write_project

FILES = {
    "maintainer.yml": "version: 1\ndefaults: {owner: all}\nroots: [lake]\n",
    "policies/_profiles/big.yml": "version: 1\noptimize: {maxFileSize: 1GiB}\n",
    "policies/rule.yml": 'version: 1\nmatch: {tables: ["sales.*"]}\nlimits: {timeout: 1h}\n',
    "policies/lake.yml": 'version: 1\nmatch: {tables: ["lake/*"]}\nmanage: true\n',
    "policies/orders.yml": "version: 1\ntable: sales.orders\nextends: [big]\n",
    "policies/lines.yml": "version: 1\ntable: sales.lines\nnonsense: 1\n",
    "policies/more.yml": "version: 1\ntable: sales.more\nextends: [gone]\n",
    "policies/flow.yml": "version: 1\n'table': sales.flow\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path, FILES)


def test_the_policy_is_the_same_as_when_everything_is_read(root: Path) -> None:
    (root / "policies/lines.yml").write_text("version: 1\ntable: sales.lines\n")
    (root / "policies/more.yml").unlink()
    whole = load_project(root)
    assert not whole.errors
    for name in ("sales.orders", "SALES.`orders`", "sales.flow", "lake/managed"):
        assert load_project(root, only=name).resolve_table(name) == whole.resolve_table(name)


def test_what_is_wrong_in_files_of_other_tables_does_not_stop_it(root: Path) -> None:
    assert load_project(root).errors
    project = load_project(root, only="sales.orders")
    assert project.diagnostics == ()
    assert [table.written for table in project.tables] == ["sales.flow", "sales.orders"]
    assert set(project.not_read) == {"sales.lines", "sales.more"}
    assert project.resolve_table("sales.orders").limits.timeout_seconds == 3600


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("second.yml", "version: 1\ntable: SALES.orders\n", "P350"),
        ("second.yml", "{version: 1, table: sales.`orders`}\n", "P350"),
        ("orders.yml", "version: 1\ntable: sales.orders\nnonsense: 1\n", "P201"),
        ("rule.yml", "version: 1\nmatch: {tables: 5}\n", "P203"),
        ("_profiles/big.yml", "version: 1\nnonsense: 1\n", "P201"),
    ],
)
def test_what_concerns_the_table_is_found(root: Path, file: str, text: str, code: str) -> None:
    (root / "policies" / file).write_text(text)
    assert code in {finding.code for finding in load_project(root, only="sales.orders").diagnostics}


def test_a_misspelt_name_is_compared_with_all_names(root: Path) -> None:
    (root / "policies/rule.yml").unlink()
    with pytest.raises(ProjectError) as raised:
        load_project(root, only="sales.line").resolve_table("sales.line")
    assert (raised.value.code, raised.value.help) == ("E613", "did you mean `sales.lines`?")
