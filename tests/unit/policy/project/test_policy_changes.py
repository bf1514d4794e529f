from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.errors import ProjectError
from maintainer.policy.project import policy_changes
from maintainer.policy.project.policy_changes import modified_tables
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.yaml import discovery
from tests.support.policies.projects import git, write_project

FILES = {
    "maintainer.yml": "environments: {dev: {overrides: {limits: {maxFiles: 9}}}}\n",
    "policies/rule.yml": 'match: {tables: ["s.*"]}\nlimits: {maxFiles: 5}\n',
    "policies/a.yml": "table: s.a\n",
    "policies/b.yml": "table: s.b\nlimits: {maxFiles: 1}\n",
    "policies/c.yml": "table: lake/c\n",
    "policies/d.yml": "table: ../outside/d\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project in a sub-folder of a repository, committed once."""
    root = write_project(tmp_path / "repo" / "ops", FILES)
    git(tmp_path / "repo", "init", "-q")
    git(tmp_path / "repo", "add", ".")
    git(tmp_path / "repo", "commit", "-q", "-m", "first")
    return root


def modified(root: Path, ref: str = "HEAD", env: str | None = None) -> set[str]:
    return {table.removeprefix(f"{root}/") for table in modified_tables(load_project(root, env), ref)}


def test_nothing_is_modified_when_effective_policies_are_the_same(root: Path) -> None:
    write_project(root, {"policies/a.yml": "# a comment\ntable: s.a\nlimits: {maxFiles: null}\n"})
    (root / "policies/b.yml").rename(root / "policies/moved.yml")
    assert modified(root) == set()


def test_a_changed_rule_selects_every_table_that_it_reaches_and_changes(root: Path) -> None:
    write_project(root, {"policies/rule.yml": 'match: {tables: ["s.*"]}\nlimits: {maxFiles: 6}\n'})
    assert modified(root) == {"s.a"}  # s.b has its own value
    assert modified(root, env="dev") == set()  # and in dev an override hides it


def test_changed_defaults_select_every_table(root: Path) -> None:
    write_project(root, {"maintainer.yml": "defaults: {limits: {timeout: 1h}}\n"})
    assert len(modified(root)) == 4


def test_a_new_table_is_modified_and_so_is_everything_before_there_was_a_project(root: Path) -> None:
    write_project(root, {"policies/e.yml": "table: s.e\n"})
    assert modified(root) == {"s.e"}
    for path in [*root.rglob("*.yml")]:
        path.unlink()
    git(root, "commit", "-q", "-a", "-m", "empty")
    write_project(root, FILES)
    assert len(modified(root)) == 4


@pytest.mark.parametrize("ref", ["no-such-branch", "--output=/tmp/x", "", "HEAD:ops"])
def test_a_reference_that_is_no_commit_is_refused(root: Path, ref: str) -> None:
    with pytest.raises(ProjectError, match="E625"):
        modified(root, ref)


def test_without_a_repository_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="not a git repository"):
        modified(write_project(tmp_path, FILES))


def test_policies_with_errors_cannot_be_compared_with(root: Path) -> None:
    write_project(root, {"policies/a.yml": "tabel: s.a\n"})
    git(root, "commit", "-q", "-a", "-m", "broken")
    write_project(root, FILES)
    with pytest.raises(ProjectError, match="E626"):
        modified(root)


def test_an_environment_that_is_new_is_compared_with_none(root: Path) -> None:
    write_project(root, {"maintainer.yml": "environments: {test: {overrides: {limits: {maxFiles: 1}}}, dev: {}}\n"})
    assert len(modified(root, env="test")) == 3, "all but s.b, which has that value already"
    write_project(root, {"maintainer.yml": "environments: {test: {}}\n"})
    assert modified(root, env="test") == set()


def test_an_old_project_that_cannot_be_read_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "policies" / "b.yml").unlink()
    monkeypatch.setattr(discovery, "MAX_FILES", 4)
    with pytest.raises(ProjectError) as caught:
        modified(root)
    assert caught.value.code == "E614", "the commit has five policies"


def test_policies_of_a_commit_are_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_changes, "MAX_ARCHIVE_BYTES", 1000)
    with pytest.raises(ProjectError) as caught:
        modified(root)
    assert (caught.value.code, "larger than 512 MiB" in caught.value.what) == ("E625", True)


def test_without_git_there_is_nothing_to_compare_with(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProjectError) as caught:
        modified(root)
    assert (caught.value.code, caught.value.what) == ("E625", "git is not installed")
    assert "install git" in (caught.value.help or "")


def test_what_git_advises_is_said(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = "fatal: dubious ownership\nTo add an exception, call:\n\n\tgit config --add safe.directory /p"
    (tmp_path / "git").write_text(f"#!/bin/sh\nprintf '{words}' >&2; exit 128\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(ProjectError) as caught:
        modified(root)
    assert (caught.value.what, caught.value.found) == ("dubious ownership", "HEAD")
    assert caught.value.help == "To add an exception, call: git config --add safe.directory /p"


def test_git_has_a_limit_of_time(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 30\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(policy_changes, "GIT_TIMEOUT_SECONDS", 0.2)
    with pytest.raises(ProjectError) as caught:
        modified(root)
    assert (caught.value.code, "did not answer" in caught.value.what) == ("E625", True)


def test_links_in_a_commit_are_not_followed(root: Path) -> None:
    (root / "policies" / "e.yml").symlink_to("/etc/passwd")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "a link")
    (root / "policies" / "e.yml").unlink()
    assert modified(root) == set()


@pytest.mark.parametrize(
    ("written", "changed"),
    [
        ("vacuum: {}", [("vacuum", "not set", "with defaults")]),
        ("vacuum: {retention: 9d}", [("vacuum.retention", "not set", "9d")]),
        ("optimize: {purge: {}}", [("optimize.purge", "not set", "with defaults")]),
        ("optimize: {purge: {droppedColumns: false}}", [("optimize.purge.droppedColumns", "not set", "false")]),
        ("autoCompact: false", [("autoCompact", "not set", "false")]),
        ("autoCompact: true", [("autoCompact", "not set", "true")]),
        ("properties: {delta.appendOnly: true}", [("properties.delta.appendOnly", "not set", "true")]),
        ("optimize: {zorder: {columns: [a]}}", [("optimize.zorder.columns", "not set", "a")]),
    ],
)
def test_a_map_that_comes_or_goes_is_named_by_its_keys_or_itself(
    written: str, changed: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    """A default that nobody wrote is no change of its own, and what begins is never left out."""
    texts = {"before": "table: s.a\n", "now": f"table: s.a\n{written}\n"}
    before, now = (
        load_project(write_project(tmp_path / name, {"policies/a.yml": text})).resolved()
        for name, text in texts.items()
    )
    for old, new, values in (
        (before, now, changed),
        (now, before, [(key, there, absent) for key, absent, there in changed]),
    ):
        (change,) = policy_changes.policy_changes(old, new).changed
        assert [(value.key, value.before, value.now) for value in change.values] == values


def test_an_empty_map_that_switches_nothing_on_is_no_change(tmp_path: Path) -> None:
    projects = {"before": "table: s.a\n", "now": "table: s.a\noptimize: {cluster: {}, when: {}}\nlimits: {}\n"}
    before, now = (
        load_project(write_project(tmp_path / name, {"policies/a.yml": text})).resolved()
        for name, text in projects.items()
    )
    assert not policy_changes.policy_changes(before, now).any
