"""Reading works on Linux, macOS and Windows, here with a stand-in for the Python of Windows, and as on a Mac."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rooflens.cli import streams
from rooflens.collect.command import find_ncu
from rooflens.errors import EnvironmentMissingError

WINDOWS = Path(__file__).parents[1] / "support" / "windows"
BEFORE, AFTER = "GPU_workshop__MW_Baseline.ncu-rep", "GPU_workshop__MW_DivToMult.ncu-rep"


def on_windows(
    folder: Path, *arguments: str, code: str = "from rooflens.__main__ import main; main()"
) -> subprocess.CompletedProcess[bytes]:
    """Run a command or code in a process where our modules see Windows' Python and its code page."""
    paths = os.pathsep.join((str(WINDOWS), *filter(None, sys.path)))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "cp1252"}
    argv = [sys.executable, "-c", code, *arguments]
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, check=False)  # noqa: S603 - ours


COMMANDS = (
    (("analyze", BEFORE), b"compute_tendencies_x_279_gpu  6.19 ms"),
    (("analyze", BEFORE, "--format", "json"), b'"schema_version"'),
    (("explain", BEFORE), b"# `compute_tendencies_x_279_gpu`"),
    (("hotspots", BEFORE), b"miniWeather_mpi_openacc.F90:288"),
    (("report", BEFORE, "-o", "page.html"), b""),
    (("report", BEFORE, "-o", "page.md"), b""),
    (("ingest", BEFORE, AFTER, "--store", "store", "--executor", "process:2"), b""),
    (("compare", BEFORE, AFTER), b"GPU time 1.22x faster"),
    (("metrics", "--chip", "gh100"), b"passes"),
    (("predict", "gemm", "--m", "4096", "--n", "4096", "--k", "4096", "--gpu", "h100-sxm"), b"compute-bound"),
    (("gpus", "h100"), b"H100"),
    (("about", "long_scoreboard"), b"long_scoreboard"),
    (("doctor",), b"collecting needs Linux"),
)


@pytest.mark.parametrize(
    ("command", "says"),
    COMMANDS,
    ids=[" ".join(command) for command, _ in COMMANDS],
)
def test_commands_that_read_work_on_windows(
    command: tuple[str, ...], says: bytes, fixtures: Path, tmp_path: Path
) -> None:
    """Each command works without POSIX-only names and with a code page of 256 characters."""
    for name in {BEFORE, AFTER} & set(command):
        shutil.copyfile(fixtures / "published" / name, tmp_path / name)
    done = on_windows(tmp_path, *command)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr.decode("cp1252")
    assert says in done.stdout


def test_the_stand_in_lacks_what_windows_lacks(tmp_path: Path) -> None:
    """Our code would fail there if it used a POSIX name: the stand-in is not Linux in disguise."""
    code = "exec(compile('''import os, signal, sys\nprint(sys.platform, os.name)\n"
    code += "for module, name in ((os, 'pread'), (os, 'geteuid'), (signal, 'SIGKILL')):\n"
    code += "    print(hasattr(module, name))\nimport resource''', 'x', 'exec'), {'__name__': 'rooflens.x'})"
    done = on_windows(tmp_path, code=code)
    assert done.stdout.split() == [b"win32", b"nt", b"False", b"False", b"False"]
    assert b"ModuleNotFoundError: No module named 'resource'" in done.stderr


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_collecting_elsewhere_says_that_it_needs_linux(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collecting gives one error with a way out, whether or not something called `ncu` exists."""
    monkeypatch.setattr(sys, "platform", system)
    with pytest.raises(EnvironmentMissingError, match="collecting needs Linux") as caught:
        find_ncu()
    assert "the report can be read here" in caught.value.hint


def test_a_console_that_is_no_file_keeps_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows' console Python writes UTF-16: bytes written past it would be read in its code page."""

    class Console(io.RawIOBase):
        def writable(self) -> bool:
            return True

    console = io.TextIOWrapper(io.BufferedWriter(Console()), "utf-8")  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdout", console)
    monkeypatch.setattr(sys, "__stdout__", console)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    streams.prepare()
    assert sys.stdout is console
    assert console.errors == "replace"
