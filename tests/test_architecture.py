"""House rules that a machine can check: who imports what, and what a command costs to start."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from support.loops import for_all

import rooflens

PACKAGE = Path(rooflens.__file__).parent
HEAVY = {"altair", "pandas", "pyarrow", "numpy", "ncu_report", "vl_convert", "wcwidth", "google"}

MAY_IMPORT: dict[str, str] = {
    "errors": "",
    "addresses": "errors",
    "foreign": "",
    "meant": "errors",
    "failures": "errors processes",
    "cache": "files",
    "processes": "errors",
    "files": "errors",
    "checking": "errors format",
    "local_gpu": "errors processes cuda_device",
    "cuda_device": "",
    "analyzing": "format errors files collect ingest/* model/* workloads",
    "programs": "errors ingest/reports ingest/timelines model/program model/records model/selecting",
    "machine": "",
    "writing": "errors failures files format analyzing ingest/messages ingest/metrics collect ingest/reports "
    "ingest/timelines model/* report/* workloads",
    "api": "format globs errors meant addresses files analyzing programs writing collect ingest/* model/* report/*",
    "__main__": "cli errors",
    "cli": "format errors meant addresses checking files machine analyzing programs writing collect ingest/* model/* "
    "report/* workloads",
    "cli/commands": "format errors addresses files cli analyzing writing collect mcp ingest/* model/* report/* "
    "workloads",
    "ingest": "errors format machine ingest/metrics ingest/reports model/records model/failed model/source "
    "model/unprofiled model/store",
    "ingest/exports": "errors failures files foreign format model/counters model/keys model/records model/roofline",
    "ingest/messages": "errors",
    "ingest/cubin": "format ingest/messages ingest/metrics model/inside model/records",
    "ingest/metrics": "model/records model/hotspots model/counters model/store",
    "ingest/reports": "errors addresses cache files foreign format machine processes ingest/cubin ingest/exports "
    "ingest/metrics ingest/messages model/keys model/records model/failed model/unprofiled model/hotspots "
    "model/inside model/roofline model/counters model/store checking",
    "ingest/timelines": "errors files foreign format processes ingest/reports model/program model/unprofiled",
    "collect": "errors failures files format local_gpu processes ingest/reports ingest/timelines model/cases "
    "model/counters model/keys model/knowledge model/records model/roofline model/program model/unprofiled workloads",
    "workloads": "errors cache checking files processes local_gpu model/verdict_classes model/cases model/records",
    "model/verdict_classes": "",
    "model/calibration": "",
    "model/unprofiled": "",
    "model/records": "format model/verdict_classes model/calibration model/unprofiled",
    "model/failed": "errors model/records",
    "model/keys": "format model/records",
    "model/selecting": "errors format globs model/records model/keys",
    "model/cases": "errors model/verdict_classes model/records",
    "model/counters": "errors",
    "model/roofline": "format errors cache checking files model/verdict_classes model/calibration model/records "
    "model/counters",
    "model/hotspots": "model/records",
    "model/inside": "model/records model/counters model/hotspots model/roofline",
    "model/knowledge": "model/keys",
    "model/source": "format model/records model/keys model/hotspots",
    "model/verdict": "format errors checking model/verdict_classes model/records model/failed model/unprofiled "
    "model/counters model/hotspots model/knowledge model/roofline",
    "model/findings": "format model/verdict_classes model/records model/unprofiled model/counters model/hotspots "
    "model/roofline model/verdict",
    "model/needs": "model/records model/counters model/hotspots model/findings",
    "model/about": "errors format model/verdict_classes model/counters model/knowledge model/verdict model/findings",
    "model/printed": "model/counters model/knowledge",
    "model/same_work": "format model/counters model/records model/roofline model/verdict",
    "model/analyze": "model/keys model/records model/roofline model/source model/verdict model/findings",
    "model/summary": "format model/verdict_classes model/failed model/keys model/records model/roofline model/verdict",
    "model/ranking": "format model/records model/summary model/verdict",
    "model/catalogue": "format model/verdict_classes model/hotspots model/records model/roofline model/unprofiled "
    "report/words",
    "model/store": "errors addresses model/catalogue model/records model/summary model/unprofiled model/verdict "
    "model/analyze report/words",
    "model/program": "errors format model/verdict_classes model/compare model/keys model/knowledge model/predict "
    "model/records model/roofline model/selecting model/summary model/unprofiled",
    "model/predict": "format globs errors checking model/cases model/verdict_classes model/knowledge model/records "
    "model/ranking model/roofline model/summary model/verdict",
    "model/compare": "format errors model/verdict_classes model/counters model/keys model/records model/roofline "
    "model/same_work model/summary model/verdict model/findings",
    "format": "",
    "globs": "",
    "report/token_budget": "",
    "report/about": "format model/about model/catalogue model/counters model/knowledge model/printed report/document "
    "report/writers",
    "report/path": "format model/* report/document report/words report/plane",
    "report/ladder_data": "model/* report/words",
    "report/content": "format errors model/*",
    "report/notebook": "errors model/* report/content report/kernel report/overview report/roofline report/templates",
    "report/html": "format model/verdict_classes report/document",
    "report/templates": "format model/* report/document report/words report/html",
    "report/plane": "cache format model/* report/words report/html",
    "report/roofline": "format errors model/* report/words report/content report/html report/plane",
    "report/summary": "format model/* report/words report/content report/roofline",
    "report/kernel": "format globs model/* report/document report/words report/roofline report/writers",
    "report/overview": "format errors model/* report/document report/words report/content report/summary",
    "report/page": "format errors model/* report/document report/words report/content report/html report/overview "
    "report/path report/plane report/roofline report/summary report/kernel report/templates report/writers",
    "report/data": "format model/* report/content report/ladder_data report/overview",
    "report/document": "",
    "report/words": "format model/* report/document",
    "report/writers": "format report/document report/html report/templates",
    "report/text": "format errors model/* report/data report/document report/kernel report/words report/content "
    "report/summary report/writers",
    "report/text/digest": "format errors model/* report/document report/words report/token_budget report/content "
    "report/overview report/text report/writers",
    "mcp": "errors format analyzing programs writing ingest/* model/* report/*",
    "report/comparison": "format model/* report/document report/words report/html report/overview report/path "
    "report/plane report/roofline report/summary report/ladder_data report/data",
    "report/forecast": "format errors model/* report/document report/words report/plane report/data report/kernel",
    "report/program": "errors format model/* report/comparison report/data report/document report/ladder_data "
    "report/plane report/token_budget report/text report/words report/writers",
}
"""Room -> the rooms that it may import from; files beside rooms count as rooms."""

ONLY_IN = {
    "click": {"cli"},
    "ncu_report": {"ingest/reports/nvidia.py"},
    "google": {"ingest/messages/messages.py"},
    "torch": {"workloads", "collect/under_torch.py"},
    "altair": {"api", "report"},
    "pandas": {"api"},
    "polars": {"api"},
    "IPython": {"api"},
    "vl_convert": {"report/roofline/picture.py"},
    "jinja2": {"report/templates.py"},
    "numpy": set(),
    "rich": set(),
    "wcwidth": {"report/writers/terminal.py"},
    "pyarrow": {
        "addresses.py",
        "api",
        "model/store",
        "ingest/columns",
        "ingest/load.py",
        "ingest/running.py",
        "ingest/metrics/columns.py",
        "ingest/metrics/raw.py",
        "ingest/reports/report.py",
        "ingest/reports/read.py",
        "ingest/reports/jobs.py",
        "ingest/reports/unpacking.py",
    },
    "fsspec": {"addresses.py"},
    "distributed": {"ingest/running.py"},
    "mcp": {"mcp/server.py"},
    "mcp_types": {"mcp/server.py"},
    "pydantic": {"mcp/answers.py", "mcp/server.py"},
    "multiprocessing": {"ingest/running.py"},
    "ctypes": {"cuda_device.py", "collect/passes.py", "collect/probe.py", "ingest/reports/child.py", "api/marking.py"},
    "subprocess": {"processes.py"},
}
"""Third-party or costly module -> the only places that may import it."""


def _modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


@cache
def _imports(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if _file_of(name) else str(node.module) for name in names}
    return frozenset(found)


@cache
def _file_of(name: str) -> Path | None:
    """Find the file of one of our modules."""
    place = PACKAGE.parent.joinpath(*name.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def _room(path: Path) -> str:
    """Name a file's room: its folder, or the file itself if it is beside rooms."""
    place = path.relative_to(PACKAGE)
    is_beside = place.parent.as_posix() in {".", "model", "report"}
    return (place.with_suffix("") if is_beside else place.parent).as_posix()


