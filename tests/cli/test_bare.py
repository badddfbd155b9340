"""`python3 -m rooflens collect`, `doctor` and `calibrate` where nothing is installed, and in Python 3.10."""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support import fake_ncu, fake_nvcc

import rooflens
from rooflens.cli import bare
from rooflens.cli.collecting import OPTIONS, OUTPUT, SAYS
from rooflens.cli.commands.collect import collect
from rooflens.cli.options import CommandOption, PlainParser
from rooflens.errors import READS_SINCE, UsageError

CHECKOUT = Path(rooflens.__file__).parents[1]
RUN = f"import runpy, sys; sys.path.insert(0, {str(CHECKOUT)!r}); runpy.run_module('rooflens', run_name='__main__')"
DRY_RUN = ("collect", "--dry-run", "--chip", "gh100", "--", "./train")
LINE = {"iterations": 20, "launches": 20, "wall_ns": 1_000_000, "kernel_ns": 990_000}
NEWER = {
    "asyncio": {"Runner", "TaskGroup", "timeout", "Barrier"},
    "contextlib": {"chdir"},
    "datetime": {"UTC"},
    "enum": {"StrEnum", "ReprEnum", "verify", "member", "nonmember", "global_enum"},
    "hashlib": {"file_digest"},
    "operator": {"call"},
    "typing": {
        *("Self", "LiteralString", "Never", "NotRequired", "Required", "TypeVarTuple", "Unpack", "assert_never"),
        *("assert_type", "reveal_type", "dataclass_transform", "get_overloads", "clear_overloads"),
    },
    "builtins": {"ExceptionGroup", "BaseExceptionGroup"},
}
"""Names that came with Python 3.11, by module."""


