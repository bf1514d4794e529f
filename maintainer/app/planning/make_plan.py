"""Make a plan: read each table's facts, call the pure planner, and fit the result into the project's budgets.

Nothing here writes to a table. A few workers read tables at once, each in a session of its own. A table that cannot be
read becomes a problem in the plan and never stops the others. The policies of a Git commit are planned for the same
tables, to be compared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from maintainer.app.planning.policy_places import PolicyPlaces, neighbours
from maintainer.app.planning.read_table import beside_unsearched, plan_beside_writers, read_for_planning
from maintainer.app.planning.reader_pool import ReaderPool
from maintainer.app.planning.run_statistics import learn, past_lessons
from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import tables_read_at_once
from maintainer.app.selection.managed_search import (
    gone_tables,
    missed_tables,
    tables_found_before,
    unsearched_tables,
)
from maintainer.engine.process_loss import engine_gone, is_engine_lost
from maintainer.engine.protocols import Engine, SignOfLife, TablePlaces, TableReader
from maintainer.engine.refusing_buckets import RefusingBuckets
from maintainer.engine.session_options import SILENT, StageListener
from maintainer.errors import (
    EnvironmentUnfit,
    LogUnreadable,
    MaintainerError,
    NoTable,
    NotDelta,
    StoreRefusal,
    TableError,
)
from maintainer.execution.run_context import Clock
from maintainer.journal.folder.atomic_files import reading_runs
from maintainer.journal.ledger.ledger_rows import damaged_ledger
from maintainer.journal.memory.table_records import Remembered, remembered
from maintainer.model.plan.plan import Plan, TablePlan, as_problem
from maintainer.model.product_version import __version__
from maintainer.model.run.exit_codes import BUG_CODE
from maintainer.model.table.table_facts import TableFacts, TableRecord, TableRef
from maintainer.planning.budget.request_estimate import run_requests
from maintainer.planning.budget.run_budget import Learned, within_budget
from maintainer.planning.budget.turn_bounds import with_turns_bounded
from maintainer.planning.plan_input import PlanMoment, PlanOptions, TableInput
from maintainer.planning.planner import absent_plan, assemble, problem_plan
from maintainer.policy.project.policy_changes import policy_changes, shared_changes, shared_values, shared_values_at
from maintainer.policy.project.project_settings import LEDGER_POLICY, Budget
from maintainer.policy.project.table_search import TableProblem
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.table_names import name_key
from maintainer.policy.yaml.discovery import find_files
from maintainer.report.plan.plan_markdown import PlanComparison
from maintainer.units import count_of


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One table as planning saw it. ``facts`` is None where it could not be read. Short-lived: facts are large.

    ``number`` of ``total`` user tables are planned with this one; our own ledger is none of them, its number is 0.
    """

    policy: ResolvedPolicy
    plan: TablePlan
    facts: TableFacts | None
    record: TableRecord
    number: int
    total: int


OnTable = Callable[[PlannedTable], None]
"""Called with each table as it is planned, for progress and figures. One call at a time."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What to plan and what to set aside. ``jobs`` tables are read at once.

    ``jobs`` is None where it follows from where the tables lie. A table of ``new`` has, by its `name_key`, no policy at
    this commit: that it does not exist is a note in the plan; of any other it is a problem. ``problems`` become a part
    of the plan as they are. ``away`` waits for the sign of life of a table's store or metastore, and has its error
    where there is none; such tables come last, and once all others are planned and one has something to do, a single
    silent try is enough.
    ``stages`` hears that tables are read, and of which ones it takes long.
    """

    policies: tuple[ResolvedPolicy, ...]
    now_ms: int
    selection: tuple[str, ...] = ()
    jobs: int | None = None
    options: PlanOptions = field(default_factory=PlanOptions)
    on_table: OnTable | None = None
    new: Mapping[str, str] = field(default_factory=dict)
    stages: StageListener = SILENT
    problems: tuple[TableProblem, ...] = ()
    away: Mapping[str, SignOfLife] = field(default_factory=dict)
    purpose: str | None = None
    """What the tables are read for; not None where no table is said by itself, so that their number is."""
    on_first_step: Callable[[], None] = lambda: None
    """Called once, when the first table has something to do, while others are still planned; returns at once."""

    @property
    def num_user_tables(self) -> int:
        """How many tables there are without our own ledger."""
        return sum(not policy.is_ledger for policy in self.policies)


