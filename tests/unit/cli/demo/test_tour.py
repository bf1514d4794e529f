"""The tour stops at the first command that fails, and its own measures decide the exit code.

Commands and session are stand-ins here: what is tested is the tour's judgement. The real walk is in
tests/integration/fleet/test_demo_lake.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from examples.demo import tour as tour_module
from examples.demo.demo_lake import TABLES, DemoFolder
from examples.demo.demo_proof import Comparison, Content, Lookup
from examples.demo.tour import Screen, Tour, places

BEFORE = Content(1, 10, ("7", "8"))


class Recorder(Screen):
    def __init__(self) -> None:
        super().__init__(color=False)
        self.lines: list[str] = []

    def heading(self, text: str) -> None:
        self.lines.append(f"# {text}")

    def command(self, line: str) -> None:
        self.lines.append(f"$ {line}")

    def say(self, text: str) -> None:
        self.lines.append(text)


@dataclass
class Scene:
    """A lake of empty logs, commands that succeed unless told otherwise, and look-ups that get cheaper."""

    folder: DemoFolder
    exit_codes: dict[str, int] = field(default_factory=dict)
    files_read: list[int] = field(default_factory=lambda: [40, 40, 5, 6])
    answers: list[str] = field(default_factory=lambda: ["a", "b", "a", "b"])
    after: Content = BEFORE
    differing: int | None = 0
    committing: str = ""
    calls: list[str] = field(default_factory=list)

    def run(self, args: list[str]) -> int:
        line = " ".join(args)
        self.calls.append(line)
        if line == self.committing:
            (self.folder.table("flights") / "_delta_log" / f"{1:020d}.json").write_text("{}")
        return self.exit_codes.get(args[0], 0)

    def look_up(self, *_: object) -> Lookup:
        return Lookup("x", self.files_read.pop(0), 40, 1, (self.answers.pop(0),))

    def walk(self, *, fresh: bool = True) -> tuple[int, str]:
        recorder = Recorder()
        session = cast(Any, object())
        code = Tour(session, self.folder, self.run, recorder, scale=0.01, fresh=fresh).walk()
        return code, "\n".join(recorder.lines)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    folder = DemoFolder(tmp_path)
    for name in TABLES:
        log = folder.table(name) / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text(json.dumps({"commitInfo": {}}))
    made = Scene(folder)

    def compare(*_: Any) -> tuple[Comparison, ...]:
        return (Comparison("flights", BEFORE, made.after, made.differing),)

    monkeypatch.setattr(tour_module, "build", lambda *_: None)
    monkeypatch.setattr(tour_module, "read_content", lambda *_: BEFORE)
    monkeypatch.setattr(tour_module, "look_up", made.look_up)
    monkeypatch.setattr(tour_module, "compare", compare)
    return made


def test_the_commands_and_their_order(scene: Scene) -> None:
    code, text = scene.walk()
    assert code == 0
    assert scene.calls == [
        "validate",
        "explain lake/lineitem",
        "plan --out plan.json",
        "apply plan.json -j 2",
        "apply --yes",
        "history",
        "status",
    ]
    for call in scene.calls:
        assert f"$ maintainer {call}" in text
    assert "FAILED" not in text


@pytest.mark.parametrize(("command", "exit_code"), [("validate", 1), ("plan", 2), ("apply", 5), ("status", 70)])
def test_a_failing_command_stops_the_tour_with_its_exit_code(scene: Scene, command: str, exit_code: int) -> None:
    scene.exit_codes[command] = exit_code
    code, text = scene.walk()
    assert code == exit_code
    assert scene.calls[-1].split()[0] == command
    assert f"ended with exit code {exit_code}" in text


def test_rows_that_are_not_the_same_fail_the_demo(scene: Scene) -> None:
    scene.after = Content(2, 10, ("7", "9"))
    code, text = scene.walk()
    assert code == 5
    assert "FAILED: flights: the rows are not the same as before" in text


def test_one_differing_row_in_a_small_table_fails_the_demo(scene: Scene) -> None:
    scene.differing = 1
    assert scene.walk()[0] == 5


def test_a_second_apply_that_commits_fails_the_demo(scene: Scene) -> None:
    scene.committing = "apply --yes"
    code, text = scene.walk()
    assert code == 5
    assert "FAILED: the second `apply` committed nothing" in text


def test_a_plan_that_commits_fails_the_demo(scene: Scene) -> None:
    scene.committing = "plan --out plan.json"
    assert scene.walk()[0] == 5


def test_files_read_that_do_not_drop_fail_a_fresh_demo_only(scene: Scene) -> None:
    scene.files_read = [6, 6, 6, 6]
    assert scene.walk()[0] == 5
    scene.files_read, scene.answers = [6, 6, 6, 6], ["a", "b", "a", "b"]
    assert scene.walk(fresh=False)[0] == 0


def test_another_answer_fails_the_demo(scene: Scene) -> None:
    scene.answers = ["a", "b", "a", "c"]
    assert scene.walk()[0] == 5


def test_places_names_only_what_is_there(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path)
    assert places(folder) == []
    run = tmp_path / ".maintainer" / "runs" / "20261121T000000Z-abcd"
    run.mkdir(parents=True)
    (run / "results.json").write_text("{}")
    folder.plan.write_text("{}")
    assert places(folder) == [(folder.plan, "plan"), (run / "results.json", "results")]