def run(
    python: Sequence[str], *words: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a Python that sees the checkout and its standard library."""
    command = [*python, "-c", RUN, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603 - ours


HERE = (sys.executable, "-IS")


@pytest.fixture(scope="module")
def python310() -> tuple[str, ...]:
    """Return a Python 3.10; skip the test if there is none."""
    places = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/3.10.*/bin/python3.10")
    for found in (shutil.which("python3.10"), *map(str, places)):
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:  # noqa: S603 - a Python
            return (found, "-IS")
    pytest.skip("no Python 3.10 here: what runs on a bare machine was checked by its names alone")


@pytest.fixture
def gpu_machine(tmp_path: Path, fixtures: Path) -> dict[str, str]:
    """Return the variables of a simulated machine with an H200, ncu and nvcc."""
    fake_ncu.install(tmp_path / "bin")
    fake_nvcc.install(tmp_path / "bin", LINE)
    return {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        fake_ncu.BEHAVIOUR: "success",
        fake_ncu.REPORT: str(fixtures / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep"),
    }


def loaded_files(environment: dict[str, str]) -> set[Path]:
    """Return our files that `doctor` and `collect` import where nothing is installed."""
    code = f"import atexit, sys; atexit.register(lambda: print('\\nLOADED', *sys.modules, sep='\\n'))\n{RUN}"
    output = ("-o", f"{environment['HOME']}/y.ncu-rep")
    found: set[Path] = set()
    for words in (
        ("doctor",),
        DRY_RUN,
        ("collect", *output, "saxpy"),
        ("collect", "--force", *output, "--", "/bin/true"),
    ):
        done = subprocess.run(  # noqa: S603 - ours
            [*HERE, "-c", code, *words], capture_output=True, text=True, check=False, env=environment
        )
        assert (words, done.returncode) == (words, 3 if words == ("doctor",) else 0), done.stderr
        modules = done.stdout.rpartition("\nLOADED\n")[2].split()
        foreign = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"rooflens", "__main__"}
        assert (words, {name for name in foreign if not name.startswith("_")}) == (words, set())
        places = [CHECKOUT.joinpath(*name.split(".")) for name in modules if name.partition(".")[0] == "rooflens"]
        found |= {
            file for place in places for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()
        }
    return found


def names_used(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that a module takes from others, `module`, `name`; without those for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node.attr
        elif isinstance(node, ast.Name):
            yield "builtins", node.id
        yield from names_used(node)


def test_what_runs_there_needs_no_newer_python(gpu_machine: dict[str, str]) -> None:
    """Every file on that way parses as Python 3.10, and takes no name that came later; packages are not needed."""
    files = loaded_files(gpu_machine)
    assert {"bare.py", "collecting.py", "plan.py", "run.py", "doctor.py"} <= {file.name for file in files}
    offenders = []
    for file in sorted(files):
        tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 10))
        used = set(names_used(tree))
        offenders += [f"{file.name}: {module}.{name}" for module, name in used if name in NEWER.get(module, ())]
        offenders += [f"{file.name}: {module}" for module, _ in used if module == "tomllib"]
    assert offenders == []
    assert set(names_used(ast.parse("from enum import StrEnum\nimport tomllib\nraise ExceptionGroup"))) == {
        ("enum", "StrEnum"),
        ("tomllib", ""),
        ("builtins", "ExceptionGroup"),
    }


@pytest.mark.parametrize("words", [("doctor",), DRY_RUN])
def test_without_any_package_both_commands_work(words: tuple[str, ...]) -> None:
    """Where click is missing, the standard library reads the command line, and the answer is the same."""
    done = run(HERE, *words)
    assert "Traceback" not in done.stderr
    if words == DRY_RUN:
        whole = subprocess.run(  # noqa: S603 - ours
            [sys.executable, "-m", "rooflens", *words], capture_output=True, text=True, check=True, cwd=CHECKOUT
        )
        assert (done.returncode, done.stdout) == (0, whole.stdout)
    else:
        assert done.returncode == 3
        assert "fail      report reader" in done.stdout


def test_python_310_collects(python310: tuple[str, ...], tmp_path: Path, gpu_machine: dict[str, str]) -> None:
    """In Python 3.10 without any package, `collect` brings a report home, and what cannot work there says why."""
    report = tmp_path / "x.ncu-rep"
    done = run(python310, "collect", "-o", str(report), "--", "/bin/true", environment=gpu_machine)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == f"wrote {report}"
    assert report.exists()
    assert json.loads(report.with_name("x.unprofiled.json").read_text())["source"] == "wall"
    line, half = ("collect", "-o", f"{tmp_path}/y.ncu-rep", "--", "/bin/true"), {fake_ncu.BEHAVIOUR: "half"}
    assert "cannot be read: truncated: " in run(python310, *line, environment=gpu_machine | half).stderr
    told = run(python310, "doctor", environment=gpu_machine)
    assert told.returncode == 3
    assert "reading them needs 3.11" in told.stdout
    assert "NVIDIA H200, compute capability 9.0" in told.stdout
    planned = run(python310, *DRY_RUN, environment=gpu_machine)
    assert (planned.returncode, planned.stdout) == (0, run(HERE, *DRY_RUN, environment=gpu_machine).stdout)
    with_pip = run((python310[0], "-I"), "collect", "--dry-run", "fma", environment=gpu_machine)
    assert with_pip.returncode == 0 or "cannot read TOML" in with_pip.stderr
    for words in (("collect", "fma"), ("collect", "--timeline", "x.sqlite", "--", "/bin/true"), ("analyze", "x")):
        refused = run(python310, *words, environment=gpu_machine)
        assert (refused.returncode, refused.stdout) == (3, "")
        assert refused.stderr.startswith("error: ")
        assert "Python 3.11" in refused.stderr


def test_ctrl_c_while_the_command_line_is_imported_is_no_traceback() -> None:
    """A signal that comes before the commands are there ends quietly, with the status of one that comes later."""
    stop = "import sys; sys.modules['rooflens.cli.group'] = type('M', (), {'__getattr__': lambda *_: stop()})()"
    code = f"def stop():\n    raise KeyboardInterrupt\n{stop}; {RUN}"
    done = subprocess.run([sys.executable, "-c", code, "analyze"], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_what_ncu_wrote_is_checked_there(tmp_path: Path, gpu_machine: dict[str, str]) -> None:
    """Without any package, a report that ncu cut is refused, and the part that is kept has its kernels counted."""
    report = tmp_path / "x.ncu-rep"
    line = ("collect", "--no-unprofiled", "--no-trial", "-o", str(report), "--", "/bin/true")
    half = run(HERE, *line, environment={**gpu_machine, fake_ncu.BEHAVIOUR: "half"})
    assert half.returncode == 1
    assert "the report that ncu wrote cannot be read: truncated: " in half.stderr
    assert not report.exists()
    broken_off = run(HERE, *line, environment={**gpu_machine, fake_ncu.BEHAVIOUR: "broken_off"})
    assert broken_off.returncode == 1
    assert f"the report so far is kept, 1 complete kernel: `rooflens analyze {report}.incomplete`" in broken_off.stderr


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ((), 0, "Usage: python3 -m rooflens (collect | doctor | calibrate)"),
        (("--help",), 0, "doctor     Check what this machine can do."),
        (("--version",), 0, f"rooflens, version {rooflens.__version__}"),
        (("collect", "--help"), 0, "--launch-count N"),
        (("collect", "--nope"), 2, "error: unrecognized arguments: --nope"),
        (("collect", "--launch-count", "0", "--", "x"), 2, "0 is not in the range x>=1"),
        (("collect", "--timeout", "none", "--", "x"), 2, "'none' is not a valid float"),
        (("collect", "--detail", "all", "--", "x"), 2, "invalid choice: 'all'"),
        (("collect",), 2, "error: give a workload, or a command after `--`"),
        (("doctor", "x"), 2, "error: `doctor` takes no arguments, not `x`"),
        (("calibrate", "x"), 2, "error: `calibrate` takes no arguments, not `x`"),
        (("calibrate",), 3, "error: no NVIDIA GPU or driver"),
        (("report", "x.ncu-rep"), 3, "error: only `collect`, `doctor` and `calibrate` work without click"),
    ],
)
def test_each_line_is_answered(
    words: tuple[str, ...], status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Help and version are there, and an error is one line with a hint."""
    assert bare.main(words) == status
    said = capsys.readouterr()
    assert told in said.out + said.err
    assert ("hint: " in said.err) == (status != 0)


def _random_words(option: CommandOption, draw: random.Random) -> list[str]:
    value = {"number": str(draw.randint(option.least, 9)), "seconds": "2.5", "file": "some/file"}.get(
        option.kind, "a,b"
    )
    words = [] if option.kind == "flag" else [draw.choice(option.choices) if option.choices else value]
    name = draw.choice([option.name, option.short or option.name])
    return [name, *words] * (draw.randint(1, 2) if option.is_many else 1)


def test_both_parsers_read_a_line_alike() -> None:
    """Over 60 random lines, values and defaults are those that click finds."""
    draw = random.Random(0)  # noqa: S311 - a test's
    plain = PlainParser("rooflens collect", (*OPTIONS, OUTPUT), SAYS)
    plain.add_argument("workload", nargs="?")
    for _ in range(60):
        chosen = draw.sample([*OPTIONS, OUTPUT], draw.randint(0, 12))
        words = [word for option in chosen for word in _random_words(option, draw)]
        words = [*words, "saxpy"] if draw.random() < 0.5 else words
        assert plain.values(words) == collect.make_context("collect", list(words)).params


def test_errors_of_the_plain_parser_are_ours() -> None:
    """It raises instead of ending the process."""
    with pytest.raises(UsageError, match="expected one argument"):
        PlainParser("x", OPTIONS, SAYS).values(["--kernel"])


def test_the_newer_python_is_what_the_package_requires() -> None:
    """pyproject.toml requires the Python that `doctor` names."""
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'requires-python = ">={}.{}"'.format(*READS_SINCE) in text