@cache
def _rooms_used(path: Path) -> dict[str, str]:
    """Return the other rooms that a file imports from, each with the imported module."""
    files = {name: _file_of(name) for name in _imports(path) if name.partition(".")[0] == "rooflens"}
    found = {_room(file): name for name, file in files.items() if file and file != PACKAGE / "__init__.py"}
    return {room: name for room, name in found.items() if room != _room(path)}


@for_all("path", _modules(), lambda path: path.relative_to(PACKAGE))
def test_rooms_import_only_in_the_direction_of_the_arrows(path: Path) -> None:
    """A module imports only from its own room and the rooms in the table, types included."""
    if _room(path).startswith("workloads/"):
        return  # a profiled program is no part of the package
    allowed = MAY_IMPORT[_room(path)].split()
    for room, name in _rooms_used(path).items():
        assert room in allowed or f"{room.partition('/')[0]}/*" in allowed, f"{path.name} imports {name}"


def test_no_two_rooms_need_each_other() -> None:
    """The imports between rooms, types included, form no circle, so rooms can be read one after the other."""
    used: dict[str, set[str]] = {}
    for path in _modules():
        used.setdefault(_room(path), set()).update(_rooms_used(path))
    order = list(TopologicalSorter(used).static_order())
    assert order.index("model/records") < order.index("model/roofline") < order.index("model/verdict")


