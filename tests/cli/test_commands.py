"""The command line as a whole: help, exit codes of misuse, and words about what does not exist yet."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import click
import pytest

from maintainer.cli.main import COMMANDS, cli, run
from maintainer.cli.options import table_of_file
from maintainer.errors import ExitCode
from tests.support.policies.projects import write_project


def test_every_command_of_the_table_loads_and_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name, (place, _) in COMMANDS.items():
        command = pkgutil.resolve_name(place)
        assert isinstance(command, click.Command)
        assert run([name, "--help"]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"Usage: maintainer {name}")


def test_help_lists_every_command_with_its_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for name, (_, text) in COMMANDS.items():
        assert f"{name} {text}" in out


def test_a_mistyped_command_is_a_usage_error_with_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["aply"]) == 2
    assert "No such command 'aply'. Did you mean 'apply'?" in capsys.readouterr().err
    assert run(["xyzzy"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ("lint", "No such command 'lint'. Did you mean 'validate'?"),
        ("test", "No such command 'test'. Did you mean 'validate --tests'?"),
        ("Vacuum lake/orders", "No such command 'Vacuum'. Did you mean 'apply'?"),
        ("help", "No such command 'help'. Did you mean '--help'?"),
        ("apply --dry-run", "'maintainer plan' is the dry run: it changes nothing"),
        ("plan lake/orders", "(lake/orders): tables are selected: maintainer plan -s lake/orders"),
        ("status a.b c.d", "(a.b c.d): tables are selected: maintainer status -s 'a.b c.d'"),
        ("explain a.b c.d", "Got unexpected extra argument (c.d)\n"),
        ("explain -s lake/orders", "No such option '-s': this command takes one table: maintainer explain lake/orders"),
        ("why --select=a.b", "No such option '--select': this command takes one table: maintainer why a.b"),
        ("history --select", "No such option '--select': this command takes one table: maintainer history TABLE"),
        ("doctor -s a.b", "No such option '-s'.\n"),
        ("apply tests", "'tests' is a directory, and PLAN is a file; tables are selected: maintainer apply -s TABLE"),
        ("completion", "Choose from:\n    bash,\n    fish,\n    zsh\n"),
    ],
)
def test_a_command_line_of_another_tool_is_told_what_to_type(
    arguments: str, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    assert run(arguments.split()) == 2
    assert right in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("explain policies/o.yml", "policies/o.yml is a policy file; write lake/orders"),
        ("explain policies/u.yml", "policies/u.yml is a policy file; write the name in it"),
        ("list -s policies/o.yml", "policies/o.yml is a policy file; write path:policies/o.yml"),
        (
            "apply policies/o.yml",
            "policies/o.yml is a policy file, not a plan: maintainer apply -s path:policies/o.yml",
        ),
        ("apply lake/orders", "error[E642]: the plan cannot be read: No such file or directory"),
        ("plan --out missing/plan.json", "error[E640]: the plan cannot be written: No such file or directory"),
        ("plan --out maintainer.yml/p", "error[E640]: the plan cannot be written: Not a directory"),
        ("verify *", "* is a glob, and this takes one table: maintainer verify -s '*' selects those that fit"),
        ("verify lake/*@12", "this takes one table: maintainer verify -s 'lake/*' selects those that fit"),
        ("why lake/o[ab]", "this takes one table: maintainer list -s 'lake/o[ab]' names those that fit"),
        ("explain sales.?", "this takes one table: maintainer list -s 'sales.?' names those that fit"),
        ("history *", "* is a glob, and this takes one table: maintainer list -s '*' names those that fit"),
        ("undelete * --run r", "this takes one table: maintainer list -s '*' names those that fit"),
        ("leases break * --reason r", "this takes one table: maintainer list -s '*' names those that fit"),
        ("verify lake/orders@x", "a version is a number, as in lake/orders@12, not 'x'"),
        ("verify lake/orders@", "a version is a number, as in lake/orders@12, not ''"),
    ],
)
def test_a_file_or_a_version_that_is_none_is_found_out_before_anything_starts(
    arguments: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"maintainer.yml": "", "policies/o.yml": "table: lake/orders", "policies/u.yml": "table: >-\n  lake/u\n"}
    monkeypatch.chdir(write_project(tmp_path, files))
    assert run(arguments.split()) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Spark" not in captured.err
    assert not (tmp_path / ".maintainer").exists()


def test_a_policy_file_that_cannot_be_read_names_no_table(tmp_path: Path) -> None:
    assert table_of_file(tmp_path) is None


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_has_an_option_that_is_for_all_commands(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for each in (command, *(command.commands.values() if isinstance(command, click.Group) else ())):
        names = [opt for parameter in each.get_params(click.Context(each)) for opt in parameter.opts]
        assert {"--project", "--env", "--verbose", "-v", "--quiet", "-q", "--color"} <= set(names)
        assert len(names) == len(set(names)), each.name


@pytest.mark.parametrize("command", ["list", "leases list", "validate", "explain lake/orders"])
@pytest.mark.parametrize("general", ["-q", "-v", "--env dev", "--color always", "--project ."])
def test_a_general_option_stands_before_the_command_or_behind_it(
    command: str, general: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"maintainer.yml": "environments: {dev: {}}", "policies/o.yml": "table: lake/orders"}
    monkeypatch.chdir(write_project(tmp_path, files))
    said = []
    for line in (f"{general} {command}", f"{command} {general}", f"{general} {command} {general}"):
        assert run(line.split()) == 0
        said.append(re.sub(r"[0-9.]+ s", "", "".join(capsys.readouterr())))
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("list --env none", 2, "there is no environment `none`"),
        ("--env dev list --env prod", 2, "--env says `dev` before the command and `prod` behind it"),
        ("list --project nowhere", 2, "Directory 'nowhere' does not exist"),
        ("-v ledger rebuild --quiet", 2, "--verbose and --quiet exclude each other"),
        ("plan --ouput x", 2, "No such option '--ouput'"),
    ],
)
def test_what_is_wrong_with_a_general_option_behind_the_command_is_said(
    arguments: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(write_project(tmp_path, {"maintainer.yml": "environments: {dev: {}, prod: {}}"}))
    assert run(arguments.split()) == code
    assert said in capsys.readouterr().err


def test_quiet_behind_the_command_silences_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(write_project(tmp_path, {"maintainer.yml": "", "policies/o.yml": "table: lake/orders"}))
    assert run(["list"]) == 0
    assert "1 table" in capsys.readouterr().err
    assert run(["list", "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_verbose_and_quiet_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-v", "-q", "version"]) == 2
    assert "exclude each other" in capsys.readouterr().err


def test_no_project_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["plan"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error[E611]: ")
    assert "maintainer init" in err
    assert "Traceback" not in err


def test_policy_errors_stop_apply_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "a.yaml").write_text("version: 1\ntable: a.b\noptimise: {}\n", encoding="utf-8")
    assert run(["--project", str(tmp_path), "apply", "--yes"]) == 2
    err = capsys.readouterr().err
    assert "policies/a.yaml:3:1" in err
    assert "did you mean `optimize`?" in err
    assert "error[E616]: 1 error in the policies; nothing was run" in err
    assert not (tmp_path / ".maintainer").exists()


def test_a_bug_ends_in_70_with_the_traceback_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("maintainer.cli.setup_commands._installed", broken)
    assert run(["version"]) == 70
    captured = capsys.readouterr()
    assert "error[E699]: a bug in maintainer: RuntimeError: boom" in captured.err
    assert "Traceback" not in captured.err
    files = list((tmp_path / ".maintainer").glob("crash-*.txt"))
    assert len(files) == 1
    assert "RuntimeError: boom" in files[0].read_text(encoding="utf-8")


def test_a_bug_that_cannot_be_put_into_words_is_still_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark's exceptions ask the JVM for their text, and the JVM may be gone."""
    monkeypatch.chdir(tmp_path)

    class Speechless(Exception):
        def __str__(self) -> str:
            raise AssertionError("the JVM is gone")

    def broken(*_: object, **__: object) -> None:
        raise Speechless

    monkeypatch.setattr("maintainer.cli.setup_commands._installed", broken)
    assert run(["version"]) == 70
    err = capsys.readouterr().err
    assert "error[E699]: a bug in maintainer: Speechless" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("sizes", ["0", "1,,5", "5 tables", "101%"])
