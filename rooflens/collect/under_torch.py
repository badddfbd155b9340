"""Run a Python program under PyTorch's profiler: `python under_torch.py TRACE [-m MODULE | -c CODE | SCRIPT] ...`.

It runs in the program's own Python, which may lack rooflens, so it uses only the standard library and torch.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run the program as Python itself would, and write the trace whichever way the program ends."""
    import torch  # noqa: PLC0415 - what is shown is the program's own failure, not one of this import

    trace, how, *rest = sys.argv[1:]
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    profiler.start()
    try:
        if how == "-c":
            sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
            exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - the user's program
        elif how == "-m":
            sys.argv, sys.path[0] = rest, str(Path.cwd())
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = [how, *rest], str(Path(how).resolve().parent)
            runpy.run_path(how, run_name="__main__")
    finally:
        profiler.stop()
        profiler.export_chrome_trace(trace)


if __name__ == "__main__":
    main()
