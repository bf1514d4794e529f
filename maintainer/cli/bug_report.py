"""A bug of ours: its traceback goes to a file, never to the terminal."""

from __future__ import annotations

import time
import traceback
from pathlib import Path

from maintainer.errors import ProjectError
from maintainer.errors.foreign_text import without_secrets
from maintainer.model.product_version import __version__
from maintainer.model.run.exit_codes import BUG_CODE


def report_bug(error: Exception, args: list[str]) -> str:
    """Keep the traceback of a bug of ours in a file and return the one message for the terminal."""
    folder = Path.cwd() / ".maintainer"
    name = time.strftime("crash-%Y%m%dT%H%M%SZ.txt", time.gmtime())
    text = f"maintainer {__version__}\narguments: {args!r}\n\n{''.join(traceback.format_exception(error))}"
    text = without_secrets(text)
    try:
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text(text, encoding="utf-8")
        place = str(path)
    except OSError:
        import tempfile

        with tempfile.NamedTemporaryFile(
            "w", prefix="maintainer-", suffix=f"-{name}", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
            place = file.name
    bug = ProjectError(
        f"a bug in maintainer: {_in_words(error)}",
        code=BUG_CODE,
        where=place,
        help="no table is half changed, because changes are whole commits; please report the bug with this file",
    )
    return bug.render()


def _in_words(error: Exception) -> str:
    """Return an exception's kind and first line; Spark's own raise when they are printed after their JVM has ended."""
    try:
        lines = str(error).splitlines()
    except Exception:  # whatever its __str__ raises: the kind is all there is to say
        lines = []
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
