"""Small traces as the PyTorch profiler writes them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def kernel(name: str, ts: float, dur: float = 5.0, **args: Any) -> Event:
    """Return the event of a kernel."""
    shown = {"device": 0, "stream": 7, "grid": [2, 1, 1], "block": [128, 1, 1]}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": shown | args}


def host(category: str, name: str, ts: float, dur: float, **args: Any) -> Event:
    """Return an event of the host."""
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def launch(ts: float, correlation: int, dur: float = 2.0) -> Event:
    """Return the event of a launch."""
    return host("cuda_runtime", "cudaLaunchKernel", ts, dur, correlation=correlation)


def write_trace(path: Path, events: Sequence[Event], **keys: Any) -> Path:
    """Write a trace, compressed where its name says so."""
    data = json.dumps({"schemaVersion": 1, **keys, "traceEvents": list(events), "traceName": "t.json"}).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
