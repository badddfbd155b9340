"""The functions that return no report: predict, look up GPUs, annotate a trace, fill a store, draw a figure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from rooflens.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import altair as alt

    from rooflens.api.figures import Theme
    from rooflens.api.kernel import Kernel
    from rooflens.api.program import Program
    from rooflens.api.report import Report
    from rooflens.ingest.load import Ingested
    from rooflens.ingest.reports.report import Raw
    from rooflens.ingest.running import ExecutorChoice
    from rooflens.model.predict.forecast import Forecast
    from rooflens.model.predict.other_gpu import WhatIf
    from rooflens.model.roofline.datasheets import Datasheet, LinkKind
    from rooflens.writing.annotating import Annotated


@overload
def predict(
    operation: str,
    *,
    from_: None = None,
    gpu: str | None = None,
    dtype: str | None = None,
    out_dtype: str | None = None,
    link: LinkKind | None = None,
    network_gb_per_s: float | None = None,
    measured_ms: float | None = None,
    **sizes: int,
) -> Forecast: ...


@overload
def predict(
    *,
    from_: Report | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    gpu: str | None = None,
    dtype: str | None = None,
) -> tuple[WhatIf, ...]: ...


def predict(
    operation: str | None = None,
    *,
    from_: Report | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    **asked: Any,
) -> Forecast | tuple[WhatIf, ...]:
    """Predict an operation on a GPU from formula and datasheet; or, with `from_`, measured kernels elsewhere.

    Args:
        operation: `gemm`, `attention-flash`, `decode`, ...: `rooflens predict` lists them.
        from_: Instead of an operation, an opened `Report`, the path of a report, a folder or a store, or several of
            these: how long would its kernels take on the GPU, in the type, or both? Kernels that cannot be predicted
            are left out, unless that is all of them.
        gpu: Short name of a GPU, or a part of its name: `rooflens gpus` lists them. By default `h100-sxm` for an
            operation, and its own GPU for a measured kernel.
        dtype: Type of the operands: `bf16`, `fp8`, `nvfp4`, ..., with that of its sums where that is not `fp32`
            ("fp16:fp16"); by default the operation's usual type, mostly `bf16`, or `fp16` or `fp32` on a GPU without
            it.
        out_dtype: Type of a matrix product's result; by default the operands' type, or `bf16` for operands of 8 or 4
            bits.
        link: Link between GPUs that share the work, `nvlink` or `pcie`; by default the fastest link that joins so many.
        network_gb_per_s: GB/s that a GPU sends over a network between GPUs, in place of a link.
        measured_ms: Measured time in ms: `compared` of the forecast sets it beside the floor and published kernels.
        asked: The options above by name, and sizes of the operation: `m=4096`; `rooflens predict gemm --help` lists an
            operation's sizes.

    Returns:
        `flop`, `moved_bytes`, `intensity` and `ridge` (FLOP per byte), `regime` (`memory`, `compute`,
        `communication` or `overhead`), `t_lower_s` (the floor in seconds, from cold caches),
        `t_fused_s` (that of one kernel for all steps of a composite operation), `t_upper_s` (without any overlap),
        `t_lower_warm_s` (with operands and results in L2; None if they do not fit), `attainable` (the time of published
        kernels), `roof_flop_per_s`, `parts` and more; with `measured_ms` also `compared`, rows with `name`,
        `predicted`, `measured`, `factor` and `verdict`. For measured kernels a list with `kernel`, `gpu`,
        `measured_ns`, `about_ns`, `factor` and `side` each, most to win here first.

    Raises:
        UsageError: The operation, type or a size is unknown; no GPU, or more than one, has this name; or a size is
            missing, out of range or inconsistent with another size.
        InputError: The GPU has no published peak for this type, or lacks this link.

    >>> import rooflens as rl
    >>> forecast = rl.predict("gemm", gpu="h100-sxm", m=4096, n=4096, k=4096, dtype="bf16")
    >>> forecast.regime, round(forecast.t_lower_s * 1e6)
    ('compute', 139)
    """
    from rooflens.model.predict.options import Options

    if from_ is not None:
        given = {name for name, value in asked.items() if value is not None}
        if operation is not None or given - {"gpu", "dtype"}:
            raise UsageError("from_ takes the place of an operation and its sizes", "give gpu, dtype, or both")
        return _predict_measured(from_, asked.get("gpu"), asked.get("dtype"))
    if operation is None:
        raise UsageError("nothing to predict", "give an operation, such as `gemm`, or from_=REPORT")
    from rooflens.model.predict.forecast import predicted

    options, sizes = Options.of(asked)
    return predicted(operation, sizes, options).steps[0][1]


def _predict_measured(
    given: Report | str | os.PathLike[str] | Sequence[str | os.PathLike[str]], gpu: str | None, dtype: str | None
) -> tuple[WhatIf, ...]:
    from rooflens.api.opening import open as open_reports
    from rooflens.api.report import Report
    from rooflens.model.predict.other_gpu import check_change, elsewhere
    from rooflens.model.roofline.datasheets import the_datasheet

    gpus = [gpu] if gpu else []
    check_change(gpus, dtype, "give gpu, dtype, or both")
    sheets = [the_datasheet(one) for one in gpus]
    report = given if isinstance(given, Report) else open_reports(given)
    answers, left_out = elsewhere(report.analyzed.analyses, sheets, dtype)
    if not answers:
        why = "; ".join(f"{name}: {error}" for name, error in left_out.items())
        raise UsageError("none of these kernels can be predicted", why)
    return tuple(answers)


def trace(
    path: str | os.PathLike[str],
    reports: Report | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    *,
    gpu: str | None = None,
    kernel: str | Sequence[str] = (),
    nvtx: str | Sequence[str] = (),
) -> Program:
    """Read a trace without a report: its kernels ranked by what can be won above the floors of their operators' sizes.

    Args:
        path: A file from `export_chrome_trace` of `torch.profiler`, an SQLite export of nsys, or its `.nsys-rep`.
        reports: Reports of its kernels, opened or as paths: these kernels get verdict and gain in the same list.
        gpu: Short name of the GPU, or a part of its name, if the trace names no GPU with known peaks.
        kernel: One or several patterns of kernels, as for `--kernel`.
        nvtx: One or several patterns of NVTX ranges, as for `--nvtx`.

    Returns:
        The program: `parts` of its time, `kernels`, `operators`, `modules`, `idle`, `communication`, `copies`, `steps`
        and `fusions`, each with `to_pandas()`; `gain_ns`, `unprofiled`, `stretches`, `unknown` operators, `next`, the
        kernels to profile, and `notes`.

    Raises:
        InputError: The file is unreadable or cut, no trace, or has no kernels.
        UsageError: No GPU has that name, or several have it; or a pattern cannot be read.
        NoMatchError: No kernel matches.
        EnvironmentMissingError: The file is a Nsight Systems report, and nsys is not installed.

    >>> import rooflens as rl
    >>> program = rl.trace("examples/step.synthetic.json")
    >>> program.launches, program.kernels[0].count
    (12, 2)
    """
    from rooflens.api.program import open_program
    from rooflens.model.selecting import Selection

    kernels, ranges = ((given,) if isinstance(given, str) else tuple(given) for given in (kernel, nvtx))
    opened = _opened_report(reports).analyzed.reports if reports else ()
    return open_program(path, Selection(kernels, ranges), gpu, opened)


def gpus(name: str = "") -> tuple[Datasheet, ...]:
    """Look up GPUs with a known datasheet.

    Args:
        name: Short or display name, or a part of either; empty for all GPUs.

    Returns:
        A datasheet per GPU: `id` (the value of `gpu=`), `name`, `compute_capability`, `sm_count`, `boost_clock`,
        `dram_bandwidth` and `peaks`, each quantity with `value` in SI units and its `source`.

    Raises:
        UsageError: No GPU has this name.

    >>> import rooflens as rl
    >>> [gpu.id for gpu in rl.gpus("h200")], len(rl.gpus()) > 20
    (['h200'], True)
    """
    from rooflens.model.roofline.datasheets import load_datasheets, matching_datasheets

    return matching_datasheets(name) if name else load_datasheets()


def annotate(
    trace: str | os.PathLike[str],
    reports: Report | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    force: bool = False,
) -> Annotated:
    """Write a copy of a PyTorch profiler's trace with the verdicts of reports in its kernels' arguments.

    Args:
        trace: A file from `export_chrome_trace` of `torch.profiler`: `.json` or `.json.gz`.
        reports: An opened `Report`, or the path of a report, a folder or a store, or several paths.
        output: The copy, `.json` or `.json.gz`: Perfetto and `chrome://tracing` open it.
        force: Overwrite an existing file.

    Returns:
        `event_count` and `matched_count` of kernel events, `kernel_count` and `matched_kernel_count` of kernel names, a
        summary in `words`, and `notes`.

    Raises:
        UsageError: The output's name has another ending, or the file exists.
        InputError: The trace or the reports cannot be read, or no kernel of the trace is in the reports.

    >>> import rooflens as rl, tempfile
    >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rl.annotate("examples/step.synthetic.json", report, f"{folder}/annotated.json.gz").matched_count
    8
    """
    from rooflens.writing.annotating import annotate as write
    from rooflens.writing.annotating import check_files
    from rooflens.writing.outputs import check_free

    check_files(Path(trace), Path(output))
    check_free(Path(output), force=force, hint="give another name, or force=True to overwrite it")
    return write(Path(trace), _opened_report(reports).analyzed.reports, Path(output))


def _opened_report(reports: Report | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Report:
    """Open reports given by path; opened reports are returned unchanged."""
    from rooflens.api.opening import open as open_reports
    from rooflens.api.report import Report

    if isinstance(reports, Report):
        return reports
    return open_reports(*([reports] if isinstance(reports, (str, os.PathLike)) else reports))


def ingest_reports(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    store: str | os.PathLike[str],
    executor: ExecutorChoice | None = None,
    *,
    raw: Raw = "values",
) -> Ingested:
    """Read reports, or folders of them, into a store: a folder of Parquet that `open`, pandas, Polars and DuckDB read.

    Reports that are stored already are skipped; a report that cannot be read does not affect the others.

    Args:
        paths: One or several reports, CSV exports, folders of these, or addresses.
        store: An empty folder, a store, or an address such as `s3://bucket/store`.
        executor: What reads them: an executor of `concurrent.futures`, or `process:8` or `dask:tcp://host:8786`; by
            default this process. Processes import the main module again, so a script needs a main guard.
        raw: Which of ncu's own values to keep: `none`, `values` (one per metric), or `all`, including instances.

    Returns:
        `report_count` and `kernel_count` of what was stored, `skipped_count`, and `failures` (path and error).

    Raises:
        InputError: A path does not exist, no folder holds a report, or the store cannot be written to.
        UsageError: The executor does not exist, or a path is empty or no path.

    >>> import rooflens as rl, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stored = rl.ingest_reports("fixtures/synthetic/attention.synthetic.ncu-rep", f"{folder}/store")
    ...     stored.report_count, len(rl.open(f"{folder}/store")) == stored.kernel_count
    (1, True)
    """
    from rooflens.files import path_text
    from rooflens.ingest import load
    from rooflens.ingest.reports.inputs import find_inputs
    from rooflens.ingest.reports.report import ReadOptions
    from rooflens.ingest.reports.unprofiled import read_unprofiled
    from rooflens.model.store.dataset import Store

    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    jobs = find_inputs([path_text(path) for path in given]).jobs
    place = Store(path_text(store))
    return load.ingest_reports(
        jobs, place, unprofiled_of=read_unprofiled, options=ReadOptions(raw=raw), executor=executor
    )


def figure(  # noqa: PLR0913 - what a figure is described by
    report: Report | Kernel | str | os.PathLike[str],
    *,
    width: float = 640,
    height: float = 420,
    font: float = 11,
    theme: Theme = "light",
    level: str | None = None,
    kernels: str | Sequence[str] | None = None,
) -> alt.LayerChart:
    """Draw the roofline of a report or a kernel as an Altair chart of layers, for a paper, a slide or a notebook.

    All that Altair does with a chart works on it: `properties`, `encode`, `interactive`, `add_params`, more layers,
    charts beside it, `save` as PDF, SVG, PNG or HTML. Its own data are the dots, in the columns of `Report.points`;
    its first layer draws them, and holds the axes of all layers.

    Args:
        report: What to draw, of one GPU; the path of a report is opened.
        width: Width of the whole figure in points, 1/72 inch; on a screen, in pixels.
        height: Its height, likewise.
        font: Size of its words in points.
        theme: `light`, or `dark`, which brings its ground.
        level: Memory level at which kernels stand, `dram`, `l2`, `l1` or `smem`, or `all`; by default the one that
            limits each.
        kernels: Draw these alone: a pattern as in `report["adamw*"]`, or several.

    Raises:
        UsageError: There is no such size, theme or level, or the kernels ran on several GPUs.
        InputError: No kernel has a place in a roofline, or such a name.

    >>> import rooflens as rl
    >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
    >>> column = rl.figure(report, width=249, height=190, font=7)  # 88 mm wide
    >>> type(column.interactive() | rl.figure(report, level="dram", kernels="flash*"))
    <class 'altair.vegalite.v6.api.HConcatChart'>
    """
    from rooflens.api.report import Report

    if isinstance(report, (str, os.PathLike)):
        from rooflens.api.opening import open as open_reports

        report = open_reports(report)
    if kernels is not None:
        if not isinstance(report, Report):
            raise UsageError("a kernel holds no kernels to choose", "leave `kernels` out, or give a report")
        report = report.named([kernels] if isinstance(kernels, str) else kernels)
    return report.chart(level, width=width, height=height, font=font, theme=theme)
