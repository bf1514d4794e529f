"""Run the demo: what `maintainer demo` does with its options."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator
from pathlib import Path

from examples.demo import demo_lake as lake
from examples.demo.tour import Screen, Tour
from maintainer.cli.context import CliContext
from maintainer.errors import EnvironmentUnfit, MaintainerError
from maintainer.errors.foreign_text import without_secrets


def walk(context: CliContext, folder: Path, *, keep: bool, scale: float) -> int:
    """Build the lake, or use an earlier one, run each command on it, and return the exit code of the whole."""
    screen = Screen(context.color)
    screen.say(f"The demo's folder: {folder.resolve()}")
    lake.check_sources(scale)
    demo = lake.claim_folder(folder, keep=keep)
    screen.say("Spark starts now; the first time, Delta's JARs are fetched.")
    # What follows takes a second to import: the first lines stand before it.
    from maintainer.cli.main import run
    from maintainer.cli.options import stage_lines
    from maintainer.delta.spark.spark_session import open_session, worker_session
    from maintainer.engine.session_options import SessionOptions

    options = SessionOptions(app_name="maintainer demo", stages=stage_lines())
    with working_directory(demo.root), open_session(options) as lease:
        screen.say(f"Spark runs after {lease.start_seconds:.1f} s, on {lease.cores} cores")
        try:
            return Tour(worker_session(lease), demo, run, screen, scale=scale, fresh=not keep).walk()
        except MaintainerError:
            raise
        except Exception as error:
            # Caught here: an exception of Spark can only say what it is while Spark runs.
            raise _stopped(error, demo.root) from error


def _stopped(error: Exception, root: Path) -> MaintainerError:
    """Return the error for what Spark refused to the demo itself, outside of any command."""
    place = root / "demo-error.txt"
    with contextlib.suppress(OSError):
        place.write_text(without_secrets("".join(traceback.format_exception(error))), encoding="utf-8")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return MaintainerError(
        f"the demo stopped: {type(error).__name__}",
        code="E664",
        where=str(place),
        found="\n".join(lines[:3]),
        help="check the room on the disk and run it again; maintainer doctor checks the rest",
    )


@contextlib.contextmanager
def working_directory(folder: Path) -> Iterator[None]:
    """Work in a folder, so that the command lines shown can be typed there as they are."""
    before = Path.cwd()
    try:
        os.chdir(folder)
    except OSError as error:
        raise EnvironmentUnfit(
            "the demo's folder cannot be entered",
            code="E663",
            where=str(folder),
            found=error.strerror or str(error),
            help="name another one: maintainer demo --dir FOLDER",
        ) from error
    try:
        yield
    finally:
        os.chdir(before)
