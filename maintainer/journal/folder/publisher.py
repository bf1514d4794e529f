"""Where a run's record is kept besides the folder of this machine: the interface, which ``journal.store`` fulfils."""

from __future__ import annotations

from typing import Protocol

from maintainer.journal.folder.documents import Documents


class Publisher(Protocol):
    """Where a run's record is kept besides the folder of this machine, so that other machines see it."""

    def announce(self, *, required: bool) -> None:
        """Publish what the record has by now.

        Args:
            required: Whether the next step must not be tried without it; else a failure is tried again later.

        Raises:
            FolderUnwritable: It is required and could not be published.
        """

    def refresh(self) -> None:
        """Fetch what other machines recorded.

        Raises:
            FolderUnwritable: It could not be fetched.
        """

    def leases(self) -> Documents:
        """Return the leases that all runs of the state share."""

    def now_ms(self) -> int:
        """Return the time by the clock that leases are kept by, milliseconds since 1970 UTC."""

    def update_state(self) -> None:
        """Take all runs that are over into the state that all machines share.

        Raises:
            OSError: It could not be done; the next run does it.
        """
