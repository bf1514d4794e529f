"""Writes docs/cli.md from the commands themselves: `python -m tools.cli_reference`."""

from __future__ import annotations

from pathlib import Path

import click

from maintainer.cli.main import COMMANDS, cli

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


def page() -> str:
    """The whole page: each command's own help, in the order of `maintainer --help`."""
    lines = [
        "# Commands",
        "",
        "For those who look up an option: what `maintainer --help` and `maintainer COMMAND --help` print.",
        "",
    ]
    context = click.Context(
        cli, info_name="maintainer", max_content_width=100, terminal_width=100, help_option_names=["-h", "--help"]
    )
    lines += ["## maintainer", "", "```text", _plain(cli.get_help(context)), "```", ""]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=100, terminal_width=100)
        lines += [f"## {name}", "", "```text", _plain(command.get_help(inner)), "```", ""]
        if isinstance(command, click.Group):
            for below, its in command.commands.items():
                deeper = click.Context(its, info_name=below, parent=inner, max_content_width=100, terminal_width=100)
                lines += [f"### {name} {below}", "", "```text", _plain(its.get_help(deeper)), "```", ""]
    return "\n".join(lines[:-1]) + "\n"


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
