"""Test rooflens with the lowest versions that it allows: `.venv/bin/python .ci/lowest.py`, with the lowest Python.

In a separate environment, it runs the commands that are tried with each wheel, and the tests of three rooms.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

from wheel import REPOSITORY, TRIED, run

ROOMS = ("tests/cli/test_cli.py", "tests/model/store", "tests/report/text")
TOOLS = ("pytest", "hypothesis", "jsonschema", "moto[server]", "polars", "duckdb")
"""What those tests import, in any version."""


def lowest(requirements: list[str]) -> list[str]:
    """Pin each requirement to the lowest version that it allows.

    Raises:
        ValueError: A requirement has no lowest version.
    """
    pinned = []
    for one in requirements:
        found = re.match(r"([\w.-]+)>=([\d.]+)[^;]*(;.*)?$", one)
        if found is None:
            raise ValueError(f"`{one}` has no lowest version")
        pinned.append(f"{found[1]}=={found[2]}{found[3] or ''}")
    return pinned


def main() -> int:
    """Install, try, and test; the first failure ends it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile anew what it imports
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = lowest(project["dependencies"])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        constraints = folder / "lowest.txt"
        constraints.write_text("\n".join(pins), encoding="utf-8")
        install = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
        run(*install, "--constraint", str(constraints), str(REPOSITORY), *TOOLS)
        print(f"installed {', '.join(pins)}")
        for words in TRIED:
            run(str(python), "-m", "rooflens", *words, into=folder)
        print(f"{len(TRIED)} commands work")
        environment = os.environ | {"PYTHONPATH": ""}
        tests = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *ROOMS]
        return subprocess.run(tests, cwd=REPOSITORY, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
