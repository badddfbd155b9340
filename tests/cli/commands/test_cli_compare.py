from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from support.chips import A100, H200
from support.fixture_kernels import sgemm, triad
from support.ncu_rep_writer import KernelSpec, ReportSpec, SessionSpec, write_report
from support.synthetic_kernels import kernel_spec

from rooflens.cli.group import main
from rooflens.model.store.dataset import Store


def run(*arguments: object) -> Result:
    """Run the command line."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def record(folder: Path, times_ns: list[int], name: str = "triad") -> Path:
    """Write a report of a triad for each time."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, time_ns in enumerate(times_ns):
        work = replace(triad(H200), duration_ns=time_ns)
        session = SessionSpec(command_line="ncu ./triad")
        write_report(folder / f"{name}_{i}.ncu-rep", ReportSpec(kernels=(kernel_spec(work),), session=session))
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Three recordings of about 1 ms."""
    return record(tmp_path / "base", [1_000_000, 1_005_000, 1_010_000])


def compared(*arguments: object) -> dict[str, Any]:
    """Compare and read the JSON."""
    done = run("compare", *arguments, "--format", "json")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_repeated_recordings_are_judged(base: Path, tmp_path: Path) -> None:
    """Disjoint ranges with growth above the threshold are slower, with medians and ranges in the JSON."""
    slow = record(tmp_path / "slow", [1_100_000, 1_110_000, 1_120_000])
    (program,) = compared(base, slow)["programs"]
    assert program["total"]["outcome"] == "slower"
    assert program["total"]["base_ns"] == {"median": 1_005_000, "low": 1_000_000, "high": 1_010_000, "samples": 3}
    assert program["total"]["change"] == pytest.approx(1_110_000 / 1_005_000 - 1)
    (kernel,) = program["kernels"]
    assert kernel["matched"] == "same"
    assert kernel["base"]["bound"] == "memory"
    assert "x slower: " in kernel["sentence"]


@pytest.mark.parametrize(
    ("times_ns", "options", "code"),
    [
        ([1_100_000, 1_110_000, 1_120_000], (), 0),  # without a gate everything passes
        ([1_100_000, 1_110_000, 1_120_000], ("--fail-on", "5%"), 5),
        ([1_100_000, 1_110_000, 1_120_000], ("--fail-on", "5%", "--per-kernel"), 5),
        ([1_100_000, 1_110_000, 1_120_000], ("--fail-on", "20%"), 0),
        ([1_008_000, 1_110_000, 1_120_000], ("--fail-on", "5%"), 0),  # the ranges meet
        ([900_000, 905_000, 910_000], ("--fail-on", "5%"), 0),  # faster is fine
        ([2_000_000], ("--fail-on", "5%"), 5),  # a single run: beyond the band of 10 %
        ([2_000_000], ("--fail-on", "120%"), 0),  # ... but not beyond what was asked for
        ([1_090_000], ("--fail-on", "5%"), 0),  # ... and within the band
    ],
)
def test_the_gate_fails_on_what_is_more_than_noise(
    base: Path, tmp_path: Path, times_ns: list[int], options: tuple[str, ...], code: int
) -> None:
    """Exit code 5 needs --fail-on and growth beyond noise, or with a single recording beyond 10 %."""
    done = run("compare", base, record(tmp_path / "head", times_ns), *options)
    assert done.exit_code == code
    assert ("gate failed: " in done.stderr) == (code == 5)


def test_a_single_sample_says_so(base: Path, tmp_path: Path) -> None:
    """A single recording's factor is marked; the gate fails beyond the band, or says that it cannot judge."""
    done = run("compare", base, record(tmp_path / "head", [2_000_000]), "--fail-on", "5%")
    assert "1.99x slower (1 run after)" in done.stdout
    assert "a single run on a side, and beyond the 10 % that a single run may differ by" in done.stderr
    done = run("compare", base, record(tmp_path / "near", [1_090_000]), "--fail-on", "5%")
    assert done.exit_code == 0
    note = "a single run on a side, and within the 10 % it may differ by, so that the gate cannot judge it"
    assert note in done.stderr


