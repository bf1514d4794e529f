"""Opens everything that listens to a run, hands it the run's events, and closes it when the run is over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points

from maintainer.app.project_folders import Project
from maintainer.app.running.observers.event_thread import (
    CLOSE_SECONDS,
    NOT_DELIVERED,
    EventThread,
    ObservedRun,
    Observer,
)
from maintainer.app.running.observers.lineage import lineage_of
from maintainer.app.running.observers.traces import traces_of
from maintainer.app.running.observers.webhook import Webhook
from maintainer.app.running.run_listener import RunListener
from maintainer.errors import EnvironmentUnfit
from maintainer.errors.foreign_text import without_secrets
from maintainer.execution.run_context import Emitter
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.progress import ProgressEvent, ProgressSink

OnProblem = Callable[[Problem], None]

OBSERVERS = "maintainer.observers"
"""The group of entry points by which other packages add observers: each names an ``ObserverOf``."""


def webhook_of(project: Project) -> Webhook | None:
    """Return what posts to the address in ``notify:``; None without one."""
    notify = project.loaded.project.notify
    return None if notify is None else Webhook(notify, project.root.name, project.env)


def observers_of(project: Project, plan: Plan, on_problem: OnProblem) -> Iterator[Observer]:
    """Yield what the project, the environment and installed packages ask for.

    Args:
        project: The project.
        plan: What is carried out.
        on_problem: Called for what is asked for and cannot be: a library is missing (E629), or an observer
            cannot be made (E657). Where runs are observed, they must go on without it.
    """
    run = ObservedRun(project.root.name, project.root, project.env, plan, os.environ)
    webhook = webhook_of(project)
    yield from () if webhook is None else (webhook,)
    for of_run in (traces_of, lineage_of, *entry_points(group=OBSERVERS)):
        try:
            # What a package names is imported here, so that one that is broken harms no run.
            made: object = (of_run.load() if isinstance(of_run, EntryPoint) else of_run)(run)
            if not (made is None or isinstance(made, Observer)):
                raise TypeError(f"it made {type(made).__name__}, which is no observer")
        except EnvironmentUnfit as error:
            text = f"{error.what}: the run goes on without it ({error.found})"
            on_problem(Problem(error.code, text, help=error.help))
        except Exception as error:
            if isinstance(of_run, EntryPoint):
                name, help = of_run.value, "correct or remove the package that brings it"
            else:
                name, help = f"{of_run.__module__}:{of_run.__name__}", "check the variables that ask for it"
            why = without_secrets(f"{type(error).__name__}: {error}")
            text = f"the observer {name} cannot be used: the run goes on without it ({why})"
            on_problem(Problem(NOT_DELIVERED, text, help=help))
        else:
            if made is not None:
                yield made


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
    observers: Iterable[Observer], shown: ProgressSink | None, on_problem: OnProblem
) -> Iterator[ProgressSink | None]:
    """Yield the sink that hands events to observers, each on a thread of its own, and to what is shown.

    See ``observed_run``; None where nothing listens.
    """
    threads = [EventThread(observer) for observer in observers]
    if not threads:
        yield shown
        return
    sinks = [Emitter(sink) for sink in (*threads, shown)]  # a closed terminal must not keep a notification back

    def hand_on(event: ProgressEvent) -> None:
        for sink in sinks:
            sink(event)

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
