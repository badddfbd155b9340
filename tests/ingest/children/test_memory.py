"""Hold when cyclic garbage is looked for, and what becomes of memory that is freed."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

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


BLOCKS = """
import resource
from rooflens.ingest.children.child import keep_freed

def faults():
    for _ in range(20):
        blocks = [bytearray(6 << 20) for _ in range(4)]
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

keep_freed()
print(-faults() + faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have no such options")
def test_blocks_that_are_freed_serve_the_next_ones() -> None:
    """Four blocks of 6 MB at once, 20 times: glibc alone gives their 6,144 pages back each time."""
    done = subprocess.run([sys.executable, "-c", BLOCKS], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert int(done.stdout) < 1024
