"""``name:`` and ``prices:`` in maintainer.yml: what stands above reports, and what their money is worked out by."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.project.project_sections import Prices
from tests.support.policies.projects import write_project


def loaded(root: Path, text: str) -> LoadedProject:
    write_project(root, {"maintainer.yml": text})
    return load_project(root)


def test_prices_are_what_the_file_says(tmp_path: Path) -> None:
    project = loaded(
        tmp_path, "name: acme\nprices: {currency: EUR, scannedTiB: 5, storedGiBMonth: 0.023, computeHour: }\n"
    )
    assert project.diagnostics == ()
    assert project.project.name == "acme"
    assert project.project.prices == Prices("EUR", 5.0, 0.023, None)


@pytest.mark.parametrize("text", ["limits: {maxFiles: 5}\n", "prices:\nname:\n"])
def test_without_prices_there_is_no_money_and_the_folder_gives_the_name(tmp_path: Path, text: str) -> None:
    project = loaded(tmp_path / "lake-house", text)
    assert project.diagnostics == ()
    assert (project.project.name, project.project.prices) == ("lake-house", Prices())


@pytest.mark.parametrize(
    "text",
    [
        "prices: {scannedTiB: -1}\n",
        "prices: {scannedTiB: cheap}\n",
        'prices: {currency: "E R"}\n',
        "prices: {each: 1}\n",
    ],
)
def test_a_price_is_a_number_that_is_not_negative(tmp_path: Path, text: str) -> None:
    assert len(loaded(tmp_path, text).diagnostics) == 1