def test_a_report_a_folder_and_a_store_are_sides(base: Path, tmp_path: Path) -> None:
    """The same recordings compare equal in every form of input."""
    assert run("ingest", base, "--store", tmp_path / "store").exit_code == 0
    (program,) = compared(base, tmp_path / "store")["programs"]
    assert program["total"]["factor"] == 1
    assert [side["recordings"] for side in (program["base"], program["head"])] == [3, 3]
    (program,) = compared(base / "triad_0.ncu-rep", base / "triad_0.ncu-rep")["programs"]
    assert program["total"]["outcome"] == "single"


def test_a_run_of_a_store_is_a_side(base: Path, tmp_path: Path) -> None:
    """Two reports of a store can be compared by the first digits of their digests."""
    store = tmp_path / "store"
    run("ingest", base, "--store", store)
    first, second, _ = sorted(Store(store).digests())
    (program,) = compared(store / first[:12], store / second)["programs"]
    assert [side["recordings"] for side in (program["base"], program["head"])] == [1, 1]
    assert program["base"]["sources"] != program["head"]["sources"]
    assert "no report whose digest starts with `ffffff`" in run("compare", store / "ffffff", store).stderr


def test_markdown_names_what_failed(base: Path, tmp_path: Path) -> None:
    """The Markdown of a failed gate says by how much it failed."""
    slow = record(tmp_path / "slow", [1_100_000, 1_110_000, 1_120_000])
    markdown = run("compare", base, slow, "--fail-on", "5%", "--format", "md")
    assert "takes 10.4 % more" in markdown.stdout
    assert markdown.exit_code == 5


