"""What is said about a Java that cannot carry Spark, with scripts in its place."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from maintainer.delta.spark import installed_versions
from maintainer.delta.spark import java_home as java
from maintainer.errors import EnvironmentUnfit, ExitCode


def fake_java(folder: Path, script: str) -> Path:
    """Write an executable ``java`` made of a shell script into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / "java"
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    return binary


def answering(version: str, *, with_module: bool = True) -> str:
    refuse = "" if with_module else 'case "$1" in --add*) echo "FindException: not found"; exit 1;; esac\n'
    return f"{refuse}echo 'openjdk version \"{version}\"' >&2\necho 'OpenJDK Runtime Environment (build 1+2)' >&2"


@pytest.fixture
def path_env(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH is one folder, ours."""
    return {"PATH": str(tmp_path / "bin")}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('java version "1.8.0_402"', ("1.8.0_402", 8)),
        ('openjdk version "11.0.22" 2024-01-16', ("11.0.22", 11)),
        ('openjdk version "17.0.15" 2025-04-15', ("17.0.15", 17)),
        ('openjdk version "21" 2023-09-19', ("21", 21)),
        ('openjdk version "22-ea" 2024-03-19', ("22-ea", 22)),
        ('Picked up JAVA_TOOL_OPTIONS: -Da=b\nopenjdk version "17.0.1"', ("17.0.1", 17)),
        ("no such thing", None),
        ('version "abc"', None),
    ],
)
def test_version_is_read_from_every_spelling(line: str, expected: tuple[str, int] | None) -> None:
    assert java.parse_version(line) == expected


def test_a_java_that_is_killed_is_not_said_to_lack_a_module(tmp_path: Path, path_env: dict[str, str]) -> None:
    fake_java(tmp_path / "bin", f'case "$1" in --add*) kill -9 $$;; esac\n{answering("17.0.9")}')
    with pytest.raises(EnvironmentUnfit, match="ended from outside") as caught:
        java.inspect_java(path_env)
    assert (caught.value.code, caught.value.found) == ("E601", "signal 9")


def test_a_java_without_memory_says_so(tmp_path: Path, path_env: dict[str, str]) -> None:
    fake_java(
        tmp_path / "bin", "echo 'Error occurred during initialization of VM'\necho 'No room for the heap'\nexit 1"
    )
    with pytest.raises(EnvironmentUnfit, match="does not run") as caught:
        java.inspect_java(path_env)
    assert caught.value.found == "Error occurred during initialization of VM: No room for the heap"


def test_java_home_comes_before_path(tmp_path: Path, path_env: dict[str, str]) -> None:
    fake_java(tmp_path / "bin", answering("21.0.1"))
    fake_java(tmp_path / "home" / "bin", answering("17.0.9"))
    env = {**path_env, "JAVA_HOME": str(tmp_path / "home")}
    assert java.inspect_java(env).version == "17.0.9"
    assert java.inspect_java(path_env).version == "21.0.1"


def test_supported_java_describes_itself(tmp_path: Path, path_env: dict[str, str]) -> None:
    binary = fake_java(tmp_path / "bin", answering("17.0.15"))
    installation = java.inspect_java(path_env)
    assert installation == java.Java(binary, "17.0.15", 17, "OpenJDK Runtime Environment")
    assert installation.describe() == f"Java 17.0.15 (OpenJDK Runtime Environment) at {binary}"


def test_no_java_at_all(path_env: dict[str, str]) -> None:
    with pytest.raises(EnvironmentUnfit) as caught:
        java.inspect_java(path_env)
    assert caught.value.code == "E601"
    assert caught.value.exit_code is ExitCode.USAGE
    assert "JAVA_HOME" in caught.value.render()


def test_java_home_without_java_is_not_passed_over(tmp_path: Path, path_env: dict[str, str]) -> None:
    fake_java(tmp_path / "bin", answering("17.0.9"))
    with pytest.raises(EnvironmentUnfit) as caught:
        java.inspect_java({**path_env, "JAVA_HOME": str(tmp_path / "gone")})
    assert caught.value.code == "E601"
    assert "unset JAVA_HOME" in (caught.value.help or "")


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.22", 11), ("16.0.2", 16), ("24.0.1", 24)])
def test_unsupported_versions_are_named(tmp_path: Path, path_env: dict[str, str], version: str, major: int) -> None:
    fake_java(tmp_path / "bin", answering(version))
    with pytest.raises(EnvironmentUnfit, match=f"does not run on Java {major}") as caught:
        java.inspect_java(path_env)
    assert caught.value.code == "E602"
    assert caught.value.allowed == "Java 17 or 21"
    assert caught.value.help


def test_trimmed_runtime_is_refused(tmp_path: Path, path_env: dict[str, str]) -> None:
    fake_java(tmp_path / "bin", answering("17.0.9", with_module=False))
    with pytest.raises(EnvironmentUnfit, match=r"jdk\.incubator\.vector") as caught:
        java.inspect_java(path_env)
    assert caught.value.code == "E603"


@pytest.mark.parametrize(("spark", "fits"), [("4.1.4", False), ("4.2.1", True), (None, False)])
@pytest.mark.parametrize("has_metadata", [True, False])
def test_java_25_fits_from_spark_4_2_on(
    tmp_path: Path,
    path_env: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    spark: str | None,
    fits: bool,
    has_metadata: bool,
) -> None:
    """Also with a pyspark on PYTHONPATH, of which only its own file says the version."""
    fake_java(tmp_path / "bin", answering("25.0.3"))
    (tmp_path / "version.py").write_text(f'__version__: str = "{spark}"\n' if spark else "")
    monkeypatch.setattr(installed_versions, "installed", {"pyspark": spark if has_metadata else None}.get)
    monkeypatch.setattr(installed_versions, "package_folder", lambda module: tmp_path)
    if fits:
        assert java.inspect_java(path_env).major == 25
        return
    with pytest.raises(EnvironmentUnfit, match=f"Spark {'4.1' if spark else '4'} does not run on Java 25") as caught:
        java.inspect_java(path_env)
    assert (caught.value.code, caught.value.allowed) == ("E602", "Java 17 or 21")


@pytest.mark.parametrize("script", ["exit 0", "echo broken; exit 3", "echo nothing to see"])
def test_java_that_says_nothing_useful(tmp_path: Path, path_env: dict[str, str], script: str) -> None:
    fake_java(tmp_path / "bin", script)
    with pytest.raises(EnvironmentUnfit) as caught:
        java.inspect_java(path_env)
    assert caught.value.code == "E601"


def test_file_that_is_no_program(tmp_path: Path, path_env: dict[str, str]) -> None:
    binary = fake_java(tmp_path / "bin", "")
    binary.write_bytes(b"\x7fELF not really")
    with pytest.raises(EnvironmentUnfit) as caught:
        java.inspect_java(path_env)
    assert caught.value.code == "E601"


def test_a_java_that_hangs_is_asked_once_and_not_for_longer_than_the_limit(
    tmp_path: Path, path_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "bin", f"echo asked >> '{tmp_path}/asked'; while :; do :; done")
    monkeypatch.setattr(java, "PROBE_TIMEOUT_SECONDS", 1.0)
    with pytest.raises(EnvironmentUnfit) as caught:
        java.inspect_java(path_env)
    assert (caught.value.code, caught.value.found) == ("E601", "no answer within 1 s")
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_install_hint_names_a_command_or_a_way() -> None:
    assert "17" in java.install_hint()
