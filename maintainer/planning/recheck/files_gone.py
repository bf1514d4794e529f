"""The advice when a live file is missing after a deletion, the same for every check that notices it."""

from __future__ import annotations


def files_gone_help(num_deleted: int, trash: str | None, table: str, run_id: str) -> str:
    """Say what the deletion took, where that can be brought back from, and what to do first.

    Args:
        num_deleted: Files that the deletion took; the run's plan names them.
        trash: The folder that they were moved to, None where they were deleted.
        table: The table, as its policy names it.
        run_id: The run of the deletion.
    """
    stop = "stop whatever else deletes there and set `suspend:` in the table's policy"
    restore = "or RESTORE the table to a version that has all of its files"
    noun = "file" if num_deleted == 1 else "files"
    if trash is not None:
        back = f"`maintainer undelete {table} --run {run_id}` brings them back"
        return (
            f"{stop}; this deletion moved {num_deleted:,} {noun} to {trash}: {back}; "
            f"bring what is still missing back from a backup, {restore}"
        )
    return (
        f"{stop}; this deletion took {num_deleted:,} {noun} for good (plan.json of the run names them, and there is no "
        f"`vacuum.trash` to bring them back from); bring the missing files back from a backup, {restore}"
    )
