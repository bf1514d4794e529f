"""What maintainer.yml says about the project, and the policy of its ledger.

The ledger is a table of the fleet as soon as it is there, whatever the policies say, unless a file names it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.errors import ProjectError
from maintainer.journal.store.state_access import local_runs_dir, runs_dir_of
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.project.project_settings import Budget, Budgets, ProjectSettings, Scorer
from maintainer.report.policy_text import explain_text
from tests.support.policies.projects import complaints, loaded, write_project

FILE = """\
version: 1
timezone: Europe/Berlin
maxPlanAge: 12h
batches: [1, 5, 20%]
limits: {maxFailures: 3, maxBytes: 5TiB, maxFiles: 1000, timeout: 8h}
state: "${env:LAKE}/state"
environments:
  prod:
  dev: {state: /dev-state, overrides: {optimize: {maxThreads: 2}}}
"""


def test_settings_are_read_into_base_units(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": FILE, "policies/t.yml": "table: s.t\n"})
    project = load_project(tmp_path, "prod", environ={"LAKE": "/lake"})
    settings = project.project
    assert (settings.timezone, settings.max_plan_age_seconds) == ("Europe/Berlin", 43_200)
    assert (settings.max_failures, settings.max_bytes, settings.max_files) == (3, 5 << 40, 1000)
    assert settings.batches == (1, 5, "20%")
    assert (settings.timeout_seconds, settings.environments) == (28_800, ("dev", "prod"))
    assert (settings.state, runs_dir_of(settings)) == ("/lake/state", Path("/lake/state/runs"))
    assert settings.ledger == "/lake/state/ledger"
    assert project.resolve_table("s.t").optimize.max_threads == 8


def test_an_environment_overrides_state_and_policies(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": FILE, "policies/t.yml": "table: s.t\noptimize: {maxThreads: 9}\n"})
    project = load_project(tmp_path, "dev", environ={"LAKE": "x"})
    assert (project.project.state, project.project.ledger) == ("/dev-state", "/dev-state/ledger")
    assert project.resolve_table("s.t").optimize.max_threads == 2


def test_a_variable_that_is_not_set_is_an_error_at_its_line(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": FILE})
    project = load_project(tmp_path, environ={})
    assert complaints(project) == ["maintainer.yml:6:8 P354"]
    assert project.diagnostics[0].message == "the environment variable `LAKE` is not set"


@pytest.mark.parametrize(
    ("line", "template", "help"),
    [
        ("state: ${LAKE}/state", "${LAKE}", "write `${env:LAKE}`"),
        ("state: '{{ place }}/x'", "{{ place }}", "write `${env:place}`"),
        ("defaults: {owner: '${TEAM}'}", "${TEAM}", "write `${env:TEAM}`"),
    ],
)
def test_a_template_of_another_tool_is_an_error(tmp_path: Path, line: str, template: str, help: str) -> None:
    (finding,) = loaded(tmp_path, {"maintainer.yml": f"{line}\n"}).diagnostics
    assert finding.code == "P354"
    assert finding.message == f"`{template}` is not filled in, and would be part of the name"
    assert finding.help == help


def test_a_template_in_a_description_is_text(tmp_path: Path) -> None:
    assert complaints(loaded(tmp_path, {"maintainer.yml": "defaults: {description: '${TEAM} {{ x }}'}\n"})) == []


@pytest.mark.parametrize("text", ["${env:}", "${env:1A}", "${env:A", "${env:A:?x}"])
def test_a_malformed_variable_is_an_error(tmp_path: Path, text: str) -> None:
    assert complaints(loaded(tmp_path, {"maintainer.yml": f"state: '{text}'\n"})) == ["maintainer.yml:2:8 P354"]


def test_what_a_variable_holds_is_never_read_as_yaml_or_replaced_again(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": 'state: "${env:A}"\n'})
    project = load_project(tmp_path, environ={"A": "/x: [${env:B}]", "B": "secret"})
    assert project.project.state == "/x: [${env:B}]"


def test_an_unknown_environment_stops_the_call(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="E627") as caught:
        loaded(tmp_path, {"maintainer.yml": "environments: {prod: {}}\n"}, "prd")
    assert (caught.value.exit_code, caught.value.help) == (2, "did you mean `prod`?")


def test_maintainer_yaml_is_refused_rather_than_ignored(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="E615"):
        loaded(tmp_path, {"maintainer.yaml": "timezone: UTC\n", "policies/t.yml": "table: s.t\n"})


BUDGET = """\
budget:
  maxBytes: 2TiB
  maxTime: 4h
  scorer: autocomp
  owners: {team-sales: {maxFiles: 10}, "*": {maxBytes: 1GiB}, nobody: }
  tables: {"sales.*": {maxTime: 30m}, "lake/*": {maxBytes: 100}}
