"""``maintainer schema``: the JSON Schema for editors, or help for one key."""

from __future__ import annotations

from pathlib import Path

import click

from maintainer.cli.context import CliContext
from maintainer.cli.printing import writing
from maintainer.errors import ProjectError
from maintainer.policy.schema.schema_keys import (
    POLICY_SCHEMA,
    PROJECT_SCHEMA,
    describe,
    key_names,
    schema_text,
    suggestion,
)
from maintainer.report.policy_text import render_key, render_keys
from maintainer.report.style import Style

_FILES = {"policy": POLICY_SCHEMA, "project": PROJECT_SCHEMA}


@click.command("schema")
@click.argument("key", required=False)
@click.option(
    "--of",
    "which",
    type=click.Choice(list(_FILES)),
    default="policy",
    show_default=True,
    help="Whose schema to print: of policy files, or of maintainer.yml (which refers to the other).",
)
@click.option("--keys", is_flag=True, help="List the names of all keys instead.")
@click.option("--markdown", is_flag=True, help="Print tables of all keys, for a page of documentation.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the schema to a file instead of stdout."
)
@click.pass_obj
def command(context: CliContext, key: str | None, which: str, keys: bool, markdown: bool, out: Path | None) -> None:
    """Print the JSON Schema, or explain one KEY, such as vacuum.retention."""
    if sum(map(bool, (key, keys, markdown, out))) > 1:
        raise click.UsageError("KEY, --keys, --markdown and --out exclude each other")
    if keys:
        click.echo("\n".join(key_names()))
    elif markdown:
        click.echo("\n".join(render_keys()), nl=False)
    elif key:
        click.echo("\n".join(_explained(key, Style(context.color))))
    elif out:
        with writing(out, "the schema"):
            out.write_text(schema_text(_FILES[which]), encoding="utf-8")
    else:
        click.echo(schema_text(_FILES[which]), nl=False)


def _explained(key: str, style: Style) -> list[str]:
    description = describe(key)
    if description is not None:
        return list(render_key(description, style))
    near = suggestion(key)
    raise ProjectError(
        f"no key `{key[:80]}` in a policy or in maintainer.yml",
        code="E619",
        help=f"did you mean `{near}`?" if near else "`maintainer schema --keys` lists all",
    )
