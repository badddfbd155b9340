"""Digest every output for every available report, to check a change that should change nothing.

    python benchmarks/pins.py take before.json [--keep before/] [--of FOLDER]   (fixtures, corpus, cases and outcomes)
    python benchmarks/pins.py diff before.json after.json

Digests are taken of the table, JSON, CSV and Markdown of `analyze`; page, Markdown and picture of `report`; the
Parquet tables of `ingest`; comparisons, forecasts and the listings. A page is digested in parts: its charts, its text
with its markup, and the inlined files. `--keep` writes the texts themselves, one tag or key per line, for `diff -r`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENDINGS = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")

FORECASTS = (
    ("gemm", "--gpu", "h100-sxm", "--m", "4096", "--n", "4096", "--k", "4096", "--dtype", "bf16"),
    ("gemm", "--gpu", "a100-sxm4-80gb", "--gpu", "b200", "--n", "128:8192:x2", "--m", "n", "--k", "n"),
    ("decode", "--gpu", "h200"),
)
"""Arguments of `predict`, each tried in every format."""

LISTINGS = (
    ("workloads",),
    ("workloads", "gemm"),
    ("gpus",),
    ("gpus", "h100-sxm"),
    ("metrics", "--chip", "gh100"),
    ("metrics", "--chip", "gb100", "--detail", "deep", "--names"),
    ("collect", "--dry-run", "--chip", "gh100", "--", "./program"),
    ("--help",),
    *((command, "--help") for command in ("analyze", "report", "compare", "predict", "collect", "ingest")),
)

PAIRS = (
    ("GPU_workshop__MW_Baseline.ncu-rep", "GPU_workshop__MW_DivToMult.ncu-rep"),
    ("cs599k__silu-2025-04-19-v1.ncu-rep", "cs599k__silu-2025-04-19-v3.ncu-rep"),
    ("attention.synthetic.ncu-rep", "verdict_memory_dram.synthetic.ncu-rep"),
    ("sweep_gemm_bf16_1024.synthetic.ncu-rep", "sweep_gemm_bf16_4096.synthetic.ncu-rep"),
)
"""Names of two reports that are compared where both are at hand."""


def run(arguments: tuple[str, ...]) -> str:
    """Run a rooflens command in this process; return its exit code, stdout and stderr."""
    from click.testing import CliRunner  # noqa: PLC0415 - the parent process imports nothing of rooflens

    from rooflens.cli.group import main  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = CliRunner().invoke(main, list(arguments))
    trouble = f"\n{done.exception!r}" if done.exception and not isinstance(done.exception, SystemExit) else ""
    return f"exit {done.exit_code}{trouble}\n{done.stdout}\n--- stderr\n{done.stderr}"


def page_parts(page: str) -> dict[str, str]:
    """Split a page into charts, text and inlined files, each normalized: one key or tag per line."""
    charts, files = [], []

    def taken(match: re.Match[str]) -> str:
        kind, attributes, body = match["kind"], match["attributes"], match["body"]
        if "application/json" in attributes:
            with contextlib.suppress(ValueError):
                body = json.dumps(json.loads(body), indent=1, sort_keys=True, ensure_ascii=False)
            charts.append(f"{attributes.strip()}\n{body}")
        else:
            files.append(f"{kind}{attributes}\n{' '.join(body.split())}")
        return f"<{kind}{attributes}></{kind}>"

    element = r"<(?P<kind>script|style)(?P<attributes>[^>]*)>(?P<body>.*?)</(?P=kind)>"
    text = re.sub(element, taken, page, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"\s*(<[^>]+>)\s*", r"\n\1\n", text)
    return {"charts": "\n".join(charts), "text": re.sub(r"\n+", "\n", text), "files": "\n".join(files)}


def table_text(file: Path) -> str:
    """Write a Parquet table as its schema and one row per line, without what differs from run to run."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = pq.read_table(file)
    drop = [name for name in table.column_names if name in {"failed_unix_s", "ingested_unix_s", "inputs_digest"}]
    rows = table.drop_columns(drop).to_pylist()
    lines = (json.dumps(row, default=str, sort_keys=True) for row in rows)
    return "\n".join([str(table.schema.remove_metadata()), *lines])


def report_pins(report: str) -> dict[str, str]:
    """Produce all outputs for one report."""
    pins = {f"analyze.{style}": run(("analyze", report, "--format", style)) for style in ("table", "json", "csv", "md")}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        out = Path(folder)
        for style in ("html", "md", "svg"):
            file = out / f"page.{style}"
            pins[f"report.{style}.log"] = run(("report", report, "-o", str(file))).replace(folder, "FOLDER")
            if not file.exists():
                continue
            text = file.read_text(encoding="utf-8")
            parts = page_parts(text) if style == "html" else {"text": text}
            pins |= {f"report.{style}.{name}": part for name, part in parts.items()}
        if report.endswith(ENDINGS):
            run(("ingest", report, "--store", str(out / "store")))
            run(("analyze", "--store", str(out / "store")))
            for file in sorted(out.glob("store/*/*.parquet")):
                pins[f"store.{file.parent.name}"] = table_text(file)
    return {f"{Path(report).name}/{name}": text for name, text in pins.items()}