def test_every_room_stands_in_the_table() -> None:
    """The table names exactly the existing rooms."""
    rooms = {_room(path) for path in _modules() if not _room(path).startswith("workloads/")}
    assert rooms == set(MAY_IMPORT)


@for_all("path", _modules(), lambda path: path.relative_to(PACKAGE))
def test_each_dependency_has_its_one_place(path: Path) -> None:
    """Third-party modules are imported only where the table allows."""
    place = path.relative_to(PACKAGE).as_posix()
    for name in _imports(path):
        allowed = ONLY_IN.get(name.partition(".")[0])
        if allowed is not None:
            assert any(place == one or place.startswith(f"{one}/") for one in allowed), f"{place} imports {name}"


def test_only_the_report_has_templates() -> None:
    """All other pages come from a document through the single writer, and no script contains a model's number."""
    assets = PACKAGE / "report" / "assets"
    assert sorted(file.relative_to(assets).as_posix() for file in assets.rglob("*.html")) == [
        *("report/figures.html", "report/kernels.html", "report/page.html", "report/sweeps.html"),
        *("shared/blocks.html", "shared/frame.html"),
    ]
    assert {file.name for file in (assets / "shared").glob("*.js")} == {
        *("charts.js", "choice.js", "copy.js", "reveal.js", "share.js", "state.js", "theme.js")
    }


_TAG = re.compile(
    r"(?<!\?P)</?(?:a|aside|b|body|br|button|code|d[dlt]|details|div|em|figure|form|h[1-6]|head|html|i|iframe|img|input|label|li|main|"
    r"nav|ol|p|pre|rect|script|section|select|small|span|strong|style|summary|svg|t[dhr]|table|tbody|thead|u|ul)"
    r"(?=[\s/>]|$)(?!>[\w<(\[])"
)
_MAY_HOLD_TAGS = {
    "report/html/embed.py": "refuses scripts that end their own element",
    "report/roofline/picture.py": "puts drawings of Vega's, which are SVG, below one another",
    "report/writers/markdown.py": "Markdown has no fold of its own",
}


def test_tags_stand_in_templates_alone() -> None:
    """No string of Python holds a tag, so that nothing is escaped by hand; and no function makes HTML by itself."""
    offenders = []
    for path in _modules():
        tree = ast.parse(path.read_text("utf-8"))
        owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
        bodies = [node.body[0] for node in ast.walk(tree) if isinstance(node, owners) and node.body]
        docstrings = {id(first.value) for first in bodies if isinstance(first, ast.Expr)}
        place = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
            if is_text and place not in _MAY_HOLD_TAGS and _TAG.search(node.value):
                offenders.append(f"{place}:{node.lineno}: {node.value[:60]!r}")
    assert offenders == []


