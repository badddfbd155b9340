"""No name of a kernel, file or program can steer a terminal or a reader of the output."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report
from support.traces import kernel, write_trace

from rooflens.cli.group import main

STEERING = "\x1b]0;title\x07\x1b[2J\x7f\x9b31m\u202e\u2066\u2028\u061c"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
KERNEL = KernelSpec(
    f"=evil{STEERING}\r(int)", {"gpu__time_duration.sum": 1e6, "device__attribute_display_name": f"GPU{STEERING}"}
)


def run(*arguments: object) -> Result:
    """Run the command line; an exception that is no exit fails the test with its traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a good and a bad report, a store and another file, all with hostile names."""
    monkeypatch.chdir(tmp_path)
    name = STEERING.replace("/", "")
    folder = tmp_path / f"in{name}"
    folder.mkdir()
    good = write_report(folder / f"good{name}.ncu-rep", ReportSpec([KERNEL, KERNEL]))
    (folder / f"bad{name}.ncu-rep").write_bytes(good.read_bytes()[:-1])
    (folder / f"notes{name}\n.txt").write_text("no report")
    (folder / f"link{name}").symlink_to("none")
    return folder


def _commands(folder: Path) -> Iterator[tuple[object, ...]]:
    good = next(folder.glob("good*"))
    output, store = f"out{STEERING}", f"store{STEERING}"
    for style in ("table", "json", "csv", "md"):
        yield "analyze", folder, "--format", style
    yield "analyze", folder, "--launches", "--predict", f"flop={STEERING}"
    yield "analyze", f"missing{STEERING}"
    for ending in ("md", "json", "html", "svg"):
        yield "report", good, "-o", f"{output}.{ending}", "--table"
        yield "report", good, "-o", f"{output}.{ending}"
    yield "report", good, "-o", "-", "--format", "md"
    yield "report", good, "-o", f"x.{STEERING}"
    yield "ingest", folder, "--store", store
    yield "analyze", "--store", store
    yield "analyze", "--store", f"none{STEERING}"
    yield "compare", store
    yield "compare", store, "--kernel", "evil"
    yield "compare", store, "--kernel", STEERING
    yield "compare", good, good
    for style in ("json", "md"):
        yield "compare", good, good, "--format", style
        yield "compare", good, good, "--format", style, "-o", f"{output}.{style}"
    write_trace(Path(f"other{STEERING}.json"), [kernel(f"other{STEERING}", 1)])
    write_trace(Path(f"evil{STEERING}.json"), [kernel(KERNEL.name, 1), kernel(f"other{STEERING}", 2)])
    for trace in ("other", "evil", "missing"):
        yield "annotate", f"{trace}{STEERING}.json", good, "-o", f"{output}.json", "--force"
    yield "hotspots", good
    yield "hotspots", good, "--kernel", STEERING
    yield "metrics", "--report", good
    yield "metrics", "--chip", STEERING
    yield "gpus", STEERING
    yield "gpus", STEERING, STEERING
    yield "workloads", STEERING
    yield "collect", "--dry-run", "--ncu", STEERING, "--", STEERING
    yield (STEERING,)
    yield "analyze", f"--{STEERING}"


def test_nothing_that_is_printed_steers_a_terminal(folder: Path) -> None:
    """Neither stdout nor stderr of any command has control characters or direction marks."""
    for command in _commands(folder):
        result = run(*command)
        for stream, text in (("stdout", result.stdout), ("stderr", result.stderr)):
            assert STEERS.findall(text) == [], (command[0], stream, text)


def test_the_csv_is_read_back_row_by_row(folder: Path) -> None:
    """A name with a carriage return that begins like a formula is one text cell; raw cells keep it."""
    good = next(folder.glob("good*"))
    for options, name in (((), "'=evil"), (("--csv-raw-cells",), "=evil")):
        text = run("analyze", good, "--format", "csv", *options).stdout
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert len(rows) == 2
        assert {row["name"][: len(name)] for row in rows} == {name}
        assert float(rows[0]["duration_ns"]) == 1e6


def test_the_json_holds_the_name_as_it_is(folder: Path) -> None:
    """Characters escaped in the JSON come back when it is parsed."""
    good = next(folder.glob("good*"))
    document = json.loads(run("analyze", good, "--format", "json").stdout)
    assert f"=evil{STEERING}" in document["kernels"][0]["name"]
    assert document["kernels"][0]["gpu"] == f"GPU{STEERING}"
