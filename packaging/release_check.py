"""List what is left to do before a version can be published: `make release-check`; nothing left ends with 0.

Placeholders in tracked files, the version's date in the changelog, and the README's sentence on the missing address.
`make build TAG=...` refuses a release for the same. Needs the standard library alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NO_ADDRESS = "no public address"
"""Words of the README that go once there is one."""
SPEAKING = frozenset({"packaging/project.toml", "docs/project/release.md"})
"""Files that may speak of the placeholder; in all others it is one."""


def project(root: Path = ROOT) -> dict[str, Any]:
    """Read the project's address and author, and what waits for them."""
    return tomllib.loads((root / "packaging/project.toml").read_text("utf-8"))


def left(version: str, tracked: list[str], root: Path = ROOT) -> list[str]:
    """Say what keeps a version from being published, a line each.

    Args:
        version: As in pyproject.toml.
        tracked: Names of the files to search, from the root.
        root: The checkout.
    """
    told = project(root)
    found = []
    if told["placeholder"] in told["address"]:
        found.append(f"packaging/project.toml: the address is {told['address']}")
    for name in sorted({*tracked} - SPEAKING):
        lines = (root / name).read_text("utf-8", errors="replace").splitlines() if (root / name).is_file() else []
        found += [f"{name}:{n}: {line.strip()}" for n, line in enumerate(lines, 1) if told["placeholder"] in line]
    if NO_ADDRESS in (root / "README.md").read_text("utf-8"):
        found.append("README.md: says that the project has no public address")
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    if not re.search(rf"^## {re.escape(version)}, \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        found.append(f"CHANGELOG.md: has no `## {version}, YEAR-MONTH-DAY`")
    return found


def tracked_files(root: Path = ROOT) -> list[str]:
    """Return git's files that are text by their endings."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)  # noqa: S607
    texts = {".md", ".py", ".toml", ".yml", ".yaml", ".json", ".cff", ".txt", ".ipynb", ""}
    return [name for name in done.stdout.split("\0") if name and Path(name).suffix in texts]


def main() -> int:
    """Print what is left, and which files wait for it."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    found = left(version, tracked_files())
    if not found:
        print(f"nothing is left: `make build TAG=v{version}`")
        return 0
    print("left to do (docs/project/release.md):")
    print("\n".join(f"  {line}" for line in found))
    print("cannot be used before:")
    print("\n".join(f"  {name}: {needs}" for name, needs in project()["waiting"].items()), flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