def make_plan(project: Project, engine: Engine, request: PlanRequest) -> Plan:
    """Plan every table of the request.

    Raises:
        MaintainerError: The engine could not give a worker, or past runs cannot be read (E641); problems of single
            tables are in the plan.
    """
    request = replace(request, options=replace(request.options, deletes=engine.deletes))
    with reading_runs(project.runs_dir):
        records = remembered(project.runs_dir)
    now = datetime.fromtimestamp(request.now_ms / 1000, tz=ZoneInfo(project.loaded.project.timezone))
    when = PlanMoment(request.now_ms, now.date())
    policy_places = PolicyPlaces((*project.policies, *request.policies), engine.places)
    project_tables = known_tables(project, request.policies)
    before = frozenset(ref.identifier for ref in tables_found_before(project))
    unsearched = unsearched_tables(project)
    tables = _Tables(request, records, when, project_tables, unsearched, engine.places, policy_places, before)
    tables.plan_all(engine)
    problems = [
        TablePlan(each.table, each.file, "", problem=as_problem(each.error), rule_line=each.rule_line)
        for each in request.problems
    ]
    asked_for = {policy.table for policy in request.policies}
    joined = assemble(
        [*policy_places.each_once(tables.plans), *problems],
        created_at_ms=request.now_ms,
        max_age_seconds=project.loaded.project.max_plan_age_seconds,
        reaching_more=frozenset(policy.source for policy in project.policies if policy.table not in asked_for),
    )
    return replace(
        joined,
        environment=project.env,
        selection=request.selection,
        git_commit=project.git_commit(),
        maintainer_version=__version__,
        gone=gone_tables(project),
    )


def known_tables(project: Project, policies: Sequence[ResolvedPolicy] = ()) -> tuple[TableRef, ...]:
    """List all tables whose log may refer to files of another: the project's, the given policies', and neighbours.

    So may one that rules disagree about, and one that the newest run had and this search did not come to. The ledger is
    left out: only runs write to it, and a damaged one must not hold up the deletions of every table.
    """
    named = {policy.table for policy in (*project.policies, *policies) if policy.file != LEDGER_POLICY}
    refused = {problem.table for problem in project.loaded.managed.refused}
    missed = {table.ref for table in missed_tables(project)}
    return tuple(sorted(named | refused | missed | set(neighbours(project))))


@dataclass(slots=True)
class _Tables:
    request: PlanRequest
    records: Remembered
    when: PlanMoment
    project_tables: tuple[TableRef, ...]
    unsearched: tuple[TableRef, ...]
    places: TablePlaces
    policy_places: PolicyPlaces
    found_before: frozenset[str]
    buckets: RefusingBuckets = field(init=False)
    within_reach: set[str] = field(init=False)
    """Tables that wait for no store or metastore, as long as they are not planned."""
    plans: list[TablePlan] = field(default_factory=list)
    num_planned: int = 0
    has_steps: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        away = self.request.away
        self.buckets = RefusingBuckets(away, lambda: self.has_steps and not self.within_reach)
        self.within_reach = {policy.table.identifier for policy in self.request.policies}.difference(away)

    def plan_all(self, engine: Engine) -> None:
        request = self.request
        stage = f"reading {count_of(request.num_user_tables, 'table')}{request.purpose or ''}"
        request.stages.began(stage)
        counted = None if request.purpose is None else stage
        pool = ReaderPool(engine, self._plan, self._give_up, Clock(), stages=request.stages, counted=counted)
        # Local paths wait for nobody; what waits for a store does not hold up others for a metastore.
        in_turn = sorted(
            request.policies, key=lambda each: (not each.table.is_path, each.table.identifier in request.away)
        )
        pool.run(in_turn, request.jobs or tables_read_at_once(policy.table for policy in in_turn))

    def _plan(self, reader: TableReader, policy: ResolvedPolicy, counts: Callable[[], bool]) -> None:
        try:
            self._plan_one(reader, policy, counts)
        finally:
            self.within_reach.discard(policy.table.identifier)

    def _plan_one(self, reader: TableReader, policy: ResolvedPolicy, counts: Callable[[], bool]) -> None:
        request = self.request
        facts, record = None, TableRecord()
        try:
            self.buckets.raise_known(policy.table)
            table = self._read(reader, policy)
            policy = table.policy
            table, plan = plan_beside_writers(reader, table)
            facts, record = table.facts, table.record
            plan = self._marked_as_new(plan)
            self.policy_places.opened(plan, reader)
        except MaintainerError as error:
            if isinstance(error, EnvironmentUnfit) and error.ends_run:
                raise
            if isinstance(error, StoreRefusal):
                self.buckets.refused(policy.table, error)
            if isinstance(error, NoTable) and policy.file == LEDGER_POLICY:
                return  # no run has made the ledger yet
            since = request.new.get(name_key(policy.table))
            if isinstance(error, NoTable) and since is not None:
                plan = absent_plan(policy, since)
            else:
                plan = problem_plan(policy, _of_ledger(error) if policy.file == LEDGER_POLICY else error)
        except Exception as error:
            # Nobody foresaw it, and it is about this table: the others are planned all the same.
            engine_lost = is_engine_lost(error)
            plan = problem_plan(policy, engine_gone(policy.table.identifier) if engine_lost else _bug(error))
        if counts():
            self._keep(policy, plan, facts, record)

    def _read(self, reader: TableReader, policy: ResolvedPolicy) -> TableInput:
        request = self.request

        def read() -> TableInput:
            table = read_for_planning(
                reader, policy, self.records, self.places, when=self.when,
                options=request.options, tables=self.project_tables,
            )  # fmt: skip
            return beside_unsearched(table, self.unsearched)

        try:
            return read()
        except StoreRefusal as error:
            if not error.may_pass:
                raise
            return read()  # whoever provides the token may have renewed it since

    def _marked_as_new(self, plan: TablePlan) -> TablePlan:
        """Say that no run knew the table, where a rule manages it and a run before wrote down what it found."""
        name = plan.ref.identifier
        known = not self.found_before or name in self.found_before or name in self.records.keys
        return replace(plan, is_new=plan.rule_line is not None and not known)

    def _give_up(self, policy: ResolvedPolicy, why: str) -> None:
        error = TableError(
            f"the table could not be planned: {why}",
            code="T433",
            where=policy.table.identifier,
            help="look at its storage; the next run tries again",
        )
        self._keep(policy, problem_plan(policy, error), None, TableRecord())
        self.within_reach.discard(policy.table.identifier)

    def _keep(self, policy: ResolvedPolicy, plan: TablePlan, facts: TableFacts | None, record: TableRecord) -> None:
        request = self.request
        with self.lock:
            self.plans.append(plan)
            self.num_planned += not plan.is_ledger
            if plan.steps and not self.has_steps:
                self.has_steps = True
                request.on_first_step()
            if request.on_table is not None:
                number = 0 if plan.is_ledger else self.num_planned
                request.on_table(PlannedTable(policy, plan, facts, record, number, request.num_user_tables))


