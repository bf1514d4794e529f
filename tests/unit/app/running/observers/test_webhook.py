"""Notifications over real HTTP on this machine: what is sent, and that no hook can harm, hold or betray a run."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.project_folders import Project
from maintainer.app.running.observers import webhook
from maintainer.app.running.observers.event_thread import EventThread, NotDelivered
from maintainer.app.running.observers.observed_run import observed_run
from maintainer.app.running.observers.webhook import MAX_QUARANTINES, MAX_TABLES, RunNamed, Webhook, failure_message
from maintainer.app.running.run_listener import RunListener
from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus
from maintainer.model.run.progress import ProgressEvent, ProgressSink, RunFinished, RunStarted, TableFinished
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.project_sections import Notify, NotifyOn
from tests.support.http_receiver import Receiver, http_receiver
from tests.support.policies.projects import write_project
from tests.support.runs.sample_plans import TEN_PM, full_plan
from tests.support.runs.sample_runs import RUN, bad_run, good_run, progress_events

SECRET = "T0/B0/planted-in-the-path"
BOTH = tuple(NotifyOn)


def project_at(root: Path, url: str, on: str = "[failure, quarantine]") -> Project:
    text = f"notify: {{url: {url}/{SECRET}, on: {on}}}\nenvironments: {{prod: {{}}}}\n"
    write_project(root, {"maintainer.yml": text, "policies/t.yml": "table: s.t\n"})
    return Project.load(root, "prod")


class Shown(RunListener):
    def __init__(self, sink: ProgressSink | None) -> None:
        self.sink = sink

    def progress(self, plan: Plan) -> AbstractContextManager[ProgressSink | None]:
        return nullcontext(self.sink)


def sent(project: Project, events: list[ProgressEvent], shown: ProgressSink | None = None) -> list[Problem]:
    """Let the project's observers listen to a run, and return what they could not deliver."""
    problems: list[Problem] = []
    with observed_run(project, full_plan(), Shown(shown), problems.append) as sink:
        assert sink is not None
        for event in events:
            sink(event)
    return problems


def bodies(receiver: Receiver) -> list[dict[str, object]]:
    return [json.loads(body) for _, _, body in receiver.posts]


def ended(outcome: RunOutcome) -> list[ProgressEvent]:
    return [RunStarted(TEN_PM, RUN, 1, 1, 1, "runs/1"), RunFinished(TEN_PM + 1, outcome)]


def test_a_failed_verification_is_told_at_once_and_the_failure_at_the_end(tmp_path: Path) -> None:
    with http_receiver() as receiver:
        assert sent(project_at(tmp_path, receiver.url), progress_events()) == []
    quarantine, failure = bodies(receiver)
    assert [path for path, _, _ in receiver.posts] == [f"/{SECRET}"] * 2
    assert receiver.posts[0][1]["Content-Type"] == "application/json"
    assert (quarantine["event"], quarantine["exit_code"], quarantine["environment"]) == ("quarantine", None, "prod")
    assert str(quarantine["text"]).startswith(f"maintainer ({tmp_path.name}, prod): sales.orders is in quarantine")
    assert "maintainer verify sales.orders" in str(quarantine["text"])
    assert (failure["event"], failure["exit_code"], failure["run_id"]) == ("failure", 5, RUN)
    tables = failure["tables"]
    assert isinstance(tables, list)
    notified = {table["table"]: (table["status"], table["code"]) for table in tables}
    bad = [table for table in bad_run("SIGTERM").tables if table.ref.identifier in notified]
    assert notified["sales.orders"] == ("verify_failed", "V503")
    assert notified["crm.gone"] == ("failed", "T401")
    assert "sales.items" not in notified  # it yielded, which is no failure
    assert failure["num_tables"] == len(bad) == len(notified)
    assert "crm.gone: T401: no table `crm.gone` in the catalog" in str(failure["text"])


@pytest.mark.parametrize(("on", "events"), [("[failure]", ["failure"]), ("[quarantine]", ["quarantine"])])
def test_only_what_was_asked_for(tmp_path: Path, on: str, events: list[str]) -> None:
    with http_receiver() as receiver:
        assert sent(project_at(tmp_path, receiver.url, on), progress_events()) == []
    assert [body["event"] for body in bodies(receiver)] == events


