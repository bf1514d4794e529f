"""The commands that the files under examples/ run, taken from the files: YAML, JSON, a Dockerfile, an Airflow DAG.

A command line is read as the program reads it, and not run.
"""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import click
import yaml

from maintainer.cli.main import cli

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def github_jobs() -> dict[str, Any]:
    """The jobs of the GitHub workflow."""
    jobs: dict[str, Any] = yaml.safe_load((EXAMPLES / "github-workflow.yml").read_text(encoding="utf-8"))["jobs"]
    return jobs


def github_script(job: str, part: str) -> str:
    """The one script of a job that has a part in it."""
    (script,) = [step["run"] for step in github_jobs()[job]["steps"] if part in step.get("run", "")]
    return str(script)


def gitlab_jobs() -> dict[str, list[str]]:
    """The scripts of the jobs of the GitLab pipeline, in order."""
    pipeline = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text(encoding="utf-8"))
    return {name: job["script"] for name, job in pipeline.items() if isinstance(job, dict) and "script" in job}


def command_lines(script: str) -> Iterator[list[str]]:
    """Each call of maintainer in a script, without what the shell does to its output and its exit code."""
    for line in script.replace("\\\n", " ").splitlines():
        if line.split()[:1] == ["maintainer"]:
            words = shlex.split(line, comments=True)
            ends = [words.index(word) for word in (">", "||") if word in words]
            yield words[1 : min(ends, default=len(words))]


def airflow_tasks() -> list[dict[str, Any]]:
    """What the DAG gives to its operators; stand-ins take the place of Airflow."""
    tasks: list[dict[str, Any]] = []

    class Dag:
        def __init__(self, **options: Any) -> None:
            assert options["max_active_runs"] == 1
            assert options["catchup"] is False

        def __enter__(self) -> Dag:
            return self

        def __exit__(self, *_: object) -> None:
            return None

    names = ("airflow", "airflow.sdk", "airflow.providers", "airflow.providers.standard")
    operators = ("airflow.providers.standard.operators", "airflow.providers.standard.operators.bash")
    modules = {name: ModuleType(name) for name in (*names, *operators)}
    modules["airflow.sdk"].__dict__["DAG"] = Dag
    modules[operators[1]].__dict__["BashOperator"] = lambda **options: tasks.append(options)
    with mock.patch.dict(sys.modules, modules):
        runpy.run_path(str(EXAMPLES / "airflow_dag.py"))
    return tasks


def cron_job_container() -> dict[str, Any]:
    """The container of the CronJob."""
    manifest = yaml.safe_load((EXAMPLES / "kubernetes" / "cronjob.yml").read_text(encoding="utf-8"))
    (container,) = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def docker_instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each with its arguments on one line."""
    text = (EXAMPLES / "kubernetes" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(match[1], match[2]) for line in lines if (match := re.fullmatch(r"([A-Z]+) (.+)", line)) is not None]


def json_example(name: str) -> dict[str, Any]:
    """A job as JSON."""
    document: dict[str, Any] = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    return document


def emr_arguments() -> list[str]:
    """The command line of the job on EMR Serverless."""
    return list(json_example("emr_serverless_job.json")["jobDriver"]["sparkSubmit"]["entryPointArguments"])


def databricks_arguments() -> list[str]:
    """The command line of the job on Databricks."""
    (task,) = json_example("databricks_job.json")["tasks"]
    assert task["python_wheel_task"]["entry_point"] == "maintainer-job"
    return list(task["python_wheel_task"]["parameters"])


def example_commands() -> dict[str, list[str]]:
    """Every command line of maintainer in the examples, by file and place."""
    github = {
        f"github {job}": line
        for job, spec in github_jobs().items()
        for step in spec["steps"]
        for line in command_lines(step.get("run", ""))
    }
    gitlab = {
        f"gitlab {job}": line
        for job, scripts in gitlab_jobs().items()
        for script in scripts
        for line in command_lines(script)
    }
    docker = SimpleNamespace(**{name.lower(): value for name, value in docker_instructions()})
    build, warm = (words for name, value in docker_instructions() if name == "RUN" for words in command_lines(value))
    assert json.loads(docker.entrypoint) == ["maintainer"]
    (airflow,) = airflow_tasks()
    (task,) = command_lines(airflow["bash_command"])
    return {
        **github,
        **gitlab,
        "airflow": task,
        "kubernetes": cron_job_container()["args"],
        "docker run": json.loads(docker.cmd),
        "docker build": build,
        "docker warm": warm,
        "emr": emr_arguments(),
        "databricks": databricks_arguments(),
    }


@contextmanager
def found_command(arguments: Iterable[str]) -> Iterator[tuple[str, click.Command, list[str], click.Context]]:
    """Give name, command and the rest of a line's arguments; raises for a command that does not exist.

    The context is closed with the block: a first stage that was said ends then.
    """
    with cli.make_context("maintainer", list(arguments)) as group:
        # What the group leaves for its command; click keeps the name apart from its arguments.
        name, command, rest = cli.resolve_command(group, [*group._protected_args, *group.args])
        assert name is not None
        assert command is not None
        yield name, command, rest, group


def parsed_command(arguments: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Return a line's command and its parameters; raises for what does not exist."""
    with found_command(arguments) as (name, command, rest, group):
        return name, command.make_context(name, rest, parent=group).params