def test_batches_that_are_none_are_a_usage_error(
    sizes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "t.yml").write_text("version: 1\ntable: s.t\n", encoding="utf-8")
    assert run(["--project", str(tmp_path), "apply", "--yes", "--batches", sizes]) == 2
    err = capsys.readouterr().err
    assert "is not the size of a batch" in err
    assert "such as 1,5,20%" in err
    assert not (tmp_path / ".maintainer").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["plan.json", "--shard", "1/2"],
            "PLAN already says what to do: leave out --select, --exclude, --since",
        ),
        (["plan.json", "-s", "tag:nightly"], "PLAN already says what to do"),
        (["--exact"], "--exact is for a saved PLAN"),
        (["--fail-fast", "--max-failures", "3"], "use --fail-fast or --max-failures, not both"),
    ],
)
def test_no_option_of_apply_is_passed_over_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    monkeypatch.chdir(write_project(tmp_path, {"policies/t.yml": "table: a.t\n"}))
    assert run(["apply", "--yes", *options]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / ".maintainer").exists()
    if "--fail-fast" in options:
        assert run(["retry", "--yes", *options]) == 2
        assert words in " ".join(capsys.readouterr().err.split())


def test_a_saved_plan_without_options_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(write_project(tmp_path, {"policies/t.yml": "table: a.t\n", "plan.json": "{}\n"}))
    assert run(["apply", "--yes", "plan.json"]) == ExitCode.REFUSED
    assert "A402" in capsys.readouterr().err
