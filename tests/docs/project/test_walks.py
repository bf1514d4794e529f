"""The pages that lead newcomers, walked: every command of theirs runs, in order, in a fresh folder, and ends well.

What a page shows is what is run. Only what installs something is left out, and names of tables are those of a lake that
is made here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[3]
SECONDS_PER_COMMAND = 1800  # `maintainer demo` takes four minutes on idle cores
NUM_FILES = 24  # the example policy of `init` wants at least 20 small files
INSTALLS = re.compile(r"^(pip|pre-commit|make) ")


class Walker:
    """Somebody at a shell, who types commands one after the other and stops at the first that fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        author = {
            f"GIT_{role}_{what}": "walker@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        self._environment = os.environ | author | {"PATH": programs}

    def type(self, command: str) -> str:
        """Run one line in bash, remember the folder it ends in, and return what was printed."""
        done = subprocess.run(
            ["bash", "-c", f"{command}\nstatus=$?\npwd > {self.folder.parent / 'folder'}\nexit $status"],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_PER_COMMAND,
            check=False,
        )
        printed = done.stdout + done.stderr
        assert done.returncode == 0, f"$ {command}\n{printed}"
        sys.stdout.write(f"$ {command}\n{printed}")  # for those who read along: pytest -s
        folder_file = self.folder.parent / "folder"
        self.folder = Path(folder_file.read_text(encoding="utf-8").strip())
        return printed


def commands_of(page: str) -> list[str]:
    """Every command that a page shows in a console, without what installs something."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [
        line for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL) for line in block.splitlines()
    ]
    commands = [line.removeprefix("$ ").partition("  #")[0].rstrip() for line in lines if line.startswith("$ ")]
    return [command for command in commands if not INSTALLS.match(command)]


def walk(
    walker: Walker, page: str, names: Mapping[str, str], before: Mapping[str, Callable[[Path], object]]
) -> dict[str, str]:
    """Type all commands of a page, with other names in them, and do by hand what its text asks for before some."""
    printed: dict[str, str] = {}
    commands = commands_of(page)
    assert commands
    for command in commands:
        if command in before:
            before[command](walker.folder)
        # A person would be asked here, and there is no terminal.
        line = f"{command} --yes" if command == "maintainer apply" else command
        for name, other in names.items():
            line = line.replace(name, other)
        printed[command] = walker.type(line)
    return printed


def make_table(place: Path) -> None:
    for number in range(NUM_FILES):
        write_deltalake(str(place), pa.table({"id": list(range(number * 10, number * 10 + 10))}), mode="append")


def num_files(place: Path) -> int:
    return len(DeltaTable(str(place)).file_uris())


@pytest.fixture
def walker(tmp_path: Path) -> Walker:
    (tmp_path / "home").mkdir()
    return Walker(tmp_path / "home")


def test_the_readme_looks_after_a_whole_lake(walker: Walker, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    tables = [lake / "sales" / f"t{number}" for number in range(3)]
    for table in tables:
        make_table(table)
    walk(walker, "README.md", {"/data/lake": str(lake)}, {})
    assert [num_files(table) for table in tables] == [1, 1, 1]


def test_the_first_policy_and_then_the_repository_of_a_team(walker: Walker, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    table = lake / "orders"
    make_table(table)

    def name_the_lake(folder: Path) -> None:
        file = folder / "maintainer.yml"
        text = file.read_text(encoding="utf-8")
        assert "roots: []" in text
        file.write_text(text.replace("roots: []", f"roots: [{lake}]"), encoding="utf-8")

    names = {"/data/lake/orders": str(table), "sales.orders": str(table)}
    printed = walk(walker, "docs/first-policy.md", names, {"maintainer validate": name_the_lake})
    assert num_files(table) == 1
    assert "policies/lake.yml" in printed["maintainer explain /data/lake/orders"]
    committed = walker.type("git ls-files").split()
    assert "policies/lake.yml" in committed
    assert not [name for name in committed if "plan.json" in name or name.startswith(".maintainer")]

    walker.type(f"git clone -q --bare . {tmp_path / 'origin.git'} && git remote add origin {tmp_path / 'origin.git'}")
    walker.type("git fetch -q origin && git checkout -q -b smaller-files")
    policy = walker.folder / "policies/lake.yml"
    text = policy.read_text(encoding="utf-8")
    assert "minFileSize: 64MiB" in text
    policy.write_text(text.replace("minFileSize: 64MiB", "minFileSize: 32MiB"), encoding="utf-8")
    printed = walk(walker, "docs/gitops.md", names, {})
    (comment,) = (text for command, text in printed.items() if "--compare" in command)
    assert re.search(r"64 ?MiB.*32 ?MiB", comment)


def test_the_tutorial_and_five_questions(walker: Walker) -> None:
    walker.type("maintainer demo")

    def larger_files(folder: Path) -> None:
        policy = folder / "policies/tpch/lineitem.yml"
        text = policy.read_text(encoding="utf-8")
        changed = re.sub(r"maxFileSize: \w+", "maxFileSize: 64MiB", text)
        assert changed != text
        policy.write_text(changed, encoding="utf-8")

    printed = walk(walker, "docs/tutorial.md", {}, {"maintainer validate": larger_files})
    report = Path(printed["maintainer report --fleet"].strip().splitlines()[-1])
    assert (walker.folder / report).is_file()
    walk(walker, "docs/looking-back.md", {}, {})
