"""What `rooflens` prints without a command: the next step for what the user has."""

from __future__ import annotations

import shutil
from itertools import islice
from typing import TYPE_CHECKING

from rooflens.cli.usage import REPORT_ENDINGS

if TYPE_CHECKING:
    from pathlib import Path

_LOOKED_AT = 1_000
"""Most files of a folder to search for reports: a greeting is not worth more."""


def welcome(folder: Path) -> str:
    """Write four ways to start: from a report, from a trace or text, from a GPU, from neither.

    Args:
        folder: The current folder; the first example uses its newest report.
    """
    report = _newest_report(folder) or "report.ncu-rep"
    here = "" if shutil.which("nvidia-smi") else " (none found here)"
    return f"""\
What limits each GPU kernel, and how far is it from that limit?

  I have an Nsight Compute report
    rooflens analyze {report}
    rooflens report {report} -o page.html

  I have a trace (torch.profiler, nsys), or text from a terminal
    rooflens analyze trace.json.gz
    rooflens analyze -

  I have an NVIDIA GPU{here}
    rooflens doctor
    rooflens profile -- python train.py

  I have neither
    rooflens predict gemm --m 4096 --n 4096 --k 4096 --gpu h100-sxm

`rooflens --help` lists all commands, `rooflens COMMAND --help` explains one."""


def _newest_report(folder: Path) -> str | None:
    try:
        found = [
            (file.stat().st_mtime, file.name)
            for file in islice(folder.iterdir(), _LOOKED_AT)
            if file.name.endswith(REPORT_ENDINGS)
        ]
    except OSError:
        return None
    return max(found)[1] if found else None
