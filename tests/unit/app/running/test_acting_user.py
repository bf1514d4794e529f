"""Who did something is recorded, also where the user has no name, as in a container that runs with any uid."""

from __future__ import annotations

import getpass
import os

import pytest

from maintainer.app.running.acting_user import acting_user


@pytest.mark.parametrize("failure", [KeyError("uid not found"), OSError("No username set in the environment")])
def test_a_user_without_a_name_is_its_uid(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    def nameless() -> str:
        raise failure

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert acting_user() == f"uid {os.getuid()}"