@pytest.mark.parametrize("outcome", [good_run(), replace(good_run(), interrupted_by="SIGINT")])
def test_a_run_that_ended_well_or_was_interrupted_is_no_news(tmp_path: Path, outcome: RunOutcome) -> None:
    with http_receiver() as receiver:
        assert sent(project_at(tmp_path, receiver.url), ended(outcome)) == []
    assert receiver.posts == []


@pytest.mark.parametrize(
    ("answers", "num_posts", "reason"),
    [
        ((500, 503, 204), 3, None),
        ((429, 200), 2, None),
        ((500,), 3, "HTTP 500"),
        ((404,), 1, "HTTP 404"),
        ((302,), 1, "HTTP 302: the address redirects to another one, which is not followed"),
        ((307,), 1, "HTTP 307: the address redirects to another one, which is not followed"),
    ],
)
def test_what_the_server_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: tuple[int, ...], num_posts: int, reason: str | None
) -> None:
    monkeypatch.setattr(webhook, "PAUSES_SECONDS", (0.0, 0.0))
    with http_receiver(answers) as receiver:
        problems = sent(project_at(tmp_path, receiver.url), ended(bad_run()))
        where = "http://127.0.0.1"
    assert [path for path, _, _ in receiver.posts] == [f"/{SECRET}"] * num_posts
    if reason is None:
        assert problems == []
        return
    (problem,) = problems
    assert (problem.code, problem.where) == ("E657", where)
    assert problem.what == f"notifications were not all delivered: {reason}"
    assert SECRET not in repr(problem)


def test_a_redirect_is_not_followed_to_a_server_that_would_take_it(tmp_path: Path) -> None:
    with http_receiver() as elsewhere, http_receiver((308,)) as receiver:
        receiver.redirect_to = elsewhere.url
        (problem,) = sent(project_at(tmp_path, receiver.url), ended(bad_run()))
    assert "redirects to another one" in problem.what
    assert elsewhere.posts == []


def test_a_server_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "PAUSES_SECONDS", (0.0, 0.0))
    with socket.socket() as taken:  # bound and not listening: a connection is refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        (problem,) = sent(project_at(tmp_path, url), ended(bad_run()))
    assert problem.what.startswith("notifications were not all delivered: ")
    assert "refused" in problem.what.lower()


def test_a_server_that_does_not_answer_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "TRY_SECONDS", 0.2)
    hold = threading.Event()
    with http_receiver(hold=hold) as receiver:
        hook = Webhook(Notify(f"{receiver.url}/{SECRET}", BOTH), "lake", None, sleep=lambda seconds: None)
        started, finished = ended(bad_run())
        hook.event(started)
        with pytest.raises(NotDelivered, match=r"^no answer within 0\.2 s$"):
            hook.event(finished)
        assert len(receiver.posts) == 3


def test_a_hook_that_hangs_is_given_up_and_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintainer.app.running.observers.observed_run.CLOSE_SECONDS", 0.2)
    hold = threading.Event()
    with http_receiver(hold=hold) as receiver:
        (problem,) = sent(project_at(tmp_path, receiver.url), ended(bad_run()))
        assert not hold.is_set()  # so the run did not wait for the answer
    assert "too long and was stopped" in problem.what


def test_what_shows_the_run_may_break_and_the_hook_is_told_all_the_same(tmp_path: Path) -> None:
    asked: list[ProgressEvent] = []

    def breaks(event: ProgressEvent) -> None:
        asked.append(event)
        raise BrokenPipeError

    with http_receiver() as receiver:
        assert sent(project_at(tmp_path, receiver.url), ended(bad_run()), breaks) == []
    assert len(asked) == 1
    assert len(receiver.posts) == 1