def test_public_methods_say_what_they_do() -> None:
    """Every public method has a docstring, except properties whose names say everything."""
    nodes = [(path, node) for path in _modules() for node in ast.parse(path.read_text("utf-8")).body]
    methods = [
        (path, method)
        for path, node in nodes
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for method in node.body
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_") and not method.decorator_list
    ]
    bare = [f"{path.name}:{method.lineno}" for path, method in methods if ast.get_docstring(method) is None]
    assert len(methods) > 100
    assert bare == []


LATER = {("forecast", "compared"), ("forecast", "published"), ("texts", "nvidia")}
"""Files that import each other, one of them only on use: published points, and times compared with them, need the
floors of forecasts, and the child process for NVIDIA's module answers with the records of its request."""


def test_no_two_files_need_each_other() -> None:
    """Within a room, too, the imports between files, types included, form no circle."""
    modules = _modules()
    used = {path: {_file_of(name) for name in _imports(path)} & {*modules} - {path} for path in modules}
    first = {
        path: {other for other in others if other and (path.stem, other.stem) not in LATER}
        for path, others in used.items()
    }
    assert len(list(TopologicalSorter(first).static_order())) == len(modules)


def test_no_command_chooses_a_writer() -> None:
    """Commands read, ask and deliver: they compare no format names and import no writers."""
    offenders = []
    for path in (PACKAGE / "cli" / "commands").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and any(isinstance(one, (ast.Eq, ast.Is)) for one in node.ops):
                named = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
                values = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
                offenders += [f"{path.name}:{node.lineno}"] if "style" in named and values - {None} else []
        offenders += [
            f"{path.name}: {name}" for name in _imports(path) if ".writers." in name or name.endswith("_page")
        ]
    assert offenders == []


_DOORS = ("cli", "api", "mcp")
_WRITERS_OF_FILES = {"write_whole", "replacing", "write_text", "write_bytes"}


