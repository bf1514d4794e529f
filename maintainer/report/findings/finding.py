"""A finding: what is wrong, how grave it is, where, and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from maintainer.policy.diagnostics import Severity, Span

_PLACE = re.compile(r"(.+\.ya?ml)(?::([1-9][0-9]{0,8})(?::[0-9]+)?)?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person has to know.

    ``where`` is the place as the finding names it: ``file:line``, ``table@version`` or nothing. ``file`` is the policy
    file that it belongs to, ``span`` the exact place in that file. ``rank`` orders: 0 is a failed verification.
    """

    severity: Severity
    code: str
    what: str
    help: str = ""
    table: str = ""
    step: str = ""
    where: str = ""
    file: str = ""
    span: Span | None = None
    notes: tuple[str, ...] = ()
    rank: int = 1

    @property
    def subject(self) -> str:
        """The table, and the step where it is about one; empty for a finding about a file alone."""
        return f"{self.table}, {self.step}" if self.step else self.table

    @property
    def headline(self) -> str:
        """The subject and what is wrong with it."""
        return f"{self.subject}: {self.what}" if self.table else self.what

    @property
    def text(self) -> str:
        """The headline, notes and help, one below the other."""
        return "\n".join([self.headline, *self.notes, *([f"help: {self.help}"] if self.help else [])])


def file_and_line(where: str | None, policy_file: str) -> tuple[str, int | None]:
    """Return the policy file and line that ``file:line`` or ``file:line:column`` names, else the file alone."""
    match = _PLACE.match(where or "")
    if match is None:
        return policy_file, None
    return match[1], None if match[2] is None else int(match[2])
