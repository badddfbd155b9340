"""Every chart conforms to Vega-Lite's schema, as in Altair, which pages do not check."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import altair as alt
import pytest
from altair.vegalite.v6.schema import core
from click.testing import CliRunner
from jsonschema import ValidationError

from rooflens.cli.group import main

_SPEC = re.compile(r'<script type="application/json" id="spec-([^"]*)">(.*?)</script>', re.DOTALL)


def _pages(fixtures: Path, out: Path) -> Iterator[str]:
    """Return a page of each kind."""
    published, synthetic = fixtures / "published", fixtures / "synthetic"
    sides = [str(published / f"GPU_workshop__MW_{side}.ncu-rep") for side in ("Baseline", "DivToMult")]
    sweep = [str(report) for report in synthetic.glob("sweep_gemm_bf16_*.synthetic.ncu-rep")]
    sizes = ["--m", "128:8192:x2", "--n", "4096", "--k", "4096"]
    for arguments in (["report", sides[0]], ["report", *sweep], ["compare", *sides], ["predict", "gemm", *sizes]):
        done = CliRunner().invoke(main, [*arguments, "-o", str(out / "page.html"), "--force"])
        assert done.exit_code == 0, done.output
        yield (out / "page.html").read_text(encoding="utf-8")


def test_every_chart_keeps_to_the_schema_of_vega_lite(fixtures: Path, tmp_path: Path) -> None:
    """Rooflines, bars, times, sweeps, waterfalls, arrows and predictions are validated as a whole."""
    kinds = set()
    for page in _pages(fixtures, tmp_path):
        for name, text in _SPEC.findall(page):
            spec = json.loads(text)
            kinds.add(re.sub(r"-?p?\d+$", "", name))
            assert spec["$schema"] == alt.SCHEMA_URL
            core.Root.validate(spec)
    with pytest.raises(ValidationError):
        core.Root.validate(spec | {"vconcat": [{"mark": "no such mark"}]})
    assert kinds >= {"roofline", "sweep", "waterfall", "arrows", "plane"}
