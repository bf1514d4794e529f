"""`report`: a run or the fleet as one file, and links between the two that lead somewhere."""

from __future__ import annotations

import html
import re
import time
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from maintainer.app.lookback.report_files import write_run_pages
from maintainer.app.project_folders import Project
from maintainer.app.running.verify_commits import verification_json
from maintainer.cli.main import run
from maintainer.journal.memory import past_runs
from maintainer.journal.memory.past_runs import PastRun
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.commit_verdict import (
    CheckResult,
    CommitCheck,
    CommitVerification,
    TableVerification,
    VerifyRun,
)
from maintainer.model.run.outcome import run_to_json
from maintainer.model.table.table_facts import TableRef
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples
from tests.unit.report.html.page_outline import check_is_safe, said


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = write_project(tmp_path / "a project", {"policies/t.yml": "table: sales.orders\n"})
    folder = root / ".maintainer" / "runs" / samples.RUN
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(to_json(sample_plans.full_plan()))
    (folder / "results.json").write_text(run_to_json(samples.good_run()))
    return root


def links(page: Path, to: str = "report.html") -> list[str]:
    found = re.findall(r'<a href="([^#"][^"]*)"', page.read_text(encoding="utf-8"))
    return [link for link in found if link.endswith(to)]


def test_the_fleet_leads_to_the_report_of_each_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = ("--project", str(root), "report", "--fleet", "--since", "36500d")
    assert run([*everything]) == 0
    fleet = Path(capsys.readouterr().out.strip())
    assert links(fleet) == []  # the run has no report yet

    assert run(["--project", str(root), "report"]) == 0
    report = Path(capsys.readouterr().out.strip())
    assert report == root / ".maintainer" / "runs" / samples.RUN / "report.html"
    for out in (fleet, root / "elsewhere" / "fleet.html"):
        out.parent.mkdir(exist_ok=True)
        assert run([*everything, "--out", str(out)]) == 0
        (link,) = links(out)
        assert (out.parent / unquote(link)).resolve() == report


