"""Hold when cyclic garbage is looked for."""

from __future__ import annotations

import subprocess
import sys

CYCLE = """
from rooflens.ingest.children.memory import collect_seldom

class Told:
    def __del__(self):
        print("collected")

collect_seldom()
told = Told()
told.self = told
del told
"""


def test_no_garbage_is_looked_for_at_the_end() -> None:
    """A cycle that is left goes with its process, uncollected: the search costs a tenth of a short command."""
    done = subprocess.run([sys.executable, "-c", CYCLE], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert done.stdout == ""
