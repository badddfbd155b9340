"""Opened reports: their kernels in the order of the table, and everything that can be made from them."""

from __future__ import annotations

import json
import os
from functools import cached_property
from operator import index, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, Unpack, overload

from msgspec.structs import replace

from rooflens.api import notebook
from rooflens.api.kernel import Kernel, column, columns
from rooflens.api.suggestions import meant_by, public
from rooflens.errors import EnvironmentMissingError
from rooflens.format import SENTENCE_NAME_WIDTH, count, cut_name, duration, harmless, plain_name, printable
from rooflens.meant import BY_NAME
from rooflens.model.selecting import Selection, select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import altair as alt
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from rooflens.analyzing import Analyzed
    from rooflens.api.figures import Sizes
    from rooflens.api.frames import TableName
    from rooflens.api.sources import Source
    from rooflens.api.verdict import Verdict
    from rooflens.errors import InputError
    from rooflens.model.records import Analysis, Run
    from rooflens.model.summary import KernelSummary


class Report:
    """Kernels of one or more reports, in the order of `analyze`, failed kernels last.

    `rooflens.open` makes it. It is a sequence: `len(report)`, `for kernel in report`, `report[0]` for the launch to
    look at first; `report[:5]` and `report["adamw*"]` are a `Report` of some kernels. pyarrow, Polars, DuckDB and
    pandas accept it directly, as a table with a row per kernel.

    >>> import rooflens as rl
    >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
    >>> [kernel.function_name for kernel in report[:2]]
    ['flash_attention_forward', 'attention_values_gemm']
    """

    def __init__(
        self,
        analyzed: Analyzed,
        sources: Mapping[str, Source],
        total_ns: float,
        kernels: tuple[Kernel, ...] | None = None,
    ) -> None:
        """Take the reports that were read.

        Args:
            analyzed: Reports, with the wanted kernels.
            sources: By digest, these reports with all their kernels, and where they came from.
            total_ns: GPU time of everything opened, in nanoseconds: the whole that `Kernel.time_share` is a share of.
            kernels: The same kernels in their order; by default the order of the table.
        """
        self._found = analyzed
        self._sources = sources
        self._total_ns = total_ns
        self._ordered = kernels
        self._tables: dict[str, pa.Table] = {}

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, a profiled launch each, in the order of the table; failed kernels come last."""
        if self._ordered is not None:
            return self._ordered
        from rooflens.model.ranking import in_order
        from rooflens.model.summary import summarize

        launches = in_order(summarize(self._found.analyses, each_launch=True))
        return tuple(self._kernel_of(launch.analysis) for launch in launches)

    def _kernel_of(self, analysis: Analysis) -> Kernel:
        return Kernel(analysis, self._sources[analysis.kernel.digest], self._total_ns)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The kernels, each with all its launches, in the order of the table; failed kernels come last.

        >>> import rooflens as rl
        >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
        >>> [(group.kernel.function_name, group.launch_count) for group in report.groups[:1]]
        [('flash_attention_forward', 1)]
        """
        from rooflens.model.ranking import in_order
        from rooflens.model.summary import summarize

        kernels = in_order(summarize(self._found.analyses))
        return tuple(Group(kernel, self._kernel_of(kernel.analysis), self._report_of(kernel)) for kernel in kernels)

    def _report_of(self, summary: KernelSummary) -> Report:
        members = {id(launch.analysis) for launch in summary.launches}
        return self._with(kernel for kernel in self.kernels if id(kernel.analysis) in members)

    def filter(self, wanted: Callable[[Kernel], bool] | str | None = None, /, **values: object) -> Report:
        """Keep the kernels that meet a condition, or have these values.

        Args:
            wanted: Returns whether to keep a kernel; or a pattern as in `report[pattern]`.
            values: Values by column of the summary: `verdict_bound="memory"`.

        Raises:
            UnknownKeyError: The summary lacks the column.

        >>> import rooflens as rl
        >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
        >>> len(report.filter(verdict_bound="memory"))
        1
        >>> len(report.filter(lambda kernel: kernel.levels["dram"].share > 0.99))
        0
        """
        if isinstance(wanted, str):
            return self.named((wanted,)).filter(**values)
        return self._with(
            kernel
            for kernel in self.kernels
            if (wanted is None or wanted(kernel)) and all(kernel[name] == value for name, value in values.items())
        )

    def sort(self, by: str | Callable[[Kernel], Any], *, descending: bool = True) -> Report:
        """Return the same kernels in another order; kernels without a value come last.

        Args:
            by: A column of the summary (`gpu_time_ns`), or a function from a kernel to the value.
            descending: Largest first.

        Raises:
            UnknownKeyError: The summary lacks the column.

        >>> import rooflens as rl
        >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
        >>> report.sort("gpu_time_ns")[0].gpu_time_ns == max(kernel.gpu_time_ns for kernel in report)
        True
        """
        if isinstance(by, str):  # an order needs no unit: `duration`, `time`
            by = column(next((name for name in (by, f"{by}_ns", f"gpu_{by}_ns") if name in columns()), by))
        take = by
        valued = [(take(kernel), kernel) for kernel in self.kernels]
        ordered = sorted((pair for pair in valued if pair[0] is not None), key=itemgetter(0), reverse=descending)
        return self._with((*(kernel for _, kernel in ordered), *(kernel for value, kernel in valued if value is None)))

    def __eq__(self, other: object) -> bool:
        return self.kernels == other.kernels if isinstance(other, Report) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels)

    @overload
    def __getitem__(self, wanted: SupportsIndex) -> Kernel: ...

    @overload
    def __getitem__(self, wanted: str | slice) -> Report: ...

    def __getitem__(self, wanted: SupportsIndex | str | slice) -> Kernel | Report:
        """Select one kernel by position, or several by name, key or slice.

        Args:
            wanted: A position from 0, or -1 for the last; a slice; or a pattern as for `--kernel`: a short name, a part
                of a name, a glob for a whole name, `re:` and a regular expression, or the key of a launch.

        Returns:
            A `Kernel` for a position; otherwise a `Report` of the selected kernels.

        Raises:
            IndexError: The position does not exist.
            TypeError: The index has another type.
            InputError: No kernel has this name; the hint lists similar names.

        >>> import rooflens as rl
        >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
        >>> report[report[0].key][0].key == report[0].key
        True
        """
        if isinstance(wanted, SupportsIndex):
            place, held = index(wanted), len(self)
            if not -held <= place < held:
                what = f"it has {count(held, 'kernel')}, 0 to {held - 1}" if held else "it has none"
                raise IndexError(f"the report has no kernel {place}: {what}")
            return self.kernels[place]
        if isinstance(wanted, str):
            return self.named((wanted,))
        if not isinstance(wanted, slice):
            raise TypeError(f"a report is indexed by a position, a name or a slice, not by {type(wanted).__name__}")
        return self._with(self.kernels[wanted])

    def named(self, patterns: Iterable[str]) -> Report:
        """Keep the kernels that any of some patterns matches.

        Args:
            patterns: Each as in `report[pattern]`.

        Raises:
            InputError: No kernel has such a name; the hint lists similar names.

        >>> import rooflens as rl
        >>> len(rl.open("fixtures/synthetic/attention.synthetic.ncu-rep").named(["flash*", "*softmax"]))
        2
        """
        matching = select(self._found.reports, Selection(kernel=tuple(patterns)))
        found = {id(analysis) for report in matching for analysis in report.analyses}
        return self._with(kernel for kernel in self.kernels if id(kernel.analysis) in found)

    def _with(self, kernels: Iterable[Kernel]) -> Report:
        """Return a report of some of these kernels, in the given order."""
        kept = tuple(kernels)
        chosen = {id(kernel.analysis) for kernel in kept}
        reports = (
            replace(report, analyses=tuple(one for one in report.analyses if id(one) in chosen))
            for report in self._found.reports
        )
        left = tuple(report for report in reports if report.analyses)
        return Report(self._found.only(left), self._sources, self._total_ns, kept)

    def __repr__(self) -> str:
        return f"<{self._summary_words()}>"

    def __str__(self) -> str:
        """Return the table that `rooflens analyze` prints."""
        from rooflens.report.writers.terminal import to_terminal
        from rooflens.writing.answers import of_kernels

        if not self.kernels:
            return repr(self)
        answer = of_kernels(self._found)
        return harmless("\n".join((to_terminal(answer.shown()).rstrip("\n"), *answer.remarks())))

    if not TYPE_CHECKING:  # type checkers must see no other attributes

        def __new__(cls, *given: object, **_: object) -> Self:
            """Say how a report is opened, where the class was called for that."""
            if given and isinstance(given[0], (str, bytes, os.PathLike)):
                raise TypeError(f"a report is opened by `rl.open({given[0]!r})`")
            return super().__new__(cls)

        def __getattr__(self, name: str) -> Any:
            """Return what a name that a report lacks means, by `rooflens.meant`; or say that its kernels have it."""
            has = not name.startswith("_") and (hasattr(Kernel, name) or ("Kernel", name) in BY_NAME)
            return meant_by(self, name, public(Report), f"its kernels have it, `report[0].{name}`" if has else "")

    @property
    def analyzed(self) -> Analyzed:
        """The records behind commands and pages, in the order of the reports (`rooflens.analyzing`)."""
        return self._found

    @property
    def gpu_time_ns(self) -> float:
        """GPU time of all kernels that did not fail, in nanoseconds."""
        from rooflens.model.summary import total_ns_of

        return total_ns_of(kernel.analysis for kernel in self.kernels)

    @property
    def runs(self) -> tuple[Run, ...]:
        """Facts about each report: `source`, `digest`, `command_line`, `host`, `ncu_version`, and more."""
        return tuple(report.run for report in self._found.reports)

    @property
    def failures(self) -> tuple[tuple[str, InputError], ...]:
        """Path and error of each report that could not be read; empty if all were read."""
        return self._found.failures

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about how the reports were read; empty if there is nothing to know."""
        return tuple(self._found.remarks)

    def to_arrow(self, table: TableName = "summary") -> pa.Table:
        """Return the kernels as a pyarrow table, always with the same columns; null if not measured.

        Args:
            table: `summary`, with a row per kernel and its verdict, or a table of a store ("The store" in the
                documentation): `kernels` with every counter, `verdicts`, `roofline`, `findings`, `hotspots`, or
                `metrics` with ncu's own values.

        Returns:
            A row per kernel; in `roofline` per level and pipe, in `findings` per finding, in `hotspots` per place in
            the code, in `metrics` per value. Column names end in their units.

        Raises:
            UsageError: The table does not exist.
            InputError: `metrics` were requested, but a report is gone or has changed since it was opened.

        >>> import rooflens as rl
        >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
        >>> report.to_arrow().num_rows == len(report)
        True
        """
        if table not in self._tables:
            from rooflens.api.frames import to_table

            sources = [self._sources[run.digest] for run in self.runs]
            self._tables[table] = to_table(self.kernels, sources, table)
        return self._tables[table]

    def to_pandas(self, table: TableName = "summary") -> pd.DataFrame:
        """Return `table` as a pandas data frame, with the arguments and errors of `to_arrow`. Lists are tuples.

        >>> import rooflens as rl
        >>> frame = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep").to_pandas()
        >>> frame.groupby("verdict_bound")["launches"].sum().to_dict()
        {'balanced': 2, 'compute': 1, 'memory': 1}
        """
        from pyarrow import types

        arrow = self.to_arrow(table)
        frame: pd.DataFrame = arrow.to_pandas()
        for field in arrow.schema:
            if types.is_nested(field.type):  # numpy arrays can be neither grouped nor compared
                values = arrow[field.name].to_pylist()
                frame[field.name] = [tuple(value) if isinstance(value, list) else value for value in values]
        return frame

    def to_polars(self, table: TableName = "summary") -> pl.DataFrame:
        """Return `table` as a Polars data frame, with the arguments and errors of `to_arrow`.

        Raises:
            EnvironmentMissingError: Polars is not installed.

        >>> import rooflens as rl
        >>> rl.open("fixtures/synthetic/attention.synthetic.ncu-rep").to_polars()["verdict_bound"][0]
        'compute'
        """
        try:
            import polars as pl
        except ImportError as error:
            raise EnvironmentMissingError("Polars is not installed", "`pip install polars`") from error
        return pl.DataFrame(self.to_arrow(table))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the summary to any library that reads Arrow streams, without a copy.

        >>> import pyarrow as pa
        >>> import rooflens as rl
        >>> pa.table(rl.open("fixtures/synthetic/attention.synthetic.ncu-rep"))["verdict_bound"][0].as_py()
        'compute'
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_parquet(self, path: str | os.PathLike[str], table: TableName = "summary", *, force: bool = False) -> Path:
        """Write a table as a single Parquet file; `rooflens.ingest_reports` writes a store of all tables.

        Args:
            path: The file.
            table: As in `to_arrow`.
            force: Overwrite an existing file.

        Returns:
            The path.

        Raises:
            UsageError: The file exists, or the table does not.
            InputError: The file cannot be written.

        >>> import rooflens as rl, tempfile
        >>> import pyarrow.parquet as pq
        >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pq.read_table(report.to_parquet(f"{folder}/kernels.parquet")).equals(report.to_arrow())
        True
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        from rooflens.writing.outputs import check_free, write_output

        file = Path(path)
        check_free(file, force=force, hint="give another name, or force=True to overwrite it")
        written = pa.BufferOutputStream()
        pq.write_table(self.to_arrow(table), written)
        write_output(file, written.getvalue().to_pybytes(), hint="give another place")
        return file

    def digest(self, max_tokens: int = 1500) -> str:
        """Summarise the kernels in Markdown, largest gain first, short enough for a language model or a chat message.

        Args:
            max_tokens: Size limit in tokens of three bytes each; kernels that do not fit are counted at the end.

        >>> import rooflens as rl
        >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
        >>> len(report.digest(max_tokens=500)) <= 1500
        True
        """
        from rooflens.writing.answers import View, of_kernels

        return harmless(of_kernels(self._found, View(max_tokens=max_tokens)).text("digest").removesuffix("\n"))

    def to_dict(self) -> dict[str, Any]:
        """Return what `rooflens analyze --format json` writes, in the order of the reports; it has a JSON Schema.

        >>> import rooflens as rl
        >>> document = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep").to_dict()
        >>> [kernel["function"] for kernel in document["kernels"][:2]]
        ['attention_scores_gemm', 'attention_scale_softmax']
        """
        from rooflens.writing.answers import of_kernels

        document: dict[str, Any] = json.loads(of_kernels(self._found).text("json"))
        return document

    def chart(self, level: str | None = None, **sizes: Unpack[Sizes]) -> alt.LayerChart:
        """Draw the roofline as an Altair chart of layers: `rooflens.figure`, with its sizes and errors.

        Args:
            level: `dram`, `l2`, `l1`, `smem`, or `all`; by default the level that limits each kernel.
            sizes: `width`, `height`, `font` and `theme`.

        >>> import rooflens as rl
        >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
        >>> type(report.chart("dram") | report.chart("l2"))
        <class 'altair.vegalite.v6.api.HConcatChart'>
        """
        from rooflens.api.figures import draw

        return draw(self._found.reports, self._found.limits, level, **sizes)

    def points(self) -> pd.DataFrame:
        """Return the dots of the rooflines: a row per launch and memory level, as far as they have a place.

        Of more than 400 launches a row is the median launch of its kernel.

        Returns:
            `kernel`, `report`, `gpu`, `level`, `is_binding` (it is judged at this level), `counts` (`FLOP`, or `OP` for
            integers), `intensity_flop_per_byte`, `flop_per_s`, `limit_flop_per_s` (what it is measured against),
            `limited_by` (what that is, where it is no roof of the plane), `time_share`, `verdict`, `is_estimated`
            (FLOPs), and `digest` and `kernel_index`, by which other tables are joined.

        >>> import rooflens as rl
        >>> points = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep").points()
        >>> points[points.is_binding].kernel.nunique()
        4
        """
        from rooflens.api.figures import frame
        from rooflens.report.roofline.rows import POINT_KEYS, point_records

        return frame(self._found, point_records, POINT_KEYS)

    def roofs(self) -> pd.DataFrame:
        """Return the roofs of the rooflines: a row per memory level or pipe, and per attainable one.

        Returns:
            `gpu`, `resource` (`dram`, `fp32`), `name` (`HBM3`, `FP32`), `kind` (`peak`, `attainable`, or `full_clock`
            for DRAM at its own top clock), `bytes_per_s` of a diagonal roof or `flop_per_s` of a flat one, and
            `is_measured` (it holds for these runs).

        >>> import rooflens as rl
        >>> roofs = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep").roofs()
        >>> roofs[roofs.resource == "dram"].bytes_per_s.notna().tolist()
        [True]
        """
        from rooflens.api.figures import frame
        from rooflens.report.roofline.rows import ROOF_KEYS, roof_records

        return frame(self._found, roof_records, ROOF_KEYS)

    def save(self, path: str | os.PathLike[str], *, title: str | None = None, force: bool = False) -> Path:
        """Write a file about all kernels.

        Args:
            path: Its extension decides what is written: `.html` is the page, `.md` Markdown, `.pdf`, `.png` and
                `.svg` the rooflines, `.json` the data, `.csv` a table.
            title: Title of the page; by default the names of the reports.
            force: Overwrite an existing file.

        Returns:
            The path.

        Raises:
            UsageError: The extension is unknown, or the file exists.
            InputError: The file cannot be written.

        >>> import rooflens as rl, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rl.open("fixtures/synthetic/attention.synthetic.ncu-rep").save(f"{folder}/page.html").name
        'page.html'
        """
        from rooflens.writing.naming import default_title
        from rooflens.writing.outputs import check_named, write_output
        from rooflens.writing.rendering import render

        file = Path(path)
        style = check_named(file, ("html", "md", "pdf", "png", "svg", "json", "csv"), force=force)
        title = default_title(self.runs) if title is None else title
        write_output(file, render(self._found, style, title=title).data, hint="give another place")
        return file

    def show(self, height: int = 800) -> None:
        """Show the page in a frame below the notebook's cell.

        Args:
            height: Height of the frame in pixels.

        Raises:
            UsageError: Not called in a notebook.

        >>> import rooflens as rl
        >>> rl.open("fixtures/synthetic/attention.synthetic.ncu-rep").show(height=600)
        """
        from rooflens.writing.naming import default_title
        from rooflens.writing.rendering import render

        def page() -> str:
            return render(self._found, "html", title=default_title(self.runs)).data.decode()

        notebook.show_page(page, height, "report")

    def _repr_html_(self) -> str:
        """Write the first screen for a notebook: no script, and no markup from names."""
        from rooflens.report.notebook import report_html

        unread = [f"{source}: {error}; {error.hint}" for source, error in self.failures]
        return report_html(self._found.reports, self._found.limits, (self._summary_words(), *unread, *self.warnings))

    def _summary_words(self) -> str:
        failed = sum(kernel.status == "failed" for kernel in self.kernels)
        gpus = ", ".join(dict.fromkeys(kernel.gpu or "an unknown GPU" for kernel in self.kernels)) or "no GPU"
        parts = [
            f"Report of {count(len(self) - failed, 'kernel launch')} on {gpus}",
            duration(self.gpu_time_ns),
            *([f"{failed} failed"] if failed else []),
            *([f"{count(len(self.failures), 'report')} unread"] if self.failures else []),
        ]
        return printable(", ".join(parts))