def _bug(error: Exception) -> TableError:
    try:
        lines = str(error).splitlines()
    except Exception:  # an exception of Spark cannot be asked once its JVM is gone
        lines = []
    first = f": {lines[0][:300]}" if lines else ""
    return TableError(
        f"a bug in maintainer while planning: {type(error).__name__}{first}",
        code=BUG_CODE,
        help="the table was not touched; report it with this message",
    )


def _of_ledger(error: MaintainerError) -> MaintainerError:
    """The error for a ledger that cannot be read: nobody must take it for a table of the user's."""
    is_damaged = isinstance(error, (NotDelta, LogUnreadable))
    return damaged_ledger(error.where, error.found or error.what) if is_damaged else error


def fit(project: Project, plan: Plan, given: Budget) -> Plan:
    """Return the plan with the rewrites that fit into the run's budget, and what it asks of stores.

    Args:
        project: With its own budgets.
        plan: Everything that could be done; what does not fit is left for another run.
        given: The run's bounds as options say them; they win over the project's.
    """
    settings = project.loaded.project
    budgets, learned = settings.budgets.with_run(given), Learned()
    if budgets.bounded:
        learned = learn(past_lessons(project.runs_dir), plan)
        plan = within_budget(plan, budgets, learned)[0]
    max_files = None if settings.max_files is None else settings.max_files - plan.num_deleted
    plan = with_turns_bounded(plan, budgets, learned, Budget(settings.max_bytes, max_files))
    return replace(plan, requests=run_requests(plan, project.ledger_location))


def new_policies(project: Project, before: Sequence[ResolvedPolicy], ref: str) -> dict[str, str]:
    """Return the tables, by `name_key`, that have a policy now and had none at a commit, each with that commit."""
    known = {name_key(policy.table) for policy in before}
    return {key: ref for policy in project.policies if (key := name_key(policy.table)) not in known}


def compare_plan(
    project: Project,
    engine: Engine,
    request: PlanRequest,
    made: Plan,
    before: Sequence[ResolvedPolicy],
    ref: str,
    given: Budget,
) -> PlanComparison:
    """Plan the tables of a plan by the policies as they were; a table whose policy is the same is not read again.

    Args:
        project: The project as it is now.
        engine: Reads the tables.
        request: What ``made`` was made from.
        made: The plan by the policies as they are now, not fitted into a budget.
        before: The policies at the commit.
        ref: The commit.
        given: The run's bounds as options say them, which both plans are fitted into.
    """
    now = {name_key(policy.table): policy.digest for policy in project.policies}
    planned = {name_key(table.ref): table for table in made.tables}
    in_plan = {name_key(policy.table): policy for policy in before if name_key(policy.table) in planned}
    changed = tuple(policy for key, policy in in_plan.items() if now.get(key) != policy.digest)
    request = replace(request, purpose=f" by the policies of {ref}")
    plan_before = make_plan(project, engine, replace(request, policies=changed, on_table=None, problems=()))
    same = tuple(planned[key] for key, policy in in_plan.items() if now.get(key) == policy.digest)
    root = project.root
    shared = shared_changes(
        shared_values_at(project.loaded, ref), shared_values(find_files(root), root), before, project.policies
    )
    whole = fit(project, replace(plan_before, tables=(*plan_before.tables, *same)), given)
    return PlanComparison(ref, policy_changes(before, project.policies), whole, shared)
