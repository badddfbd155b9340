"""Measure the package as a whole: its files, lines, records, helpers that are used once, and pages.

    python benchmarks/house.py [--run] [ROOT]

Prints one line per measure, for the checkout at ROOT or for this one, so that two checkouts can be compared, with the
lines of each capability (`CAPABILITIES`, whose paths must exist), so that growth is seen where it happens. With
`--run`, which takes some minutes, it also runs the commands of `COMMANDS` on the checkout's fixtures and prints which
share of the package's statements run, and how many functions, files and record types one kernel's `dram_bytes` passes
on its way to JSON, to a page and into a store. What runs in other processes does not count.
"""

from __future__ import annotations

import ast
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

_RECORDS = {"Struct", "NamedTuple", "TypedDict"}
_MADE = "<!-- Written by `make docs`"

ONE = "fixtures/synthetic/attention.synthetic.ncu-rep"
OTHER = "fixtures/synthetic/sweep_gemm_bf16_1024.synthetic.ncu-rep"
REAL = "fixtures/published/GPU_workshop__MW_Baseline.ncu-rep"
_FORMATS = ("--format json", "--format csv", "--format md", "--format digest")

_CALLS = {
    f"analyze {ONE}": ("", "--columns name,dram_bytes", "--predict gemm:m=64,n=64,k=64", "--launches", *_FORMATS),
    f"analyze {REAL}": ("", "--format digest --max-tokens 600", "--reader direct", "--format json"),
    "analyze": ("fixtures/synthetic/failed_kernel.synthetic.ncu-rep", "fixtures/synthetic", "nowhere.ncu-rep"),
    f"explain {REAL}": ("--format table", "--format md"),
    f"hotspots {REAL}": ("", "--by sass --format json", "--format csv"),
    f"report {ONE} -o OUT/one": (".html", ".md", ".json", ".svg", ".png --theme dark"),
    "report": (f"{REAL} -o OUT/real.html --title real", f"{ONE} {OTHER} -o OUT/two.html --table"),
    "ingest --store OUT/store": (f"{ONE} {REAL}", f"{OTHER} --raw all"),
    "analyze --store OUT/store": ("", "--format json --kernel attention"),
    "report --store OUT/store": ("-o OUT/store.html",),
    "compare OUT/store": ("", "-o OUT/versions.html"),
    f"compare {ONE} {ONE}": ("", "--format json", "--format md", "--format md --fail-on 5%", "-o OUT/compare.html"),
    "predict gemm --m 4096 --n 4096 --k 4096": ("", "--gpu all --format csv", "--dtype fp8,bf16 --format json"),
    "predict": ("gemm --n 128:8192:x2 --m n --k n -o OUT/gemm.html", "decode --tensor-parallel 1,2,4,8"),
    "collect --dry-run --chip gh100": ("-- python train.py",),
    "about": ("", "small_grid", "dram__bytes.sum"),
    "metrics": ("--chip gh100", "--chip 8.0 --detail deep --findings", f"--report {ONE}"),
    "gpus": ("", "h100-sxm"),
    "workloads": ("", "attention"),
    "": ("doctor", "completion bash", "skill"),
}
COMMANDS = [f"{begin} {end}" if end[:1] != "." else begin + end for begin, ends in _CALLS.items() for end in ends]
"""What a user does, one command line each; OUT is a folder for what they write."""

WAYS = {
    "JSON": f"analyze {ONE} --format json",
    "page": f"report {ONE} -o OUT/way.html",
    "store": f"ingest {ONE} --store OUT/way",
}
"""Where a number of a kernel goes -> the command that takes it there."""


CAPABILITIES = {
    "ground": ("*.py",),
    "reading": ("ingest",),
    "collecting": (
        *("collect", "api/profiling.py", "api/marking.py"),
        *(f"cli/commands/{name}.py" for name in ("collect", "profile", "calibrate", "doctor", "metrics")),
    ),
    "workloads": ("workloads", "cli/commands/workloads.py", "report/text/workloads.py"),
    "model": ("model",),
    "report": ("report", "gpus"),
    "comparison": (
        *("model/compare", "model/same_work.py", "report/comparison", "report/path"),
        *("report/ladder_data.py", "report/words/ladder.py", "report/words/change.py"),
        *("report/page/ladder.py", "report/roofline/versions.py", "api/comparison.py", "cli/commands/compare.py"),
    ),
    "forecast": (
        *("model/predict", "report/forecast"),
        *(
            "report/words/forecast.py",
            "report/kernel/predicted.py",
        ),
        *("report/page/sweeps.py", "cli/commands/predict.py", "cli/expectations.py"),
    ),
    "timelines": (
        *("ingest/timelines", "model/program", "model/unprofiled.py", "programs.py", "api/program.py"),
        *("report/program", "report/words/program.py", "report/page/program_map.py"),
        *("writing/annotating.py", "cli/commands/annotate.py"),
    ),
    "store": ("model/store", "cli/commands/ingest.py"),
    "sharing": (*("writing/sharing.py", "ingest/reports/encoding.py", "cli/commands/share.py"),),
    "doors": ("cli", "api", "mcp", "writing", "skills", "analyzing.py"),
}
"""What rooflens can do -> the folders and files that do it; of those that hold a file the longest counts."""

