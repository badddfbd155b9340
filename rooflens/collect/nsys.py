"""Time a program's kernels without ncu: Nsight Systems (`nsys`) traces it, and its SQLite export is summed."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.collect.unprofiled import run_program
from rooflens.errors import EnvironmentMissingError, InputError, ProgramError
from rooflens.ingest.timelines.nsys import read_export
from rooflens.model.program.measure import measure
from rooflens.processes import query

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflens.collect.log import Progress
    from rooflens.model.unprofiled import Unprofiled

_GRAPHS_BY_NODE = "--cuda-graph-trace=node"
"""Without this option newer drivers trace each graph as a whole, without its kernels; nsys has it since 2021.4."""


def trace_argv(nsys: str, program: Sequence[str], export: Path, *, by_node: bool = True) -> tuple[str, ...]:
    """Write the command line that traces a program's CUDA work into an SQLite file.

    Args:
        nsys: The program to run.
        program: What is traced.
        export: The file to write; its name ends in `.sqlite`.
        by_node: Trace each kernel of a graph; older versions always do, and lack the option for it.
    """
    return (
        nsys,
        "profile",
        *("--trace=cuda", "--sample=none", "--cpuctxsw=none", "--stats=false"),
        *((_GRAPHS_BY_NODE,) if by_node else ()),
        *("--export=sqlite", "--force-overwrite=true", "-o", str(export.with_suffix(""))),
        *program,
    )


def _has_graph_option(nsys: str) -> bool:
    """Return whether the help of nsys names the option; if nsys does not answer, it is assumed to be current."""
    answer = query((nsys, "profile", "--help"))
    return answer is None or _GRAPHS_BY_NODE.partition("=")[0] in answer


def trace(
    nsys: str,
    program: Sequence[str],
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Unprofiled | None:
    """Trace a program that is known to work; None if nsys shows no kernels.

    Raises:
        StoppedError: Ctrl-C or a like signal.
    """
    with TemporaryDirectory(prefix="rooflens-") as folder:
        export = Path(folder, "trace.sqlite")
        try:
            argv = trace_argv(nsys, program, export, by_node=_has_graph_option(nsys))
            run_program(argv, timeout_s, on_progress, "tracing")
            return measure(read_export(export)).unprofiled
        except (ProgramError, EnvironmentMissingError, InputError):
            return None
