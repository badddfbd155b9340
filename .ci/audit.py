"""Look up known vulnerabilities in rooflens's dependencies and vendored code: `.venv/bin/python .ci/audit.py`.

It audits the installed packages, those pinned by the action, those that the viewer carries, and those in the bundle of
the pages' scripts. The exit status is 1 if there is a vulnerability, or if nobody looked at the vendored scripts for a
year; 75 if one of these could not be looked up, which does not count as passed.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VENDOR = ROOT / "rooflens" / "report" / "assets" / "vendor" / "vendor.toml"
BUNDLED = ROOT / "tests" / "support" / "vega"
PINS = ROOT / "action" / "requirements.txt"
VIEWER = ROOT / "viewer" / "pins.toml"
LONGEST_S = 120
"""For each of the programs that ask the network."""
OLDEST_DAYS = 365
FAILURES = (OSError, subprocess.SubprocessError, ValueError, KeyError)
"""What comes of a tool that is missing, or that an index does not answer."""
NOT_AUDITED = 75
"""As of commands that ask to be tried again: `EX_TEMPFAIL`."""


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


def pinned(text: str) -> list[str]:
    """Return the pins of a file of requirements, without their hashes and conditions."""
    return re.findall(r"^[\w.-]+==[\w.+!-]+", text, re.MULTILINE)


def audit(requirements: list[str], folder: Path) -> list[dict[str, Any]]:
    """Return what pip-audit reports about each package.

    Raises:
        OSError, subprocess.SubprocessError, ValueError, KeyError: It is not available, or gives no answer.
    """
    tool = folder / "tool" / "bin"
    if not (tool / "pip-audit").exists():
        venv.create(folder / "tool", with_pip=True)
        install = [str(tool / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pip-audit"]
        subprocess.run(install, check=True, capture_output=True, timeout=LONGEST_S)
    first = {one.partition("==")[0]: one for one in reversed(requirements)}
    listed = folder / "requirements.txt"
    listed.write_text("\n".join(first.values()), encoding="utf-8")
    ask = [str(tool / "pip-audit"), "--no-deps", "--disable-pip", "--format", "json", "--requirement", str(listed)]
    done = subprocess.run(ask, check=False, capture_output=True, text=True, timeout=LONGEST_S)
    found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    # It takes one version of a package at a time, and the action pins another for other versions of Python.
    others = [one for one in requirements if one not in first.values()]
    return [*found, *audit(others, folder)] if others else found


def carried(text: str) -> list[str]:
    """Return the wheels in the viewer's pins."""
    return [f"{name}=={pin['version']}" for name, pin in tomllib.loads(text)["wheels"].items()]


def locked(text: str, folder: Path) -> Path:
    """Write what npm asks about the viewer's own package of npm, Pyodide; return its folder.

    Raises:
        subprocess.SubprocessError: npm cannot resolve it.
    """
    place = folder / "viewer"
    place.mkdir()
    wanted = {name: pin["version"] for name, pin in tomllib.loads(text)["npm"].items()}
    (place / "package.json").write_text(json.dumps({"dependencies": wanted}), encoding="utf-8")
    lock = ["npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit"]
    subprocess.run(lock, cwd=place, check=True, capture_output=True, timeout=LONGEST_S)
    return place


def npm_audit(folder: Path) -> list[str]:
    """Return the vulnerabilities of the packages that a folder locks, without those that only build it.

    Raises:
        OSError, subprocess.SubprocessError, ValueError, KeyError: npm is missing, or gives no answer.
    """
    ask = ["npm", "audit", "--omit=dev", "--package-lock-only", "--json"]
    done = subprocess.run(ask, cwd=folder, check=False, capture_output=True, text=True, timeout=LONGEST_S)
    found = json.loads(done.stdout)["vulnerabilities"]
    return [f"{name}: {one['severity']}, {one['range']}" for name, one in sorted(found.items())]


def too_old(today: dt.date) -> list[str]:
    """Return when somebody last looked at the vendored scripts, if that is more than a year ago."""
    looked_at = tomllib.loads(VENDOR.read_text(encoding="utf-8"))["looked_at"]
    if (today - looked_at).days <= OLDEST_DAYS:
        return []
    return [f"the vendored scripts were last looked at on {looked_at}: renew them, and the date in {VENDOR.name}"]


def main() -> int:
    """Print what was audited, and the vulnerabilities."""
    holes, unaudited = too_old(dt.datetime.now(tz=dt.UTC).date()), []
    lists = {
        "installed": installed("rooflens"),
        "pinned by the action": pinned(PINS.read_text(encoding="utf-8")),
        "carried by the viewer": carried(VIEWER.read_text(encoding="utf-8")),
    }
    with tempfile.TemporaryDirectory() as folder:
        for what, requirements in lists.items():
            try:
                found = [one for one in audit(requirements, Path(folder)) if "vulns" in one]
            except FAILURES as error:
                found = []
                print(f"{what}: {type(error).__name__} {error}".splitlines()[0])
            print(f"{what}: audited {len(found)} of {len(requirements)} packages; the index knows no others")
            unaudited += [] if found else [what]
            holes += [
                f"{one['name']} {one['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'none'}"
                for one in found
                for hole in one["vulns"]
            ]
        scripts = {
            "the pages' scripts": lambda: BUNDLED,
            "the viewer's Pyodide": lambda: locked(VIEWER.read_text(encoding="utf-8"), Path(folder)),
        }
        for what, place in scripts.items():
            try:
                holes += npm_audit(place())
            except FAILURES as error:
                print(f"{what}: {type(error).__name__} {error}".splitlines()[0])
                unaudited.append(what)
    print("\n".join(holes) or "no holes are known")
    if unaudited:
        print(f"NOT AUDITED, which is no pass: {', '.join(unaudited)}")
    return 1 if holes else NOT_AUDITED if unaudited else 0


if __name__ == "__main__":
    sys.exit(main())
