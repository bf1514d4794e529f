"""Paths, versions, formats and examples on the pages on state, upgrades, costs and security are the program's."""

from __future__ import annotations

import json
import math
import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from maintainer.app.lookback.hook_commits import LOOKED_FILE
from maintainer.delta import jvm
from maintainer.delta.doctor.doctor_checks import NEWEST_PYTHON, OLDEST_PYTHON
from maintainer.delta.spark.java_home import FURTHER_MAJORS, SUPPORTED_MAJORS, VECTOR_MODULE
from maintainer.delta.vacuum.trash import FOLDER as TRASH
from maintainer.journal.folder.run_folder import LEASES
from maintainer.journal.ledger.ledger_pending import MARK_FILE
from maintainer.journal.memory.table_records import STATE_FILE, STATE_FORMAT
from maintainer.journal.store.state_access import runs_dir_of
from maintainer.model.plan.plan_document import FORMAT_VERSION as PLAN_FORMAT
from maintainer.model.run.outcome import FORMAT_VERSION as RESULTS_FORMAT
from maintainer.planning.budget.request_estimate import RequestTerm
from maintainer.policy.project.policy_project import load_project
from tests.support.policies.example_commands import parsed_command
from tools.prose_words import REFERENCE, prose_words

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PERSIST, UPGRADES, COSTS, SECURITY = (
    (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("what-to-persist", "upgrades", "costs", "security")
)


def yaml_blocks(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the rows of the first table below a heading."""
    lines = page[page.index(f"\n## {heading}\n") :].split("\n## ")[1].splitlines()
    table = [line for line in lines if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[1:]]


PAGES = sorted(page for page in DOCS.rglob("*.md") if page.name != "codes.md")
PAGES_AND_CODES = sorted(DOCS.rglob("*.md"))
WITH_POLICIES = [page for page in PAGES if "\nversion: 1\n" in page.read_text(encoding="utf-8")]
"""The page of the codes has examples of mistakes, which have tests of their own."""

NEEDS_OTHER_FILES = {"P357", "P386"}
"""Warnings of a rule without the tables, or the maintainer.yml, that stand beside it in a project."""


class AnyEnvironment(dict[str, str]):
    """The environment of a machine on which each variable is set."""

    def __missing__(self, name: str) -> str:
        return "/srv/lake"

    def __contains__(self, name: object) -> bool:
        return True

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a variable."""
        return self[name]


@pytest.mark.parametrize("page", WITH_POLICIES, ids=lambda page: page.stem)
def test_examples_of_policies_and_projects_are_valid(page: Path, tmp_path: Path) -> None:
    blocks = [block for block in yaml_blocks(page.read_text(encoding="utf-8")) if "version: 1\n" in block]
    assert blocks
    for number, block in enumerate(blocks):
        named = re.match(r"# (\S+\.yml)\b", block)
        file = tmp_path / str(number) / (named[1] if named else "policies/t.yml")
        file.parent.mkdir(parents=True)
        file.write_text(textwrap.dedent(block), encoding="utf-8")
        project = load_project(tmp_path / str(number), environ=AnyEnvironment())
        assert project.files_read == 1
        findings = [finding for finding in project.diagnostics if finding.code not in NEEDS_OTHER_FILES]
        assert findings == [], block


def test_the_state_lies_where_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "maintainer.yml").write_text(yaml_blocks(PERSIST)[0], encoding="utf-8")

    def places(env: str | None, **environ: str) -> tuple[str, str]:
        settings = load_project(tmp_path, env, environ=environ).project
        return str(runs_dir_of(settings)), settings.ledger

    assert places(None) == (str(tmp_path / ".maintainer/runs"), str(tmp_path / ".maintainer/ledger"))
    assert places(None, MAINTAINER_STATE="/srv/prod") == ("/srv/prod/runs", "/srv/prod/ledger")
    assert places("dev", MAINTAINER_STATE="/srv/prod") == (
        str(tmp_path / ".maintainer/dev/runs"),
        str(tmp_path / ".maintainer/dev/ledger"),
    )


def test_the_jobs_call_maintainer_as_it_is_called() -> None:
    _, _, workflow, cron_job = (yaml.safe_load(block) for block in yaml_blocks(PERSIST))
    program, *arguments = shlex.split(workflow[0]["run"])
    assert (program, parsed_command(arguments)[0]) == ("maintainer", "apply")
    pod: dict[str, Any] = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    program, *arguments = container["command"]
    arguments[arguments.index("/project")] = str(ROOT)
    assert (program, parsed_command(arguments)[0]) == ("maintainer", "apply")
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounts = {mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in volumes}
    environment = {variable["name"]: variable["value"] for variable in container["env"]}
    assert all(value.startswith(tuple(mounts)) for value in environment.values())
    assert set(workflow[0]["env"]) <= set(environment)


def test_the_table_has_what_the_program_remembers() -> None:
    paths = {
        path for cells in rows(PERSIST, "What lies where") for path in re.findall(r"`(\.maintainer/[^`]+)`", cells[0])
    }
    files = {f".maintainer/{name}" for name in (STATE_FILE, MARK_FILE, LOOKED_FILE)}
    assert paths == files | {".maintainer/runs/", ".maintainer/ledger/", f".maintainer/{LEASES}/"}
    assert f"`{TRASH}/`" in PERSIST


def test_the_versions_are_those_that_are_checked() -> None:
    fits = {cells[0]: cells[1] for cells in rows(UPGRADES, "What fits")}
    assert fits["Python"] == " to ".join(f"{major}.{minor}" for major, minor in (OLDEST_PYTHON, NEWEST_PYTHON))
    java = " or ".join(map(str, SUPPORTED_MAJORS))
    ((line, (further,)),) = FURTHER_MAJORS.items()
    assert fits["Java"] == f"{java}, from Spark {line} on also {further}, with the module `{VECTOR_MODULE}`"
    assert fits["Spark"] == ", ".join(jvm.TESTED_DELTA)
    assert fits["Delta"] == jvm.tested_pairs()


def test_the_formats_are_those_of_the_files() -> None:
    formats = {cells[0]: cells[1] for cells in rows(UPGRADES, "Files, and the versions that they carry")}
    assert formats["a saved plan, `plan.json`"].startswith(f"`format_version` {PLAN_FORMAT},")
    assert formats["`results.json` of a run"] == f"`format_version` {RESULTS_FORMAT}"
    assert formats["`.maintainer/state.json`"] == f'`format_version` "{STATE_FORMAT}"'


def test_the_defaults_are_those_of_the_schema() -> None:
    schema = json.loads((ROOT / "schemas" / "policy.schema.json").read_text(encoding="utf-8"))["definitions"]
    for key in ("optimize.batchSize", "limits.timeout"):
        group, _, name = key.partition(".")
        default = schema[group]["properties"][name]["default"]
        assert re.search(rf"`{re.escape(key)}`, {default} by default", COSTS), key


def test_the_example_of_the_demo_is_what_it_printed() -> None:
    demo = (DOCS / "demo.md").read_text(encoding="utf-8")
    looks = re.search(
        r"reads (\d+ of \d+ files) and (\S+ MiB) before the run, and (\d+) of (\d+) files\nand (\S+ MiB) after", COSTS
    )
    assert looks is not None
    before, size_before, read_after, files_after, size_after = looks.groups()
    assert f"reads {before}, {size_before};" in demo
    assert f"reads {read_after} of {files_after} files, {size_after};" in demo


def test_the_requests_that_the_page_adds_up_are_those_of_the_plan() -> None:
    page = [cells for cells in rows(COSTS, "What is paid for") if len(cells) == 6][1:]
    assert page == [[term.words, *(str(number or "") for number in term.asked.by_kind)] for term in RequestTerm]


def test_the_estimate_in_money_is_what_its_figures_come_to() -> None:
    table = {cells[0]: cells[1:] for cells in rows(COSTS, "An estimate in money")}

    def value(text: str) -> float:
        formula = re.sub(r"( s| GiB| an hour|,)", "", text).replace("x", "*")
        assert re.fullmatch(r"[\d.*+/() ]+", formula)
        return float(eval(formula))

    total = float(table.pop("**all**")[1].strip("*"))
    exact = {name: value(formula) for name, (formula, _) in table.items()}
    for name, (_, shown) in table.items():
        assert float(shown) == round(exact[name], 3), name
    saved = exact.pop("saved by a query over one night's data")
    assert total == round(sum(exact.values()), 3)
    num_queries = re.search(r"after (\d+) queries", COSTS)
    assert num_queries is not None
    assert int(num_queries[1]) == math.ceil(sum(exact.values()) / saved)


def test_what_the_page_on_security_names_is_there() -> None:
    assert (ROOT / re.findall(r"`(tests/[^`]+\.py)`", SECURITY)[0]).is_file()
    workflow = (ROOT / "maintainer/cli/new_project/workflow.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(workflow)["jobs"]
    assert [cells[0].strip("`") for cells in rows(SECURITY, "Pull requests, and forks")] == list(jobs)
    on_own_runner = [name for name, job in jobs.items() if "MAINTAINER_RUNNER" in job["runs-on"]]
    named = [cells[0].strip("`") for cells in rows(SECURITY, "Pull requests, and forks") if cells[1].startswith("your")]
    assert named == on_own_runner
    assert "pull_request_target" not in workflow


@pytest.mark.parametrize("page", PAGES_AND_CODES, ids=lambda page: page.stem)
def test_the_first_line_of_a_page_says_who_needs_it(page: Path) -> None:
    heading, _, rest = page.read_text(encoding="utf-8").partition("\n\n")
    assert heading.startswith("# ")
    assert "\n" not in heading
    assert rest.startswith("For "), rest[:80]


def test_the_front_page_leads_to_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([a-z0-9-]+\.md)", index))
    assert {page.name for page in PAGES_AND_CODES} - linked == {"index.md"}


def test_the_first_five_pages_are_the_same_on_the_front_page_and_in_the_site() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    first = re.findall(r"^\d\. \[[^\]]+\]\(([^)]+)\)", index, flags=re.MULTILINE)
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    group = settings[settings.index("  - The first five:") : settings.index("  - How-to guides:")]
    assert re.findall(r": (\S+\.md)$", group, flags=re.MULTILINE) == first
    assert len(first) == 5


def test_the_prose_stays_short_enough_to_be_read() -> None:
    words = prose_words()
    assert set(REFERENCE) <= {page.name for page in PAGES_AND_CODES}
    assert "safe-vacuum.md" in words
    assert sum(words.values()) <= 32_000
