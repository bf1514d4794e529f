"""The variables that make Spark mean Spark Connect: of the whole process, and the user's again after the last one."""

from __future__ import annotations

import os

import pytest

from maintainer.delta.commands import connect_session
from maintainer.delta.spark.start_conf import REMOTE_VARIABLE

MODE = connect_session._MODE_VARIABLE


@pytest.mark.parametrize("first_ends", [0, 1])
@pytest.mark.parametrize("users", [None, "sc://users"])
def test_connections_that_overlap_leave_the_environment_as_it_was(
    monkeypatch: pytest.MonkeyPatch, first_ends: int, users: str | None
) -> None:
    monkeypatch.delenv(MODE, raising=False)
    monkeypatch.delenv(REMOTE_VARIABLE, raising=False)
    if users is not None:
        monkeypatch.setenv(REMOTE_VARIABLE, users)
    urls = ["sc://a", "sc://b"]
    modes = [connect_session._mode(url) for url in urls]
    for mode in modes:
        mode.__enter__()
    modes[first_ends].__exit__(None, None, None)
    assert (os.environ[MODE], os.environ[REMOTE_VARIABLE]) == ("1", urls[1 - first_ends])
    modes[1 - first_ends].__exit__(None, None, None)
    assert (os.environ.get(MODE), os.environ.get(REMOTE_VARIABLE)) == (None, users)
