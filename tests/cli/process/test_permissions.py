"""Tables whose folders may not be looked into: that is what is said, without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ordinary_user import bound_by_permissions
from tests.support.policies.projects import write_project
from tests.support.tables.sick_tables import make_table

LOOK = """
import sys
from maintainer.delta.storage.failures.engine_failures import as_table_error
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.snapshot.find_tables import tables_below
from maintainer.delta.storage.table_log import log_on_disk
from maintainer.errors import ProjectError
from maintainer.delta.doctor.doctor_storage import check_tables
from pathlib import Path

path = Path(sys.argv[1])
try:
    print("history", log_on_disk(str(path)).commits())
except OSError as error:
    print("history", as_table_error(error, "t").code)
try:
    print("inventory", list(tables_below(LocalFiles(), f"file:{path}")))
except ProjectError as error:
    print("inventory", error.code)
for check in check_tables(path.parent.parent, [str(path)]):
    print("doctor", check.status.value, check.detail)
"""

CLOSED = {"the table": ("t", 0o000), "its parent": (".", 0o000), "its log": ("t/_delta_log", 0o000),
          "names in its log only": ("t/_delta_log", 0o444)}  # fmt: skip


@pytest.mark.parametrize("closed", CLOSED)
def test_a_closed_folder_is_a_matter_of_permission(tmp_path: Path, closed: str) -> None:
    lake = tmp_path / "lake"
    make_table(lake / "t")
    name, mode = CLOSED[closed]
    folder = lake / name
    command = bound_by_permissions([sys.executable, "-c", LOOK, str(lake / "t")])
    folder.chmod(mode)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    history, inventory, *doctor = done.stdout.splitlines()
    assert history == "history T405"
    # Folders of logs are not opened to find tables.
    assert inventory == "inventory E645" or closed.endswith(("log", "only"))
    (line,) = doctor
    assert line.startswith("doctor FAIL")
    assert "cannot be" in line
    assert "is not a Delta table" not in line
    assert "does not exist" not in line


def test_history_says_that_permission_is_missing(tmp_path: Path) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    make_table(root / "lake" / "t")
    command = bound_by_permissions([sys.executable, "-m", "maintainer", "--project", str(root), "history", "lake/t"])
    (root / "lake" / "t").chmod(0)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        (root / "lake" / "t").chmod(0o755)
    assert done.returncode == 1, done.stderr  # commits of others could not be looked for
    assert "Permission denied" in done.stderr
