"""The usage of commands: their forms, names for shell completion, and suggestions for lines that cannot be parsed."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from rooflens.cli.console import show_error
from rooflens.cli.settings import say_defaults
from rooflens.errors import UnknownNameError, UsageError
from rooflens.format import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from click.shell_completion import CompletionItem


def examples(*lines: str) -> str:
    """Write the examples below a command's options, a line each."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


def completed_by(
    names: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Make click's callback for the names that a shell may complete."""

    def completed(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in names() if name.startswith(begun)]

    return completed


def completed_by_files(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Let the shell complete file names; not a `click.Path`, because addresses are accepted too."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(begun, type="file")]


def _gpu_ids() -> list[str]:
    from rooflens.model.roofline.datasheets import load_datasheets

    return [gpu.id for gpu in load_datasheets()]


def _chips() -> Sequence[str]:
    from rooflens.model.counters.chips import CHIPS

    return CHIPS


def _workloads() -> list[str]:
    from rooflens.workloads.registry import load_workloads

    return [workload.name for workload in load_workloads()]


GPUS = completed_by(_gpu_ids)
CHIPS = completed_by(_chips)
WORKLOADS = completed_by(_workloads)


def complete_cases(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the cases of the workload on the line; nothing if the line names no workload."""
    from rooflens.workloads.registry import load_workloads

    typed = {context.params.get("workload"), *context.args}  # it stays in `args` while `--case` has no value
    cases = [case.name for workload in load_workloads() if workload.name in typed for case in workload.cases]
    return completed_by(lambda: cases)(context, parameter, begun)


REPORT_ENDINGS = (".ncu-rep", ".ncu-repz")


def is_report(name: str) -> bool:
    """Return whether a name means a file, existing or not."""
    try:
        return name.endswith((*REPORT_ENDINGS, ".ncu-proj")) or Path(name).is_file()
    except OSError:  # a name too long for a file
        return False


COMMON = ("--kernel", "--top", "--format", "--output", "--fail-on", "--store", "--detail", "--launches", "--by")
"""Options that a command's help lists first, in this order."""

HEADINGS: Mapping[str, tuple[str, ...]] = {
    "How reports are read": (
        "--nvtx",
        "--timeline",
        "--predict",
        "--gpu",
        "--thresholds",
        "--without-nvidia",
        "--raw",
        "--executor",
    ),
    "How sides are judged": ("--per-kernel", "--floor", "--threshold", "--anyway"),
    "How it is written": ("--columns", "--max-tokens", "--csv-raw-cells", "--title", "--theme", "--table", "--force"),
    "What ncu does": (
        "--metrics",
        "--nvtx-include",
        "--import-source",
        "--ncu-args",
        "--ranks",
        "--chip",
        "--ncu",
        "--timeout",
        "--no-unprofiled",
        "--kill",
    ),
}
"""Heading in a command's help -> its options; all others are under `Options`."""


class Command(click.Command):
    """A command that names defaults that nobody typed, and whose help lists options by how common they are."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and say first which options nobody typed."""
        say_defaults(ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; if there are few, without headings."""
        shown = [
            (one.opts[-1], record)
            for one in self.get_params(ctx)
            if isinstance(one, click.Option) and (record := one.get_help_record(ctx))
        ]
        under = {option: heading for heading, options in HEADINGS.items() for option in options}
        if len(shown) <= _FEW_OPTIONS:
            under = {}
        for heading in ("Options", *HEADINGS):
            records = [pair for pair in shown if under.get(pair[0], "Options") == heading]
            records.sort(key=lambda pair: COMMON.index(pair[0]) if pair[0] in COMMON else len(COMMON))
            if records:
                with formatter.section(heading):
                    formatter.write_dl([record for _, record in records])


_FEW_OPTIONS = 8


class NamedGroup(click.Group):
    """A group that suggests commands for an unknown command, and shows usage errors like all other errors."""

    kind = "command"

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Make the context, or explain why the line cannot be parsed."""
        with _usage_errors_in_our_form():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, or explain why its line cannot be parsed."""
        with _usage_errors_in_our_form():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest similar names."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            raise UnknownNameError(self.kind, name, self.list_commands(ctx), f"{ctx.command_path} --help")
        return super().resolve_command(ctx, args)


_HINTS = {
    "--sort": "tables have one order, most to win first; `--format csv` is for a spreadsheet, `Report.sort` for Python",
    **dict.fromkeys(("-o", "--output"), "it writes to stdout: `> FILE`; `rooflens report PATH -o FILE` writes files"),
    **dict.fromkeys(("--no-color", "--no-colour", "--plain"), "`NO_COLOR=1`, or a pipe, turns colours off"),
    **dict.fromkeys(("-v", "--verbose"), "`rooflens explain PATH --kernel NAME` says all about one kernel"),
    "--metrics": "`rooflens explain PATH --kernel NAME` shows counters, `kernel.metrics()` in Python has all of ncu's",
    "--fail-on": "for example `--fail-on 5%`",
    "--store": "for example `--store runs`",
}
"""An option that there is not, or that lacks its value -> what does what is meant."""


@contextmanager
def _usage_errors_in_our_form() -> Iterator[None]:
    """Show a usage error in our form; a group called without a command still shows its help."""
    try:
        yield
    except (_OurUsageError, click.exceptions.NoArgsIsHelpError):
        raise
    except click.UsageError as error:
        raise _OurUsageError(error) from error


class _OurUsageError(click.UsageError):
    def __init__(self, error: click.UsageError) -> None:
        super().__init__(error.message, error.ctx)
        self._error = error

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - click's signature
        error = self._error
        near = error.possibilities if isinstance(error, click.NoSuchOption) else None
        help_of = f"`{error.ctx.command_path if error.ctx else 'rooflens'} --help` lists what there is"
        message = (
            f"no such option: {error.option_name}" if isinstance(error, click.NoSuchOption) else _error_line(error)
        )
        hint = f"did you mean {' or '.join(f'`{one}`' for one in near)}? {help_of}" if near else help_of
        param = error.param if isinstance(error, click.MissingParameter) else None
        for name in (getattr(error, "option_name", ""), *(param.opts if param else ())):
            hint = f"{_HINTS[name]}; {help_of}" if name in _HINTS else hint
        show_error(UsageError(harmless(message), hint))


def _error_line(error: click.UsageError) -> str:
    """Write click's sentence like our errors: lower case, without a full stop."""
    text = error.format_message()
    return f"{text[:1].lower()}{text[1:]}".removesuffix(".")
