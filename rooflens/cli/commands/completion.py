"""`rooflens completion`: the shell script that completes commands, options and names."""

from __future__ import annotations

import click

from rooflens.cli.console import echo
from rooflens.cli.usage import examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog=examples(
        'eval "$(rooflens completion bash)"  # in ~/.bashrc',
        'eval "$(rooflens completion zsh)"   # in ~/.zshrc',
        "rooflens completion fish | source   # in ~/.config/fish/config.fish",
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the shell script that completes commands, options and names."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise click.BadParameter(f"the installed click cannot complete in {shell}", ctx)
    echo(made(ctx.find_root().command, {}, "rooflens", "_ROOFLENS_COMPLETE").source())
