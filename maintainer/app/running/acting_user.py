"""The name of the person who runs a command, for records that say who decided something."""

from __future__ import annotations

import getpass
import os


def acting_user() -> str:
    """Return the user's name; the uid where it has none, as in containers that run with any."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        return f"uid {os.getuid()}"
