"""What people type, and what it does here: the one table of both doors, Python and the command line.

Documentation and `--help` name only what stands on the right. A row is for words that can mean one thing alone: a time
without its unit, or FLOPs that may be a count or a rate, are answered with the names that say which.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflens.errors import GateFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Does = Callable[[Any], Any]


class Name(NamedTuple):
    """A row of Python: names, and by class what they give; `rooflens` stands for the module."""

    typed: str
    does: Mapping[str, Does]


class MeantWord(NamedTuple):
    """A row of the command line: words, and what is read in their place; `{}` is the word without its dashes."""

    typed: str
    does: str


def _check(comparison: Any) -> Callable[..., None]:
    def check(limit: float | str, **how: Any) -> None:
        """Raise `GateFailedError` with the sentences of `comparison.failed`, if there are any."""
        if failures := comparison.failed(limit, **how):
            raise GateFailedError("; ".join(failures))

    return check


NAMES = (
    Name("load read load_report open_report read_report analyze", {"rooflens": lambda rl: rl.open}),
    Name("diff history", {"rooflens": lambda rl: rl.compare}),
    Name("gpu devices list_gpus", {"rooflens": lambda rl: rl.gpus}),
    Name("bound", {"Kernel": lambda kernel: kernel.verdict.bound}),
    Name("bottleneck limiter limited_by", {"Kernel": lambda kernel: kernel.verdict.resource}),
    Name("ai arithmetic_intensity", {"Kernel": lambda kernel: kernel.intensity["dram"]}),
    Name("advice suggestions recommendations", {"Kernel": lambda kernel: kernel.moves}),
    Name("device device_name gpu_name", {"Kernel": lambda kernel: kernel.gpu}),
    Name("registers regs", {"Kernel": lambda kernel: kernel.registers_per_thread}),
    Name("speedup", {"Kernel": lambda kernel: kernel.gain, "Comparison": lambda comparison: comparison.factor}),
    Name("plot plot_roofline roofline", {"Kernel": lambda kernel: kernel.chart, "Report": lambda report: report.chart}),
    Name("summary", {"Kernel": lambda kernel: kernel.explain, "Report": lambda report: report.digest}),
    Name("df dataframe table", dict.fromkeys(("Report", "Comparison"), lambda tabled: tabled.to_pandas())),
    Name("to_df to_dataframe", dict.fromkeys(("Report", "Comparison"), lambda tabled: tabled.to_pandas)),
    Name("to_html to_markdown to_json to_csv to_png to_svg to_pdf", {"Report": lambda report: report.save}),
    Name("sort_by sorted", {"Report": lambda report: report.sort}),
    Name("top head", {"Report": lambda report: lambda count=5: report[:count]}),
    Name("slowest longest", {"Report": lambda report: report.sort("gpu_time_ns")[0]}),
    Name("kernels", {"Comparison": lambda comparison: comparison.changes}),
    Name(
        "regressions slower",
        {"Comparison": lambda compared: compared.failed(compared.ladders[0].threshold, per_kernel=True)},
    ),
    Name("check", {"Comparison": _check}),
)

COMMANDS = (
    MeantWord("show list ls kernels table summary top trace stats", "analyze"),
    MeantWord("csv json md", "analyze --format {}"),
    MeantWord("open view", "report --open"),
    MeantWord("html page plot draw roofline export", "report"),
    MeantWord("why bound bottleneck limiter", "explain"),
    MeantWord("history", "compare"),
    MeantWord("check gate", "compare --fail-on"),
    MeantWord("import add store", "ingest"),
    MeantWord("run record ncu", "profile"),
    MeantWord("gpu devices specs", "gpus"),
    MeantWord("help version", "--{}"),
)

OPTIONS = (
    MeantWord("-k --name --kernel-name --filter", "--kernel"),
    MeantWord("-n --limit --head", "--top"),
    MeantWord("--db --into --out", "--store"),
    MeantWord("--max-regression --fail-above --tolerance", "--fail-on"),
    MeantWord("--seq --seq-len --seqlen --sequence --tokens", "--length"),
    MeantWord("--head-dim --d-head --dim -d", "--width"),
    MeantWord("--csv --json --md --html --pdf --png --svg --digest", "--format {}"),
    MeantWord("--line --sass --function", "--by {}"),
)
"""A command takes such a word for an option that it has, and only if it has none of that name."""


def _by_word(rows: tuple[MeantWord, ...]) -> Mapping[str, str]:
    return MappingProxyType({word: row.does.format(word.lstrip("-")) for row in rows for word in row.typed.split()})


BY_COMMAND, BY_OPTION = _by_word(COMMANDS), _by_word(OPTIONS)
"""Word -> what is read in its place."""

BY_NAME: Mapping[tuple[str, str], Does] = MappingProxyType(
    {(owner, name): does for row in NAMES for name in row.typed.split() for owner, does in row.does.items()}
)
"""Class and name -> what gives the value."""
