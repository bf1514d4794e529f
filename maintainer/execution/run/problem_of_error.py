"""Turn an exception into the problem that results, records and reports show."""

from __future__ import annotations

from maintainer.engine.process_loss import engine_gone, is_engine_lost
from maintainer.errors import MaintainerError
from maintainer.model.plan.plan import Problem, as_problem
from maintainer.model.run.exit_codes import BUG_CODE


def problem_of(error: BaseException) -> Problem:
    """Return an error as data: one of ours with what was found and what is allowed, any other as a bug."""
    if isinstance(error, MaintainerError):
        return as_problem(error)
    if is_engine_lost(error):
        # A signal to the whole process group ends the JVM beside us: no bug of ours, and the next apply goes on.
        return problem_of(engine_gone(None))
    text = " ".join(str(error).split())[:500]
    return Problem(
        BUG_CODE, f"a bug in maintainer: {type(error).__name__}: {text}", help="report it with traceback.txt"
    )
