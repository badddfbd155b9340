"""Look up known holes in what is installed with rooflens: `.venv/bin/python .ci/audit.py`.

Only a hole fails. Where pip-audit, or the database it asks, cannot be had, this says so and is content.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

LONGEST_S = 120
"""For each of the two programs that ask the network."""


def installed(project: str) -> list[str]:
    """Pin a project's requirements and theirs, without extras, as they are installed."""
    left, found = [project], {}
    while left:
        name = left.pop()
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # only another platform needs it
        if package.name not in found:
            found[package.name] = package.version
            wanted = (one for one in package.requires or () if "extra ==" not in one)
            left += [re.split(r"[^\w.-]", one)[0] for one in wanted]
    return sorted(f"{name}=={version}" for name, version in found.items() if name != project)


def audit(requirements: list[str], folder: Path) -> list[dict[str, Any]]:
    """Return what pip-audit knows of each package.

    Raises:
        OSError, subprocess.SubprocessError, ValueError: It cannot be had, or has no answer.
    """
    venv.create(folder / "tool", with_pip=True)
    tool = folder / "tool" / "bin"
    install = [str(tool / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pip-audit"]
    subprocess.run(install, check=True, capture_output=True, timeout=LONGEST_S)
    pinned = folder / "requirements.txt"
    pinned.write_text("\n".join(requirements), encoding="utf-8")
    ask = [str(tool / "pip-audit"), "--no-deps", "--disable-pip", "--format", "json", "--requirement", str(pinned)]
    done = subprocess.run(ask, check=False, capture_output=True, text=True, timeout=LONGEST_S)
    found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    return found


def main() -> int:
    """Print what was audited, and the holes."""
    requirements = installed("rooflens")
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = audit(requirements, Path(folder))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        print(f"no audit: {str(error).splitlines()[0]}")
        return 0
    print(f"audited {sum('vulns' in one for one in found)} of {len(requirements)} packages; the index knows no others")
    holes = [(one, hole) for one in found for hole in one.get("vulns", ())]
    for one, hole in holes:
        print(f"{one['name']} {one['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'none'}")
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main())