_CODE = {".py", ".js", ".css", ".html", ".cu", ".cuh"}


def measures(root: Path) -> dict[str, str]:
    """Measure the package and the docs of a checkout: description of the measure -> its number."""
    sources = [path.read_text("utf-8") for path in sorted((root / "rooflens").rglob("*.py"))]
    trees = [ast.parse(source) for source in sources]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    names = Counter(node.name for node in classes)
    helpers = [use for tree in trees for use in _uses_of_helpers(tree)]
    lengths = [_lines_of_code(node) for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    listed = subprocess.check_output(["git", "-C", str(root), "ls-files", "docs/*.md"], text=True)  # noqa: S607
    pages = [(root / page).read_text("utf-8") for page in listed.split()]
    return {
        "files": f"{len(sources):,}",
        "lines": f"{sum(source.count(chr(10)) for source in sources):,}",
        "lines of code": f"{sum(map(_lines_of_code, trees)):,}",
        "record types": f"{sum(map(_is_record, classes)):,}",
        "class names used twice or more": f"{sum(times > 1 for times in names.values()):,}",
        "private functions used once": f"{helpers.count(1):,} of {len(helpers):,}",
        "lines of code a function, median": f"{median(lengths):.0f}",
        "lines of code a function, 90th percentile": f"{quantiles(lengths, n=10)[-1]:.0f}",
        "pages of Markdown": f"{len(pages):,}",
        "pages stored that `make docs` writes": f"{sum(_MADE in page for page in pages):,}",
        **_lines_by_capability(root / "rooflens"),
    }


def _lines_by_capability(package: Path) -> dict[str, str]:
    """Count the lines of each capability, of Python and of other handwritten files: pages, CUDA."""
    lines: dict[str, Counter[bool]] = {name: Counter() for name in CAPABILITIES}
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package).as_posix()
        if path.suffix in _CODE and "vendor" not in path.parts:
            text = path.read_text("utf-8")
            lines[_capability(place)][path.suffix == ".py"] += text.count("\n")
    return {f"lines of {name}: Python, other": f"{of[True]:,}, {of[False]:,}" for name, of in lines.items()}


def stale_paths() -> list[str]:
    """List the paths of `CAPABILITIES` that this file's own checkout does not hold."""
    package = Path(__file__).resolve().parents[1] / "rooflens"
    return [one for held in CAPABILITIES.values() for one in held if not list(package.glob(one))]


def _capability(place: str) -> str:
    found = [
        (len(one), name) for name, held in CAPABILITIES.items() for one in held if f"{place}/".startswith(f"{one}/")
    ]
    return max(found)[1] if found else "ground"


