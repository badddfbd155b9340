"""The vendored Vega: `make vendor` rebuilds it from the packages in `vega/package-lock.json`; this needs npm.

To renew it, write newer versions into `vega/package.json`, run `npm install` there (`npm audit` lists known
vulnerabilities), and `make vendor`. It prints the digest and the packages for `vendor.toml`; if packages were added
or removed, `vega.LICENSE.txt` needs their licences, which are in `vega/node_modules`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

VEGA = "vega.min.js"
SOURCES = Path(__file__).parent / "vega"
NPM = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
ESBUILD = ("node_modules/.bin/esbuild", "entry.js", "--bundle", "--minify", "--format=iife", "--legal-comments=none")
LONGEST_S = 300


class Bundle(Struct, frozen=True):
    """A script that needs no network, and `name version` of each package in it by its licence."""

    code: bytes
    packages: dict[str, list[str]]


def bundle() -> Bundle:
    """Bundle Vega, Vega-Lite and vega-embed.

    Raises:
        OSError, subprocess.SubprocessError: npm is missing, or its packages cannot be fetched.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
        for command in (NPM, (*ESBUILD, "--metafile=meta.json", f"--outfile={VEGA}", "--log-level=warning")):
            subprocess.run(command, cwd=folder, check=True, timeout=LONGEST_S)  # noqa: S603 - ours
        (made,) = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["outputs"].values()
        used = (name for name, about in made["inputs"].items() if about["bytesInOutput"])
        return Bundle((folder / VEGA).read_bytes(), _by_licence(folder, used))


def _by_licence(folder: Path, files: Iterable[str]) -> dict[str, list[str]]:
    """Name the packages of these files; npm may have one in two versions."""
    found: dict[str, set[str]] = {}
    for file in files:
        above = next((one for one in Path(file).parents if one.parent.name == "node_modules"), None)
        if above is not None:
            about = json.loads((folder / above / "package.json").read_text(encoding="utf-8"))
            found.setdefault(about["license"], set()).add(f"{about['name']} {about['version']}")
    return {licence: sorted(packages) for licence, packages in sorted(found.items())}


if __name__ == "__main__":
    made = bundle()
    (Path(__file__).parents[2] / "rooflens" / "report" / "assets" / "vendor" / VEGA).write_bytes(made.code)
    sys.stdout.write(f"sha256 {hashlib.sha256(made.code).hexdigest()}\n{json.dumps(made.packages, indent=2)}\n")
