"""The generated repository of the benchmark: valid, the same for the same seed, resolved by every kind of level."""

from __future__ import annotations

from pathlib import Path

from benchmarks.policy_repository import write_repository
from maintainer.policy.project.policy_project import load_project


def test_the_repository_is_valid_in_every_environment_and_uses_every_level(tmp_path: Path) -> None:
    tables = write_repository(tmp_path, tables=100, seed=7)
    for env in ("prod", "test", "dev"):
        project = load_project(tmp_path, env)
        assert project.diagnostics == ()
        assert [policy.table.identifier for policy in project.resolved()] == tables
    files = {origin.file.rsplit("/", 1)[0] for policy in project.resolved() for origin in policy.origins.values()}
    assert {"maintainer.yml", "policies/_profiles", "policies/_fleet", "built-in"} <= files
    assert any(file.startswith("policies/gold/") for file in files)


def test_one_seed_is_one_repository(tmp_path: Path) -> None:
    def written(folder: str, seed: int) -> dict[str, str]:
        write_repository(tmp_path / folder, tables=60, seed=seed)
        root = tmp_path / folder
        return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.yml")}

    assert written("a", 1) == written("b", 1)
    assert written("a", 1) != written("c", 2)
