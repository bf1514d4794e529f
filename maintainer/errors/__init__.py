"""The error tree: every failure a user can meet has a code, an exit code and a way out.

A message says what happened, where (``file:line`` or ``table@version``), what was found, what is allowed and
what to do. It begins in lower case unless with a name, and has no full stop at its end. Codes are stable, have one
meaning each and are documented in ``docs/codes.md`` (a test holds both together): ``Y1xx`` YAML, ``P2xx`` schema,
``P3xx`` meaning, ``T4xx`` found by looking at a table, ``A4xx`` refused before anything was touched, ``V5xx``
verification, ``E6xx`` the environment (Java, JARs, storage, project), ``C7xx`` the fate of a commit. A class without
a code of its own is given one each time it is raised.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar, NoReturn

from maintainer.errors.foreign_text import printable, without_secrets


class ExitCode(IntEnum):
    """What a process ends with; the contract with pipelines."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    CHANGES_PENDING = 3
    REFUSED = 4
    VERIFICATION_FAILED = 5
    PARTLY_REFUSED = 6
    BUG = 70
    INTERRUPTED = 130
    TERMINATED = 143


class MaintainerError(Exception):
    """Base of everything we raise on purpose.

    Args:
        what: One sentence: what went wrong. No trailing full stop.
        code: Overrides the class's stable code where one class carries several codes.
        where: ``file:line``, ``table@version`` or a path; None where there is no place.
        found: The offending value, as text.
        allowed: What would have been right, as text.
        help: What to do next; a command where there is one.
    """

    default_code: ClassVar[str] = "E600"
    exit_code: ClassVar[ExitCode] = ExitCode.FINDINGS
    left_over: tuple[str, ...] = ()
    """Files that were written, not committed, and could not be removed."""
    late_paths: tuple[str, ...] = ()
    """Files that attempts for which nobody waits may yet write, and nobody commits."""
    receipt: object = None
    """A ``VacuumReceipt``: what a deletion did before it ended so, where that was counted."""

    def __init__(
        self,
        what: str,
        *,
        code: str | None = None,
        where: str | None = None,
        found: str | None = None,
        allowed: str | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(without_secrets(what))
        self.what = without_secrets(what)
        self.code = code or self.default_code
        self.where = where and without_secrets(where)
        self.found = found and without_secrets(found)
        self.allowed = allowed and without_secrets(allowed)
        self.help = help and without_secrets(help)
        self._added_notes: list[str] = []

    def __str__(self) -> str:
        """One line, for logs; ``render`` is for people."""
        place = f"{self.where}: " if self.where else ""
        return printable(f"{self.code}: {place}{self.what}")

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override] # made anew, as what it says may be set later
        """What Python prints below the message of a traceback, for those who call the Python API."""
        return [*self.details(), *self._added_notes]

    def add_note(self, note: str) -> None:
        """Add a line below the message of a traceback, as every exception does."""
        self._added_notes.append(note)

    def details(self) -> list[str]:
        """Return what was found, what is allowed and what to do, as lines; only what is set."""
        lines = []
        for label, value in (("found", self.found), ("allowed", self.allowed), ("help", self.help)):
            if value:
                first, *rest = map(printable, value.rstrip("\n").split("\n"))
                lines.append(f"   = {label}: {first}")
                lines.extend(f"     {line}" for line in rest)
        return lines

    def render(self) -> str:
        """Several lines, for a terminal: the message, then every field that is set."""
        lines = [f"error[{self.code}]: {printable(self.what)}"]
        if self.where:
            lines.append(f"  --> {printable(self.where)}")
        return "\n".join([*lines, *self.details()])


class ProjectError(MaintainerError):
    """The project or the call is wrong: nothing ran."""

    default_code = "E610"
    exit_code = ExitCode.USAGE


class NoProject(ProjectError):
    """Neither maintainer.yml nor a folder of policies is here."""

    default_code = "E611"


class NoEnvironment(ProjectError):
    """maintainer.yml does not have the environment that was asked for."""

    default_code = "E627"


class NothingSelected(ProjectError):
    """A selector selects no table."""

    default_code = "E623"


class FoldersTooDeep(ProjectError):
    """A search did not look into the deepest folders; what it found before counts."""

    default_code = "E648"


class EnvironmentUnfit(MaintainerError):
    """Java, Spark, Delta, storage or permissions are not as they must be: nothing ran."""

    exit_code = ExitCode.USAGE
    ends_run = False
    """Whether every other table would meet the same, so that it is no table's fault."""


