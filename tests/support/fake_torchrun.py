"""Replacement for `torchrun` in tests: starts a program once per rank, one after another, with RANK set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run all ranks until one fails."""
    count, python = 1, [sys.executable, "-u"]
    while arguments[0].startswith("--"):
        option = arguments.pop(0)
        if option == "--no-python":
            python = []
        elif option == "--nproc-per-node":
            count = int(arguments.pop(0))
    for rank in range(count):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(count)}
        status = subprocess.run([*python, *arguments], env=environment, check=False).returncode  # noqa: S603 - the test's
        if status:
            sys.stderr.write(f"ChildFailedError: rank {rank} returned {status}\n")
            return 1
    return 0


def install(folder: Path) -> Path:
    """Install this program as `torchrun` in a folder."""
    path = folder / "torchrun"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" "$@"\n')
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
