"""Opens everything that listens to a run, hands it the run's events, and closes it when the run is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from maintainer.app.project_folders import Project
from maintainer.app.running.observers.event_thread import CLOSE_SECONDS, EventThread, Observer
from maintainer.app.running.observers.webhook import Webhook
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.progress import ProgressEvent, ProgressSink

OnProblem = Callable[[Problem], None]


def observers_of(project: Project, plan: Plan) -> tuple[Observer, ...]:
    """Return what the project and the environment ask for."""
    observers: list[Observer] = []
    notify = project.loaded.project.notify
    if notify is not None:
        observers.append(Webhook(notify, project.root.name, project.env))
    return tuple(observers)


@contextmanager
def observed_run(
    project: Project, plan: Plan, shown: ProgressSink | None, on_problem: OnProblem
) -> Iterator[ProgressSink | None]:
    """Yield the sink of a run's events: for what listens from outside, and for what is shown.

    Args:
        project: The project; maintainer.yml says who is notified.
        plan: What is carried out.
        shown: Shows progress; None shows none. One that raises is not asked again.
        on_problem: Called at the end with what was not delivered. It does not change how the run ended.
    """
    threads = [EventThread(observer) for observer in observers_of(project, plan)]
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
