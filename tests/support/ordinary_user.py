"""Commands run as a user whom permissions bind: root may read whatever it likes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest

_RIGHTS = "-dac_override,-dac_read_search"


def bound_by_permissions(command: Sequence[str]) -> list[str]:
    """The command line that runs a command without root's right to pass over permissions; skips where none can."""
    if os.geteuid() != 0:
        return list(command)
    if shutil.which("setpriv") is None:
        pytest.skip("as root, permissions bind nobody, and there is no setpriv")
    prefix = ["setpriv", "--bounding-set", _RIGHTS]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("root's rights cannot be given up here")
    return [*prefix, *command]
