"""The options of plan, apply, watch, status and their like: together they fill one ``RunSpec``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from maintainer.app.engine_access import ENGINES, EngineOptions
from maintainer.app.selection.run_spec import RunSpec
from maintainer.app.selection.table_selection import SelectionOptions
from maintainer.cli.options import selection_options
from maintainer.cli.options.value_types import DURATION, SIZE, F, ReadBy, as_one_argument
from maintainer.execution.fleet.rollout import parse_batches
from maintainer.planning.plan_input import PlanOptions
from maintainer.policy.project.project_settings import Budget

Options = tuple[Callable[..., Any], ...]

SELECTION: Options = selection_options.SELECTION
SHARD: Options = (selection_options.SHARD,)
ENGINE: Options = (
    click.option("--master", metavar="URL", help="Spark master. Default: local[*], in this process."),
    click.option(
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        help="A Spark setting for the session that is started. Repeatable.",
    ),
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        help="transaction: proves before it commits (default). command: Delta's own commands, proven afterwards.",
    ),
    click.option(
        "--remote",
        metavar="URL",
        help="A Spark Connect server, sc://host:port; implies --engine command. Default: SPARK_REMOTE.",
    ),
)
BUDGET: Options = (
    click.option("--budget-bytes", type=SIZE, help="Rewrite at most this much, the best first; the rest waits."),
    click.option("--budget-files", metavar="N", type=click.IntRange(0), help="Rewrite at most this many files."),
    click.option("--budget-time", type=DURATION, help="Rewrite what is expected to take at most this long."),
)
JOBS: Options = (
    click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Tables at once."),
)
FAILURES: Options = (
    click.option("--fail-fast", is_flag=True, help="Start no further table after the first that fails."),
    click.option("--max-failures", type=click.IntRange(min=1), help="Start no further table after this many failures."),
)
ROLLOUT: Options = (
    click.option(
        "--batches",
        metavar="SIZES",
        type=ReadBy("sizes", parse_batches),
        help="Start tables in batches, such as 1,5,20%; the last size is repeated. The next batch is started when all "
        "of the one before ended well and proven.",
    ),
    click.option("--timeout", "timeout_seconds", type=DURATION, help="Stop after this time, such as 2h."),
)
SAVED_PLAN: Options = (
    click.option(
        "--exact", is_flag=True, help="With PLAN: refuse all of it if a table has another version than planned."
    ),
    click.option(
        "--all-or-nothing", is_flag=True, help="With PLAN: refuse all of it if one table is not as it was planned."
    ),
)
SCHEDULE: Options = (
    click.option("--ignore-window", is_flag=True, help="Act as if every window were open."),
    click.option("--ignore-every", is_flag=True, help="Act as if every step were due."),
)


def spec_options(*groups: Options) -> Callable[[F], F]:
    """Add groups of options to a command, which takes all of them as ``spec``."""
    return as_one_argument("spec", _spec, [option for group in groups for option in group])


def _spec(values: dict[str, Any]) -> RunSpec:
    """Make the specification; what no option says has the specification's own default.

    Raises:
        click.UsageError: Options that exclude each other.
        click.BadParameter: A Spark setting without ``=``.
    """

    def taken(*names: str) -> dict[str, Any]:
        return {name: values.pop(name) for name in names if name in values}

    selection = SelectionOptions(**taken("select", "exclude", "since", "allow_empty"))
    engine = _engine(**taken("master", "conf", "engine", "remote"))
    budget = Budget(*(values.pop(name, None) for name in ("budget_bytes", "budget_files", "budget_time")))
    planning = PlanOptions(values.pop("ignore_window", False), values.pop("ignore_every", False))
    if values.get("fail_fast") and values.get("max_failures") is not None:
        raise click.UsageError("--fail-fast and --max-failures exclude each other: the first is the second with 1")
    return RunSpec(selection, engine=engine, budget=budget, planning=planning, **values)


def _engine(
    master: str | None = None, conf: tuple[str, ...] = (), engine: str | None = None, remote: str | None = None
) -> EngineOptions:
    pairs = []
    for setting in conf:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="--conf")
        pairs.append((key.strip(), value))
    if remote is not None and master is not None:
        raise click.UsageError("--master starts a Spark and --remote goes to one that runs: leave one of them out")
    return EngineOptions(master, tuple(pairs), engine=engine, remote=remote, on_warning=_warn)


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)
