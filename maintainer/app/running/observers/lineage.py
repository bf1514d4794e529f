"""Events of a run for OpenLineage: which table was rewritten, from which version to which; ``maintainer[openlineage]``.

Everything is configured by OpenLineage's own variables and files. A step is a run of its own, with the whole run as its
parent. A rewrite has its table as input and as output: the rows are the same, the files are not.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from maintainer.app.running.observers.event_thread import ObservedRun, require_extra
from maintainer.model.plan.steps import REWRITE_KINDS
from maintainer.model.product_version import __version__
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import StepOutcome, StepStatus
from maintainer.model.run.progress import ProgressEvent, RunFinished, RunStarted, StepFinished, StepStarted
from maintainer.model.run.receipts import Amounts, CommitReceipt
from maintainer.model.table.store_kinds import store_kind

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, OutputDataset, Run
    from openlineage.client.facet_v2 import RunFacet

PRODUCER = f"urn:maintainer:{__version__}"
CONFIG_FILE = "openlineage.yml"

_ENDS_AS = {
    StepStatus.SUCCEEDED: "COMPLETE",
    StepStatus.NOTHING_LEFT: "COMPLETE",
    StepStatus.YIELDED: "ABORT",
    StepStatus.INTERRUPTED: "ABORT",
    StepStatus.SKIPPED: "ABORT",
}
"""How a step's run ends; whatever is not named here failed."""


def lineage_target(environ: Mapping[str, str], home: Path, here: Path) -> str | None:
    """Return where lineage goes to, as messages name it; None where nothing asks for it.

    Asked in the order in which the library looks: a configuration file, then the variables.
    """
    if environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return None
    files = [Path(environ["OPENLINEAGE_CONFIG"])] if environ.get("OPENLINEAGE_CONFIG") else []
    files += [here / CONFIG_FILE, home / ".openlineage" / CONFIG_FILE]
    named = next((file for file in files if file.is_file()), None)
    if named is not None:
        return str(named)
    url = environ.get("OPENLINEAGE_URL") or environ.get("OPENLINEAGE__TRANSPORT__URL")
    if url:
        return urlsplit(url).netloc.rpartition("@")[2] or "the address in OPENLINEAGE_URL"
    return "OPENLINEAGE__TRANSPORT" if any(name.startswith("OPENLINEAGE__TRANSPORT") for name in environ) else None


def dataset_name(location: str) -> tuple[str, str]:
    """Return a table's namespace and name, by OpenLineage's rules for storage: ``("s3://bucket", "lake/orders")``."""
    parts = urlsplit(location)
    path = unquote(parts.path).rstrip("/")
    if parts.scheme in ("", "file"):
        return "file", path
    scheme = "s3" if store_kind(location).spelled == "s3" else parts.scheme
    return f"{scheme}://{parts.netloc}", path.lstrip("/")


def lineage_of(run: ObservedRun) -> Lineage | None:
    """Return what emits a run's lineage; None where the environment does not ask for it.

    Raises:
        EnvironmentUnfit: E629, the library is missing.
    """
    where = lineage_target(run.environ, Path(os.path.expanduser("~")), Path())
    if where is None:
        return None
    require_extra("openlineage", "openlineage.client", "sending lineage")
    return Lineage(where, run)