def _lines_of_code(tree: ast.AST) -> int:
    """Count the lines with statements and expressions: no comments, docstrings or empty lines."""
    texts = {
        id(body[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance((body := node.body)[0] if node.body else None, ast.Expr)
        and isinstance(body[0].value, ast.Constant)  # type: ignore[attr-defined]
    }
    lines: set[int] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if id(node) in texts:
            continue
        if (first := getattr(node, "lineno", None)) is not None:
            lines |= {first, node.end_lineno}  # type: ignore[attr-defined]
        waiting += ast.iter_child_nodes(node)
    return len(lines)


def _is_record(node: ast.ClassDef) -> bool:
    bases = {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases}
    return bool(bases & _RECORDS) or any("dataclass" in ast.unparse(one) for one in node.decorator_list)


def _uses_of_helpers(tree: ast.Module) -> list[int]:
    """Count how often each private function of a module is named in it, apart from its definition."""
    defined = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.name.startswith("__")
    ]
    named = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    return [named[name] for name in defined]


def run_measures(root: Path) -> dict[str, str]:
    """Run the commands on a checkout's fixtures, in this process: description of the measure -> its number."""
    package = f"{root / 'rooflens'}{os.sep}"
    ran: set[tuple[str, int]] = set()
    left: dict[CodeType, set[int]] = {}

    def trace(frame: FrameType, _event: str, _value: object) -> Any:
        code, line = frame.f_code, frame.f_lineno
        if code not in left:
            is_ours = code.co_filename.startswith(package)
            left[code] = {at for *_, at in code.co_lines() if at} if is_ours else set()
        if line in left[code]:
            left[code].discard(line)
            ran.add((code.co_filename, line))
        return trace if left[code] else None

    os.chdir(root)
    sys.path.insert(0, str(root))
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROOFLENS_HOME"] = f"{folder}/home"
        sys.settrace(trace)
        from click.testing import CliRunner  # noqa: PLC0415 - only --run needs it

        from rooflens.cli.group import main  # noqa: PLC0415 - that of the checkout, traced

        def run(command: str) -> str:
            return CliRunner().invoke(main, shlex.split(command.replace("OUT", folder))).stdout

        kernels = json.loads(run(WAYS["JSON"]))["kernels"]
        for way, command in WAYS.items():
            held = _Held(package, max(kernel["bytes"]["dram"] or 0 for kernel in kernels))
            sys.setprofile(held)
            run(command)
            sys.setprofile(None)
            files = {code.co_filename for code in held.functions}
            counts = f"{len(held.functions):,}, {len(files):,}, {len(held.records):,}"
            made[f"dram_bytes to {way}: functions, files, records"] = counts
        for command in COMMANDS:
            run(command)
        sys.settrace(None)
    spans = [
        (str(path), *span)
        for path in sorted((root / "rooflens").rglob("*.py"))
        for span in _statements(ast.parse(path.read_text("utf-8")).body)
    ]
    count = sum(any((path, line) in ran for line in range(first, last + 1)) for path, first, last in spans)
    return {**made, f"statements that run in {len(COMMANDS)} commands": f"{count / len(spans):.1%} of {len(spans):,}"}


class _Held:
    """A profile hook that gathers the functions of a package with a number in an argument or result."""

    def __init__(self, package: str, value: float) -> None:
        self.functions: set[CodeType] = set()
        self.records: set[type] = set()
        self._package = package
        self._value = value

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        code = frame.f_code
        if event not in {"call", "return"} or code in self.functions or not code.co_filename.startswith(self._package):
            return
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = [result] if event == "return" else [frame.f_locals.get(name) for name in arguments]
        sys.setprofile(None)  # the hook itself is not counted
        if any(self._holds(value, 6) for value in values):
            self.functions.add(code)
        sys.setprofile(self)

    def _holds(self, value: object, depth: int) -> bool:
        """Look for the number in a value; records that contain it are noted."""
        kind = type(value)
        if kind in {float, int}:
            return value == self._value
        if not depth or kind in {str, bytes}:
            return False
        inner: list[Any] = []
        if isinstance(value, dict):
            inner = list(value.values())
        elif isinstance(value, tuple | list):
            inner = list(value[:500])
        fields = getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ())
        values = [*inner, *(getattr(value, name, None) for name in fields)]
        held = any([self._holds(one, depth - 1) for one in values])  # noqa: C419 - all, for each to note its records
        if held and kind.__module__.startswith("rooflens."):
            self.records.add(kind)
        return held


def _statements(body: list[ast.stmt]) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of each statement, for compound ones those of their head; no docstrings."""
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Global | ast.Nonlocal) or (isinstance(node, ast.AnnAssign) and node.value is None):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        parts = [node, *getattr(node, "handlers", []), *getattr(node, "cases", [])]
        blocks = [getattr(part, name, []) for part in parts for name in ("body", "orelse", "finalbody")]
        inner = [one for block in blocks for one in block]
        starts = [min([one.lineno, *(mark.lineno for mark in getattr(one, "decorator_list", []))]) for one in inner]
        yield node.lineno, max(node.lineno, min(starts) - 1) if starts else node.end_lineno or node.lineno
        yield from _statements(inner)


if __name__ == "__main__":
    if stale := stale_paths():
        sys.exit(f"error: CAPABILITIES names what is no longer there: {', '.join(stale)}")
    given = [one for one in sys.argv[1:] if one != "--run"]
    place = Path(given[0] if given else Path(__file__).parents[1]).resolve()
    for measure in (measures, run_measures)[: 1 + ("--run" in sys.argv)]:
        for what, number in measure(place).items():
            print(f"{what:<50}{number:>18}", flush=True)
