"""What the tests of behaviour use of the product: the one place to change when a module of it moves.

Tests below `fault`, `integration`, `contract`, `model` and `hostile` import the package from here only.
"""

from examples.demo import flights
from examples.demo.demo_lake import claim_folder
from examples.demo.demo_proof import compare, look_up, read_content, rows_that_differ
from examples.demo.demo_session import append, data_files, newest_version, quoted
from maintainer.app import operations
from maintainer.app.planning.make_plan import PlanRequest, make_plan
from maintainer.app.planning.read_table import plan_beside_writers, read_for_planning
from maintainer.app.project_folders import PolicyProblems, Project
from maintainer.app.running.apply_plan import apply_plan, check_saved_plan, open_journal
from maintainer.app.running.run_listener import RunListener
from maintainer.app.running.watch_loop import WatchBounds, watch
from maintainer.app.selection.run_spec import RunSpec
from maintainer.app.status.metrics_endpoint import DEFAULT_HOST, metrics_endpoint
from maintainer.cli.act.run_commands import WatchOutput
from maintainer.cli.context import CliContext
from maintainer.cli.main import job, run
from maintainer.delta.commands import command_selection
from maintainer.delta.commands.command_engine import CommandEngine, CommandTableEngine
from maintainer.delta.commands.command_session import (
    CommandSession,
    CommandStorage,
    classic_sessions,
    in_partitions,
    optimize,
    reorg_purge,
    set_properties,
    table_name,
    table_of_path,
    text_literal,
)
from maintainer.delta.doctor.doctor_checks import DoctorInput, check_engine, run_checks
from maintainer.delta.doctor.doctor_model import Status
from maintainer.delta.engine import table_engine
from maintainer.delta.engine.ledger_table import LEDGER_SCHEMA, LedgerTable
from maintainer.delta.engine.table_engine import DeltaEngine, DeltaTableEngine
from maintainer.delta.jvm import (
    BORROWED,
    THREAD_PROPERTIES,
    DeltaJvm,
    JavaObject,
    bridge,
    gateway,
    log_calls,
    transaction_calls,
)
from maintainer.delta.jvm.commit_store import EXCLUSIVE_LOG_STORE
from maintainer.delta.jvm.transaction_calls import WRITE_CHECKSUM
from maintainer.delta.log.actions import CommittedFiles, PartitionNames, committed_files, data_file, removed_key
from maintainer.delta.log.commit_history import paths_of_rewrites, paths_of_zorder, read_commits
from maintainer.delta.log.replay.version_replay import ReplayedVersion, replay_version
from maintainer.delta.log.schema_names import dotted, indexed_schema, name_parts, quote
from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.delta.log.table_updates import read_updates
from maintainer.delta.proof.row_comparison import FileSet, measure_both
from maintainer.delta.proof.statistics_figures import stats_columns
from maintainer.delta.rewrite import bin_writer, copy_lane, proof_parts, spark_lane
from maintainer.delta.rewrite.bin_writer import write_bins
from maintainer.delta.rewrite.commit import rewrite_commit
from maintainer.delta.rewrite.commit.carried_deletes import CannotCarryError, RowsRead, places_in_bin
from maintainer.delta.rewrite.curve_writer import ADDRESS, with_address
from maintainer.delta.rewrite.rewrite_job import RewriteJob, RewriteTimings
from maintainer.delta.rewrite.rewrite_proof import prove_removes, prove_rewrite
from maintainer.delta.rewrite.spark_lane import ObservedRows
from maintainer.delta.rewrite.unfinished_files import prefix_of_attempt, prefix_of_batch
from maintainer.delta.snapshot import log_reader
from maintainer.delta.snapshot.log_reader import LogReader, SparkReader
from maintainer.delta.spark import jars, session_settings
from maintainer.delta.spark.connectors import connector_settings
from maintainer.delta.spark.engine_log import PythonLogs, write_log4j_config
from maintainer.delta.spark.installed_versions import check_versions
from maintainer.delta.spark.jars import ensure_jars, jar_folder, needed_jars
from maintainer.delta.spark.java_home import inspect_java
from maintainer.delta.spark.session_settings import FORCED, PADS_CHAR
from maintainer.delta.spark.spark_session import (
    SessionLease,
    active_session,
    lend_session,
    open_session,
    worker_session,
)
from maintainer.delta.storage.failures.machine_failures import storage_error
from maintainer.delta.storage.failures.store_answers import Failure
from maintainer.delta.storage.file_store import StoredFile, java_quote
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.table_log import LogEntry, TableLog
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.delta.vacuum.trash import FOLDER
from maintainer.delta.verify import version_reader
from maintainer.delta.verify.commit_proof import DeltaCommitProver
from maintainer.delta.verify.version_proof import VersionProof, prove_version
from maintainer.engine import step_meter
from maintainer.engine.protocols import DeletionGuard, TableEngine, VacuumQuestion
from maintainer.engine.session_options import SessionOptions
from maintainer.engine.step_meter import StepMeter
from maintainer.engine.store.cloud_settings import store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.errors import (
    CheckImpossible,
    CommitConflict,
    CommitNotLanded,
    CommitUnknown,
    EnvironmentUnfit,
    ExitCode,
    Interrupted,
    MaintainerError,
    ProjectError,
    Refused,
    TableError,
    VerificationFailed,
)
from maintainer.errors.foreign_text import first_secret, visible_json, without_secrets
from maintainer.execution.cancellation import StopSwitch
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock, problem_of
from maintainer.journal.event_log import EVENTS_FILE, decode, read_events
from maintainer.journal.event_log import encode as encode_event
from maintainer.journal.folder.documents import documents_in
from maintainer.journal.folder.run_folder import new_run_id
from maintainer.journal.journal import Journal
from maintainer.journal.leases import LEASE_SECONDS, Leases
from maintainer.journal.ledger.ledger_pending import PENDING_FILE, read_pending
from maintainer.journal.ledger.ledger_rows import LedgerRow, rows_of
from maintainer.journal.memory.place_records import Streak
from maintainer.journal.memory.recorded_outcome import RunFold
from maintainer.journal.memory.table_records import remembered, update_state
from maintainer.model.codec import encode as encode_document
from maintainer.model.plan.lanes import Codec, Lane, LaneChoice
from maintainer.model.plan.layout_tags import (
    CURVE_CUBE_TAG,
    ELEMENTS_TAG,
    LIQUID,
    REVISION_TAG,
    REWRITE_TAG,
    STRATEGY_TAG,
    ZCUBE_COLUMNS_TAG,
    ZCUBE_ID_TAG,
    RewriteRequest,
)
from maintainer.model.plan.plan import CheckedExpectation, Checks, ContentCheck, Plan, Problem, TablePlan, TableState
from maintainer.model.plan.plan_document import from_json, to_json
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import (
    Batch,
    BatchedStep,
    Bin,
    ClusterStep,
    CompactStep,
    PartitionRewriteStep,
    PurgeStep,
    RewriteStep,
    SetPropertiesStep,
    VacuumStep,
    ZOrderStep,
)
from maintainer.model.plan.zorder_turn import Strategy, ZOrderTurn
from maintainer.model.run.auto_compaction import (
    RUN_PREFIX,
    SESSION_ENABLED,
    SESSION_PREFIX,
    AutoCompactResult,
    AutoCompactStatus,
    SwitchSource,
)
from maintainer.model.run.commit_verdict import CheckResult, CommitVerification
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.model.run.optimize_metrics import DeletionVectorStats, ZOrderFileStats
from maintainer.model.run.outcome import (
    RunOutcome,
    StepOutcome,
    StepStatus,
    TableOutcome,
    TableStatus,
    run_from_json,
    run_to_json,
)
from maintainer.model.run.progress import (
    Phase,
    RunFinished,
    RunStarted,
    StepFinished,
    StepProgress,
    StepStarted,
    TableFinished,
    TableStarted,
)
from maintainer.model.run.receipts import CommitReceipt, Fingerprint, Proof, VacuumReceipt, Verdict
from maintainer.model.run.run_events import Intent
from maintainer.model.table.commit_records import CommitsRead, CommitStamp, CommitsWanted
from maintainer.model.table.log_names import vector_path
from maintainer.model.table.store_requests import StoreRequests
from maintainer.model.table.table_facts import (
    ColumnRanges,
    DataFile,
    DeletionVector,
    LayoutBoxes,
    RemovedFile,
    TableFacts,
    TableRecord,
    TableRef,
    Update,
)
from maintainer.model.table.table_features import REWRITABLE_FEATURES, unsupported_features
from maintainer.planning.curve.curve import key_of
from maintainer.planning.curve.curve_files import curve_files
from maintainer.planning.curve.revision import PROPERTY_PREFIX, Revision, make_column
from maintainer.planning.plan_input import PlanMoment, PlanOptions, TableInput
from maintainer.planning.planner import assemble, plan_table
from maintainer.planning.recheck.staleness import StaleReasons, recheck
from maintainer.planning.selection import lane_choice
from maintainer.planning.selection.lane_choice import why_not_copy, why_not_local
from maintainer.planning.selection.partition_texts import is_deltas_own
from maintainer.policy.diagnostics import Diagnostic, Severity, SourceSpan
from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.predicate.predicate_grammar import PredicateError
from maintainer.policy.project.policy_changes import PolicyChanges, PolicyWork, TableChange
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.project.project_sections import Prices
from maintainer.policy.property_names import KNOWN_PROPERTIES, PropertyKind
from maintainer.policy.resolve.resolved import (
    NOT_SET,
    ClusterPolicy,
    OptimizePolicy,
    PurgePolicy,
    ResolvedPolicy,
    RewritePolicy,
    ValueChange,
    ZOrderMode,
    ZOrderPolicy,
)
from maintainer.policy.schema.known_expectations import (
    EXPECTATIONS,
    NOT_FOR_POLICIES,
    REFUSED_EXPECTATIONS,
    WITHOUT_SPARK,
)
from maintainer.report import html
from maintainer.report.diagnostics_report import (
    DiagnosticsReport,
    render_concise,
    render_full,
    render_github,
    render_json,
    render_sarif,
    render_step_summary,
)
from maintainer.report.diagnostics_report import render_junit as render_findings_junit
from maintainer.report.findings import render_annotations
from maintainer.report.html.fleet_view import fleet_tables, fleet_view
from maintainer.report.html.live_view import live_view
from maintainer.report.html.page import Page, Served, message_page, render_page
from maintainer.report.html.run_view import ReportProject, run_view
from maintainer.report.html.table_pages import KnownTable, table_page
from maintainer.report.plan.plan_markdown import PlanComparison, render_failure_markdown, render_plan_markdown
from maintainer.report.plan.plan_text import PlanTextOptions, render_plan
from maintainer.report.plan.why_text import render_why
from maintainer.report.run.progress_jsonl import event_line
from maintainer.report.run.progress_text import PlannedNames, ProgressText
from maintainer.report.run.run_findings import render_junit as render_run_junit
from maintainer.report.run.run_findings import run_findings
from maintainer.report.run.run_text import render_run, render_steps, run_markdown
from maintainer.report.status_documents import history_csv, history_json, status_json, status_prometheus
from maintainer.report.status_text import render_history, render_status
from maintainer.report.style import Style
from maintainer.verification import great_expectations_suite
from maintainer.verification.commit_checks_after import GreatExpectationsVerifier, audit
from maintainer.verification.great_expectations_suite import validate_frame
from maintainer.verification.verification_result import Pair, Verification
from tests.support.runs.planned_steps import run_fleet
from tests.support.writers.recorded_events import unfinished
