"""Replacement for `nsys` in tests: runs the program, and writes an SQLite export with the named launches."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Launched = tuple[str, int, int, int, int]
"""Name of a kernel, blocks of its grid, threads of a block, how often it runs, and for how many nanoseconds."""

_SCRIPT = """#!/bin/sh
if [ "$2" = --help ]; then echo "  --cuda-graph-trace="; exit; fi
while [ "$1" != -o ]; do shift; done
cp "{export}" "$2.sqlite"
shift 2
exec "$@"
"""


def install(folder: Path, launched: Iterable[Launched]) -> Path:
    """Install this program as `nsys` in a folder."""
    export = folder / "made.sqlite"
    with closing(sqlite3.connect(export)) as database, database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        columns = "start, end, deviceId, demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ"
        database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({columns})")
        start = 0
        for number, (name, grid, block, count, time_ns) in enumerate(launched):
            database.execute("INSERT INTO StringIds VALUES (?, ?)", (number, name))
            for _ in range(count):
                row = (start, start + time_ns, 0, number, grid, 1, 1, block, 1, 1)
                database.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({','.join('?' * 10)})", row)  # noqa: S608 - marks
                start += time_ns
    path = folder / "nsys"
    path.write_text(_SCRIPT.replace("{export}", str(export)))
    path.chmod(0o755)
    return path
