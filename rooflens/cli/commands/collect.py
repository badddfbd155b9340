"""`rooflens collect`: run ncu and keep its report. The command line alone; `cli/collecting.py` does the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rooflens.cli.collecting import OPTIONS, OUTPUT, SAYS, CommandLine
from rooflens.cli.collecting import collect as collect_as_asked
from rooflens.cli.options import with_click
from rooflens.cli.usage import CHIPS, WORKLOADS, Command, complete_cases, examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_AFTER_DASHES, _BEFORE_DASHES = "rooflens.after_dashes", "rooflens.before_dashes"
_COMPLETED = {"--case": complete_cases, "--chip": CHIPS}


class ProgramCommand(Command):
    """A command that takes the user's program after `--` and does not read the program's options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments after `--` separate."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[_BEFORE_DASHES] = tuple(args[:place])
        ctx.meta[_AFTER_DASHES] = tuple(args[place + 1 :]) if "--" in args else None
        return super().parse_args(ctx, args[:place])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Show both forms in the usage."""
        return ["[OPTIONS]", "(WORKLOAD | -- COMMAND...)"]


def with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a collection to a command."""
    for option in reversed(OPTIONS):
        function = with_click(option, _COMPLETED.get(option.name))(function)
    workload: Callable[..., None] = click.argument("workload", required=False, shell_complete=WORKLOADS)(function)
    return workload


def line_of(ctx: click.Context, options: dict[str, Any]) -> CommandLine:
    """Return the command line as the parts of a collection take it."""
    return CommandLine(str(ctx.info_name), options, ctx.meta[_BEFORE_DASHES], ctx.meta[_AFTER_DASHES])


@click.command(
    cls=ProgramCommand,
    help=SAYS,
    epilog=examples(
        "rooflens collect saxpy -o saxpy.ncu-rep",
        "rooflens collect --dry-run --chip gh100 -- python train.py",
    ),
)
@with_options
@with_click(OUTPUT)
@click.pass_context
def collect(ctx: click.Context, /, output: Path | None, **options: Any) -> None:
    """Run `collecting.collect`."""
    ctx.exit(collect_as_asked(line_of(ctx, options), output))