class EngineGone(EnvironmentUnfit):
    """The JVM or the server of Spark ended."""

    default_code = "E612"


class CatalogAway(EnvironmentUnfit):
    """The catalog of a table's name does not answer."""

    default_code = "E647"
    is_silence = False
    """Whether it took a connection and gave no answer in time: whoever asks next waits as long."""


class VerifierUnfit(EnvironmentUnfit):
    """Great Expectations cannot be imported or does not work here, so that no table can be verified."""

    default_code = "E653"
    ends_run = True


class LedgerUnfit(EnvironmentUnfit):
    """The ledger is there no more, is another one, or is damaged; the tables are as they were."""

    default_code = "E655"


class NotSupportedYet(MaintainerError):
    """Something that the contract names and this version does not do; refused, never ignored."""

    default_code = "E620"
    exit_code = ExitCode.USAGE


class Refused(MaintainerError):
    """Refused before anything was touched: a stale or edited plan, a limit, a lease."""

    exit_code = ExitCode.REFUSED


class TableError(MaintainerError):
    """One table cannot be planned or maintained; other tables go on."""


class NoTable(TableError):
    """The folder, or the name in a catalog, is not there."""

    default_code = "T401"


class NotDelta(TableError):
    """Something is there, and it is no Delta table."""

    default_code = "T402"


class LogUnreadable(TableError):
    """The table's log is damaged, or does not say what it must."""

    default_code = "T403"


class StoreSilent(TableError):
    """A store gave no answer, or was too busy for one, each time that its client tried."""

    default_code = "T435"


class FileUnreadable(TableError):
    """A file is there and cannot be read."""

    default_code = "T434"
    file: str | None = None
    """Its address; None for a deletion vector, which the engine does not name."""


class FileAbsent(TableError):
    """A file was not there when it was read for a commit."""

    default_code = "T408"


class StoreRefusal(TableError):
    """An object store refuses what holds for each table of a bucket with the same credentials: key, bucket, address.

    ``may_pass``: credentials that were renewed may be accepted, as after a token that has expired.
    """

    may_pass: bool = False


class CommitConflict(MaintainerError):
    """Another writer won; nothing of ours was committed and what we wrote was removed."""

    default_code = "C701"


class TableHot(CommitConflict):
    """Somebody else updated the table just now: nothing of ours was committed, so that nothing of his is lost."""

    default_code = "C718"


class TableAltered(CommitConflict):
    """Another writer altered the table after it was planned; the next plan takes it as it is now."""

    default_code = "A403"


class WindowClosed(MaintainerError):
    """The table's maintenance window closed while the run went on; what is left waits for the next one."""

    default_code = "C716"


class CommitNotLanded(MaintainerError):
    """The commit certainly did not happen; what we wrote was removed."""

    default_code = "C702"
    is_refusal = False
    """Whether Delta itself refused it."""


class CommitUnknown(MaintainerError):
    """Whether the commit happened could not be learned; nothing is removed, nothing is retried."""

    default_code = "C703"


class VerificationFailed(MaintainerError):
    """A proof failed: what was written does not equal what was read. The loudest error there is."""

    default_code = "V501"
    exit_code = ExitCode.VERIFICATION_FAILED
    is_shared = False
    """Whether the cause may well be one that other tables share, such as an engine that nobody has tested."""


class CheckImpossible(MaintainerError):
    """A commit landed and could not be checked afterwards: neither proven nor wrong."""

    default_code = "V504"


class DeletionWaits(MaintainerError):
    """A verification failed on another table, so the deletion was not begun: it waits for the next run."""

    default_code = "C715"


class Interrupted(MaintainerError):
    """The run was asked to stop (Ctrl-C, SIGTERM, a timeout); what ran was awaited or cancelled."""

    default_code = "C710"
    exit_code = ExitCode.INTERRUPTED


def unread(what: str, error: OSError | ValueError) -> str:
    """Say that a file of text, such as ``the plan``, cannot be read, and why."""
    reason = error.strerror if isinstance(error, OSError) else None
    return f"{what} cannot be read: {'it is not UTF-8' if isinstance(error, UnicodeDecodeError) else reason or error}"


def raise_from(error: MaintainerError, cause: BaseException) -> NoReturn:
    """Raise an error with its cause; an error that is passed on as it came keeps the cause that it has.

    Raises:
        MaintainerError: The error.
    """
    if error is cause:  # raised from itself, it would be its own cause and forget the true one
        raise error
    raise error from cause
