"""Who chooses the engine and the server: the command line before maintainer.yml, and both before the environment."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from maintainer.app.engine_access import EngineOptions, project_engine
from maintainer.app.project_folders import Project
from maintainer.app.selection.run_spec import RunSpec, Shard
from maintainer.cli.options import BUDGET, ENGINE, FAILURES, ROLLOUT, SHARD, spec_options
from maintainer.delta.commands.connect_session import open_connect
from maintainer.delta.spark.start_conf import remote_of
from maintainer.delta.storage.failures.engine_failures import describe, is_cancelled, is_conflict
from maintainer.engine.process_loss import is_engine_lost
from maintainer.engine.session_options import SessionOptions
from maintainer.errors import EnvironmentUnfit
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.project.project_settings import Budget
from tests.support.policies.projects import write_project


def options(*args: str) -> EngineOptions:
    seen_options: list[EngineOptions] = []

    @click.command()
    @spec_options(ENGINE)
    def command(spec: RunSpec) -> None:
        seen_options.append(spec.engine)

    done = CliRunner().invoke(command, list(args))
    if done.exception is not None:
        raise AssertionError(done.output)
    return seen_options[0]


def test_the_command_line_wins_over_the_project(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": "version: 1\nengine: command\n", "policies/t.yml": "table: s.t\n"})
    project = Project.load(tmp_path)
    assert options() == EngineOptions()
    assert project_engine(project.loaded.project, options()).engine == "command"
    assert project_engine(project.loaded.project, options("--engine", "transaction")).engine == "transaction"
    given = options("--remote", "sc://host", "--conf", "a=b")
    assert (given.remote, given.engine, given.conf) == ("sc://host", None, (("a", "b"),))
    with pytest.raises(AssertionError, match="use one of them"):
        options("--remote", "sc://host", "--master", "local[1]")
    with pytest.raises(AssertionError, match="'transaction', 'command'"):
        options("--engine", "magic")


def test_the_environment_of_the_project_may_have_its_own(tmp_path: Path) -> None:
    text = "version: 1\nengine: command\nenvironments: {prod: {engine: transaction}, dev: {}}\n"
    write_project(tmp_path, {"maintainer.yml": text, "policies/t.yml": "table: s.t\n"})
    engines = {env: load_project(tmp_path, env, environ={}).project.engine for env in (None, "prod", "dev")}
    assert engines == {None: "command", "prod": "transaction", "dev": "command"}


def spec_of(*args: str) -> RunSpec:
    specs: list[RunSpec] = []

    @click.command()
    @spec_options(SHARD, BUDGET, FAILURES, ROLLOUT)
    def command(spec: RunSpec) -> None:
        specs.append(spec)

    done = CliRunner().invoke(command, list(args))
    if done.exception is not None:
        raise AssertionError(done.output)
    return specs[0]


def test_options_fill_one_specification_and_the_rest_keeps_its_default() -> None:
    assert spec_of() == RunSpec()
    given = spec_of("--shard", "2/3", "--budget-bytes", "1GiB", "--batches", "1,20%", "--timeout", "2h", "--fail-fast")
    assert given == RunSpec(
        shard=Shard(2, 3), budget=Budget(1 << 30), batches=(1, "20%"), timeout_seconds=7200, max_failures=1
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--timeout", "2"), "Invalid value for '--timeout': the duration 2 has no unit: write `2d` for days"),
        (("--timeout", "0s"), "Invalid value for '--timeout': from 1s to 36600d"),
        (("--budget-bytes", "much"), "Invalid value for '--budget-bytes': `much` is not a size: write a whole number"),
        (("--shard", "4/3"), "Invalid value for '--shard': `4/3` is not a shard"),
        (("--batches", "0"), "Invalid value for '--batches': `0` is not the size of a batch: write tables or a share"),
        (("--fail-fast", "--max-failures", "2"), "use --fail-fast or --max-failures, not both"),
    ],
)
def test_a_value_that_cannot_be_read_is_an_error_that_names_the_option(args: tuple[str, ...], message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        spec_of(*args)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "env", "url"),
    [
        (SessionOptions(), {}, None),
        (SessionOptions(remote="sc://a"), {"SPARK_REMOTE": "sc://b"}, "sc://a"),
        (SessionOptions(master="sc://a"), {}, "sc://a"),
        (SessionOptions(master="local[1]"), {}, None),
        (SessionOptions(conf=(("spark.remote", "sc://c"),)), {"SPARK_REMOTE": "sc://b"}, "sc://c"),
        (SessionOptions(), {"SPARK_REMOTE": "sc://b"}, "sc://b"),
        (SessionOptions(), {"SPARK_REMOTE": ""}, None),
    ],
)
def test_which_server(given: SessionOptions, env: dict[str, str], url: str | None) -> None:
    assert remote_of(given, env) == url


def test_no_address_and_no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentUnfit) as caught, open_connect(SessionOptions(remote="host:1"), {}):
        pass
    assert (caught.value.code, caught.value.found) == ("E635", "host:1")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name.startswith("grpc") else object())
    with pytest.raises(EnvironmentUnfit) as caught, open_connect(SessionOptions(remote="sc://host"), {}):
        pass
    assert (caught.value.code, caught.value.found) == ("E634", "missing: grpc, grpc_status")
    unsafe = SessionOptions(remote="sc://host", conf=(("spark.sql.files.ignoreMissingFiles", "true"),))
    with pytest.raises(EnvironmentUnfit) as caught, open_connect(unsafe, {}):
        pass
    assert caught.value.code == "E608"


class SparkConnectGrpcException(Exception):
    """Named as Spark's, with its status."""

    def __init__(self, text: str, status: str = "INTERNAL") -> None:
        super().__init__(text)
        self._status = status

    def getGrpcStatusCode(self) -> object:
        return type("StatusCode", (), {"name": self._status})


def test_errors_of_spark_connect_have_a_condition_and_a_status() -> None:
    trace = "\n\nJVM stacktrace:\norg.apache.spark.SparkException\n\tat a.b(C.scala:1)"
    changed = SparkConnectGrpcException(f"[DELTA_METADATA_CHANGED] The metadata was changed.{trace}")
    read = SparkConnectGrpcException(f"[DELTA_CONCURRENT_DELETE_READ.WITH_HINT] Files were removed.{trace}")
    assert is_conflict(describe(changed))
    assert is_conflict(describe(read))
    assert describe(read)[0].message == "[DELTA_CONCURRENT_DELETE_READ.WITH_HINT] Files were removed."
    assert is_cancelled(describe(SparkConnectGrpcException("[OPERATION_CANCELED] Operation has been canceled.")))
    assert is_engine_lost(SparkConnectGrpcException("failed to connect", "UNAVAILABLE"))
    assert not is_engine_lost(changed)