def test_without_a_hook_nothing_stands_between(tmp_path: Path) -> None:
    write_project(
        tmp_path, {"maintainer.yml": 'notify: {url: "${env:NOT_SET_HERE:-}"}\n', "policies/t.yml": "table: s.t\n"}
    )
    shown: ProgressSink = print
    with observed_run(Project.load(tmp_path), full_plan(), Shown(shown), print) as sink:
        assert sink is shown


def test_many_tables_and_hostile_names_make_a_bounded_message_in_plain_text() -> None:
    (gone,) = [table for table in bad_run().tables if table.status is TableStatus.FAILED][:1]
    hostile = "<!channel> & \x1b[31m<@U1>"
    many = tuple(
        replace(gone, ref=TableRef(f"s.t{number}"), problem=Problem("T401", f"no table {number}"))
        for number in range(MAX_TABLES + 7)
    )
    outcome = replace(bad_run(), tables=(replace(gone, ref=TableRef(hostile)), *many))
    with http_receiver() as receiver:
        hook = Webhook(Notify(receiver.url, BOTH), "lake", None)
        for event in ended(outcome):
            hook.event(event)
        wrong = replace(gone, status=TableStatus.VERIFY_FAILED, problem=None)
        for _ in range(MAX_QUARANTINES + 3):
            hook.event(TableFinished(TEN_PM, wrong))
    failure, *quarantines = bodies(receiver)
    assert len(quarantines) == MAX_QUARANTINES
    assert "verification failed" in str(quarantines[0]["text"])
    assert (failure["num_tables"], len(failure["tables"])) == (MAX_TABLES + 8, MAX_TABLES)  # type: ignore[arg-type] # a list
    text = str(failure["text"])
    assert "&lt;!channel&gt; &amp; \\x1b[31m&lt;@U1&gt;" in text
    assert "and 48 more tables" in text
    assert text.isprintable() or set(text) - {"\n"} == {c for c in text if c.isprintable()}
    assert len(text) < 5_000


def test_the_text_says_once_what_holds_for_many_tables_and_the_list_names_each() -> None:
    stale = Problem("A403", "not as planned: policy key optimize.maxThreads was 8, now 2")
    tables = [TableOutcome(TableRef(f"s.t{number:02}"), TableStatus.BLOCKED, problem=stale) for number in range(30)]
    own = TableOutcome(TableRef("s.t30"), TableStatus.FAILED, problem=Problem("T401", "there is no such table"))
    message = failure_message(RunNamed("r", "f", "p", None), [*tables, own], ExitCode.REFUSED, TEN_PM)
    assert message["text"].splitlines()[1:-1] == [
        f"• 30 tables (s.t00, s.t01, s.t02, s.t03, s.t04 and 25 more): A403: {stale.what}",
        "• s.t30: T401: there is no such table",
    ]
    assert (message["num_tables"], len(message["tables"])) == (31, 31)


class Slow:
    """An observer that waits, and raises at the end."""

    what, where = "test messages", "nowhere"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.events: list[ProgressEvent] = []

    def event(self, event: ProgressEvent) -> None:
        self.go.wait(30)
        self.events.append(event)
        if isinstance(event, RunFinished):
            raise RuntimeError("password=hunter2hunter2 was refused")

    def close(self) -> None:
        raise OSError("closed")


def test_events_that_do_not_fit_are_counted_and_the_last_one_always_fits() -> None:
    slow = Slow()
    thread = EventThread(slow, max_events=3)
    events = progress_events()
    for event in events:
        thread(event)
    thread.end()
    slow.go.set()
    problem = thread.wait(time.monotonic() + 30)
    assert len(slow.events) in (4, 5)  # one may be taken from the queue before it is full
    assert isinstance(slow.events[-1], RunFinished)
    assert problem is not None
    assert problem.what == "test messages were not all delivered: password=*** was refused (2 times)"


def test_what_was_left_out_is_said() -> None:
    slow = Slow()
    thread = EventThread(slow, max_events=1)
    for event in progress_events()[:6]:
        thread(event)
    thread.end()
    slow.go.set()
    slow.close = lambda: None  # type: ignore[method-assign] # this one closes well
    problem = thread.wait(time.monotonic() + 30)
    assert problem is not None
    assert "events came faster than they could be sent" in problem.what
