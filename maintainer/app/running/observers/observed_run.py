"""Opens everything that listens to a run, hands it the run's events, and closes it when the run is over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from maintainer.app.project_folders import Project
from maintainer.app.running.observers.event_thread import CLOSE_SECONDS, EventThread, Observer
from maintainer.app.running.observers.extra_packages import require_extra
from maintainer.app.running.observers.lineage import LINEAGE_MODULE, Lineage, lineage_target
from maintainer.app.running.observers.traces import TRACES_MODULE, Traces, traces_endpoint
from maintainer.app.running.observers.webhook import Webhook
from maintainer.app.running.run_listener import RunListener
from maintainer.errors import EnvironmentUnfit
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.progress import ProgressEvent, ProgressSink

OnProblem = Callable[[Problem], None]


def observers_of(project: Project, plan: Plan, on_problem: OnProblem) -> tuple[Observer, ...]:
    """Return what the project and the environment ask for.

    Args:
        project: The project.
        plan: What is carried out.
        on_problem: Called for what is asked for and cannot be: a library is missing (E629).
    """
    observers: list[Observer] = []
    name = project.root.name
    endpoint = traces_endpoint(os.environ)
    if endpoint is not None and _is_there("otel", TRACES_MODULE, "sending traces", on_problem):
        observers.append(Traces(endpoint, name, plan, os.environ))
    target = lineage_target(os.environ, Path.home(), Path.cwd())
    if target is not None and _is_there("openlineage", LINEAGE_MODULE, "sending lineage", on_problem):
        observers.append(Lineage(target, name, plan, os.environ))
    webhook = webhook_of(project)
    return (*observers, webhook) if webhook is not None else tuple(observers)


def webhook_of(project: Project) -> Webhook | None:
    """Return what posts to the address in ``notify:``; None without one."""
    notify = project.loaded.project.notify
    return None if notify is None else Webhook(notify, project.root.name, project.env)


def _is_there(extra: str, module: str, what: str, on_problem: OnProblem) -> bool:
    """Say that a library is missing instead of raising: where runs are observed, they must go on without it."""
    try:
        require_extra(extra, module, what)
    except EnvironmentUnfit as error:
        text = f"{error.what}: the run goes on without it ({error.found})"
        on_problem(Problem(error.code, text, help=error.help))
        return False
    return True


@contextmanager
def observed_run(
    project: Project, plan: Plan, listener: RunListener, on_problem: OnProblem
) -> Iterator[ProgressSink | None]:
    """Yield the sink of a run's events: for what listens from outside, and for what is shown.

    Args:
        project: The project; maintainer.yml says who is notified, the environment where traces and lineage go.
        plan: What is carried out.
        listener: Shows progress. A sink of it that raises is not asked again.
        on_problem: Called at the end with what was not delivered. It does not change how the run ended.
    """
    with (
        listener.progress(plan) as shown,
        handed_on(observers_of(project, plan, on_problem), shown, on_problem) as sink,
    ):
        yield sink


@contextmanager
def handed_on(
    observers: Sequence[Observer], shown: ProgressSink | None, on_problem: OnProblem
) -> Iterator[ProgressSink | None]:
    """Yield the sink that hands events to observers, each on a thread of its own, and to what is shown.

    See ``observed_run``; None where nothing listens.
    """
    threads = [EventThread(observer) for observer in observers]
    if not threads:
        yield shown
        return
    sinks: list[ProgressSink] = [*threads, *([] if shown is None else [shown])]

    def hand_on(event: ProgressEvent) -> None:
        for sink in tuple(sinks):
            try:
                sink(event)
            except Exception:  # a closed terminal must not keep a notification back
                sinks.remove(sink)

    try:
        yield hand_on
    finally:
        for thread in threads:
            thread.end()
        deadline = time.monotonic() + CLOSE_SECONDS
        for thread in threads:
            problem = thread.wait(deadline)
            if problem is not None:
                on_problem(problem)
