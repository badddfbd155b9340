"""What our processes take from the machine: memory, and time for garbage collection."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rooflens import machine


def printed(program: str) -> str:
    """Return the output of one of our processes."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return done.stdout


_LIMITS = """
import resource, sys
from rooflens import machine
machine.physical_bytes = lambda: 100 << 30
found = []
for sharers in (1000, 10, 4):
    machine.limit_memory(sharers)
    found.append(resource.getrlimit(resource.RLIMIT_AS)[0] >> 20)
    if sharers == 1000:
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print(found)
"""


def test_memory_is_shared_out_and_a_lower_limit_stays() -> None:
    """Processes share four fifths of the memory, at least 2 GiB each, and never more than an existing limit."""
    assert printed(_LIMITS) == "[2048, 8192, 8192]\n"


def test_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container with less memory, its memory counts as the machine's."""
    group = tmp_path / "memory.max"
    monkeypatch.setattr(machine, "_CONTROL_GROUPS", (str(group),))
    whole = machine.physical_bytes()
    group.write_text("max\n")
    assert machine.physical_bytes() == whole
    group.write_text("1073741824\n")
    assert machine.physical_bytes() == 1 << 30


_CYCLE = """
from rooflens.machine import collect_seldom

class Told:
    def __del__(self):
        print("collected")

collect_seldom()
told = Told()
told.self = told
del told
"""


def test_no_garbage_is_looked_for_at_the_end() -> None:
    """Remaining cycles are not collected at exit: the search costs a tenth of a short command."""
    assert not printed(_CYCLE)


_FRAMES = """
import sys
import pyarrow as pa
from rooflens.machine import without_pandas
with without_pandas():
    table = pa.table({"share": [0.5, None]})
assert "pandas" not in sys.modules
frame = table.to_pandas()
assert frame["share"].isna().tolist() == [False, True]
assert pa.array(frame["share"]).null_count == 1
"""


def test_frames_are_made_after_all() -> None:
    """The first arrays are made without pandas; later data frames use it."""
    assert not printed(_FRAMES)
