"""Every example in the Python API runs, and everything public has an example."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import pytest
from support.loops import for_all
from support.ncu_rep_writer import Instances, KernelSpec, MetricValue, ReportSpec, write_report

import rooflens as rl

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in (ROOT / "rooflens" / "api").glob("*.py") if path.stem != "__init__")
PROFILED = "rooflens.api.profiling."
"""Objects whose examples profile: each runs as a script, which starts twice."""


def examples() -> Iterator[doctest.DocTest]:
    """Find the API's docstrings with examples."""
    for name in MODULES:
        for found in doctest.DocTestFinder(exclude_empty=True).find(import_module(f"rooflens.api.{name}")):
            if found.examples:
                yield found


def public() -> Iterator[tuple[str, Any]]:
    """List the API's public names, and the public methods of their classes, including Python's own."""
    for name in rl.__all__:
        one = getattr(rl, name)
        if name in {"__version__", "RooflensError"}:  # a text, and an error of all rooms
            continue
        yield name, one
        if inspect.isclass(one):
            yield from ((f"{name}.{key}", value) for key, value in vars(one).items() if not key.startswith("_"))
    yield "Report.__getitem__", rl.Report.__getitem__
    yield "Report.__arrow_c_stream__", rl.Report.__arrow_c_stream__


@pytest.fixture(scope="module")
def clone(fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the stored reports, as in a clone, and a report with instruction samples."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "fixtures").symlink_to(fixtures)
    (folder / "examples").symlink_to(ROOT / "examples")
    metrics: dict[str, MetricValue] = {
        "gpu__time_duration.sum": 2000.0,
        "launch__grid_size": 4,
        "launch__block_size": 40,
        "smsp__pcsamp_sample_count": Instances({4096: 2, 4112: 7}, 9),
        "inst_executed": Instances({4096: 4, 4112: 2, 4128: 1}, 7),
    }
    write_report(folder / "sampled.ncu-rep", ReportSpec([KernelSpec("kernel()", metrics)]))
    return folder


@pytest.mark.parametrize(
    "example", [one for one in examples() if not one.name.startswith(PROFILED)], ids=lambda one: one.name
)
def test_an_example_runs_as_it_is_written(
    example: doctest.DocTest, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run from a clone's root, a docstring's example prints the output shown."""
    monkeypatch.chdir(clone)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # IPython replaces it
    monkeypatch.setattr("rooflens.api.notebook.display", lambda: lambda *_, **__: None)
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    said: list[str] = []
    runner.run(example, out=said.append)
    assert not runner.failures, "".join(said)


@pytest.mark.parametrize(
    "example", [one for one in examples() if one.name.startswith(PROFILED)], ids=lambda one: one.name
)
def test_an_example_of_profiling_runs_as_a_script(example: doctest.DocTest, gpu_box: Path) -> None:
    """An example that profiles, saved as a file, prints the output shown, and its program runs twice."""
    script = gpu_box / "example.py"
    lines = [f"print(repr({one.source.strip()}))\n" if one.want else one.source for one in example.examples]
    script.write_text("".join(lines), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert (done.stdout, done.stderr) == ("".join(one.want for one in example.examples), "")


@for_all("name, one", public(), lambda case: case[0])
def test_what_is_public_is_described(name: str, one: Any) -> None:
    """Each public name has a docstring; functions document arguments and errors, and have an example."""
    described = inspect.getdoc(one) or ""
    assert described, name
    if inspect.isclass(one) or isinstance(one, (FunctionType, MethodType)):
        assert ">>> " in described, name
    if isinstance(one, FunctionType):
        told = {"self", "function", "requested_schema"}
        for argument in inspect.signature(one).parameters:
            assert argument in told or f"{argument}: " in described or f"{argument}`" in described, (
                f"{name}({argument})"
            )