class Lineage:
    """An observer that emits a run's lineage. The library is loaded with the first event, off the run's thread.

    Args:
        where: Where events go to, for messages.
        run: The project after which jobs are named, the plan, which knows where tables are, and the environment.
    """

    what = "lineage events"

    def __init__(self, where: str, run: ObservedRun) -> None:
        self.where = where
        self._project = run.project
        self._namespace = run.environ.get("OPENLINEAGE_NAMESPACE") or "maintainer"
        self._datasets = {
            table.ref.identifier: dataset_name(table.observed.location)
            for table in run.plan.tables
            if table.observed is not None
        }
        self._client: OpenLineageClient | None = None
        self._run_id, self._started_at_ms = "", 0
        self._running: dict[str, Run] = {}

    def event(self, event: ProgressEvent) -> None:
        """Emit what the event is worth.

        Raises:
            Exception: Whatever the transport raises.
        """
        match event:
            case RunStarted():
                self._open(event.run_id, event.at_ms)
                self._emit("START", self._made_run(self._run_id), self._job("run"), event.at_ms)
            case StepStarted() if event.table in self._datasets:
                run = self._running[event.step_id] = self._step_run(event.step_id)
                inputs, outputs = self._both(event.table, event.kind, None)
                self._emit("START", run, self._job(event.kind, event.table), event.at_ms, inputs, outputs)
            case StepFinished() if event.outcome.step_id in self._running:
                del self._running[event.outcome.step_id]
                self._finish(event)
            case RunFinished():
                code = exit_code(event.outcome)
                kind = "ABORT" if event.outcome.interrupted_by else "FAIL" if code else "COMPLETE"
                self._emit(kind, self._made_run(self._run_id), self._job("run"), event.at_ms)
            case _:
                pass

    def close(self) -> None:
        """Send what still waits."""
        if self._client is not None:
            self._client.close()

    def _open(self, run_id: str, at_ms: int) -> None:
        from openlineage.client import OpenLineageClient

        logging.getLogger("openlineage").addHandler(logging.NullHandler())
        self._run_id, self._started_at_ms = run_id, at_ms
        self._client = OpenLineageClient()

    def _finish(self, event: StepFinished) -> None:
        from openlineage.client.facet_v2 import error_message_run

        step, table = event.outcome, event.table
        job = self._job(step.kind, table)
        for commit in step.commits[:-1]:
            inputs, outputs = self._both(table, step.kind, (commit,))
            self._emit("RUNNING", self._step_run(step.step_id), job, event.at_ms, inputs, outputs)
        facets: dict[str, RunFacet] = {}
        kind = _ENDS_AS.get(step.status, "FAIL")
        if step.error is not None:
            text = f"{step.error.code}: {step.error.what}"
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(text, "PYTHON", producer=PRODUCER)
        inputs, outputs = self._both(table, step.kind, step.commits, step)
        self._emit(kind, self._step_run(step.step_id, **facets), job, event.at_ms, inputs, outputs)

    def _both(
        self, table: str, kind: str, commits: Sequence[CommitReceipt] | None, step: StepOutcome | None = None
    ) -> tuple[list[InputDataset], list[OutputDataset]]:
        """The table as input of a rewrite, and as output of every step; commits that are there give their figures."""
        from openlineage.client.event_v2 import InputDataset, OutputDataset
        from openlineage.client.facet_v2 import (
            dataset_version_dataset,
            input_statistics_input_dataset,
            lifecycle_state_change_dataset,
            output_statistics_output_dataset,
        )

        namespace, name = self._datasets[table]
        rewrites = kind in REWRITE_KINDS
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        read: dict[str, Any] = {}
        written: dict[str, Any] = {}
        version = partial(dataset_version_dataset.DatasetVersionDatasetFacet, producer=PRODUCER)
        if commits:
            before["version"] = version(str(commits[0].version - 1))
            after["version"] = version(str(commits[-1].version))
            changes = lifecycle_state_change_dataset.LifecycleStateChange
            change = changes.OVERWRITE if rewrites else changes.ALTER
            after["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(
                change, producer=PRODUCER
            )
        elif step is not None and step.version_after is not None:
            after["version"] = version(str(step.version_after))
        if commits and rewrites:
            proofs, done = [commit.proof for commit in commits], Amounts.of(commits)
            rows_read = None if None in proofs else sum(proof.read.rows for proof in proofs if proof is not None)
            rows_written = None if None in proofs else sum(proof.written.rows for proof in proofs if proof is not None)
            read["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
                rows_read, done.bytes_removed, done.num_files_removed, producer=PRODUCER
            )
            written["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rows_written, done.bytes_added, done.num_files_added, producer=PRODUCER
            )
        inputs = [InputDataset(namespace, name, read, facets=before)] if rewrites else []
        return inputs, [OutputDataset(namespace, name, written, facets=after)]

    def _job(self, kind: str, table: str | None = None) -> Any:  # noqa: ANN401 (attrs class of the library)
        from openlineage.client.event_v2 import Job
        from openlineage.client.facet_v2 import job_type_job

        facet = job_type_job.JobTypeJobFacet("BATCH", "MAINTAINER", kind.upper(), producer=PRODUCER)
        name = ".".join(part for part in (self._project, table, kind) if part)
        return Job(self._namespace, name, {"jobType": facet})

    def _step_run(self, step_id: str, **facets: RunFacet) -> Run:
        from openlineage.client.facet_v2 import parent_run

        own = self._made_run(self._run_id)
        parent = parent_run.ParentRunFacet(
            parent_run.Run(own.runId), parent_run.Job(self._namespace, f"{self._project}.run"), producer=PRODUCER
        )
        return self._made_run(f"{self._run_id}/{step_id}", parent=parent, **facets)

    def _made_run(self, name: str, **facets: RunFacet) -> Run:
        from openlineage.client.event_v2 import Run
        from openlineage.client.facet_v2 import processing_engine_run
        from openlineage.client.uuid import generate_static_uuid

        run_id = generate_static_uuid(_moment(self._started_at_ms), name.encode("utf-8", "surrogatepass"))
        engine = processing_engine_run.ProcessingEngineRunFacet(__version__, "maintainer", producer=PRODUCER)
        return Run(str(run_id), {"processing_engine": engine, **facets})

    def _emit(
        self,
        kind: str,
        run: Run,
        job: Any,  # noqa: ANN401 (attrs class of the library)
        at_ms: int,
        inputs: Sequence[InputDataset] = (),
        outputs: Sequence[OutputDataset] = (),
    ) -> None:
        from openlineage.client.event_v2 import RunEvent, RunState

        assert self._client is not None
        self._client.emit(
            RunEvent(
                eventType=RunState[kind],
                eventTime=_moment(at_ms).isoformat(),
                run=run,
                job=job,
                producer=PRODUCER,
                inputs=list(inputs),
                outputs=list(outputs),
            )
        )


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC)