"""


def test_budgets_are_read_into_base_units_and_globs_start_at_the_project(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": BUDGET})
    budgets = load_project(tmp_path, environ={}).project.budgets
    assert budgets == Budgets(
        run=Budget(2 << 40, None, 14_400.0),
        owners=(("team-sales", Budget(num_files=10)), ("*", Budget(1 << 30)), ("nobody", Budget())),
        tables=(("sales.*", Budget(seconds=1800.0)), (f"{tmp_path}/lake/*", Budget(100))),
        scorer=Scorer.AUTOCOMP,
    )
    assert budgets.of_table(TableRef(f"{tmp_path}/lake/t")) == Budget(100)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("budget: {maxBytes: 0}", "2:20 P307"),
        ("budget: {owners: {a: {maxTime: 0s}}}", "2:32 P307"),
        ('budget: {tables: {"*": {maxBytes: 0B}}}', "2:35 P307"),
        ("budget: {scorer: best}", "2:18 P204"),
        ("budget: {owner: {a: {maxFiles: 1}}}", "2:10 P201"),
    ],
)
def test_a_budget_that_is_none_is_refused(tmp_path: Path, text: str, where: str) -> None:
    assert complaints(loaded(tmp_path, {"maintainer.yml": f"{text}\n"})) == [f"maintainer.yml:{where}"]


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (
            '{"*": {maxBytes: 1GiB}, "sales.*": {maxBytes: 1MiB}}',
            "`*` stands before `sales.*` and fits the same tables",
        ),
        ('{"sales.*": , sales.orders: {}}', "`sales.*` stands before `sales.orders` and fits the same tables"),
        ('{"sales.*": {maxBytes: 1MiB}, "s*": {}, "*": {maxBytes: 1GiB}}', None),
    ],
)
def test_a_budget_of_tables_behind_one_that_always_counts_first_is_a_warning(
    tmp_path: Path, tables: str, said: str | None
) -> None:
    findings = loaded(tmp_path, {"maintainer.yml": f"budget:\n  tables: {tables}\n"}).diagnostics
    found = [(finding.code, finding.span.line, finding.is_error, finding.message) for finding in findings]
    assert found == ([("P358", 3, False, f"{said}: this budget never counts")] if said else [])


def test_one_writer_is_said_by_name(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": "singleWriter: true\n"})
    assert load_project(tmp_path, environ={}).project.single_writer
    (tmp_path / "maintainer.yml").write_text("version: 1\nsingleWriter:\n", encoding="utf-8")
    assert not load_project(tmp_path, environ={}).project.single_writer


LEDGER = ".maintainer/ledger"
FILES = {
    "maintainer.yml": "defaults: {optimize: {maxFileSize: 1GiB}, vacuum: {retention: 90d}}\n",
    "policies/t.yml": "table: lake/t\n",
    "policies/all.yml": 'match: {tables: ["*"]}\noptimize: {zorder: {columns: [id], mode: full}}\n',
}


def with_ledger(root: Path, files: dict[str, str]) -> LoadedProject:
    (root / ".maintainer" / "ledger" / "_delta_log").mkdir(parents=True)
    (root / ".maintainer" / "ledger" / "_delta_log" / "00000000000000000000.json").write_text("")
    return loaded(root, files)


def names(project: LoadedProject) -> list[str]:
    return [policy.table.identifier for policy in project.resolved()]


def test_a_ledger_that_no_run_has_made_is_no_table(tmp_path: Path) -> None:
    assert names(loaded(tmp_path, FILES)) == ["lake/t"]


def test_the_ledger_has_a_policy_of_its_own_that_nothing_else_reaches(tmp_path: Path) -> None:
    project = with_ledger(tmp_path, FILES)
    assert names(project) == [LEDGER, "lake/t"]
    policy = project.resolve_table(LEDGER)
    assert policy == project.resolved()[0]
    assert (policy.optimize.max_file_size_bytes, policy.optimize.when.min_small_files) == (128 << 20, 20)
    assert policy.optimize.zorder is None
    assert policy.vacuum is not None
    assert (policy.vacuum.retention_seconds, policy.vacuum.every_seconds) == (7 * 86_400, 7 * 86_400)
    assert (policy.file, str(policy.origin("optimize.maxFileSize"))) == ("built-in", "built-in")
    assert policy.verify.content.value == "fingerprint"


@pytest.mark.parametrize("written", [LEDGER, "./.maintainer/../.maintainer/ledger/"])
def test_a_file_that_names_the_ledger_takes_its_place_as_for_any_table(tmp_path: Path, written: str) -> None:
    own = {**FILES, "policies/ledger.yml": f'table: "{written}"\nsuspend: {{reason: by hand}}\n'}
    project = with_ledger(tmp_path, own)
    assert project.ledger is None
    assert names(project) == [LEDGER, "lake/t"]
    policy = project.resolve_table(LEDGER)
    assert (policy.file, policy.optimize.max_file_size_bytes) == ("policies/ledger.yml", 1 << 30)
    assert policy.suspend is not None


def test_a_shared_ledger_outside_the_project_is_named_by_its_path(tmp_path: Path) -> None:
    shared = tmp_path / "shared" / "ledger"
    (shared / "_delta_log").mkdir(parents=True)
    (shared / "_delta_log" / "00000000000000000000.json").write_text("")
    project = loaded(
        tmp_path / "p", {"maintainer.yml": f"state: {shared.parent}\n", "policies/t.yml": "table: lake/t\n"}
    )
    assert names(project) == [str(shared), "lake/t"]


def test_the_ledger_can_be_selected_and_left_out_like_any_table(tmp_path: Path) -> None:
    project = with_ledger(tmp_path, FILES)
    again = load_project(write_project(tmp_path, {}))
    assert [policy.tags for policy in again.resolved()] == [("maintainer-ledger",), ()]
    assert project.resolution_of(LEDGER).named_by_file is False


def test_explain_says_whose_policy_it_is(tmp_path: Path) -> None:
    lines = explain_text(with_ledger(tmp_path, FILES).resolution_of(LEDGER)).splitlines()
    assert lines[:2] == [
        f"{LEDGER}   built-in",
        "no file names the ledger: a built-in policy applies to it; a file that names it would replace that policy",
    ]


@pytest.mark.parametrize("place", ["hdfs:/state", "ftp://host/state", "s3://", "az://lake/x"])
def test_a_state_on_storage_that_cannot_hold_it_is_refused(tmp_path: Path, place: str) -> None:
    """A URI would be taken for a relative folder, so a run would remember nothing of the one before."""
    text = f"state: '{place}'\nenvironments:\n  prod: {{state: '{place}'}}\n  dev: {{state: file:/srv/state}}\n"
    project = loaded(tmp_path, {"maintainer.yml": text})
    assert complaints(project) == ["maintainer.yml:2:8 P381", "maintainer.yml:4:17 P381"]


SECRET_PLACES = ("s3://reader:hun/ter2Planted@lake/x", "abfss://c@a.dfs.core.windows.net/x?sig=hunter2Planted%2B")


@pytest.mark.parametrize("place", SECRET_PLACES)
def test_a_secret_that_variables_put_into_an_address_is_refused(tmp_path: Path, place: str) -> None:
    text = (
        "state: ${env:PLACE}\nroots: [lake, '${env:PLACE}']\n"
        "environments:\n  prod: {state: '${env:PLACE}', roots: ['${env:PLACE}']}\n"
    )
    write_project(tmp_path, {"maintainer.yml": text})
    project = load_project(tmp_path, environ={"PLACE": place})
    assert complaints(project) == [f"maintainer.yml:{at} Y123" for at in ("2:8", "3:15", "5:17", "5:41")]
    assert all("spark: conf:" in (finding.help or "") for finding in project.diagnostics)
    assert project.project.state == str(tmp_path / ".maintainer")


@pytest.mark.parametrize("place", SECRET_PLACES)
def test_no_folder_of_a_cache_is_called_after_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Of a project that nobody checked: the name of the folder is printed by `doctor`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = local_runs_dir(ProjectSettings(state=place)).parent.name
    assert "Planted" not in folder
    assert folder != local_runs_dir(ProjectSettings(state=place.replace("Planted", "Other"))).parent.name


@pytest.mark.parametrize(
    ("place", "ledger"),
    [
        ("s3://lake/m", "s3a://lake/m/ledger"),
        ("s3a://lake/m/", "s3a://lake/m/ledger"),
        ("abfss://c@a.dfs.core.windows.net/m", "abfss://c@a.dfs.core.windows.net/m/ledger"),
        ("abfs://c@a.dfs.core.windows.net/m", "abfs://c@a.dfs.core.windows.net/m/ledger"),
        ("gs://lake", "gs://lake/ledger"),
    ],
)
def test_a_state_may_lie_on_an_object_store_with_a_ledger_that_spark_can_open(
    tmp_path: Path, place: str, ledger: str
) -> None:
    project = loaded(tmp_path, {"maintainer.yml": f"state: {place}\n"})
    assert (complaints(project), project.project.ledger) == ([], ledger)
    # Only a look can tell whether it is there. People know it by what they wrote.
    assert names(project) == [f"{place.rstrip('/')}/ledger"]
    assert project.ledger is not None
    assert project.ledger.location == ledger


@pytest.mark.parametrize(
    ("written", "folder"),
    [(".maintainer/ledger", ".maintainer"), ("/srv/m/ledger/", "/srv/m"), ("ledger", ".maintainer")],
)
def test_a_ledger_in_the_place_of_the_state_is_refused(tmp_path: Path, written: str, folder: str) -> None:
    (finding,) = loaded(tmp_path, {"maintainer.yml": f"state: {written}\n"}).diagnostics
    assert (finding.code, finding.span.line) == ("P380", 2)
    assert finding.help == f"write `state: {folder}`; the ledger is in it, as `ledger`"


@pytest.mark.parametrize("text", ["runDir: .maintainer/runs\n", "environments: {dev: {runDir: x}}\n"])
def test_the_key_that_went_away_leads_to_the_one_that_replaces_it(tmp_path: Path, text: str) -> None:
    (finding,) = loaded(tmp_path, {"maintainer.yml": text}).diagnostics
    assert finding.code == "P201"
    assert finding.help is not None
    assert "Write `state: FOLDER` where you had `runDir: FOLDER/runs`" in finding.help
