"""Every chart conforms to Vega-Lite's schema, as in Altair, which pages do not check."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import pytest
from altair.utils.schemapi import SchemaBase
from altair.vegalite.v6.schema import core
from click.testing import CliRunner
from jsonschema import ValidationError
from support.traces import host, kernel, launch, write_trace

from rooflens.cli.group import main

_SPEC = re.compile(r'<script type="application/json" id="spec-([^"]*)">(.*?)</script>', re.DOTALL)

_ALWAYS = {core.VariableParameter, alt.ExprRef}
"""Parameters, which Altair validates whenever it copies layers that share them, and expressions of our constants."""


def _pages(fixtures: Path, out: Path) -> Iterator[str]:
    """Return pages that have every chart of the stored reports, and a page of each other kind."""
    published, synthetic = (
        [str(one) for one in (fixtures / of).glob("*.ncu-rep")] for of in ("published", "synthetic")
    )
    sides = [str(fixtures / "published" / f"GPU_workshop__MW_{side}.ncu-rep") for side in ("Baseline", "DivToMult")]
    sizes = ["--m", "128:8192:x2", "--n", "4096", "--k", "4096"]
    pages = (
        ["report", *published],
        ["report", *synthetic],
        ["compare", *sides],
        ["compare", *sides, sides[0]],
        ["predict", "gemm", *sizes],
        ["report", str(_trace(out / "trace.json"))],
    )
    for arguments in pages:
        done = CliRunner().invoke(main, [*arguments, "-o", str(out / "page.html"), "--force"])
        assert done.exit_code == 0, done.output
        yield (out / "page.html").read_text(encoding="utf-8")


def _trace(path: Path) -> Path:
    """Write a trace of two products, whose sizes say where they stand on a roofline."""
    events = []
    for at, m in ((0, 2048), (100, 4096)):
        args = {"Input Dims": [[m, 4096], [4096, 4096]], "Input type": ["c10::Half"] * 2}
        events += [host("cpu_op", "aten::mm", at, 50, **args), launch(at + 5, m)]
        events.append(kernel(f"gemm_{m}", 200 + 9 * m, m, correlation=m))
    return write_trace(path, events, deviceProperties=[{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}])


class Drawn(NamedTuple):
    """Pages, and what Altair validated as they were made."""

    pages: list[str]
    validated: list[type]


@pytest.fixture(scope="module")
def drawn(fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Make the pages once, and note what is validated meanwhile."""
    validated: list[type] = []
    original = SchemaBase.validate.__func__  # type: ignore[attr-defined] - a class method

    def noted(cls: type, *arguments: Any) -> None:
        validated.append(cls)
        original(cls, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SchemaBase, "validate", classmethod(noted))
        alt.Chart().mark_bar().to_dict()
        assert validated, "Altair validates by another function now"
        validated.clear()
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("empty")))  # what was built before is not built
        return Drawn([*_pages(fixtures, tmp_path_factory.mktemp("pages"))], validated)


def test_every_chart_keeps_to_the_schema_of_vega_lite(drawn: Drawn) -> None:
    """Rooflines, bars, times, sweeps, waterfalls, arrows, paths and predictions are validated as a whole."""
    kinds = set()
    for page in drawn.pages:
        for name, text in _SPEC.findall(page):
            spec = json.loads(text)
            kinds.add(re.sub(r"-?p?\d+$", "", name))
            assert spec["$schema"] == alt.SCHEMA_URL
            # Rows conform to no schema, and are most of a chart.
            core.Root.validate(spec | {"datasets": {}})
    with pytest.raises(ValidationError):
        core.Root.validate(spec | {"vconcat": [{"mark": "no such mark"}]})
    assert kinds >= {"roofline", "sweep", "path", "waterfall", "arrows", "sides", "plane", "times"}


def test_no_chart_is_validated_as_its_page_is_made(drawn: Drawn) -> None:
    """Validating takes as long as all else of a small page, and tells its reader nothing."""
    assert not set(drawn.validated) - _ALWAYS
