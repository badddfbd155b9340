from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from rooflens.ingest.children.children import Children


def test_a_child_has_no_pandas() -> None:
    """What asks for pandas in a child hears that there is none."""
    children = Children("the worker")
    try:
        with pytest.raises(ModuleNotFoundError, match="pandas is kept out"):
            children.call(importlib.import_module, ("pandas",))
    finally:
        children.close()


_PROGRAM = """
import sys
import pyarrow as pa
from rooflens.ingest.children.without_pandas import without_pandas
with without_pandas():
    table = pa.table({"share": [0.5, None]})
assert "pandas" not in sys.modules
frame = table.to_pandas()
assert frame["share"].isna().tolist() == [False, True]
assert pa.array(frame["share"]).null_count == 1
"""


def test_frames_are_made_after_all() -> None:
    """The first arrays are made without pandas, and what is asked for afterwards with it."""
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True)  # noqa: S603 - ours
