"""Say what to do where live files of a table are missing: before anything was done, or after a deletion."""

from __future__ import annotations

from collections.abc import Sequence

from maintainer.errors import TableError

RESTORE_TAKES_BACK = "RESTORE to an older version is the last resort: it takes back every change since that version"
MISSING_HELP = f"bring them back from a backup or the bucket's versions; {RESTORE_TAKES_BACK}"
MAX_NAMED = 5


def missing_before(missing: Sequence[str], where: str) -> TableError:
    """Return the error (T422) for live files that were missing before anything was done."""
    noun = "live file of the table is" if len(missing) == 1 else "live files of the table are"
    return TableError(
        f"{len(missing)} {noun} missing, before anything was done",
        code="T422",
        where=where,
        found="\n".join(missing[:MAX_NAMED]),
        help=MISSING_HELP,
    )


def files_gone_help(num_deleted: int, trash: str | None, table: str, run_id: str, *, num_marked: int = 0) -> str:
    """Say what the deletion took, where that can be brought back from, and what to do first.

    Args:
        num_deleted: Files that the deletion took; the run's plan names them.
        trash: The folder that they were moved to, None where they were deleted.
        table: The table, as its policy names it.
        run_id: The run of the deletion.
        num_marked: So many of them a bucket keeps as older versions.
    """
    stop = "stop whatever else deletes there and set `suspend:` in the table's policy"
    noun = "file" if num_deleted == 1 else "files"
    if trash is not None or num_marked:
        back = f"`maintainer undelete {table} --run {run_id}` brings them back"
        did = f"hid {num_marked:,} of {num_deleted:,} {noun} in the bucket" if trash is None else ""
        return (
            f"{stop}; this deletion {did or f'moved {num_deleted:,} {noun} to {trash}'}: {back}; "
            f"bring what is still missing back from a backup; {RESTORE_TAKES_BACK}"
        )
    return (
        f"{stop}; this deletion removed {num_deleted:,} {noun} for good (plan.json of the run names them, and the "
        f"policy has no `vacuum.trash`); bring the missing files back from a backup; {RESTORE_TAKES_BACK}"
    )