def test_doors_ask_one_room_to_write_files() -> None:
    """No command, method or tool opens an output itself: `rooflens/writing/` writes all of them."""
    offenders = []
    for path in (path for door in _DOORS for path in (PACKAGE / door).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            names |= {node.attr} if isinstance(node, ast.Attribute) else set()
            is_opened = (
                isinstance(node, ast.Call) and ast.unparse(node.func).endswith("open") and _mode(node)[:1] in "wax"
            )
            if names & _WRITERS_OF_FILES or is_opened:
                offenders.append(f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}")
    assert offenders == []


def _mode(call: ast.Call) -> str:
    """Return the mode with which a file is opened, `r` if none is given: `open(file, "w")`, `file.open("wb")`."""
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "mode")]
    modes = (one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return next((mode for mode in modes if mode and set(mode) <= set("rwaxbt+")), "r")


_MOST_PARAMETERS = 8


def test_no_function_takes_more_than_eight_parameters() -> None:
    """What is asked of a function beyond that is a record, except at a command, whose options are its parameters.

    An overload is no function: it tells editors and type checkers the names that `**asked` takes.
    """
    offenders = []
    for path in _modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or any(map(_is_of_command, node.decorator_list)):
                continue
            taken = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if len(set(taken) - {"self", "cls"}) > _MOST_PARAMETERS:
                offenders.append(f"{path.relative_to(PACKAGE).as_posix()}:{node.name}")
    assert offenders == []


def _is_of_command(decorator: ast.expr) -> bool:
    """Return whether a decorator makes a function a command, or an overload of one: the type of what it takes."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called) in {"click.command", "click.group", "overload"}


def _modules_after(*arguments: str) -> set[str]:
    return {name.partition(".")[0] for name in _names_after(*arguments)}


def _names_after(*arguments: str) -> set[str]:
    code = f"import sys; sys.argv = ['rooflens', *{arguments!r}]\nfrom rooflens.cli.group import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass\nprint('MODULES', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return set(done.stdout.rpartition("MODULES")[2].split())


def test_help_imports_nothing_heavy() -> None:
    """`rooflens --help` starts without any of the data, chart or report libraries."""
    assert not _modules_after("--help") & HEAVY


def test_help_of_a_command_imports_nothing_heavy() -> None:
    """A command's help loads no more than the group's help."""
    assert not _modules_after("report", "--help") & HEAVY


def test_analyze_needs_no_chart_library(fixtures: Path) -> None:
    """The terminal table loads neither altair, nor pandas, nor pyarrow."""
    assert not _modules_after("analyze", str(fixtures)) & {"altair", "pandas", "pyarrow", "vl_convert"}


def test_json_needs_no_library_of_the_terminal(fixtures: Path) -> None:
    """JSON loads neither page templates nor, what counts the columns of a terminal."""
    report = fixtures / "synthetic" / "sweep_gemm_bf16_128.synthetic.ncu-rep"
    loaded = _modules_after("analyze", "--format", "json", str(report))
    assert not loaded & {"altair", "jinja2", "ncu_report", "numpy", "pandas", "pyarrow", "vl_convert", "wcwidth"}


def test_ingest_needs_no_pandas(fixtures: Path, tmp_path: Path) -> None:
    """Tables are made and written without pandas, although pyarrow would import it with its first array."""
    report = fixtures / "synthetic" / "sweep_gemm_bf16_128.synthetic.ncu-rep"
    loaded = _modules_after("ingest", str(report), "--store", str(tmp_path / "store"))
    assert "pyarrow" in loaded
    assert "pandas" not in loaded


def test_a_page_needs_no_library_for_pictures_or_frames(fixtures: Path, tmp_path: Path) -> None:
    """A page, also with a chart of several kernels, loads neither vl-convert nor pandas."""
    page = tmp_path / "page.html"
    report = fixtures / "synthetic" / "attention.synthetic.ncu-rep"
    loaded = _modules_after("report", str(report), "-o", str(page))
    assert "jinja2" in loaded
    assert not loaded & {"pandas", "vl_convert", "pyarrow"}


def test_a_page_whose_chart_was_built_before_needs_no_altair(
    fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing Altair is a third of a small page: one whose chart has the same layers as an earlier one does without.

    The same page is the same with it and without.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pages = []
    for name, loads in (("memory_dram", True), ("compute_fp32", False), ("memory_dram", False)):
        report = fixtures / "synthetic" / f"verdict_{name}.synthetic.ncu-rep"
        pages.append(tmp_path / f"{len(pages)}.html")
        loaded = _modules_after("report", str(report), "-o", str(pages[-1]))
        assert bool(loaded & {"altair", "jsonschema", "narwhals"}) is loads, name
    assert pages[0].read_bytes() == pages[2].read_bytes()


READS = {"click", "msgspec", "google"}
_PAGE = {"altair", "jinja2", "jsonschema"}  # Altair imports jsonschema
_BEFORE, _AFTER = "GPU_workshop__MW_Baseline.ncu-rep", "GPU_workshop__MW_DivToMult.ncu-rep"

IMPORTS: tuple[tuple[str, set[str]], ...] = (
    (f"analyze {_BEFORE}", READS),
    (f"analyze {_BEFORE} --format json", READS),
    (f"analyze {_BEFORE} --format csv", READS),
    (f"explain {_BEFORE}", READS),
    (f"hotspots {_BEFORE}", READS | {"wcwidth"}),  # its dashes are no Latin letters
    (f"compare {_BEFORE} {_AFTER}", READS),
    (f"compare {_BEFORE} {_AFTER} -o compared.html", READS | _PAGE),
    (f"report {_BEFORE} -o page.html", READS | _PAGE),
    (f"report {_BEFORE} -o page.md", READS),
    (f"report {_BEFORE} -o page.svg", READS | _PAGE | {"vl_convert"}),
    (f"ingest {_BEFORE} --store store", READS | {"pyarrow", "numpy"}),
    ("analyze --store store", READS - {"google"} | {"pyarrow", "numpy"}),
    ("compare store store", READS | {"pyarrow", "numpy"}),
    ("predict gemm --m 4096 --n 4096 --k 4096", {"click", "msgspec"}),
    ("predict gemm --m 4096 --n 4096 --k 4096 -o predict.html", {"click", "msgspec"} | _PAGE),
    ("about long_scoreboard", {"click", "msgspec"}),
    ("gpus h100", {"click", "msgspec"}),
    ("workloads", {"click"}),
    ("completion bash", {"click"}),
    ("skill", {"click"}),
    ("--help", {"click"}),
)
"""Command -> third-party packages that it may load for the published reports; `ingest` makes the store."""


def test_each_command_loads_only_what_it_uses(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command loads no package that it does not use, so a missing one causes no error."""
    for report in (_BEFORE, _AFTER):
        shutil.copyfile(fixtures / "published" / report, tmp_path / report)
    monkeypatch.chdir(tmp_path)
    known = set().union(*(allowed for _, allowed in IMPORTS)) | HEAVY | {"mcp", "polars", "IPython", "distributed"}
    for command, allowed in IMPORTS:
        loaded = _modules_after(*command.split()) & known
        assert loaded <= allowed, (command, loaded - allowed)


_MISSING = (
    ("vl_convert", f"report {_BEFORE} -o page.svg", "vl-convert-python"),
    ("google.protobuf", f"analyze {_BEFORE}", "protobuf"),
    ("pyarrow", f"ingest {_BEFORE} --store store", "pyarrow"),
    ("altair", f"report {_BEFORE} -o page.html", "altair"),
    ("msgspec", f"analyze {_BEFORE}", "msgspec"),
)


@for_all("module, command, package", _MISSING)
def test_a_missing_package_is_one_error_that_names_it(module: str, command: str, package: str, fixtures: Path) -> None:
    """A missing package gives exit code 3 and its install command, not a traceback or a bug."""
    code = f"import sys; sys.modules[{module!r}] = None; sys.argv = ['rooflens', *{command.split()!r}]\n"
    code += "from rooflens.cli.group import main; main()"
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, cwd=fixtures / "published", capture_output=True, text=True, check=False)  # noqa: S603 - ours
    said, _, hint, *more = done.stderr.splitlines()
    assert (done.returncode, more) == (3, [])
    assert said == f"error: this needs the Python package `{package}`, which is not installed"
    assert hint.startswith("hint: `pip install ")
    assert package in hint
    assert not (fixtures / "published" / "store").exists()


