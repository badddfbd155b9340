"""The table of a trace's page: what its rows add up to, and that its rows are what the lanes draw."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.traces import host, kernel, launch, write_trace

from rooflens.cli.group import main
from rooflens.model.keys import short_names
from rooflens.model.program.ranks import joined
from rooflens.programs import read_programs
from rooflens.report.document import spans
from rooflens.report.program.by_operator import parts_of

HTA = Path(__file__).parents[3] / "shared" / "outcomes" / "timelines"


def data_of(page: Path, block: str) -> Any:
    """Read a JSON block of a page."""
    return json.loads(page.read_text(encoding="utf-8").partition(f'id="{block}">')[2].partition("</script>")[0])


def test_rows_add_up_to_the_program(tmp_path: Path) -> None:
    """Kernels that overlap share their time; communication and copies count where nothing else runs."""
    events = [
        host("cpu_op", "aten::mm", 0, 9),
        *(launch(5, 1), kernel("gemm", 100, 100, correlation=1)),
        kernel("other", 150, 100, stream=8),  # 50 shared
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 200, 100, stream=20),  # 50 alone
        {**kernel("Memcpy HtoD (Pinned -> Device)", 290, 60, stream=22), "cat": "gpu_memcpy"},  # 50 alone
        kernel("other", 500, 10),  # after 150 of nothing
    ]
    whole = joined(read_programs([write_trace(tmp_path / "t.json", events)]))
    names = short_names(one.name for one in whole.every)
    wall_ns = whole.parts.wall_ns
    rows = parts_of(whole, names, ())
    own_us = {
        "".join(part.text for part in spans(row.cells["kernel"])): round((row.share or 0) * wall_ns) / 1000
        for row in rows
    }
    assert own_us == {
        "aten::mm": 75,
        "kernels without an operator": 85,
        "exposed communication (100 µs in all)": 50,
        "exposed copies (60.0 µs in all)": 50,
        "idle: the trace does not say what the host did": 150,
    }
    assert sum(own_us.values()) * 1000 == wall_ns
    times = {str(row.cells["time"]) for row in rows if row.bound == "communication" or (row.rows and not row.bound)}
    assert times == {"50.0 µs"}, "the time of a row is that of its share"


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["hta_control.json.gz", "hta_sampled_rank-0.json.gz", "algo64.sqlite"])
def test_rows_of_published_traces_add_up(name: str) -> None:
    """To a millionth of the program's time, which floating point loses."""
    if not (HTA / name).is_file():
        pytest.skip(f"no {name}")
    whole = joined(read_programs([HTA / name]))
    rows = parts_of(whole, short_names(one.name for one in whole.every), ())
    assert sum(one.share or 0 for one in rows) == pytest.approx(1, rel=1e-6)


def test_rows_of_several_ranks_are_those_that_their_lanes_draw(tmp_path: Path) -> None:
    """Each rank numbers its kernels otherwise; a row of the table is called the same in the lanes of both."""
    for rank, order in enumerate((("gemm", "norm"), ("norm", "extra", "gemm"))):
        events = [kernel(name, 100.0 * place, 50) for place, name in enumerate(order)]
        write_trace(tmp_path / f"{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    page = tmp_path / "page.html"
    arguments = ["report", str(tmp_path / "0.json"), str(tmp_path / "1.json"), "-o", str(page)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    rows = dict(re.findall(r'<tr data-mark="(\d+)"[^>]*><th[^>]*><code>(\w+)', page.read_text(encoding="utf-8")))
    drawn = data_of(page, "lanes-data")
    for part, names in zip(drawn["parts"], (["gemm", "norm"], ["norm", "extra", "gemm"]), strict=True):
        (lane,) = part["lanes"]
        assert [rows[drawn["subjects"][place][3]] for place in lane["subjects"]] == names
    ranks = {rows[item["k"]]: item["rank"] for item in data_of(page, "items") if item["k"] in rows}
    assert ranks == {"gemm": ["rank 0", "rank 1"], "norm": ["rank 0", "rank 1"], "extra": ["rank 1"]}
