"""Java reads names of files as Python does, and who cannot be logged in is told so before Java starts."""

from __future__ import annotations

import os
import pwd
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from maintainer.delta.spark.process_environment import (
    java_environment,
    limit_of_files,
    refuse_nameless_user,
    refuse_other_names,
)
from maintainer.errors import EnvironmentUnfit
from tests.support.policies.projects import write_project


@pytest.mark.parametrize("encoding", ["ANSI_X3.4-1968", "US-ASCII", "ISO-8859-1"])
def test_java_reads_names_in_utf8_whatever_the_locale(encoding: str) -> None:
    env = {"LC_ALL": "en_US.UTF-8", "LANG": "C", "PATH": "/bin"}
    assert java_environment(env, encoding, is_local=False) == {"LC_ALL": "C.UTF-8", "LANG": "C", "PATH": "/bin"}
    assert env["LC_ALL"] == "en_US.UTF-8"


@pytest.mark.parametrize("encoding", ["UTF-8", "utf8"])
def test_a_locale_that_fits_stays(encoding: str) -> None:
    assert java_environment({"LANG": "de_DE.UTF-8"}, encoding, is_local=False) == {"LANG": "de_DE.UTF-8"}


def test_on_this_machine_its_name_is_not_looked_up() -> None:
    assert java_environment({"A": "b"}, "UTF-8", is_local=True) == {"A": "b", "SPARK_LOCAL_IP": "127.0.0.1"}
    given = {"SPARK_LOCAL_IP": "10.0.0.7"}
    assert java_environment(given, "UTF-8", is_local=True) == given


def test_a_python_that_reads_other_names_is_refused() -> None:
    refuse_other_names("utf-8")
    with pytest.raises(EnvironmentUnfit, match="does not read names of files in UTF-8") as caught:
        refuse_other_names("iso8859-1")
    assert (caught.value.code, caught.value.found) == ("E639", "iso8859-1")


def test_no_table_is_planned_by_names_that_are_read_otherwise(tmp_path: Path) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    done = subprocess.run(
        [sys.executable, "-m", "maintainer", "plan"],
        cwd=root,
        env={**os.environ, "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, b"error[E639]" in done.stderr) == (2, True)


def test_a_user_without_a_name_is_told_before_java_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_nameless_user()

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(EnvironmentUnfit, match="for a user without a name") as caught:
        refuse_nameless_user()
    assert (caught.value.code, caught.value.found) == ("E607", f"uid {os.getuid()} has no entry in /etc/passwd")


@pytest.mark.parametrize(
    ("most", "said"), [(256, ", and `ulimit -n`, which is 256"), (512, ""), (resource.RLIM_INFINITY, "")]
)
def test_a_limit_of_files_that_is_too_low_for_spark_is_named(
    monkeypatch: pytest.MonkeyPatch, most: int, said: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda of: (256, most))
    assert limit_of_files() == said
