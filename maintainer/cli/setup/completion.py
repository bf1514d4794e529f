"""``maintainer completion SHELL``: a script that makes the shell complete commands, options and table names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_INSTALL = {
    "bash": 'eval "$(maintainer completion bash)"      # in ~/.bashrc',
    "zsh": "maintainer completion zsh > ~/.zfunc/_maintainer    # with ~/.zfunc in fpath",
    "fish": "maintainer completion fish > ~/.config/fish/completions/maintainer.fish",
}


@click.command("completion", epilog="\b\n" + "\n".join(_INSTALL.values()))
@click.argument("shell", type=click.Choice(sorted(_INSTALL)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a completion script for SHELL: bash, zsh or fish."""
    maker = get_completion_class(shell)
    if maker is None:
        raise click.UsageError(f"click has no completion for {shell}")
    group = ctx.find_root().command
    script = maker(group, {}, "maintainer", "_MAINTAINER_COMPLETE")
    # Not `source()`: for bash it would start a shell only to look at its version.
    click.echo(script.source_template % script.source_vars())
