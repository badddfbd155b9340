"""Shows what limits every GPU kernel, from Nsight Compute reports.

    import rooflens as rl

    report = rl.open("last-week.ncu-rep")
    report[0].verdict.sentence  # the launch with most to win
    report.digest()
    report.save("page.html")
    rl.compare("before.ncu-rep", "after.ncu-rep").factor
    rl.predict("gemm", m=4096, n=4096, k=4096, gpu="h100-sxm").regime

`help(rl.Report)`, `help(rl.Kernel)` and `help(rl.open)` list what each offers, with examples. Names are imported when
they are first used: `import rooflens` itself costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rooflens.api.comparison import Comparison, KernelChange, compare
    from rooflens.api.kernel import Kernel
    from rooflens.api.opening import open  # noqa: A004 - the verb of the whole API, as in `rl.open`
    from rooflens.api.profiling import profile
    from rooflens.api.program import Program
    from rooflens.api.report import Group, Report
    from rooflens.api.spots import Hotspot
    from rooflens.api.verbs import annotate, figure, gpus, ingest_reports, predict, trace
    from rooflens.api.verdict import Verdict
    from rooflens.errors import RooflensError

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Group",
    "Hotspot",
    "Kernel",
    "KernelChange",
    "Program",
    "Report",
    "RooflensError",
    "Verdict",
    "__version__",
    "annotate",
    "compare",
    "figure",
    "gpus",
    "ingest_reports",
    "open",
    "predict",
    "profile",
    "trace",
]

_PLACES = {
    "Comparison": "api.comparison",
    "Group": "api.report",
    "Hotspot": "api.spots",
    "Kernel": "api.kernel",
    "KernelChange": "api.comparison",
    "Program": "api.program",
    "Report": "api.report",
    "RooflensError": "errors",
    "Verdict": "api.verdict",
    "annotate": "api.verbs",
    "compare": "api.comparison",
    "figure": "api.verbs",
    "gpus": "api.verbs",
    "ingest_reports": "api.verbs",
    "open": "api.opening",
    "predict": "api.verbs",
    "profile": "api.profiling",
    "trace": "api.verbs",
}
"""Public name -> its module."""

if not TYPE_CHECKING:  # type checkers take the names from above, and must see no others

    def __getattr__(name):  # noqa: ANN001, ANN202 - as above
        """Import a public name at its first use."""
        from importlib import import_module  # noqa: PLC0415 - `import rooflens` loads nothing

        if name not in _PLACES:
            from importlib.util import find_spec  # noqa: PLC0415 - only where something is missing
            from sys import modules  # noqa: PLC0415 - as above

            if name.startswith("_") or find_spec(f"rooflens.{name}") is not None:  # a module that is imported next
                raise AttributeError(f"module `rooflens` has no attribute `{name}`")
            from rooflens.api.package import meant_of_module  # noqa: PLC0415 - it needs what a bare GPU box may lack

            return meant_of_module(modules[__name__], name)
        value = globals()[name] = getattr(import_module(f"rooflens.{_PLACES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)  # a TAB in a notebook shows no module that was only imported