def test_a_damaged_side_is_no_side(base: Path, tmp_path: Path) -> None:
    """A folder with an unreadable report is refused, since it would change the median."""
    head = record(tmp_path / "head", [1_000_000, 1_001_000])
    (head / "triad_9.ncu-rep").write_bytes((head / "triad_0.ncu-rep").read_bytes()[:100])
    done = run("compare", base, head)
    assert done.exit_code == 1
    assert "cannot be read completely" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--per-kernel",), "--per-kernel needs --fail-on"),
        (("--fail-on", "x"), "--fail-on takes a percentage"),
        (("--threshold", "-1"), "--threshold takes a percentage"),
        (("--floor", "5us"), "--floor 5us needs --fail-on"),
        (("--fail-on", "5%", "--floor", "2"), "a floor is a time with its unit"),
        (("--floor", "2 per cent"), "a floor is a time with its unit"),
        (("--format", "html"), "a page needs a file"),
        (("-o", "x.txt"), "is not a"),
        (("-o", "x.html", "--format", "json"), "ends like html"),
        (("-o", "x.json", "--format", "table"), "a table is for the terminal"),
    ],
)
def test_usage_errors(base: Path, options: tuple[str, ...], words: str) -> None:
    """Meaningless options end with exit code 2 and a hint."""
    done = run("compare", base, base, *options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "hint: " in done.stderr


def test_the_gate_and_the_words_agree(base: Path, tmp_path: Path) -> None:
    """A gate below the threshold fails on growth that the sentences then call slower."""
    slow = record(tmp_path / "slow", [1_025_000, 1_026_000, 1_027_000])
    done = run("compare", base, slow, "--fail-on", "1%", "--format", "md")
    assert done.exit_code == 5
    assert "takes 2.1 % more" in done.stdout
    assert "GPU time 1.02x slower" in done.stdout


def test_a_gate_that_cannot_judge_says_so(tmp_path: Path) -> None:
    """With an untimed launch there is no total: the gate passes, and says that it judged nothing."""
    timed = kernel_spec(triad(H200))
    tells_time = re.compile("gpu__time|per_second|cycles")
    untimed = replace(timed, metrics={k: v for k, v in timed.metrics.items() if not tells_time.search(k)})
    for side, second in (("base", timed), ("head", untimed)):
        (tmp_path / side).mkdir()
        for i in range(2):
            kernels = (timed, replace(second, name="second"), *[timed] * i)
            write_report(tmp_path / side / f"triad_{i}.ncu-rep", ReportSpec(kernels=kernels[:2]))
    done = run("compare", tmp_path / "base", tmp_path / "head", "--fail-on", "5%")
    assert done.exit_code == 0
    assert "no total time on both sides, so that the gate cannot judge it" in done.stderr


def test_a_new_kernel_fails_no_gate_and_is_named(base: Path, tmp_path: Path) -> None:
    """A head with a second kernel of as much time holds: the gate judges what both sides have, and says what is new."""
    head = tmp_path / "head"
    head.mkdir()
    kernel = kernel_spec(triad(H200))
    for i in range(3):
        slower = {**kernel.metrics, "gpu__time_duration.sum": 1_001_000.0 + i}
        both = (replace(kernel, metrics=slower), replace(kernel, name="added", metrics=slower))
        write_report(head / f"triad_{i}.ncu-rep", ReportSpec(kernels=both))
    done = run("compare", base, head, "--fail-on", "5%")
    assert done.exit_code == 0
    assert "note: triad: 1 new kernel takes 1.00 ms, not judged" in done.stderr
    assert "GPU time of 1 kernel on both sides" in done.stdout
    assert "New: added (+1.00 ms). These times are in neither sum above." in done.stdout
    found = compared(base, head, "--fail-on", "5%")
    assert found["gate"]["left_out"] == ["triad: 1 new kernel takes 1.00 ms, not judged"]
    (program,) = found["programs"]
    assert program["total"]["change"] > 0.9
    assert abs(program["shared"]["change"]) < 0.01


def test_sides_without_times_are_compared_by_the_counters_of_both(tmp_path: Path) -> None:
    """Without --anyway the error explains how to record times; with it the common values are compared."""
    for name, registers, more in (("base", 32.0, {}), ("head", 64.0, {"gpu__time_duration.sum": 1e6})):
        stored = {"launch__registers_per_thread": registers, "launch__waves_per_multiprocessor": 2.0, "sm__my_own": 1.0}
        spec = KernelSpec("gemm()", {**stored, "profiler__replayer_passes": registers, **more})
        write_report(tmp_path / f"{name}.ncu-rep", ReportSpec([spec]))
    refused = run("compare", tmp_path / "base.ncu-rep", tmp_path / "head.ncu-rep")
    assert refused.exit_code == 1
    assert "times were not recorded in the base" in refused.stderr
    assert "hint: record them with `gpu__time_duration.sum` in `ncu --metrics`" in refused.stderr
    done = run("compare", tmp_path / "base.ncu-rep", tmp_path / "head.ncu-rep", "--anyway")
    assert done.exit_code == 0
    assert "no GPU time to compare" in done.stdout
    assert re.search(r"(\d) counters in both, 1 changed: registers_per_thread 32 -> 64", done.stdout)


def test_a_folder_called_runs_is_no_store(base: Path, tmp_path: Path) -> None:
    """Only folders of Parquet tables are read as stores."""
    record(tmp_path / "head" / "runs", [1_000_000, 1_001_000])
    done = run("compare", base, tmp_path / "head")
    assert done.exit_code == 0


def test_hostile_file_names_stay_text(base: Path, tmp_path: Path) -> None:
    """File names are printed without control characters and markup."""
    head = record(tmp_path / "head", [1_000_000], "[red]\x1b[2J")
    done = run("compare", base, head, "--fail-on", "5%")
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "[red]?[2J" in done.stdout


def test_more_than_two_sides_are_set_against_the_first(tmp_path: Path) -> None:
    """Three sides give a table over all and comparisons with the first, in all formats."""
    a, b, c = (record(tmp_path / name, [time]) for name, time in (("a", 1_000_000), ("b", 500_000), ("c", 250_000)))
    found = compared(a, b, c)
    (program,) = found["ladders"]
    assert [rung["label"] for rung in program["rungs"]] == ["a", "b", "c"]
    assert [side["time_ns"]["median"] for side in program["kernels"][0]["sides"]] == [1_000_000, 500_000, 250_000]
    assert program["kernels"][0]["factor"] == pytest.approx(4.0)
    assert [one["total"]["factor"] for one in found["programs"]] == pytest.approx([2.0, 4.0])
    assert [(rung["label"], rung["factor"], rung["fastest"]) for rung in program["rungs"]] == [
        ("a", 1, False),
        ("b", pytest.approx(2.0), False),
        ("c", pytest.approx(4.0), True),
    ]
    steps = [rung["step"] for rung in program["rungs"]]
    assert [step and (step["from"], step["time"]["factor"]) for step in steps] == [
        None,
        ("a", pytest.approx(2.0)),
        ("b", pytest.approx(2.0)),
    ]
    assert "c is the fastest of 3: 250 µs, 4.00x faster than a" in run("compare", a, b, c).stdout
    assert "4.00x faster" in run("compare", a, b, c, "--format", "md").stdout
    page = tmp_path / "page.html"
    assert run("compare", a, b, c, "--format", "html", "-o", page).exit_code == 0
    assert "c is the fastest of 3: 250 µs, 4.00x faster than a" in page.read_text().replace("\u00a0", " ")


def test_first_to_last_is_judged_as_pairs_are(tmp_path: Path) -> None:
    """A ladder does not count changes within the noise of repeated recordings, and prints names safely."""
    times = {"a": [1_000_000, 1_020_000], "b": [1_500_000, 1_510_000], "c\x1b[31m": [1_490_000, 1_515_000]}
    done = run("compare", *(record(tmp_path / name, found) for name, found in times.items()))
    assert "no change beyond noise" in " ".join(done.stdout.split())
    assert "faster" not in done.stdout
    assert "\x1b" not in done.stdout


def test_a_folder_alone_is_compared_by_its_versions(tmp_path: Path) -> None:
    """v1 and v2 in one folder become base and head; a folder without versions is an error."""
    for version, time in (("v1", 1_000_000), ("v2", 500_000)):
        record(tmp_path / "all", [time], name=f"{version}_triad")
    (program,) = compared(tmp_path / "all")["programs"]
    assert (program["base"]["label"], program["head"]["label"]) == ("v1", "v2")
    refused = run("compare", record(tmp_path / "one", [1_000_000]))
    assert refused.exit_code == 1
    assert "name the sides" in refused.stderr


def test_programs_that_one_side_lacks_are_named_everywhere(tmp_path: Path) -> None:
    """A program missing on one side is named on stderr, in JSON and Markdown, and on the page."""
    base, head = (record(tmp_path / name, [1_000_000]) for name in ("base", "head"))
    write_report(base / "gone.ncu-rep", ReportSpec(kernels=(kernel_spec(sgemm(H200)),)))
    words = "only the base has: gone"
    assert f"warning: {words}" in run("compare", base, head).stderr
    assert compared(base, head)["unpaired"] == [{"where": "the base", "programs": ["gone"]}]
    assert words in run("compare", base, head, "--format", "md").stdout
    page = tmp_path / "page.html"
    run("compare", base, head, "--format", "html", "-o", page)
    assert words in page.read_text()


def test_sides_that_cannot_be_compared_are_a_page(fixtures: Path, tmp_path: Path) -> None:
    """If sides did different work, the page lists them and says why none is compared."""
    sides = [fixtures / "synthetic" / f"sweep_gemm_bf16_{size}.synthetic.ncu-rep" for size in (128, 1024, 4096)]
    page = tmp_path / "page.html"
    done = run("compare", *sides, "--anyway", "-o", page)
    assert (done.exit_code, done.exception) == (0, None)
    text = page.read_text(encoding="utf-8")
    assert "<h1>sweep_gemm_bf16: 3 versions</h1>" in text
    assert text.count("not compared, other work: ") == 2
    assert 'data-spec="' not in text


def test_a_floor_holds_the_gate_and_every_format_says_so(base: Path, tmp_path: Path) -> None:
    """A loss of 105 µs fails unless the floor is 200 µs, as stderr and all formats say."""
    head = record(tmp_path / "head", [1_105_000, 1_110_000, 1_115_000])
    words = "the floor is the reason why this does not fail: 105 µs lost, no more than the floor of 200 µs"
    assert run("compare", base, head, "--fail-on", "5%", "--floor", "0").exit_code == 5
    gate = ("--fail-on", "5%", "--floor", "200us")
    done = run("compare", base, head, *gate)
    assert done.exit_code == 0
    assert words in done.stderr
    found = compared(base, head, *gate)["gate"]
    assert (found["outcome"], found["failed"], found["floor_ns"], found["failures"]) == ("holds", False, 200e3, [])
    assert words in found["let_through"][0]
    (judged,) = found["judged"]
    assert (judged["kernel"], judged["outcome"], judged["lost_ns"]) == (None, "same", 105_000)
    assert judged["held_by_floor"]
    markdown = run("compare", base, head, *gate, "--format", "md").stdout
    assert words in markdown
    assert "**The gate holds**, and the floor of 200 µs is the reason: nothing is slower by more than" in markdown
    page = tmp_path / "page.html"
    assert run("compare", base, head, *gate, "-o", page).exit_code == 0
    assert words in page.read_text().replace("\u00a0", " ")


_HOSTILE = {
    "kernel": "nothing*",
    "nvtx": "nothing",
    "threshold": "90%",
    "timeline": "other.sqlite",
    "gpu": "a100",
    "reader": "direct",
    "anyway": True,
    "fail-on": "90%",
    "floor": "1s",
    "per-kernel": True,
}
"""Options by which somebody else could turn a gate green."""


def test_what_decides_a_gate_comes_from_its_command_line_alone(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any other option from a file or the environment is an error that names it; `--isolated` leaves out both."""
    head = record(tmp_path / "head", [1_100_000, 1_110_000, 1_120_000])
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    wrong = []
    for option, value in _HOSTILE.items():
        for source, table in (("rooflens.toml", "compare"), ("pyproject.toml", "tool.rooflens.compare"), ("", "")):
            name = source or f"ROOFLENS_COMPARE_{option.replace('-', '_').upper()}"
            with monkeypatch.context() as patch:
                if source:
                    (tmp_path / source).write_text(f"[{table}]\n{option} = {json.dumps(value)}\n")
                else:
                    patch.setenv(name, str(value))
                typed = ["--fail-on", "5%"] if option != "fail-on" or source else []
                done = run("compare", base, head, *typed)
                is_named = name in done.stderr and f"--{option}" in done.stderr
                wrong += [] if done.exit_code in {1, 2} and is_named else [(name, option, done.stderr)]
                alone = run("--isolated", "compare", base, head, "--fail-on", "5%")
                patch.setenv("ROOFLENS_NO_SETTINGS", "1")
                quiet = run("compare", base, head, "--fail-on", "5%")
                wrong += [] if (alone.exit_code, quiet.exit_code) == (5, 5) else [(name, option, alone.stderr)]
            if source:
                (tmp_path / source).unlink()
    assert wrong == []


def test_every_answer_names_the_defaults_that_nobody_typed(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terminal, JSON, Markdown and page say what sets an option that nobody typed, or for a gate that nothing does."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "rooflens.toml").write_text('[compare]\nthreshold = "50%"\nkernel = ["*triad*", "@me"]\n')
    monkeypatch.setenv("ROOFLENS_COMPARE_READER", "direct")
    said = (
        "`rooflens.toml` sets `--kernel '*triad*' --kernel @me --threshold 50%`",
        "`ROOFLENS_COMPARE_READER` sets `--reader direct`",
    )
    for command in ("compare", "diff"):
        done = run(command, base, base)
        assert all(words in done.stderr for words in said), done.stderr
    assert compared(base, base)["options"] == [
        {"option": "kernel", "values": ["*triad*", "@me"], "source": "rooflens.toml"},
        {"option": "threshold", "values": ["50%"], "source": "rooflens.toml"},
        {"option": "reader", "values": ["direct"], "source": "ROOFLENS_COMPARE_READER"},
    ]
    markdown = run("compare", base, base, "--format", "md").stdout
    assert all(words in markdown for words in said)
    run("compare", base, base, "-o", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<code>ROOFLENS_COMPARE_READER</code> sets <code>--reader direct</code>" in page
    (tmp_path / "rooflens.toml").write_text('[compare]\nformat = "md"\n')
    gated = run("compare", base, base, "--fail-on", "5%", "--kernel", "*triad*")
    assert gated.exit_code == 2
    monkeypatch.delenv("ROOFLENS_COMPARE_READER")
    gated = run("compare", base, base, "--fail-on", "5%", "--kernel", "*triad*")
    looked = "The gate looked at 1 kernel of 1 program, 3 recordings before, 3 after, "
    looked += "with `--kernel '*triad*' --fail-on 5%`; "
    assert f"{looked}`rooflens.toml` sets `--format md`." in gated.stdout
    alone = run("--isolated", "compare", base, base, "--fail-on", "5%", "--kernel", "*triad*", "--format", "md")
    assert f"{looked}no option comes from a file or the environment." in alone.stdout


def test_lines_that_got_slower_are_in_the_json(fixtures: Path) -> None:
    """A comparison finds the line whose divisions cost the time, although neither report has source text."""
    pair = (fixtures / "published" / f"GPU_workshop__MW_{name}.ncu-rep" for name in ("DivToMult", "Baseline"))
    (program,) = compared(*pair)["programs"]
    slowest, *others = program["kernels"]
    (line,) = slowest["slower_lines"]
    assert (line["file"], line["line"], line["matched_by_text"]) == ("miniWeather_mpi_openacc.F90", 288, False)
    assert (line["before_ns"], line["after_ns"]) == (pytest.approx(1.64e6, rel=0.01), pytest.approx(2.86e6, rel=0.01))
    assert line["share"] == pytest.approx(0.45, abs=0.005)
    assert not any(one["slower_lines"] for one in others)


def test_sides_of_other_gpus_without_a_common_kernel_are_bad_input(tmp_path: Path) -> None:
    """Different programs on different GPUs cannot be compared (exit code 1) unless forced."""
    one, other = tmp_path / "one.ncu-rep", tmp_path / "other.ncu-rep"
    write_report(one, ReportSpec(kernels=(kernel_spec(triad(H200)),)))
    write_report(other, ReportSpec(kernels=(kernel_spec(sgemm(A100)),)))
    refused = run("compare", one, other)
    assert refused.exit_code == 1
    assert "the sides are of different GPUs and have no kernel in common" in refused.stderr
    assert run("compare", one, other, "--anyway").exit_code == 0


def test_libraries_choose_kernels_by_gpu(tmp_path: Path) -> None:
    """Recordings of one program, by its name, are compared even if their only kernels have different names."""
    for gpu, work in (("h200", triad(H200)), ("a100", sgemm(A100))):
        (tmp_path / gpu).mkdir()
        write_report(tmp_path / gpu / "step.ncu-rep", ReportSpec(kernels=(kernel_spec(work),)))
    assert run("compare", tmp_path / "h200", tmp_path / "a100").exit_code == 0


def test_a_kernel_on_another_gpu_is_still_compared(tmp_path: Path) -> None:
    """The same program on two GPUs is compared by shares of the roofs."""
    one, other = tmp_path / "one.ncu-rep", tmp_path / "other.ncu-rep"
    write_report(one, ReportSpec(kernels=(kernel_spec(triad(H200)),)))
    write_report(other, ReportSpec(kernels=(kernel_spec(triad(A100)),)))
    assert run("compare", one, other).exit_code == 0


def test_a_copy_is_no_second_run(base: Path, tmp_path: Path) -> None:
    """A recording given under two names counts once, with a note."""
    side = tmp_path / "copies"
    side.mkdir()
    for i in (1, 2):
        (side / f"triad_{i}.ncu-rep").write_bytes((base / "triad_0.ncu-rep").read_bytes())
    done = run("compare", base, side, "--format", "json")
    assert json.loads(done.stdout)["programs"][0]["total"]["head_ns"]["samples"] == 1
    assert "note: 1 report given twice but counted once" in done.stderr
