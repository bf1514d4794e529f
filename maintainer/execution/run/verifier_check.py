"""Find out beside the first tables' work whether commits can be verified; none is made before that is known.

Importing Great Expectations takes seconds of Python, while the first tables wait for an engine that warms up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, wait

from maintainer.engine.side_call import SharedChange, side_call
from maintainer.errors import EnvironmentUnfit, MaintainerError

CANNOT_VERIFY = "E653"

LIMIT_SECONDS = 300.0
"""Longest wait for the check, at the first commit of a table."""

SWITCH_SECONDS = 0.0005
"""How long the check may hold Python's lock while another thread wants it. Python's default is ten times as long, and
each of a table's hundreds of short calls to the engine would wait for it."""


def _switch_often() -> Callable[[], None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    return lambda: sys.setswitchinterval(before)


_switching = SharedChange(_switch_often)


class VerifierCheck:
    """A check of the verifier that may run on a thread of its own. One serves a run; used from any thread."""

    def __init__(self) -> None:
        self._call: Future[None] | None = None

    def start(self, check: Callable[[], None]) -> None:
        """Run the check on a thread of its own."""

        def switching_often() -> None:
            with _switching.held():
                check()

        self._call = side_call(switching_often, "maintainer-verifier")

    def wait(self) -> None:
        """Wait for the check, if one was started.

        Raises:
            MaintainerError: What the check raised; E653 where it has no answer in time.
        """
        if self._call is None:
            return
        if not wait([self._call], LIMIT_SECONDS).done:
            raise EnvironmentUnfit(
                "Great Expectations cannot be imported, so nothing could be verified; nothing was changed",
                code=CANNOT_VERIFY,
                found=f"no answer within {LIMIT_SECONDS:.0f} s",
                help="look for a disk that does not answer, then run `maintainer apply` again",
            )
        error = self._call.exception()
        if isinstance(error, MaintainerError):
            # Each table gets an error of its own: whoever raises it on adds to it.
            raise type(error)(
                error.what, code=error.code, where=error.where, found=error.found, allowed=error.allowed,
                help=error.help,
            ) from error  # fmt: skip
        if error is not None:  # whatever it is, nothing could be verified
            raise EnvironmentUnfit(
                "Great Expectations does not work here",
                code=CANNOT_VERIFY,
                found=f"{type(error).__name__}: {error}",
                help="install the release that maintainer names: pip install 'great-expectations>=1.24,<2'",
            ) from error
