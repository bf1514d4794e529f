"""One run of a state on an object store: its record is published while it works, and it gives signs of life.

An INTENT is on the store before the commit that it announces. What happened is published at once where that works; a
store that is away for a while stops no table, except that nothing new is committed without its INTENT. What could not
be published waits in the cache, for the next run on this machine; another machine settles an open INTENT by the table's
own log.
"""

from __future__ import annotations

import contextlib
import threading
import time

from maintainer.engine.store.store_failures import StoreFailure
from maintainer.journal.event_log import ELSEWHERE
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.journal.folder.documents import Documents, documents_in
from maintainer.journal.memory.table_records import STATE_FILE, update_state
from maintainer.journal.store.run_pulse import PULSE_SECONDS, EndedByAnother, RunPulse
from maintainer.journal.store.state_mirror import StateMirror
from maintainer.model.plan.plan import Problem

SIGN_SECONDS = PULSE_SECONDS / 4
"""Between two signs of life, of which three may fail before a run counts as dead; between two publications, too."""

AWAY_SECONDS = 30.0
"""After a failure nothing that may wait is tried for so long."""

ENDED, LEFT_HERE = "E685", "E686"


class PublishedRun:
    """Publishes one run, so that other machines see it. Used from several threads."""

    def __init__(self, mirror: StateMirror, run_id: str, store_ms: int) -> None:
        self._mirror = mirror
        self._run_id = run_id
        self._ahead_ms = store_ms - time.time_ns() // 1_000_000
        self._pulse = RunPulse(mirror.storage, run_id, self.now_ms)
        self._beating = threading.Lock()
        self._published, self._ended = threading.Event(), threading.Event()
        self._away_until = 0.0
        # Signs of life have a thread of their own: publishing may take long.
        self._publisher = threading.Thread(target=self._publish, name="maintainer-publish", daemon=True)
        self._beater = threading.Thread(target=self._beat, name="maintainer-pulse", daemon=True)

    @staticmethod
    def begin(mirror: StateMirror, run_id: str) -> PublishedRun:
        """Give the first sign of life, publish what earlier runs left here, and fetch what other machines recorded.

        Raises:
            StoreFailure: The store cannot be used, or ignores conditions.
            OSError: The cache cannot be written.
        """
        run = PublishedRun(mirror, run_id, mirror.storage.store_ms())
        mirror.own_run = run_id
        run._pulse.begin()
        run._beater.start()
        try:
            mirror.fetch(run.now_ms(), ended_by=run_id)
            mirror.publish()
        except BaseException:
            run._stop_beating()
            raise
        run._publisher.start()
        return run

    def now_ms(self) -> int:
        """Return the time by the store's clock, which is one for all machines, in milliseconds since 1970 UTC."""
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def shared(self, folder: str) -> Documents:
        """Return the documents of a folder that all runs of the state share."""
        return documents_in(self._mirror.storage, folder)

    def announce(self, *, required: bool) -> None:
        """Publish what the record has by now.

        Args:
            required: Whether the next step must not be tried without it; else a failure is tried again later.

        Raises:
            FolderUnwritable: It is required and could not be published.
        """
        if not required and time.monotonic() < self._away_until:
            return
        try:
            if required:
                with self._beating:
                    self._pulse.renew_if_late()
            self._mirror.publish_record(self._run_id)
        except EndedByAnother as error:
            raise self._ended_by(error) from error
        except OSError as error:
            self._away_until = time.monotonic() + AWAY_SECONDS
            if required:
                raise self._unpublished(error) from error

    def refresh(self) -> None:
        """Fetch what other machines recorded.

        Raises:
            FolderUnwritable: It could not be fetched.
        """
        try:
            self._mirror.refresh(self.now_ms(), ended_by=self._run_id)
        except OSError as error:
            raise self._unpublished(error) from error

    def update_state(self) -> None:
        """Take all runs that are over into the state that all machines share.

        What this run recorded is on the store before the state says so.

        Raises:
            OSError: It could not be done; the next run does it.
        """

        def refresh() -> None:
            self._mirror.publish()
            self._mirror.refresh(self.now_ms(), ended_by=self._run_id)

        documents = documents_in(self._mirror.storage, "")
        update_state(self._mirror.runs_dir, documents, refresh)
        document = documents.read(STATE_FILE)
        if document is not None:
            self._mirror.keep_state(document.data, document.tag)

    def end(self) -> Problem | None:
        """Publish the rest, and take the sign of life away. Call it when nothing is written to the run any more.

        Returns:
            What could not be published, and waits here.
        """
        self._published.set()
        self._publisher.join(timeout=PULSE_SECONDS)
        self._mirror.own_run = self._run_id
        try:
            self._mirror.publish()
        except OSError as error:
            self._stop_beating()
            return Problem(
                LEFT_HERE,
                f"other machines do not see all of this run yet: {error.strerror or error}",
                str(self._mirror.runs_dir / self._run_id),
                "what is missing there is on this machine, and its next run publishes it",
            )
        self._stop_beating()
        with contextlib.suppress(OSError):  # it stops by itself
            self._pulse.end()
        with contextlib.suppress(OSError):
            (self._mirror.runs_dir / self._run_id / ELSEWHERE).unlink(missing_ok=True)
        return None

    def _beat(self) -> None:
        while not self._ended.wait(SIGN_SECONDS):
            with contextlib.suppress(OSError, EndedByAnother), self._beating:  # asked again before the next commit
                self._pulse.renew()

    def _stop_beating(self) -> None:
        self._ended.set()
        self._beater.join(timeout=PULSE_SECONDS)

    def _publish(self) -> None:
        while not self._published.wait(SIGN_SECONDS):
            with contextlib.suppress(OSError):  # what is required is tried again before the next commit
                self._mirror.publish()
                self._away_until = 0.0

    def _ended_by(self, error: EndedByAnother) -> FolderUnwritable:
        return FolderUnwritable(
            "another run ended this one, so nothing more is committed",
            code=ENDED, where=self._mirror.storage.uri,
            found=f"{error} saw no sign of life for {PULSE_SECONDS} seconds",
            help="this process slept, or the store could not be reached; `maintainer retry` does the rest",
        )  # fmt: skip

    def _unpublished(self, error: OSError) -> FolderUnwritable:
        if isinstance(error, StoreFailure):
            return FolderUnwritable(
                f"{error.what}, so nothing more is committed",
                code=error.code, where=self._mirror.storage.uri, found=error.found, help=error.help,
            )  # fmt: skip
        return FolderUnwritable.at(self._mirror.cache, error, code="E651")