class Group:
    """All launches of a kernel in a report; the median launch gives the verdict.

    >>> import rooflens as rl
    >>> group = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep").groups[0]
    >>> group.verdict.bound, len(group.launches)
    ('compute', 1)
    """

    __slots__ = ("_kernel", "_launches", "_summary")

    def __init__(self, summary: KernelSummary, kernel: Kernel, launches: Report) -> None:
        """Take the summary, its median launch, and all profiled launches."""
        self._summary = summary
        self._kernel = kernel
        self._launches = launches

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        return (self._launches, self.launch_count) == (other._launches, other.launch_count)

    def __hash__(self) -> int:
        return hash(self._launches)

    def __repr__(self) -> str:
        name = cut_name(plain_name(self.name), SENTENCE_NAME_WIDTH)
        launches = count(self.launch_count, "launch")
        return f"<Group {name!r}: {duration(self.gpu_time_ns)} in {launches}, {self.verdict.shown_class}>"

    @property
    def name(self) -> str:
        """Demangled name of the kernel."""
        return self._summary.name

    @property
    def kernel(self) -> Kernel:
        """The median launch, in the middle of the GPU time, which stands for all launches."""
        return self._kernel

    @property
    def launches(self) -> Report:
        """The profiled launches, each a `Kernel`."""
        return self._launches

    @property
    def launch_count(self) -> int:
        """How many of the program's launches the profiled launches represent."""
        return self._summary.launch_count

    @property
    def verdict(self) -> Verdict:
        """What limits the median launch."""
        return self._kernel.verdict

    @property
    def gpu_time_ns(self) -> float | None:
        """GPU time of all launches in nanoseconds; None if none was timed."""
        return self._summary.duration_ns

    @property
    def winnable_ns(self) -> float | None:
        """Nanoseconds gained by the first moves over all launches, which orders the groups; None if unknown."""
        return self._summary.winnable_ns
