"""``maintainer inventory``: tables found against tables managed."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import click

from maintainer.app.engine_access import open_engine
from maintainer.app.selection.run_spec import RunSpec
from maintainer.app.status.inventory import Care, Entry, Found, found_at, inventory, write_stubs
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.spec_options import ENGINE, spec_options
from maintainer.cli.options.value_types import output_option
from maintainer.cli.printing import print_json, print_table
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.select.table_names import absolute_path
from maintainer.report.style import Style
from maintainer.report.text_layout import count, printable

FORMAT_VERSION = "1"


@click.command("inventory")
@click.argument("roots", nargs=-1, metavar="[ROOT...]")
@spec_options(ENGINE)
@click.option("--unmanaged", is_flag=True, help="Show only tables that no policy file names.")
@click.option("--write", is_flag=True, help="Write the smallest policy for each of them into policies/inventory/.")
@output_option("json")
@click.pass_obj
def command(
    context: CliContext, roots: tuple[str, ...], spec: RunSpec, unmanaged: bool, write: bool, output: str
) -> None:
    """Show which tables there are, and who looks after them: in the catalog, or in the folders below each ROOT.

    No table is read or changed. A table that only rules reach is not maintained until a file names it.
    """
    project = open_project(context)
    below = [absolute_path(root, Path.cwd()) for root in roots]
    with open_engine(spec.engine) as opened, opened.finder() as finder:
        tables = [Found(TableRef(name), location) for name, location in finder.in_catalog()]
        tables += [found_at(location, project.root) for root in below for location in finder.below(root)]
    entries = inventory(project.loaded, tables, whole_catalog=True)
    if below:
        entries = tuple(entry for entry in entries if entry.location is not None and _is_below(entry.location, below))
    written = write_stubs(project.root, entries) if write else ()
    shown = [entry for entry in entries if not unmanaged or entry.care in (Care.UNMANAGED, Care.RULED)]
    if output == "json":
        print_json(_as_json(shown, written))
        return
    rows = [
        (entry.table.identifier, entry.care.value, entry.policy_file or "-", entry.location or "-") for entry in shown
    ]
    print_table(("TABLE", "CARE", "POLICY", "LOCATION"), rows, Style(context.color))
    if context.verbosity >= 0:
        click.echo(_summary(entries), err=True)
        for path in written:
            click.echo(f"wrote {printable(str(path.relative_to(project.root)))}", err=True)


def _is_below(location: str, roots: list[str]) -> bool:
    place = absolute_path(unquote(location, errors="surrogateescape"), Path("/"))
    return any(place == root or place.startswith(root.rstrip("/") + "/") for root in roots)


def _summary(entries: tuple[Entry, ...]) -> str:
    numbers = {care: sum(entry.care is care for entry in entries) for care in Care}
    parts = [f"{number:,} {care.value}" for care, number in numbers.items() if number]
    return f"{count(len(entries), 'table')}: {', '.join(parts)}" if parts else "no tables found"


def _as_json(entries: list[Entry], written: tuple[Path, ...]) -> dict[str, object]:
    return {
        "format_version": FORMAT_VERSION,
        "tables": [
            {
                "table": entry.table.identifier,
                "care": entry.care.value,
                "location": entry.location,
                "file": entry.policy_file,
            }
            for entry in entries
        ],
        "written": [path.as_posix() for path in written],
    }
