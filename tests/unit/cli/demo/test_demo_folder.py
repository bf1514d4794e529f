"""The demo's folder: what it may use, what it may remove, and what it writes there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import maintainer
from examples.demo import flights, lineitem
from examples.demo.demo_lake import MARKER, PROJECT, TABLES, claim_folder
from maintainer.cli.main import run
from maintainer.errors import EnvironmentUnfit, ExitCode, ProjectError


def test_a_new_folder_is_made(tmp_path: Path) -> None:
    folder = claim_folder(tmp_path / "deep" / "demo", keep=False)
    assert folder.lake.is_dir()
    assert (folder.root / MARKER).is_file()


def test_a_folder_with_other_things_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "precious").write_text("data")
    with pytest.raises(ProjectError) as refusal:
        claim_folder(tmp_path, keep=False)
    assert refusal.value.code == "E662"
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]
    assert (tmp_path / "lake" / "precious").read_text() == "data"


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("not a folder")
    with pytest.raises(ProjectError):
        claim_folder(tmp_path / "demo", keep=False)


def test_a_marker_of_somebody_else_does_not_open_the_folder(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text('{"demo": "of another kind"}')
    with pytest.raises(ProjectError):
        claim_folder(tmp_path, keep=False)


def test_an_earlier_demo_is_replaced_but_not_what_a_person_added(tmp_path: Path) -> None:
    folder = claim_folder(tmp_path, keep=False)
    (folder.lake / "flights").mkdir()
    shutil.copytree(PROJECT, folder.root, dirs_exist_ok=True)
    (tmp_path / "notes.txt").write_text("mine")

    claim_folder(tmp_path, keep=False)

    assert list(folder.lake.iterdir()) == []
    assert not (tmp_path / "policies").exists()
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_link_in_the_place_of_the_lake_is_removed_and_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("data")
    root = tmp_path / "demo"
    folder = claim_folder(root, keep=False)
    folder.lake.rmdir()
    folder.lake.symlink_to(precious)

    claim_folder(root, keep=False)

    assert (precious / "file").read_text() == "data"
    assert not folder.lake.is_symlink()


def test_keep_needs_a_finished_demo_and_removes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as refusal:
        claim_folder(tmp_path, keep=True)
    assert refusal.value.code == "E662"

    folder = claim_folder(tmp_path, keep=False)
    for name in TABLES:
        folder.table(name).mkdir()
    assert claim_folder(tmp_path, keep=True) == folder
    assert {path.name for path in folder.lake.iterdir()} == set(TABLES)


def test_a_missing_data_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "PACKAGE", "no_such_package_of_flights")
    with pytest.raises(EnvironmentUnfit) as refusal:
        flights.data_folder()
    assert refusal.value.code == "E660"
    assert refusal.value.help == "pip install 'maintainer[demo]'"


def test_a_missing_generator_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineitem, "GENERATOR", "no-such-generator-of-lines")
    with pytest.raises(EnvironmentUnfit) as refusal:
        lineitem.generator()
    assert refusal.value.code == "E660"


@pytest.mark.parametrize("scale", [0.0, 0.001, 1.5, float("nan")])
def test_a_scale_out_of_range_is_refused(scale: float) -> None:
    with pytest.raises(ProjectError, match="scale"):
        lineitem.check_scale(scale)


def test_every_table_has_exactly_one_policy() -> None:
    named = [
        line for file in PROJECT.rglob("*.yml") for line in file.read_text().splitlines() if line.startswith("table:")
    ]
    assert sorted(line.split("#")[0].strip() for line in named) == sorted(f"table: lake/{name}" for name in TABLES)


def test_an_installation_without_the_demo_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(maintainer, "__file__", str(tmp_path / "site-packages" / "maintainer" / "__init__.py"))
    assert run(["demo", "--dir", str(tmp_path / "demo")]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert ("error[E660]" in told, "make demo" in told) == (True, True)
    assert not (tmp_path / "demo").exists()
