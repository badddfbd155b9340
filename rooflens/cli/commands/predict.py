"""The command `predict`: one sub-command for each row of the table of operations."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rooflens.cli.console import check_output, deliver, echo, finish, say, show_failures, with_output
from rooflens.cli.lines import with_options, with_sizes
from rooflens.cli.settings import PREFIX, say_defaults, with_names
from rooflens.cli.usage import GPUS, NamedGroup, completed_by, is_report
from rooflens.errors import InputError, RooflensError, UsageError
from rooflens.format import some

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflens.model.predict.forecast import ForecastRow
    from rooflens.model.predict.options import ForecastOption
    from rooflens.model.predict.rows import Operation, Size
    from rooflens.model.roofline.datasheets import Datasheet

FORMATS = ("table", "json", "csv", "md", "html")


class _Operations(NamedGroup):
    """Make a sub-command of the table when it is needed."""

    kind = "operation"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; a report in place of an operation means --from."""
        if args and not args[0].startswith("-") and not ctx.resilient_parsing and is_report(args[0]):
            args = with_options(self, ["--from", *args])
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        from rooflens.model.predict.operations import OPERATIONS

        return list(OPERATIONS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the operation, or suggest similar names."""
        from rooflens.model.predict.operations import the_operation

        if not args[0].startswith("-") and not ctx.resilient_parsing:
            args = [the_operation(args[0]).name, *args[1:]]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        from rooflens.model.predict.operations import OPERATIONS

        operation = OPERATIONS.get(name)
        if operation is None:
            return None
        prefix = ctx.auto_envvar_prefix and f"{PREFIX}_PREDICT_{name}".replace("-", "_").upper()
        return with_names(_command(operation), prefix)


class _OperationCommand(click.Command):
    """Name all missing sizes at once; click would name only the first."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options, and sizes by their place; click reads those that were given first."""
        if not ctx.resilient_parsing:
            args = with_sizes(self, with_options(self, args))
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter:
            missing = [f"'{one.opts[0]}'" for one in self.params if one.required and one.name not in ctx.params]
            options = "options" if len(missing) > 1 else "option"
            example = " ".join([f"{ctx.command_path}", *["4096"] * len(missing)])
            help_of = f"`{ctx.command_path} --help` lists what there is"
            raise UsageError(f"missing {options} {', '.join(missing)}", f"for example `{example}`; {help_of}") from None

    def invoke(self, ctx: click.Context) -> Any:
        """Predict, and say first which options nobody typed."""
        say_defaults(ctx)
        return super().invoke(ctx)


def _types() -> Iterable[str]:
    from rooflens.model.predict.rows import DTYPES

    return DTYPES


@click.group(
    cls=_Operations,
    short_help="Predict an operation, or a measured kernel elsewhere.",
    invoke_without_command=True,
)
@click.option(
    "--from",
    "reports",
    multiple=True,
    metavar="REPORT",
    help="Predict the kernels of this report in place of an operation. Repeatable.",
)
@click.option("--kernel", multiple=True, metavar="PATTERN", help="With --from: only these kernels, as in `analyze`.")
@click.option(
    "--gpu",
    "gpu_names",
    multiple=True,
    shell_complete=GPUS,
    help="With --from: on this GPU, a name that `rooflens gpus` lists. Repeatable.",
)
@click.option(
    "--from-gpu",
    metavar="NAME",
    shell_complete=GPUS,
    help="With --from: the GPU of CSV exports that do not name it.",
)
@click.option("--dtype", shell_complete=completed_by(_types), help="With --from: in this type, such as fp16.")
@click.option("--format", "style", type=click.Choice(["table", "json", "md"]), help="With --from: what to write.")
@click.pass_context
def predict(
    ctx: click.Context,
    *,
    reports: tuple[str, ...],
    kernel: tuple[str, ...],
    gpu_names: tuple[str, ...],
    from_gpu: str | None,
    dtype: str | None,
    style: str | None,
) -> None:
    """Predict an operation before measuring it, on any GPU that `rooflens gpus` lists; or a measured kernel elsewhere.

    FLOPs and compulsory bytes are counted by formula and divided by the GPU's dense datasheet peaks. With --from they
    come from a report's kernels: how long would these take on another GPU, or in another type?

    `rooflens predict REPORT` is short for `rooflens predict --from REPORT`.

    \b
    rooflens predict --from report.ncu-rep --kernel gemm --gpu h100-sxm
    rooflens predict --from report.ncu-rep --kernel gemm --dtype fp16
    rooflens predict gemm --m 4096 --n 4096 --k 4096 --dtype bf16 --gpu h100-sxm
    rooflens predict gemm --n 128:8192:x2 --m n --k n --gpu h200 --gpu b200
    rooflens predict decode --tensor-parallel 1,2,4,8 --gpu h100-sxm
    rooflens predict all-reduce --bytes 1048576:1073741824:x4 --gpus 8 --link pcie
    """  # noqa: D301 - click's mark for lines that stay as they are
    given = {"--kernel": kernel, "--gpu": gpu_names, "--dtype": dtype, "--format": style}
    if not reports and from_gpu:
        raise UsageError("--from-gpu goes with --from REPORT, and has no effect here", "`--gpu` names the GPU")
    if not reports and (idle := [name for name, value in given.items() if value]):
        raise UsageError(
            f"{idle[0]} before an operation goes with --from REPORT, and has no effect here",
            f"for an operation it comes after its name: `rooflens predict gemm ... {idle[0]} ...`",
        )
    if reports and ctx.invoked_subcommand is not None:
        raise UsageError("--from takes the place of an operation", f"leave out `{ctx.invoked_subcommand}`")
    if reports:
        _predict_measured(reports, kernel, gpu_names, from_gpu, dtype, style)
    elif ctx.invoked_subcommand is None:
        echo(ctx.get_help())


def _predict_measured(  # noqa: PLR0917 - what a command line gives
    reports: tuple[str, ...],
    patterns: tuple[str, ...],
    gpu_names: tuple[str, ...],
    from_gpu: str | None,
    dtype: str | None,
    style: str | None,
) -> None:
    """Predict the kernels of reports on other GPUs, in another type, or both.

    Raises:
        UsageError: Neither GPU nor type was given, or the type has no effect.
        InputError: No kernel was measured, or none can be predicted.
    """
    from rooflens.cli.loading import load_analyzed
    from rooflens.cli.wanted import Wanted
    from rooflens.ingest.reports.report import ReadOptions
    from rooflens.model.predict.other_gpu import check_change, elsewhere
    from rooflens.model.selecting import Selection
    from rooflens.writing.answers import of_what_if

    check_change(gpu_names, dtype, "give --gpu NAME, --dtype TYPE, or both")
    gpus = _chosen_gpus(gpu_names)
    found = load_analyzed(
        Wanted(
            paths=reports,
            reading=ReadOptions(gpu=from_gpu, gpu_option="--from-gpu", texts=False),
            selection=Selection(patterns),
        )
    )
    try:
        answers, left_out = elsewhere(found.analyses, gpus, dtype)
    except RooflensError:
        show_failures(found)
        raise
    for name, why in left_out.items():
        say(f"note: {name} left out: {why}; {why.hint}")
    if not answers:
        raise UsageError("none of these kernels can be predicted", "the notes above say why")
    deliver(of_what_if(answers), style or "table")
    finish(found, "")


def _command(operation: Operation) -> click.Command:
    from rooflens.model.predict.options import OPTIONS

    sent = f" Sent by each of N GPUs: {operation.sent_source}." if operation.sent_source else ""
    also = f" Also counted: {operation.extra_costs}." if operation.extra_costs else ""
    about = (
        f"{operation.summary[0].upper()}{operation.summary[1:]}.\n\n"
        f"FLOPs: {operation.flop_source}. Bytes: {operation.bytes_source}.{also}{sent}\n\n"
        "SIZE is a number, a list 1,2,4, a sweep 128:8192:x2 or 64:1024:+64, or the name of another size."
    )

    @click.command(
        operation.name,
        cls=_OperationCommand,
        context_settings={"token_normalize_func": str.casefold},  # `--M 4096` is `--m 4096`
        help=about,
        short_help=operation.summary,
    )
    @with_output(FORMATS)
    def command(**given: Any) -> None:
        _run_prediction(operation, given)

    command.params[:0] = [*map(_size_option, operation.sizes), *(_asked_option(one, operation) for one in OPTIONS)]
    return command


def _asked_option(option: ForecastOption, operation: Operation) -> click.Option:
    """Make the option of a forecast; the command takes several types and GPUs."""
    names, about = (
        [f"--{option.name.replace('_', '-')}", option.name],
        f"{option.meaning[0].upper()}{option.meaning[1:]}",
    )
    if option.name == "gpu":
        about = f"{about}, or `all`. Repeatable."
        return click.Option(
            names, multiple=True, default=(option.default,), show_default=True, shell_complete=GPUS, help=about
        )
    if option.name == "dtype":
        usual = f"{operation.dtype}{'' if operation.unit == 'vector' else '; on a GPU without it fp16 or fp32'}"
        about = f"{about.partition(':')[0]}; separate several by commas.  [default: {usual}]"
        return click.Option(names, shell_complete=completed_by(_types), help=about)
    kind = click.Choice(option.choices) if option.choices else option.kind
    complete = completed_by(_types) if option.name.endswith("dtype") else None
    return click.Option(names, type=kind, shell_complete=complete, help=f"{about}.")


def _size_option(size: Size) -> click.Option:
    names = [f"--{size.name.replace('_', '-')}", size.name]
    about = f"{size.meaning[0].upper()}{size.meaning[1:]}."
    if size.default is None:
        return click.Option(names, metavar="SIZE", required=True, help=about)
    default = str(size.default)
    if size.most == 1:  # a switch: on where nothing is behind it
        return click.Option(
            names, metavar="[SIZE]", is_flag=False, flag_value="1", default=default, show_default=True, help=about
        )
    return click.Option(names, metavar="SIZE", default=default, show_default=True, help=about)


def _run_prediction(operation: Operation, given: dict[str, Any]) -> None:
    """Predict and show every step of the sweep, for every type and GPU."""
    from rooflens.model.predict.options import OPTIONS
    from rooflens.writing.answers import of_forecasts

    output = given["output"]
    style = check_output(output, given["style"], FORMATS, "predict.html", force=given["force"])
    written = {size.name: str(given[size.name]) for size in operation.sizes}
    cases = _cases(operation, given["dtype"], _chosen_gpus(given["gpu"]))
    if given["measured_ms"] is not None and len(cases) > 1:
        raise UsageError("--measured-ms needs a single GPU and type", "give one `--gpu` and one `--dtype`")
    rest = {one.name: given[one.name] for one in OPTIONS if one.name not in {"gpu", "dtype"}}
    rows, lacking = _forecast_rows(operation, written, cases, rest)
    if not any(step.link for row in rows for _, step in row.steps):
        for name in ("link", "network_gb_per_s"):
            if given[name]:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(
                    f"{option} has no effect: one GPU alone sends nothing", "leave it out, or give more GPUs"
                )
    for failure in lacking:
        say(f"warning: {failure}")
    _say_sizes(operation, written)
    deliver(of_forecasts(rows, [str(failure) for failure in lacking]), style, output)


def _say_sizes(operation: Operation, written: dict[str, str]) -> None:
    """Name the sizes that were taken where none was given: a time without its sizes says nothing."""
    ctx = click.get_current_context()
    if all(ctx.get_parameter_source(size.name) is ParameterSource.DEFAULT for size in operation.sizes):
        named = ", ".join(f"{name} {value}" for name, value in written.items() if value != "0")
        say(f"note: no size was given; usual sizes: {named}")


def _cases(operation: Operation, written: str | None, gpus: list[Datasheet]) -> list[tuple[str, Datasheet]]:
    """Pair types with GPUs; without a type, each GPU gets its default, and a note says if that is not the usual one."""
    from rooflens.model.predict.forecast import usual_dtype

    if written is not None:
        dtypes = dict.fromkeys(dtype.strip() for dtype in written.split(","))
        return list(product(dtypes, gpus))
    cases = [(usual_dtype(operation, gpu), gpu) for gpu in gpus]
    for other in dict.fromkeys(dtype for dtype, _ in cases if dtype != operation.dtype):
        names = some([gpu.name for dtype, gpu in cases if dtype == other])
        say(f"note: {names}: no published peak for {operation.dtype}; predicted in {other}")
    return cases


def _forecast_rows(
    operation: Operation, written: dict[str, str], cases: list[tuple[str, Datasheet]], rest: dict[str, Any]
) -> tuple[list[ForecastRow], list[InputError]]:
    """Predict on each GPU; one that lacks the type or the link is left out and named, unless it is the only one."""
    from rooflens.model.predict.forecast import swept
    from rooflens.model.predict.options import Options

    rows, failures = [], []
    for dtype, gpu in cases:
        try:
            rows.append(swept(operation, written, dtype, gpu, Options(gpu=gpu.id, dtype=dtype, **rest)))
        except InputError as error:
            failures.append(error)
    if not rows:
        raise failures[0]
    return rows, failures


def _chosen_gpus(names: tuple[str, ...]) -> list[Datasheet]:
    """Find GPUs by short name or a part of their name, each once.

    Raises:
        UsageError: No GPU matches a name, or several do.
    """
    from rooflens.model.roofline.datasheets import load_datasheets, the_datasheet

    found = load_datasheets() if "all" in names else [the_datasheet(name) for name in names]
    return list({gpu.id: gpu for gpu in found}.values())
