"""What a notebook or a scheduler shows when the Python API raises: the whole message, as the command line prints it."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from maintainer import Project
from maintainer.errors import ProjectError, Refused
from tests.support.policies.projects import write_project


def shown(error: BaseException) -> str:
    """Return what Python prints when nobody catches the error."""
    return "".join(traceback.format_exception(error))


def test_a_traceback_has_what_was_found_what_is_allowed_and_what_to_do() -> None:
    with pytest.raises(Refused) as caught:
        raise Refused("the plan is old", code="A403", where="plan.json", found="7", allowed="8", help="plan\nagain")
    assert shown(caught.value).endswith(
        "Refused: A403: plan.json: the plan is old\n   = found: 7\n   = allowed: 8\n   = help: plan\n     again\n"
    )


def test_notes_of_others_stay_and_changed_fields_are_shown() -> None:
    error = Refused("the plan is old", code="A403", help="plan again")
    error.add_note("while the night ran")
    error.help = "plan now"
    assert shown(error).endswith("the plan is old\n   = help: plan now\nwhile the night ran\n")


def test_a_traceback_names_each_error_of_the_policies(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": "nam: x\n", "policies/t.yml": "tabel: lake/t\n"})
    with pytest.raises(ProjectError) as caught:
        Project.load(tmp_path)
    text = shown(caught.value)
    assert "errors in the policies; nothing was run" in text
    assert "maintainer.yml:2:1: error[P201] unknown key `nam`" in text
    assert "policies/t.yml:2:1: error[P201] unknown key `tabel`" in text


def test_a_traceback_names_at_most_twenty_errors_and_how_many_more(tmp_path: Path) -> None:
    files = {f"policies/t{number}.yml": f"table: lake/t{number}\nzorder: 1\n" for number in range(23)}
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", **files})
    with pytest.raises(ProjectError) as caught:
        Project.load(tmp_path)
    lines = shown(caught.value).splitlines()
    assert sum(": error[P2" in line for line in lines) == 20
    assert lines[-1] == "and 3 more errors: maintainer validate"


def test_a_project_made_without_load_says_how_to_load_it(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"Project\.load\(folder\)"):
        Project(tmp_path)  # type: ignore[arg-type]
