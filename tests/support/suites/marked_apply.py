"""`maintainer` as a process that asks a relay for ``MARK`` when the requests of a run were counted for its record."""

from __future__ import annotations

import os
import sys
import urllib.request
from contextlib import suppress
from typing import Any

import pytest

from maintainer.app.running.run_listener import PreparationClock
from maintainer.cli.main import run

MARK = "mark-counted"
URL_VARIABLE = "MARK_URL"
"""Where it asks."""

_counted = PreparationClock.requests


def _marked(clock: PreparationClock, *arguments: Any) -> Any:
    counted = _counted(clock, *arguments)
    with suppress(OSError):  # it is not there: the relay has it in its list
        urllib.request.urlopen(f"{os.environ[URL_VARIABLE]}/lake/{MARK}", timeout=60).close()
    return counted


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PreparationClock, "requests", _marked)
        sys.exit(run(sys.argv[1:]))
