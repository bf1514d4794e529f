"""Which connectors a project needs: written in maintainer.yml, or seen in the addresses of its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.engine_access import EngineOptions, project_engine
from maintainer.policy.project.policy_project import load_project
from tests.support.policies.projects import write_project


@pytest.mark.parametrize(
    ("text", "tables", "expected"),
    [
        ("", ["lake/orders", "sales.orders"], ()),
        ("", ["s3://b/t"], ("s3",)),
        ("", ["S3A://b/t", "s3://b/u"], ("s3",)),
        ("", ["abfss://c@a.dfs.core.windows.net/t", "gs://b/t"], ("azure", "gcs")),
        ("", ["hdfs://n/t"], ()),
        ("roots: ['gs://lake/']\n", ["lake/orders"], ("gcs",)),
        ("storage: [gcs, s3]\n", ["abfs://c@a/t"], ("gcs", "s3")),
        ("storage: []\n", ["s3://b/t"], ()),
        ("storage:\n", ["s3://b/t"], ("s3",)),
    ],
)
def test_connectors_of_a_project(tmp_path: Path, text: str, tables: list[str], expected: tuple[str, ...]) -> None:
    files = {f"policies/t{n}.yml": f'version: 1\ntable: "{table}"\n' for n, table in enumerate(tables)}
    write_project(tmp_path, {"maintainer.yml": f"version: 1\n{text}", **files})
    project = load_project(tmp_path, environ={})
    assert project.diagnostics == ()
    assert project.project.storage == expected
    assert project_engine(project.project, EngineOptions()).storage == expected


def test_a_kind_that_is_none_is_refused(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": "version: 1\nstorage: [hdfs]\n"})
    (finding,) = load_project(tmp_path, environ={}).diagnostics
    assert "hdfs" in finding.message
