"""Plans on their way out: saved plans, and what a rendering knows beside the plan (the project, its past runs)."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from maintainer.app.planning.run_statistics import learn, past_lessons
from maintainer.app.project_folders import Project, local_zone
from maintainer.errors import ProjectError, unread
from maintainer.journal.folder.atomic_files import write_atomically, writing
from maintainer.journal.memory.past_runs import read_plan
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import MAX_PLAN_CHARACTERS, plan_bytes
from maintainer.model.run.auto_compaction import AutoCompactSwitch
from maintainer.model.table.store_requests import RunRequests
from maintainer.planning.budget.run_budget import Learned, expected_losses, expected_time
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.plan.plan_text import PlanTextOptions
from maintainer.report.plan.why_text import render_why
from maintainer.report.style import PLAIN, Style


def read_saved_plan(path: Path) -> Plan:
    """Read a saved plan.

    Raises:
        ProjectError: E642, the file cannot be read.
        Refused: A402, it is no plan or was edited.
    """
    try:
        if path.stat().st_size <= 4 * MAX_PLAN_CHARACTERS:
            return read_plan(path)
        what = "the plan cannot be read: it is larger than any plan of maintainer"
    except (OSError, UnicodeDecodeError) as error:
        what = unread("the plan", error)
    help = "`maintainer plan --out FILE` makes one; tables are chosen with `-s`"
    raise ProjectError(what, code="E642", where=str(path), help=help)


def check_place(path: Path) -> None:
    """Find out before planning, which may take long, that the folder of a plan's file is not there.

    Raises:
        ProjectError: E640.
    """
    with writing(path, "the plan"):
        if not stat.S_ISDIR(path.absolute().parent.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def save_plan(plan: Plan, path: Path) -> None:
    """Write a plan to a file, whole or not at all.

    Raises:
        ProjectError: E640, it cannot be written there.
    """
    with writing(path, "the plan"):
        write_atomically(path.absolute(), plan_bytes(plan))


def plan_options(project: Project, plan: Plan) -> PlanTextOptions:
    """Return what a plan is shown with: the project's name and policies, and what its past runs teach."""
    learned = _learned(project, plan)
    return PlanTextOptions(
        project=project.root.name,
        num_policies=project.loaded.policy_count,
        tz=local_zone(),
        expected_time=expected_time(plan, learned),
        lost_ratios=expected_losses(plan, learned),
        requests=None if plan.requests is None else project.loaded.project.prices.priced(RunRequests(plan.requests)),
    )


def decisions_text(
    project: Project,
    policy: ResolvedPolicy,
    plan: Plan,
    auto_compact: AutoCompactSwitch | str | None,
    *,
    verbose: bool = False,
    style: Style = PLAIN,
) -> str:
    """Return every decision about the one table of a plan as text, ending in a newline.

    Args:
        project: The project, for its past runs.
        policy: The table's effective policy.
        plan: The plan of this table alone.
        auto_compact: Whether the table's writers compact by themselves, or why nobody can say.
        verbose: Name each partition that is left alone.
        style: Colour or none.
    """
    options = PlanTextOptions(
        verbose=verbose, tz=local_zone(), lost_ratios=expected_losses(plan, _learned(project, plan))
    )
    table = plan.tables[0]
    return render_why(table, policy, options, style, auto_compact=auto_compact, at_ms=plan.created_at_ms)


def _learned(project: Project, plan: Plan) -> Learned:
    """Return what past runs teach; a plan without changes needs nothing of it, and reads no run."""
    return learn(past_lessons(project.runs_dir), plan) if plan.has_changes else Learned()
