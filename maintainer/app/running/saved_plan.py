"""Read a plan that was saved: what ``maintainer plan --out`` and ``Plan.save`` wrote."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from maintainer.errors import ProjectError
from maintainer.journal.folder.atomic_files import read_document, write_atomically, writing
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import MAX_PLAN_CHARACTERS, from_json, plan_bytes


def read_saved_plan(path: Path) -> Plan:
    """Read a saved plan.

    Raises:
        ProjectError: E642, the file cannot be read.
        Refused: A402, it is no plan or was edited.
    """
    try:
        if path.stat().st_size <= 4 * MAX_PLAN_CHARACTERS:
            return from_json(read_document(path), where=str(path))
        reason = "it is larger than any plan of maintainer"
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    raise ProjectError(
        f"the plan cannot be read: {reason}",
        code="E642",
        where=str(path),
        help="`maintainer plan --out FILE` makes one; tables are chosen with `-s`",
    )


def check_place(path: Path) -> None:
    """Find out before planning, which may take long, that the folder of a plan's file is not there.

    Raises:
        ProjectError: E640.
    """
    with writing(path, "the plan"):
        if not stat.S_ISDIR(path.absolute().parent.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def save_plan(plan: Plan, path: Path) -> None:
    """Write a plan to a file, whole or not at all.

    Raises:
        ProjectError: E640, it cannot be written there.
    """
    with writing(path, "the plan"):
        write_atomically(path.absolute(), plan_bytes(plan))