def pair_pins(pair: tuple[str, str]) -> dict[str, str]:
    """Produce all outputs for two reports together."""
    base, head = pair
    name = f"{Path(base).name}..{Path(head).name}"
    pins = {f"compare.{style}": run(("compare", base, head, "--format", style)) for style in ("table", "md", "json")}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        page = Path(folder) / "page.html"
        run(("compare", base, head, "--format", "html", "-o", str(page)))
        if page.exists():
            pins |= {f"compare.html.{part}": text for part, text in page_parts(page.read_text("utf-8")).items()}
        store = str(Path(folder) / "store")
        run(("ingest", base, head, "--store", store))
        for style in ("table", "json"):
            pins[f"store.{style}"] = run(("compare", store, "--format", style))
        page = Path(folder) / "store.html"
        run(("compare", store, "--format", "html", "-o", str(page)))
        if page.exists():
            pins |= {f"store.html.{part}": text for part, text in page_parts(page.read_text("utf-8")).items()}
        pins = {part: text.replace(folder, "FOLDER") for part, text in pins.items()}
    return {f"{name}/{part}": text for part, text in pins.items()}


def other_pins() -> dict[str, str]:
    """Produce the outputs that need no report."""
    pins = {" ".join(arguments): run(arguments) for arguments in LISTINGS}
    for arguments in FORECASTS:
        name = " ".join(("predict", *arguments))
        pins |= {f"{name}.{style}": run(("predict", *arguments, "--format", style)) for style in ("table", "json")}
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            page = Path(folder) / "page.html"
            run(("predict", *arguments, "--format", "html", "-o", str(page)))
            if page.exists():
                parts = page_parts(page.read_text("utf-8"))
                pins |= {f"{name}.html.{part}": text for part, text in parts.items()}
    return {f"listings/{name}": text for name, text in pins.items()}


def take(reports: list[Path], keep: Path | None) -> dict[str, str]:
    """Produce everything, on all cores, and return the digests; keep the texts if a folder is named."""
    with tempfile.TemporaryDirectory() as folder:
        reports = _linked(reports, Path(folder))
        os.environ["ROOFLENS_HOME"] = str(Path(folder) / "home")
        os.environ["COLUMNS"] = "200"
        there = {file.name for file in reports}
        pairs = [pair for pair in PAIRS if there.issuperset(pair)]
        with ProcessPoolExecutor(initializer=partial(os.chdir, folder)) as pool:
            synthetic = Path(folder) / "fixtures"
            synthetic.mkdir()
            for file in reports:
                if file.name.startswith(("verdict_", "sweep_")):
                    (synthetic / file.name).symlink_to(file.resolve())
            jobs = [pool.submit(report_pins, file.name) for file in reports]
            jobs += [pool.submit(report_pins, "fixtures"), *(pool.submit(pair_pins, pair) for pair in pairs)]
            jobs.append(pool.submit(other_pins))
            pins = {name: text for job in jobs for name, text in job.result().items()}
    if keep is not None:
        for name, text in pins.items():
            file = keep / (re.sub(r"[^\w./@-]", "_", name) + ".txt")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n", encoding="utf-8")
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in sorted(pins.items())}


def _linked(reports: list[Path], folder: Path) -> list[Path]:
    """Link reports into a folder by their names; equal names get their own folder's name before them."""
    names = Counter(file.name for file in reports)
    links = []
    for file in reports:
        links.append(folder / (file.name if names[file.name] == 1 else f"{file.parent.name}__{file.name}"))
        links[-1].symlink_to(file)
    return links


def differing(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """List the digests that differ or are on one side only."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _reports(places: list[Path]) -> list[Path]:
    places = places or [ROOT / "fixtures", *(ROOT.parent / "shared" / name for name in ("corpus", "cases", "outcomes"))]
    files = (file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*"))))
    return [file.resolve() for file in files if file.name.endswith(ENDINGS) or _is_table(file)]


def _is_table(file: Path) -> bool:
    """Return whether a file is a table exported by ncu."""
    return file.suffix == ".csv" and file.parent.name in {"corpus", "outcomes"}


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    taking = commands.add_parser("take")
    taking.add_argument("pins", type=Path)
    taking.add_argument("--of", type=Path, action="append", default=[], help="a report or a folder of them")
    taking.add_argument("--keep", type=Path)
    comparing = commands.add_parser("diff")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "take":
        pins = take(_reports(given.of), given.keep)
        given.pins.write_text(json.dumps(pins, indent=1), encoding="utf-8")
        print(f"{len(pins)} pins of {len(_reports(given.of))} reports")
        return 0
    names = differing(json.loads(given.before.read_text()), json.loads(given.after.read_text()))
    print(*names, f"{len(names)} pins differ", sep="\n")
    return bool(names)


if __name__ == "__main__":
    sys.exit(_main())
