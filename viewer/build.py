"""Build the viewer, a folder that any static host serves: `.venv/bin/python viewer/build.py out/viewer`.

It holds Pyodide's core, the wheels that rooflens needs to draw a page, and rooflens' own wheel. What is fetched is
pinned in `pins.toml`, by digest; `npm` and `pip` fetch it, from wherever they are set up to.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflens.report.html import theme

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
COPIED = ("viewer.js", "worker.js", "frame.html", "answering.py", "rpds.py")
EXAMPLES = tuple(
    HERE.parent / "fixtures" / "published" / f"GPU_workshop__MW_{name}.ncu-rep" for name in ("Baseline", "DivToMult")
)
"""A program before and after a change: `index.html` links to them."""
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
NOT_HAD = 75
"""The exit status where something could not be fetched, as of `.ci/audit.py`."""
UNREACHED = re.compile(r"npm error code E(?!USAGE)|No matching distribution found|connection|timed out", re.IGNORECASE)
"""What npm and pip print where their registry does not answer, or has no such package; another failure is ours."""
BARE = re.compile(r"npm error (code|errno|syscall|A complete log)")
"""Lines of npm that say nothing to a person."""
PURE = ("markupsafe/__init__.py", "markupsafe/_native.py")


def main() -> int:
    """Build it; say what failed, and what may help."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    options.add_argument("folder", type=Path, help="where the viewer goes; what is there is replaced")
    folder: Path = options.parse_args().folder
    if folder.exists() and not (folder / "manifest.json").is_file() and any(folder.iterdir()):
        return _fail(f"`{folder}` is no viewer, and would be replaced", "name another folder")
    pins = tomllib.loads((HERE / "pins.toml").read_text(encoding="utf-8"))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".viewer") as made:
        try:
            build(Path(made) / "viewer", pins)
        except FileNotFoundError as error:
            return _fail(f"`{error.filename}` is not installed", "the viewer is built with npm and pip", NOT_HAD)
        except subprocess.CalledProcessError as error:
            message = f"{_name(error.cmd)} failed: {_first_error(error.stderr)}"
            if UNREACHED.search(error.stderr) is None:
                return _fail(message, f"run it yourself: {' '.join(error.cmd)}")
            return _fail(message, "the viewer is made of packages that npm and pip fetch: is there a network?", NOT_HAD)
        except ValueError as error:
            return _fail(str(error), "renew viewer/pins.toml, or ask who changed the file")
        shutil.rmtree(folder, ignore_errors=True)
        (Path(made) / "viewer").rename(folder)
    print(folder / "index.html")
    return 0


def build(folder: Path, pins: dict[str, Any]) -> None:
    """Fetch everything into a new folder, and write the pages.

    Raises:
        ValueError: A file is not the one that was pinned.
        subprocess.CalledProcessError: npm or pip failed.
        FileNotFoundError: npm is not installed.
    """
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    _fetch_core(folder / "pyodide", pins["npm"]["pyodide"])
    _fetch_wheels(wheels, pins)
    for wheel in wheels.glob("markupsafe-*"):
        _keep_pure(wheel)
    _pip("wheel", "--no-deps", *_how_to_build(), "--wheel-dir", str(wheels), str(HERE.parent))
    for name in COPIED:
        shutil.copyfile(HERE / name, folder / name)
    (folder / "examples").mkdir()
    for report in EXAMPLES:
        shutil.copyfile(report, folder / "examples" / report.name)
    index = (HERE / "index.html").read_text(encoding="utf-8")
    for name, inks, dark in (("light", theme.LIGHT, False), ("dark", theme.DARK, True)):
        index = index.replace(f"/* {name} */", theme.css_variables(inks, dark=dark))
    (folder / "index.html").write_text(index, encoding="utf-8")
    held = sorted(wheel.name for wheel in wheels.iterdir())
    (folder / "manifest.json").write_text(json.dumps({"wheels": held}, indent=1), encoding="utf-8")


def _fetch_core(folder: Path, pin: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as fetched:
        patience = (
            "--fetch-retries=1",
            "--fetch-retry-mintimeout=1000",
            "--fetch-retry-maxtimeout=2000",
            "--fetch-timeout=60000",
        )
        _run("npm", "pack", f"pyodide@{pin['version']}", *patience, "--pack-destination", fetched)
        (archive,) = Path(fetched).iterdir()
        if hashlib.sha256(archive.read_bytes()).hexdigest() != pin["sha256"]:
            raise ValueError(f"pyodide {pin['version']} of npm is not the one that was pinned")
        folder.mkdir()
        with tarfile.open(archive) as held:
            for name in CORE:
                inside = held.extractfile(f"package/{name}")
                if inside is None:
                    raise ValueError(f"pyodide {pin['version']} holds no {name}")
                (folder / name).write_bytes(inside.read())


def _fetch_wheels(folder: Path, pins: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as made:
        wanted = Path(made) / "requirements.txt"
        lines = (f"{name}=={pin['version']} --hash=sha256:{pin['sha256']}" for name, pin in pins["wheels"].items())
        wanted.write_text("\n".join(lines), encoding="utf-8")
        platforms = [option for name in (*pins["platforms"], "any") for option in ("--platform", name)]
        abis = [f"--abi=cp{pins['python'].replace('.', '')}", "--abi=none"]
        target = ("--implementation=cp", f"--python-version={pins['python']}", *abis, *platforms)
        _pip(
            "download", "--no-deps", "--only-binary=:all:", *target, "--dest", str(folder), "--requirement", str(wanted)
        )


def _keep_pure(wheel: Path) -> None:
    """Leave the part of MarkupSafe that is Python: its own fall-back where the compiled one is missing."""
    with zipfile.ZipFile(wheel) as held:
        kept = {name: held.read(name) for name in held.namelist() if name in PURE or ".dist-info/" in name}
    wheel.unlink()
    name, version = wheel.name.split("-")[:2]
    with zipfile.ZipFile(wheel.with_name(f"{name}-{version}-py3-none-any.whl"), "w", zipfile.ZIP_DEFLATED) as written:
        for path, data in kept.items():
            written.writestr(path, data)


def _how_to_build() -> tuple[str, ...]:
    """Build with the hatchling of this environment; else with one that pip fetches, as the action pins it."""
    return ("--no-build-isolation",) if find_spec("hatchling") else ()


def _pip(*arguments: str) -> None:
    _run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries=1", *arguments)


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if "DO NOT MATCH THE HASHES" in done.stderr:
        raise ValueError("a wheel is not the one that was pinned")
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr)


def _name(command: Sequence[str]) -> str:
    return "pip" if command[0] == sys.executable else command[0]


def _first_error(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line.lower() and not BARE.search(line)]
    return lines[0].strip() if lines else "it said nothing"


def _fail(message: str, hint: str, status: int = 1) -> int:
    print(f"error: {message}\n\nhint: {hint}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
