"""``maintainer explain``, ``list``, ``schema`` and ``inventory``: what policies say, and of which tables.

``explain`` shows the effective policy of one table with the origin of every value, ``list`` what a selection means,
``schema`` the JSON Schema for editors or help for one key, ``inventory`` tables found against tables managed.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import click

from maintainer.app.engine_access import EngineOptions, open_engine, project_engine
from maintainer.app.planning.policy_places import paths_to_one_table
from maintainer.app.selection.chosen_tables import chosen_tables, named_policy
from maintainer.app.selection.managed_search import (
    needs_session,
    search_tables,
    tables_found_before,
    with_recorded_tables,
)
from maintainer.app.selection.run_spec import RunSpec
from maintainer.app.status.inventory import Care, InventoryEntry, LocatedTable, inventory, located_at, write_stubs
from maintainer.cli.context import CliContext, open_project, print_json, print_search, print_table, warn
from maintainer.cli.options import ENGINE, FILE, SELECTION, SHARD, TableName, output_option, spec_options
from maintainer.errors import ExitCode, FoldersTooDeep, MaintainerError, NotSupportedYet, ProjectError
from maintainer.journal.folder.atomic_files import writing
from maintainer.model.plan.plan import as_problem
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.resolve.resolved import ResolvedPolicy, base_settings
from maintainer.policy.schema.schema_keys import (
    POLICY_SCHEMA,
    PROJECT_SCHEMA,
    code_sections,
    describe,
    key_names,
    shipped_text,
    suggestion,
)
from maintainer.policy.table_names import absolute_path, table_ref
from maintainer.report.policy_text import explain_json, explain_text, keys_markdown, merged_yaml, render_key
from maintainer.report.status_documents import problem_values
from maintainer.report.style import Style
from maintainer.report.text_layout import alike, printable, tables_and_ledger
from maintainer.units import by_cause, count_of

FORMAT_VERSION = "1"


@click.command("explain")
@click.argument("table", metavar="TABLE|CODE", type=TableName())
@click.option("--merged", is_flag=True, help="Print the same policy as one file that needs no other file.")
@output_option("json")
@click.pass_obj
def explain_command(context: CliContext, table: str, merged: bool, output: str) -> None:
    """Show the effective policy of TABLE, and the file and line of every value.

    With the CODE of a message, such as T441: show what it means and what to do. A table of that name comes first.
    """
    if merged and output == "json":
        raise click.UsageError("--merged prints YAML; it has no JSON form")
    meaning = code_sections().get(table.upper())
    if meaning is not None and not (merged or output == "json" or _is_named(context, table)):
        click.echo(meaning, nl=False)
        return
    project = open_project(context, only=table)
    if needs_session(project) and project.loaded.manager_of(table_ref(table, project.root)) is None:
        # No network is asked here: what the newest run found stands for a search.
        project = with_recorded_tables(project, tables_found_before(project))
    project, policy = named_policy(project, table, EngineOptions(), managed=False)
    resolution = project.loaded.resolution_of(policy.table.identifier)
    if merged:
        click.echo(merged_yaml(resolution), nl=False)
    elif output == "json":
        print_json(explain_json(resolution))
    else:
        click.echo(explain_text(resolution, Style(context.color), is_there=_may_be_there(resolution.policy.table)))


def _is_named(context: CliContext, table: str) -> bool:
    """Whether a file names a table so; a code is explained where there is no project, too, or one with errors."""
    with suppress(MaintainerError):
        return load_project(context.project_root, context.env, only=table, keeps_policies=False).names(table)
    return False


def _may_be_there(table: TableRef) -> bool:
    """Whether there may be a table: False for a folder of this machine that has no log, or is not there."""
    if not table.is_path or "://" in table.location:
        return True
    return Path(table.location.removeprefix("file:"), LOG_FOLDER).is_dir()


@click.command("list")
@spec_options(SELECTION, SHARD, ENGINE)
@output_option("json")
@click.pass_obj
def list_command(context: CliContext, spec: RunSpec, output: str) -> int:
    """List the selected tables. Without a selection: all that a file names or a rule manages."""
    project = search_tables(open_project(context), spec.engine)
    chosen = chosen_tables(project, spec, command="list")
    policies = sorted(chosen.policies, key=lambda policy: policy.is_ledger)  # it is none of the user's tables
    for finding in paths_to_one_table(project.loaded.tables):
        warn(f"{finding.message}: {finding.help}", finding.code)
    print_search(project)
    problems = [(problem.table.identifier, as_problem(problem.error)) for problem in chosen.problems]
    for (place, cause), *others in by_cause(problems, lambda each: (each[1].code, each[1].what, each[1].help)):
        more = f"; {alike([place for place, _ in others])}" if others else ""
        warn(f"{place}: {cause.what}; {cause.help}{more}", cause.code)
    code = ExitCode.FINDINGS if chosen.problems else ExitCode.OK
    if output == "json":
        tables = [_as_json(policy) for policy in policies]
        print_json({"format_version": FORMAT_VERSION, "tables": tables, "problems": problem_values(problems)})
        return code
    rows = [(each.table.identifier, each.owner or "-", ", ".join(each.tags) or "-", each.source) for each in policies]
    print_table(("TABLE", "OWNER", "TAGS", "POLICY"), rows, Style(context.color))
    if context.verbosity >= 0:
        with_ledger = any(policy.is_ledger for policy in policies)
        click.echo(tables_and_ledger(len(policies), with_ledger=with_ledger), err=True)
    return code


def _as_json(policy: ResolvedPolicy) -> dict[str, object]:
    return {
        "table": policy.table.identifier,
        "owner": policy.owner,
        "tags": list(policy.tags),
        "file": policy.file,
        "rule_line": policy.rule_line,
        "digest": policy.digest,
        "policy": dict(base_settings(policy)),
    }


_FILES = {"policy": POLICY_SCHEMA, "project": PROJECT_SCHEMA}


@click.command("schema")
@click.argument("key", required=False)
@click.option(
    "--of",
    "which",
    type=click.Choice(list(_FILES)),
    default="policy",
    show_default=True,
    help="Which schema to print: that of policy files, or of maintainer.yml (which refers to the first).",
)
@click.option("--keys", is_flag=True, help="Only list the names of all keys.")
@click.option("--markdown", is_flag=True, help="Print all keys as Markdown tables.")
@click.option("--out", type=FILE, help="Write the schema to a file instead of stdout.")
@click.pass_obj
def schema_command(
    context: CliContext, key: str | None, which: str, keys: bool, markdown: bool, out: Path | None
) -> None:
    """Print the JSON Schema, or explain one KEY, such as vacuum.retention."""
    if sum(map(bool, (key, keys, markdown, out))) > 1:
        raise click.UsageError("KEY, --keys, --markdown and --out exclude each other")
    if keys:
        click.echo("\n".join(key_names()))
    elif markdown:
        click.echo(keys_markdown(), nl=False)
    elif key:
        click.echo(_explained(key, Style(context.color)), nl=False)
    elif out:
        with writing(out, "the schema"):
            out.write_text(shipped_text(_FILES[which]), encoding="utf-8")
    else:
        click.echo(shipped_text(_FILES[which]), nl=False)


def _explained(key: str, style: Style) -> str:
    if (description := describe(key)) is not None:
        return render_key(description, style)
    near = f"maintainer explain {key}" if key.upper() in code_sections() else suggestion(key)
    raise ProjectError(
        f"no key `{key[:80]}` in a policy or in maintainer.yml",
        code="E619",
        help=f"did you mean `{near}`?" if near else "`maintainer schema --keys` lists all",
    )


@click.command("inventory")
@click.argument("roots", nargs=-1, metavar="[ROOT...]")
@spec_options(ENGINE)
@click.option("--unmanaged", is_flag=True, help="Only list tables that no file names and no rule manages.")
@click.option("--write", is_flag=True, help="Write a minimal policy for each of them into policies/inventory/.")
@output_option("json")
@click.pass_obj
def inventory_command(
    context: CliContext, roots: tuple[str, ...], spec: RunSpec, unmanaged: bool, write: bool, output: str
) -> int:
    """List the Delta tables below each ROOT, and which policy manages each of them.

    Without ROOT: those in the catalog and below the `roots` of maintainer.yml. No table is read or changed. A table
    that rules match but no rule manages is not maintained.
    """
    project = open_project(context)
    below = [absolute_path(root, Path.cwd()) for root in roots]
    engine = project_engine(project.loaded.project, spec.engine)
    left_out: list[MaintainerError] = []
    exit_code = ExitCode.OK
    with open_engine(engine) as opened, opened.finder() as finder:
        engine.stages.began("looking for tables")
        tables = []
        try:
            for name, location in finder.in_catalog():
                tables.append(LocatedTable(TableRef(name), location))
        except NotSupportedYet as problem:  # the tables of the other catalogs came before it
            left_out.append(problem)
            exit_code = ExitCode.FINDINGS
        whole_catalog = not left_out
        for root in below or project.loaded.project.places.roots:
            try:
                for location in finder.below(root):
                    tables.append(located_at(location, project.root))
            except ProjectError as problem:  # it comes after what could be found
                left_out.append(problem)
                exit_code = exit_code if isinstance(problem, FoldersTooDeep) else ExitCode.FINDINGS
    entries = inventory(project.loaded, tables, whole_catalog=whole_catalog)
    if below:
        entries = tuple(entry for entry in entries if entry.location is not None and _is_below(entry.location, below))
    written = write_stubs(project.root, entries) if write else ()
    shown = [entry for entry in entries if not unmanaged or entry.care in (Care.UNMANAGED, Care.RULED)]
    for left in left_out:
        warn(f"{left.what} ({left.where}); {left.help}", left.code)
    if output == "json":
        problems = [(left.where, as_problem(left)) for left in left_out if not isinstance(left, FoldersTooDeep)]
        print_json({
            "format_version": FORMAT_VERSION,
            "tables": [
                {"table": entry.table.identifier, "care": entry.care.value, "location": entry.location,
                 "file": entry.policy_file}
                for entry in shown
            ],
            "written": [path.as_posix() for path in written],
            "problems": problem_values(problems),
        })  # fmt: skip
        return exit_code
    rows = [(each.table.identifier, each.care.value, each.policy_file or "-", each.location or "-") for each in shown]
    print_table(("TABLE", "CARE", "POLICY", "LOCATION"), rows, Style(context.color))
    if context.verbosity >= 0:
        click.echo(_summary(entries), err=True)
        for path in written:
            click.echo(f"wrote {printable(str(path.relative_to(project.root)))}", err=True)
    return exit_code


def _is_below(location: str, roots: list[str]) -> bool:
    place = absolute_path(unquote(location, errors="surrogateescape"), Path("/"))
    return any(place == root or place.startswith(root.rstrip("/") + "/") for root in roots)


def _summary(entries: tuple[InventoryEntry, ...]) -> str:
    numbers = {care: sum(entry.care is care for entry in entries) for care in Care}
    parts = [f"{number:,} {care.value}" for care, number in numbers.items() if number]
    return f"{count_of(len(entries), 'table')}: {', '.join(parts)}" if parts else "no tables found"