_SELDOM = (
    "rooflens.ingest.reports.child",
    "rooflens.ingest.reports.texts",
    "rooflens.ingest.running",
    "rooflens.processes",
    "rooflens.ingest.exports",
    "rooflens.collect.unprofiled",
    "rooflens.model.predict.forecast",
    "concurrent.futures",
    "csv",
    "gzip",
    "importlib.resources",
    "logging",
    "secrets",
    "subprocess",
    "tempfile",
)
"""Modules that only some reports need: a child process, an executor, an export, an un-profiled run, a forecast."""


def test_a_table_loads_what_it_shows(fixtures: Path) -> None:
    """For one report and one table nothing is loaded that only others need, including NVIDIA's module."""
    report = fixtures / "synthetic" / "sweep_gemm_bf16_128.synthetic.ncu-rep"
    loaded = _names_after("analyze", str(report))
    assert "rooflens.report.overview.document" in loaded
    assert not loaded & {*_SELDOM, "ncu_report"}
    assert sum(name.startswith("rooflens.") for name in loaded) < _MOST_MODULES


_MOST_MODULES = 167
"""A table loads fewer of our own modules, which leaves out those of other answers."""


@pytest.mark.corpus
def test_a_table_of_instructions_asks_no_child(corpus: Path) -> None:
    """A table starts no process even for a report with instruction samples, as it shows places without code."""
    loaded = _names_after("analyze", str(corpus / "llm.c__adamw_coalsecing_shared.ncu-rep"))
    assert "rooflens.ingest.cubin.lines" in loaded
    assert not loaded & {"subprocess", "rooflens.ingest.reports.child"}


def test_the_package_itself_loads_little() -> None:
    """`import rooflens` loads nothing else."""
    code = "import sys; before = set(sys.modules); import rooflens; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert len(done.stdout.split()) <= _MOST_OF_THE_PACKAGE
    assert not {name.partition(".")[0] for name in done.stdout.split()} & {*HEAVY, "click", "msgspec"}


_MOST_OF_THE_PACKAGE = 5
