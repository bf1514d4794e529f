"""Which files belong to a project: bounded in number and depth, and never through a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.errors import ProjectError
from maintainer.policy.yaml import discovery
from maintainer.policy.yaml.discovery import find_files, find_tests, misplaced_policies
from tests.support.policies.projects import write_project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = ("a.yml", "b.yaml", "_profiles/p.yml", "sub/c.yml", "_tests/t.yml", "_tests/u.yml", "notes.txt", ".d.yml")
    return write_project(tmp_path, {f"policies/{name}": "table: s.t\n" for name in files})


def names(paths: tuple[Path, ...], root: Path) -> list[str]:
    return [path.relative_to(root / "policies").as_posix() for path in paths]


def test_policies_profiles_and_tests_are_told_apart(root: Path) -> None:
    files = find_files(root)
    assert names(files.policies, root) == ["a.yml", "b.yaml", "sub/c.yml"]
    assert names(files.profiles, root) == ["_profiles/p.yml"]
    assert names(find_tests(root), root) == ["_tests/t.yml", "_tests/u.yml"]
    assert files.findings == ()


def test_files_are_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_FILES", 4)
    assert len(find_files(root).policies) == 3
    monkeypatch.setattr(discovery, "MAX_FILES", 3)
    with pytest.raises(ProjectError) as caught:
        find_files(root)
    assert (caught.value.code, caught.value.what) == ("E614", "there are more than 3 policy files")


def test_tests_are_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_FILES", 2)
    assert len(find_tests(root)) == 2
    monkeypatch.setattr(discovery, "MAX_FILES", 1)
    with pytest.raises(ProjectError) as caught:
        find_tests(root)
    assert (caught.value.code, caught.value.what) == ("E614", "there are more than 1 files of tests")


def test_folders_are_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_FOLDERS", 3)  # policies itself, _profiles and sub
    assert len(find_files(root).policies) == 3
    monkeypatch.setattr(discovery, "MAX_FOLDERS", 2)
    with pytest.raises(ProjectError) as caught:
        find_files(root)
    assert (caught.value.code, caught.value.what) == ("E614", "there are more than 2 folders")


def test_a_folder_of_policies_that_is_a_link_is_a_finding(tmp_path: Path, root: Path) -> None:
    (root / "policies").rename(root / "elsewhere")
    (root / "policies").symlink_to(root / "elsewhere")
    files = find_files(root)
    assert (files.policies, files.profiles) == ((), ())
    assert [(finding.code, finding.file) for finding in files.findings] == [("P355", "policies")]


def test_policies_that_lie_elsewhere_are_named_and_a_lake_beside_them_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"tables/{name}.yml": f"table: s.{name}\n" for name in "abcd"}
    root = write_project(tmp_path, {**files, "notes.yml": "about: x\n", "deep/er/e.yml": "table: s.e\n"})
    assert misplaced_policies(root) == ("tables/a.yml", "tables/b.yml", "tables/c.yml")
    monkeypatch.setattr(discovery, "_MAX_ENTRIES", 1)
    assert misplaced_policies(root) == ()
