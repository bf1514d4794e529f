"""The package as strangers get it: a wheel, run by pipx in an environment that knows nothing of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from maintainer import __version__

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]


def execute(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command outside of the checkout, and return what it printed."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    execute(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_is_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = f"maintainer-{__version__}.dist-info"
        described = Parser().parsestr(archive.read(f"{info}/METADATA").decode("utf-8"))
    assert (described["Name"], described["Version"]) == ("maintainer", __version__)
    assert described["License-Expression"] == "Apache-2.0"
    assert described["Requires-Python"]
    assert described["Summary"]
    assert described["Description-Content-Type"] == "text/markdown"
    assert f"{info}/licenses/LICENSE" in names
    assert {f"maintainer/schemas/{file.name}" for file in (ROOT / "schemas").glob("*.json")} <= names
    assert "maintainer/schemas/codes.md" in names
    # What the package reads at run time beside its modules: templates of `init`, reports, Delta's log store.
    data = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "maintainer").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert data <= names
    assert not {name for name in names if name.startswith(("tests/", "tools/", "docs/"))}


@pytest.mark.timeout(600)
def test_pipx_runs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    execute(python, "-m", "pip", "install", "--quiet", "pipx", cwd=tmp_path)

    def pipx(*arguments: str, cwd: Path = tmp_path) -> str:
        home = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
        return execute(python, "-m", "pipx", "run", "--spec", wheel, "maintainer", *arguments, cwd=cwd, **home)

    assert f"maintainer, version {__version__}" in pipx("--version")
    pipx("init", "lake-policies")
    printed = pipx("validate", "--strict", "--tests", cwd=tmp_path / "lake-policies")
    assert "policies valid" in printed
    assert "0 failed" in printed
