"""The viewer: what it is made of, what it needs to draw a page, and the command that serves it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
import urllib.request
from importlib.metadata import requires
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.traces import kernel, write_trace

from rooflens.cli.commands.viewer import server_of
from rooflens.cli.group import main

ROOT = Path(__file__).parents[1]
VIEWER = ROOT / "viewer"
PINS = tomllib.loads((VIEWER / "pins.toml").read_text(encoding="utf-8"))
WITHOUT = {"numpy", "pandas", "pyarrow", "ncu-report", "rpds-py"}
"""What the way from bytes to page does without; `rpds.py` stands in for the last."""

BLOCKED = """
import sys
class Refusing:
    @staticmethod
    def find_spec(name, *_):
        if name in {"numpy", "pandas", "pyarrow", "ncu_report"}:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)
sys.meta_path.insert(0, Refusing)
import answering, json, pathlib, rpds
assert rpds.__file__.endswith("rpds.py")
answering.PAGE = pathlib.Path("page.html")
answers = [getattr(answering, sys.argv[1])(paths) for paths in json.loads(sys.argv[2])]
print(json.dumps([[status, len(made), messages] for status, made, messages in answers]))
"""


@pytest.fixture
def build() -> ModuleType:
    """Return the script that builds the viewer."""
    spec = importlib.util.spec_from_file_location("build_viewer", VIEWER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_every_download_is_pinned_by_version_and_digest() -> None:
    """What the build fetches has one version and one SHA-256 each."""
    for name, pin in (PINS["npm"] | PINS["wheels"]).items():
        assert set(pin) == {"version", "sha256"}, name
        assert re.fullmatch(r"[\d.]+", pin["version"]), name
        assert re.fullmatch(r"[0-9a-f]{64}", pin["sha256"]), name


def test_the_pins_are_what_the_package_needs() -> None:
    """Pinned are the packages that rooflens needs, and what they need in turn, but for those that no page needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed: set[str] = set()
    left = list(project["dependencies"])
    while left:
        one = Requirement(left.pop())
        name = canonicalize_name(one.name)
        there = {"python_version": PINS["python"], "python_full_version": f"{PINS['python']}.0", "extra": ""}
        if name in needed | WITHOUT or (one.marker is not None and not one.marker.evaluate(there)):
            continue
        needed.add(name)
        assert name not in PINS["wheels"] or one.specifier.contains(PINS["wheels"][name]["version"]), one
        left += requires(name) or []
    assert needed == set(PINS["wheels"])


@pytest.mark.parametrize("kind", ["page", "text", "data"])
def test_pages_texts_and_json_need_no_numpy_pandas_pyarrow_or_nvidia_module(
    kind: str, fixtures: Path, tmp_path: Path
) -> None:
    """With these blocked, and the stand-in for rpds, the commands read a report, a pair, three, and a trace."""
    names = ("MW_Baseline", "MW_DivToMult")
    reports = [str(fixtures / "published" / f"GPU_workshop__{name}.ncu-rep") for name in names]
    trace = write_trace(tmp_path / "trace.json", [kernel("gemm", 10.0), kernel("gemm", 20.0)])
    other = str(fixtures / "published" / "llm.c__adamw_coalsecing_shared.ncu-rep")
    asked = json.dumps([reports[:1], reports, [*reports, other], [str(trace)]])
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", BLOCKED, kind, asked],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(VIEWER), str(ROOT)])},
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for status, length, messages in json.loads(done.stdout):
        assert status == 0, messages
        assert length > 200, messages


def test_a_folder_that_is_no_viewer_is_not_replaced(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The build replaces its own folder, and refuses one with files of others."""
    (tmp_path / "precious").write_text("kept", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path)])
    assert build.main() == 1
    assert (tmp_path / "precious").exists()
    assert "is no viewer" in capsys.readouterr().err


def test_a_core_that_is_not_the_pinned_one_is_refused(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of npm with another digest ends the build."""
    monkeypatch.setattr(build, "_run", lambda *command: Path(command[-1], "pyodide.tgz").write_bytes(b"another"))
    with pytest.raises(ValueError, match="not the one that was pinned"):
        build._fetch_core(tmp_path / "pyodide", PINS["npm"]["pyodide"])


def test_only_a_registry_that_cannot_be_reached_is_no_fault_of_the_build(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tests in a browser skip at status 75 alone: what npm and pip refuse for another reason fails them."""
    printed = {
        "npm error code ENOTFOUND\nnpm error network request failed": (75, "npm error network request failed"),
        "ERROR: No matching distribution found for altair==6.3.0": (75, "No matching distribution"),
        "npm error minTimeout is greater than maxTimeout\nnpm error A complete log of this": (1, "minTimeout"),
    }
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path / "viewer")])
    for stderr, (status, shown) in printed.items():

        def run(*command: str, stderr: str = stderr) -> None:
            raise subprocess.CalledProcessError(1, command, stderr=stderr)

        monkeypatch.setattr(build, "_run", run)
        assert build.main() == status
        assert shown in capsys.readouterr().err


def test_where_it_was_not_built_the_command_says_how(tmp_path: Path) -> None:
    """A folder without a viewer is one error with the way to build it."""
    done = CliRunner().invoke(main, ["viewer", str(tmp_path), "--no-open"])
    assert (done.exit_code, "make viewer" in done.stderr) == (1, True)


def test_a_port_in_use_is_one_error(tmp_path: Path) -> None:
    """A port on which another program listens is named, with the way out."""
    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(main, ["viewer", str(tmp_path), "--no-open", "--port", str(port)])
    assert (done.exit_code, f"port {port} of 127.0.0.1 cannot be used" in done.stderr) == (1, True)


def test_the_folder_is_served_to_this_machine_alone(tmp_path: Path) -> None:
    """Files come from 127.0.0.1, modules and wasm as types that browsers run."""
    for name in ("manifest.json", "pyodide.mjs", "pyodide.asm.wasm"):
        (tmp_path / name).write_bytes(b"{}")
    with server_of(tmp_path, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert server.server_address[0] == "127.0.0.1"
        kinds = []
        for name in ("pyodide.mjs", "pyodide.asm.wasm"):
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{name}") as answer:
                kinds.append(answer.headers["Content-Type"])
        server.shutdown()
    assert kinds == ["text/javascript", "application/wasm"]