def test_a_run_that_just_ended_is_drawn_without_its_plan_being_read_and_looks_the_same_later(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = root / ".maintainer" / "runs" / samples.RUN
    ended = PastRun(folder, sample_plans.full_plan(), samples.good_run())
    with monkeypatch.context() as patch:
        patch.setattr(past_runs, "from_json", None)
        assert list(write_run_pages(Project.load(root), ended)) == []
    later = root / "later.html"
    assert run(["--project", str(root), "report", "--out", str(later)]) == 0
    assert (folder / "report.html").read_text() == later.read_text()


def test_the_fleet_leads_to_a_page_of_each_table_and_back(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = root / "a place" / "fleet.html"
    fleet.parent.mkdir()
    assert run(["--project", str(root), "report", "--fleet", "--since", "36500d", "--out", str(fleet)]) == 0
    pages = [(fleet.parent / unquote(link)).resolve() for link in links(fleet, ".html")]
    assert len(set(pages)) == len(samples.good_run().tables)
    assert all(page.is_file() for page in pages)
    capsys.readouterr()
    (page,) = (page for page in pages if "sales-orders" in page.name)
    text = text_of(page)
    assert (page.parent / unquote(links(page, "fleet.html")[0])).resolve() == fleet
    # The three parts say what the commands say.
    assert run(["--project", str(root), "explain", "sales.orders"]) == 0
    _, *values = capsys.readouterr().out.splitlines()
    assert all(" ".join(line.replace("`", "").split()) in text for line in values)
    assert run(["--project", str(root), "history", "sales.orders", "--ours"]) == 0
    steps = [
        line for line in capsys.readouterr().out.splitlines()[1:] if samples.RUN in line and "the run:" not in line
    ]
    assert len(steps) > 1
    assert [line for line in steps if " ".join(line.split()) not in text] == []
    assert "Will do (" in text
    assert "Leaves alone" in text


def test_a_table_without_a_policy_now_has_its_page(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "policies" / "t.yml").unlink()
    assert run(["--project", str(root), "report", "--fleet", "--since", "36500d"]) == 0
    folder = Path(capsys.readouterr().out.strip()).parent / "fleet-tables"
    (page,) = folder.glob("sales-orders-*")
    assert "No policy names it now, or its files have errors." in text_of(page)


def test_a_run_that_is_not_there_is_said_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--project", str(root), "report", "20200101T000000Z-0000"]) == 2
    error = capsys.readouterr().err
    assert "E643" in error
    assert "there is no such run" in error
    (root / ".maintainer" / "runs" / "20200101T000000Z-0000").mkdir(parents=True)  # as of `verify`
    assert run(["--project", str(root), "report", "20200101T000000Z-0000"]) == 2
    error = capsys.readouterr().err
    assert "no plan and no results: `maintainer show 20200101T000000Z-0000` shows it" in error


def test_a_run_is_shown_by_its_id_wherever_runs_are_kept(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show = ["--project", str(root), "show", samples.RUN]
    assert run(show) == 0
    before = capsys.readouterr().out
    (root / ".maintainer").rename(root / "elsewhere")
    assert run(show) == 2
    (root / "maintainer.yml").write_text("version: 1\nstate: elsewhere\n")
    capsys.readouterr()
    assert run(show) == 0
    assert capsys.readouterr().out.replace("elsewhere", ".maintainer") == before


def text_of(page: Path) -> str:
    body = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", body).split()))


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    policy = "table: lake/{}\noptimize: {{minFileSize: 1MiB, maxFileSize: 2MiB}}\n"
    files = {f"policies/{name}.yml": policy.format(name) for name in ("small", "fine")}
    root = write_project(tmp_path / "fresh", files)
    for name, commits in (("small", 5), ("fine", 1)):
        for number in range(commits):
            write_deltalake(str(root / "lake" / name), pa.table({"id": [number]}), mode="append")
    return root


@pytest.mark.parametrize("options", [(), ("--fleet",)])
def test_where_nothing_ran_the_tables_are_shown_and_what_a_run_would_do(
    fresh: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    assert run(["--project", str(fresh), "report", *options]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert page == fresh / ".maintainer" / "fleet.html"
    text = text_of(page)
    assert "No apply ran " in text
    assert "1 table to change, 1 step (compact 1); 1 up to date." in text
    assert "lake/small due 5 (100%)" in text
    assert "lake/fine ok " in text
    assert "E643" not in text


def test_a_page_of_no_tables_says_so_and_has_no_link_to_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path / "p", {"maintainer.yml": "version: 1\n"})
    assert run(["--project", str(root), "report"]) == 0
    page = Path(capsys.readouterr().out.strip()).read_text(encoding="utf-8")
    assert "No policy names a table" in said(page)


def test_where_only_verify_ran_the_page_says_what_it_found(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = DeltaTable(fresh / "lake" / "small")
    checks = (CommitCheck("rows", "the rows are the same", CheckResult.WRONG, "3 rows were removed"),)
    now_ms = time.time_ns() // 1_000_000
    commit = CommitVerification(4, now_ms, "OPTIMIZE", "spark", None, "rewrite", checks, 2, 1, 3, 0, ("v",), 1.5)
    found = TableVerification(
        TableRef("lake/small"), commit, table_id=str(table.metadata().id), location=(fresh / "lake" / "small").as_uri()
    )
    made = VerifyRun(samples.RUN, now_ms, 2.5, (found,))
    folder = fresh / ".maintainer" / "runs" / made.run_id
    folder.mkdir(parents=True)
    (folder / "verification.json").write_text(verification_json(made))
    assert run(["--project", str(fresh), "report", "--fleet"]) == 0
    text = text_of(Path(capsys.readouterr().out.strip()))
    assert "No apply ran in this time" in text
    assert "What was verified" in text
    assert (
        f"checked version 4 of lake/small, OPTIMIZE by spark: wrong: 3 rows were removed (run {made.run_id})." in text
    )


def test_a_damaged_run_is_not_taken_for_none(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = fresh / ".maintainer" / "runs" / samples.RUN
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("{")
    (folder / "results.json").write_text("{")
    for options in ((), ("--fleet",)):
        assert run(["--project", str(fresh), "report", *options]) == 2
        assert "E643" in capsys.readouterr().err


def test_a_table_that_cannot_be_read_and_a_hostile_name_are_said_and_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "<img src=x onerror=alert(1)>"
    root = write_project(tmp_path / "p", {"policies/t.yml": f'table: "lake/{name}"\n'})
    assert run(["--project", str(root), "report"]) == 0
    page = Path(capsys.readouterr().out.strip())
    check_is_safe(page.read_text(encoding="utf-8"))
    assert "<img" not in page.read_text(encoding="utf-8")
    assert "1 table needs a person." in text_of(page)
    assert name in text_of(page)
