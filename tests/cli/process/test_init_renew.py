"""`maintainer init --renew`: a project's copies are brought up to this version, and nobody's edit is lost."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from maintainer.cli.main import run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert run(["-q", "init", str(tmp_path / "new")]) == 0
    return tmp_path / "new"


def contents(project: Path) -> dict[str, bytes]:
    return {str(path.relative_to(project)): path.read_bytes() for path in project.rglob("*") if path.is_file()}


@pytest.fixture
def aged(project: Path) -> Path:
    """A project of an older version, with a policy, a hook and a file of its own."""
    for name in (".github/workflows/maintainer.yml", ".pre-commit-config.yaml", "policies/lake.yml", "maintainer.yml"):
        file = project / name
        file.write_text(file.read_text(encoding="utf-8") + "# our \x1b[31mown line\n", encoding="utf-8")
    (project / "schemas" / "policy.schema.json").unlink()
    return project


def test_renew_shows_the_difference_and_writes_what_it_may(
    aged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = contents(aged)
    monkeypatch.chdir(aged / "policies")
    assert run(["init", "--renew"]) == 0
    shown = capsys.readouterr().out
    for name in (".github/workflows/maintainer.yml", ".pre-commit-config.yaml"):
        assert f"--- {name}\n+++ {name}\n" in shown
    assert shown.count("\n-# our \\x1b[31mown line\n") == 2
    assert "\n+++ schemas/policy.schema.json\n@@ -0,0 +1," in shown
    assert shown.rstrip().endswith("`maintainer init --renew --yes`")
    assert contents(aged) == old
    assert run(["init", "--renew", str(aged), "--yes"]) == 0
    shown = capsys.readouterr().out
    edited = (".github/workflows/maintainer.yml", ".pre-commit-config.yaml")
    for name in edited:
        assert f"--- {name}\n+++ {name}\n" in shown
        assert f"  + {name}   what it was is in {name}.orig\n" in shown
    assert "  + schemas/policy.schema.json\n" in shown
    assert run(["-q", "init", str(tmp_path / "fresh")]) == 0
    fresh = contents(tmp_path / "fresh")
    own = {name: old[name] for name in ("policies/lake.yml", "maintainer.yml")}
    kept = {f"{name}.orig": old[name] for name in edited}
    assert contents(aged) == {**fresh, **own, **kept}
    capsys.readouterr()
    assert run(["init", "--renew"]) == 0
    assert capsys.readouterr().out == "Schemas, workflow and hook are those of this version.\n"


def test_renew_asks_for_each_file(aged: Path) -> None:
    controller, terminal = pty.openpty()
    os.write(controller, b"y\nn\ny\n")
    command = [sys.executable, "-m", "maintainer", "init", "--renew", str(aged)]
    done = subprocess.run(command, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, timeout=60, check=True)
    os.close(terminal)
    os.close(controller)
    assert done.stdout.decode().endswith("Not written: .github/workflows/maintainer.yml\n")
    assert (aged / "schemas" / "policy.schema.json").is_file()
    assert "own line" in (aged / ".github/workflows/maintainer.yml").read_text(encoding="utf-8")
    assert "own line" not in (aged / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert [path.name for path in aged.rglob("*.orig*")] == [".pre-commit-config.yaml.orig"]


def test_renew_takes_no_name_of_a_copy_that_is_there(aged: Path) -> None:
    hook = aged / ".pre-commit-config.yaml"
    own = hook.read_text(encoding="utf-8")
    hook.with_name(f"{hook.name}.orig").write_text("somebody's", encoding="utf-8")
    assert run(["init", "--renew", str(aged), "--yes"]) == 0
    kept = sorted(aged.glob(".pre-commit-config.yaml.orig*"))
    assert [path.read_text(encoding="utf-8") for path in kept] == ["somebody's", own]


def test_renew_needs_a_project_and_no_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--renew", str(tmp_path)]) == 2
    assert "error[E611]" in capsys.readouterr().err
    assert run(["init", "--renew", "--state", "/srv/m"]) == 2
    assert "leave --root and --state out" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
