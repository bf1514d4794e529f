"""What differs in maintainer.yml, rules and profiles, and how many tables take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.policy.project.policy_changes import SharedChange, shared_changes, shared_values, shared_values_at
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.yaml.discovery import find_files
from tests.support.policies.projects import git, write_project

FILES = {
    "maintainer.yml": (
        "defaults: {optimize: {maxThreads: 4}}\nlimits: {maxFailures: 3}\nstate: '${env:PLACE:-.maintainer}'\n"
        "environments: {prod: {overrides: {limits: {maxFiles: 7}}, state: /srv/m}}\n"
    ),
    "policies/_profiles/small.yml": (
        "optimize: {maxFileSize: 128MiB}\ntags: [small]\nautoCompact: true\nowner:\ndescription: a\n"
    ),
    "policies/rule.yml": (
        'match: {tables: ["s.*"]}\npriority: 1\nlimits: {timeout: 1h}\nproperties: {delta.appendOnly: true}\n'
    ),
    "policies/gone.yml": 'match: {tables: ["s.a"]}\nowner: team-a\n',
    "policies/a.yml": "table: s.a\nextends: [small]\n",
    "policies/b.yml": "table: s.b\nlimits: {timeout: 2h}\n",
    "policies/c.yml": '"table": r.c\n',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_project(tmp_path, FILES)
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "nothing")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def changed(root: Path, ref: str = "HEAD") -> list[SharedChange]:
    git(root, "stash", "-q", "-u")
    old = load_project(root, "prod").resolved()
    git(root, "stash", "pop", "-q")
    now = load_project(root, "prod")
    before = shared_values_at(now, ref)
    return list(shared_changes(before, shared_values(find_files(root), root), old, now.resolved()))


def test_each_key_is_named_with_both_values_and_the_tables_that_take_it(root: Path) -> None:
    write_project(
        root,
        {
            "maintainer.yml": (
                "defaults: {optimize: {maxThreads: 2}}\nlimits: {maxFailures: 5}\nstate: '${env:OTHER:-.maintainer}'\n"
                "environments: {prod: {overrides: {limits: {maxFiles: 1}}, state: /srv/n}}\n"
            ),
            "policies/_profiles/small.yml": (
                "optimize: {maxFileSize: 64MiB}\ntags: [small, tiny]\nautoCompact: true\nowner:\ndescription: b\n"
            ),
            "policies/rule.yml": (
                'match: {tables: ["s.*", "t.*"]}\nlimits: {timeout: 3h}\nproperties: {delta.appendOnly: false}\n'
            ),
            "policies/a.yml": "table: s.a\nextends: [small]\nowner: not-shared\n",
        },
    )
    (root / "policies/gone.yml").unlink()
    profile, rule = "policies/_profiles/small.yml", "policies/rule.yml"
    assert changed(root) == [
        SharedChange("maintainer.yml", "defaults.optimize.maxThreads", "4", "2", 3),
        SharedChange("maintainer.yml", "environments.prod.overrides.limits.maxFiles", "7", "1", 3),
        SharedChange("maintainer.yml", "environments.prod.state", "/srv/m", "/srv/n", None),
        SharedChange("maintainer.yml", "limits.maxFailures", "3", "5", None),
        SharedChange("maintainer.yml", "state", "${env:PLACE:-.maintainer}", "${env:OTHER:-.maintainer}", None),
        SharedChange(profile, "optimize.maxFileSize", "128MiB", "64MiB", 1),
        SharedChange(profile, "tags", "[small]", "[small, tiny]", 1),
        SharedChange("policies/gone.yml", "match.tables", "[s.a]", "not set", 1),
        SharedChange("policies/gone.yml", "owner", "team-a", "not set", 1),
        SharedChange(rule, "limits.timeout", "1h", "3h", 1),
        SharedChange(rule, "match.tables", "[s.*]", "[s.*, t.*]", 2),
        SharedChange(rule, "priority", "1", "not set", 2),
        SharedChange(rule, "properties.delta.appendOnly", "true", "false", 2),
    ]


def test_a_secret_of_the_environment_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "canary")
    assert "canary" not in str(shared_values(find_files(root), root))


def test_a_file_that_cannot_be_read_is_left_out(root: Path) -> None:
    (root / "policies/link.yml").symlink_to(root / "policies/rule.yml")
    (root / "policies/broken.yml").write_text("match: [\n")
    assert {"policies/link.yml", "policies/broken.yml"}.isdisjoint(shared_values(find_files(root), root))


def test_everything_is_new_where_there_was_no_project(root: Path) -> None:
    assert shared_values_at(load_project(root, "prod"), "HEAD~1") == {}
