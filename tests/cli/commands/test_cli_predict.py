from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.loops import for_all

from rooflens.cli.group import main
from rooflens.model.predict.forecast import swept
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.roofline.datasheets import load_datasheets, the_datasheet
from rooflens.report.forecast.document import forecasts_document
from rooflens.report.writers.terminal import to_terminal

GEMM = ("predict", "gemm", "--m", "4096", "--n", "4096", "--k", "4096")


def run(*arguments: str) -> Result:
    """Run the command line."""
    return CliRunner().invoke(main, list(arguments))


def test_a_switch_needs_no_number_behind_it() -> None:
    """`--causal` alone is on, whatever option follows it."""
    flash = ("predict", "attention-flash", "--length", "2048")
    on = run(*flash, "--causal", "--gpu", "h200", "--format", "json")
    assert on.exit_code == 0
    assert on.stdout == run(*flash, "--causal", "1", "--gpu", "h200", "--format", "json").stdout
    assert on.stdout != run(*flash, "--gpu", "h200", "--format", "json").stdout


def test_json_of_one_prediction_is_one_object() -> None:
    """The documented JSON keys hold SI base units; regime and ridge are those of dense bf16 on an H100."""
    done = run(*GEMM, "--dtype", "bf16", "--gpu", "h100-sxm", "--format", "json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["flop"] == 2 * 4096**3
    assert found["bytes"] == 3 * 2 * 4096**2
    assert found["intensity"] == pytest.approx(4096 / 3)
    assert found["ridge"] == pytest.approx(989.4 / 3.35)
    assert found["regime"] == "compute"
    assert found["t_math_s"] == pytest.approx(found["flop"] / 989.4e12)
    assert found["t_memory_s"] == pytest.approx(found["bytes"] / 3.35e12)
    assert found["t_lower_s"] == found["t_math_s"]
    assert found["t_upper_s"] == pytest.approx(found["t_math_s"] + found["t_memory_s"])
    assert found["roof_flop_per_s"] == pytest.approx(989.4e12)
    assert (found["t_fused_s"], found["fused"], found["algorithms"]) == (None, None, [])
    assert "launch_floor_s" not in found
    assert (found["gpus"], found["sent_bytes"], found["t_comms_s"], found["link"]) == (1, 0, 0, None)
    assert found["peak"] == "tensor_bf16"


def test_a_sweep_over_gpus_lists_every_step() -> None:
    """Several predictions form a list, ordered by type, then GPU."""
    gpus = ("--gpu", "h100-sxm", "--gpu", "t4")
    done = run("predict", "saxpy", "--n", "1:4:x2", "--dtype", "fp32,fp64", *gpus, "--format", "json")
    found = json.loads(done.stdout)["predictions"]
    assert [(one["dtype"], one["sizes"]["n"]) for one in found] == [
        (dtype, n) for dtype in ("fp32", "fp64") for _ in gpus[::2] for n in (1, 2, 4)
    ]


def test_the_table_says_where_the_regime_changes() -> None:
    """A sweep of a square product on an H100 starts launch-bound, then leaves it; roofs and dense peaks are named."""
    done = run("predict", "gemm", "--n", "128:8192:x2", "--m", "n", "--k", "n")
    assert done.exit_code == 0
    assert "compute-bound from m = n = k = 1,353" in done.stdout
    assert "tensor bf16 989 TFLOP/s, DRAM 3.35 TB/s" in done.stdout
    note = "floor: no kernel is faster from cold caches; peaks are dense; `rooflens about columns`"
    assert done.stdout.endswith(f"{note}\n")
    assert "2:4 sparsity" in run("about", "T math").stdout


def test_csv_and_markdown_hold_a_line_for_each_step() -> None:
    """CSV has a column per size; Markdown has a table per type and GPU."""
    lines = list(csv.DictReader(io.StringIO(run("predict", "saxpy", "--n", "1,2", "--format", "csv").stdout)))
    assert [line["size_n"] for line in lines] == ["1", "2"]
    markdown = run("predict", "saxpy", "--n", "1,2", "--format", "md").stdout
    assert sum(line.startswith("| n ") for line in markdown.splitlines()) == 2


def test_a_measured_time_is_set_against_the_floor_and_published_kernels() -> None:
    """4096 cubed takes at least 139 us on an H100, and the time of published kernels says when to stop tuning."""
    words = {
        "0.1": "floor 139 \u00b5s 100 \u00b5s 0.720x too fast",
        "0.18": "185 \u00b5s 180 \u00b5s 0.975x faster than half stop here",
        "0.3": "slower than half the best would take",
        "1.7": "floor 139 \u00b5s 1.70 ms 12.2x above the floor attainable 185 \u00b5s 1.70 ms 9.21x slower than most",
    }
    for measured_ms, said in words.items():
        assert said in " ".join(run(*GEMM, "--measured-ms", measured_ms).stdout.split())
        found = json.loads(run(*GEMM, "--measured-ms", measured_ms, "--format", "json").stdout)
        assert found["time_verdict"] in said
    found = json.loads(run(*GEMM, "--measured-ms", "1.7", "--format", "json").stdout)
    assert found["time_over_floor"] == pytest.approx(1.7e-3 / found["t_lower_s"])
    assert found["time_over_attainable"] == pytest.approx(1.7e-3 / found["attainable_typical_s"])


def test_what_published_kernels_attain_is_said_with_its_sources() -> None:
    """Attained times name their sources: several for products, one for elementwise work, none for embeddings."""
    found = json.loads(run(*GEMM, "--format", "json").stdout)
    assert found["t_lower_s"] < found["attainable_low_s"] < found["attainable_typical_s"] < found["attainable_high_s"]
    assert found["attainable_proven"]
    assert "siboehm/SGEMM_CUDA" in found["attainable_sources"]
    assert "x as long, typically 1.3x" in run(*GEMM).stdout
    assert "unproven: one source" in " ".join(
        run("predict", "elementwise", "--n", "268435456", "--dtype", "fp32").stdout.split()
    )
    for given in (("embedding", "--tokens", "1000000"), ("gemm", "--m", "64", "--n", "64", "--k", "64")):
        found = json.loads(run("predict", *given, "--format", "json").stdout)
        assert (found["attainable_typical_s"], found["attainable_points"], found["attainable_sources"]) == (None, 0, [])


def test_data_that_fits_in_l2_has_a_warm_floor_beside_the_cold_one(tmp_path: Path) -> None:
    """32 MB of an H100's 50 MB L2 take 9.55 us from DRAM and 3.16 us from L2, in every format."""
    given = ("predict", "elementwise", "--n", "4000000", "--dtype", "fp32")
    found = json.loads(run(*given, "--format", "json").stdout)
    assert found["t_lower_s"] == pytest.approx(32e6 / 3.35e12)
    assert found["t_lower_warm_s"] == pytest.approx(32e6 / 10.1376e12)
    (line,) = csv.DictReader(io.StringIO(run(*given, "--format", "csv").stdout))
    assert float(line["t_lower_warm_s"]) == pytest.approx(found["t_lower_warm_s"], rel=1e-3)
    page = tmp_path / "predict.html"
    run(*given, "-o", str(page))
    for told in (run(*given).stdout, run(*given, "--format", "md").stdout, page.read_text(encoding="utf-8")):
        text = " ".join(told.split())
        assert "warm floor" in text
        assert "from cold caches, 3.16 \u00b5s with its data in L2" in text
    larger = run(*given[:3], "40000000", *given[4:], "--format", "json")
    assert json.loads(larger.stdout)["t_lower_warm_s"] is None
    assert "warm" not in run(*given[:3], "40000000", *given[4:]).stdout


@pytest.mark.parametrize(
    "given",
    [("gemm", "--n", "128:8192:x2", "--m", "n", "--k", "n"), ("decode", "--tensor-parallel", "8"), ("attention",)],
)
def test_a_narrow_terminal_shows_intensity_and_floor(given: tuple[str, ...]) -> None:
    """At 80 columns the times of single units leave, and no line is wider; what a floor of steps is is said once."""
    usual = {size.name: str(size.default) for size in OPERATIONS[given[0]].sizes if size.default is not None}
    sizes = {name.strip("-").replace("-", "_"): value for name, value in zip(given[1::2], given[2::2], strict=True)}
    row = swept(OPERATIONS[given[0]], {**usual, **sizes}, "bf16", the_datasheet("h100-sxm"))
    text = to_terminal(forecasts_document([row]), 80)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "FLOP/B" in lines[1]
    assert re.search(r" floor( +fused)?$", lines[1])
    assert text.count("a kernel for each step") == bool(row.operation.fused)


def test_a_measured_time_is_that_of_one_prediction() -> None:
    """A measured time is refused for several sizes, GPUs or types."""
    for several in (("--n", "1,2"), ("--n", "1", "--gpu", "t4", "--gpu", "h200"), ("--n", "1", "--dtype", "fp32,fp64")):
        done = run("predict", "saxpy", *several, "--measured-ms", "1")
        assert done.exit_code == 2
        assert "a measured time is of one size" in done.stderr or "needs a single GPU and type" in done.stderr


def test_saxpy_is_fp32_by_default() -> None:
    """`saxpy` is predicted in fp32 by default, as its name says; other operations start with bf16."""
    assert json.loads(run("predict", "saxpy", "--n", "64", "--format", "json").stdout)["dtype"] == "fp32"
    assert json.loads(run("predict", "dot", "--n", "64", "--format", "json").stdout)["dtype"] == "bf16"


def test_a_gpu_without_the_type_is_left_out_and_named() -> None:
    """`--gpu all` predicts a type where possible, and warns of GPUs without tensor cores for it."""
    done = run("predict", "gemv", "--m", "8", "--k", "8", "--dtype", "bf16", "--gpu", "all", "--format", "json")
    assert done.exit_code == 0
    able = [gpu for gpu in load_datasheets() if "tensor_bf16" in gpu.peaks]
    assert len(json.loads(done.stdout)["predictions"]) == len(able)
    assert "warning: `Tesla T4` has no published peak for bf16" in done.stderr


@for_all(
    "arguments, code, words",
    [
        (("--m", "4"), 2, "missing options '--n', '--k'"),
        (("--m", "4", "--k", "4"), 2, "missing option '--n'"),
        (("--m", "4", "--n", "x", "--k", "1"), 2, "`x` is not a size"),
        (("--m", "4", "--n", "1", "--k", "1", "--dtype", "fp9"), 2, "no type is called `fp9`"),
        (("--m", "4", "--n", "1", "--k", "1", "--gpu", "a100"), 2, "choose one of: a100-"),
        (("--m", "4", "--n", "1", "--k", "1", "--gpu", "gpu of my dreams"), 2, "no GPU is called"),
        (("--m", "4", "--n", "1", "--k", "1", "--measured-ms", "-1"), 2, "positive number"),
    ],
)
def test_bad_input_is_told_and_hinted(arguments: tuple[str, ...], code: int, words: str) -> None:
    """An impossible prediction ends with one error and the exit code of its kind."""
    done = run("predict", "gemm", *arguments)
    assert done.exit_code == code
    assert words in done.stderr


def test_output_goes_to_a_file(tmp_path: Path) -> None:
    """-o writes the text to a file, and the last line names it."""
    file = tmp_path / "p.json"
    done = run(*GEMM, "--format", "json", "-o", str(file))
    assert done.stderr == f"wrote {file}\n"
    assert json.loads(file.read_text(encoding="utf-8"))["operation"] == "gemm"


def test_the_ending_of_a_file_says_the_format(tmp_path: Path) -> None:
    """`-o FILE.json` implies --format json."""
    assert run(*GEMM, "-o", str(tmp_path / "gemm.json")).exit_code == 0
    assert json.loads((tmp_path / "gemm.json").read_text(encoding="utf-8"))["flop"] == 2 * 4096**3


def test_a_page_needs_a_file_and_force_to_write_over_one(tmp_path: Path) -> None:
    """HTML is written only to a file; a page of ours is written again, another file is kept unless forced."""
    file = tmp_path / "p.html"
    assert run(*GEMM, "--format", "html").exit_code == 2
    assert run(*GEMM, "--format", "html", "-o", str(file)).exit_code == 0
    page = file.read_text(encoding="utf-8")
    assert "Compute-bound: 1,370\u00a0FLOP/B" in page
    assert run(*GEMM, "--format", "html", "-o", str(file)).exit_code == 0
    file.write_text("<!doctype html><title>notes of somebody</title>", encoding="utf-8")
    refused = run(*GEMM, "--format", "html", "-o", str(file))
    assert refused.exit_code == 2
    assert "exists" in refused.stderr
    assert run(*GEMM, "--format", "html", "-o", str(file), "--force").exit_code == 0


@for_all("name", OPERATIONS)
def test_every_operation_has_help_and_a_table(name: str) -> None:
    """Each row of the table is a sub-command that names its sizes and predicts."""
    needed = [part for size in OPERATIONS[name].sizes if size.default is None for part in (_option(size.name), "64")]
    assert all(_option(size.name) in run("predict", name, "--help").stdout for size in OPERATIONS[name].sizes)
    assert run("predict", name, *needed).exit_code == 0


def _option(size: str) -> str:
    return f"--{size.replace('_', '-')}"


def test_types_and_gpus_are_told_once() -> None:
    """A type or GPU named twice, or besides `all`, is predicted once."""
    done = run(*GEMM, "--dtype", "bf16,bf16", "--gpu", "h100-sxm", "--gpu", "h100-sxm", "--format", "json")
    assert json.loads(done.stdout)["gpu"] == "NVIDIA H100 80GB HBM3"
    done = run(*GEMM, "--dtype", "fp32", "--gpu", "all", "--gpu", "h100-sxm", "--format", "json")
    assert len(json.loads(done.stdout)["predictions"]) == len(load_datasheets())


def test_sizes_that_cannot_be_are_usage_errors() -> None:
    """Absurdly long numbers, and heads that do not divide the width, give exit code 2 without a traceback."""
    for given in (("gemm", "--m", "9" * 5000, "--n", "1", "--k", "1"), ("transformer-block", "--hidden", "100")):
        done = run("predict", *given)
        assert done.exit_code == 2
        assert "error: " in done.stderr


def test_without_an_operation_all_are_listed() -> None:
    """`rooflens predict` alone lists the operations, without an error."""
    done = run("predict")
    assert done.exit_code == 0
    assert all(name in done.stdout for name in OPERATIONS)


def test_json_of_a_shared_product_names_its_link() -> None:
    """Eight H100 split k and add over NVLink at 450 GB/s per direction; `--link pcie` takes 64 GB/s."""
    shared = (*GEMM, "--tensor-parallel", "8", "--format", "json")
    sent = 4096 * 4096 * 2
    for asked, kind, rate in (((), "nvlink", 450e9), (("--link", "pcie"), "pcie", 64e9)):
        found = json.loads(run(*shared, *asked).stdout)
        assert (found["gpus"], found["link"], found["link_bytes_per_s"]) == (8, kind, rate)
        assert found["sent_bytes"] == sent
        assert found["t_comms_s"] == pytest.approx(sent / rate)
        assert found["t_lower_s"] == found["t_comms_s"]
        assert found["link_intensity"] == pytest.approx(4096 / 8)
        assert found["link_ridge"] == pytest.approx(989.4e12 / rate)
        assert found["regime"] == "communication"


def test_the_table_has_a_link_where_gpus_share_the_work() -> None:
    """Work shared by GPUs adds columns for the link, its two bandwidths and its ridge; one GPU's table has none."""
    shared = run(*GEMM, "--tensor-parallel", "8", "--format", "md").stdout
    assert "| sent | FLOP/link B | regime |" in shared
    assert "- link of 8 GPUs: NVLink 4, 450 GB/s each way, 900 GB/s both ways; ridge 2,200 FLOP/link B" in shared
    assert "- T comms counts the bytes that are sent, not the latency of each exchange" in shared
    assert "| communication-bound |" in shared
    alone = run(*GEMM, "--format", "md").stdout
    assert "link" not in alone
    assert "T comms |" not in alone


def test_what_is_shorter_than_a_launch_says_so() -> None:
    """A product of 128 is as short as its launch: its regime is overhead, and the cost of a launch is shown."""
    for size, reached in (("128", "out of reach"), ("1024", "hardly reached")):  # below the ridge and above it
        said = " ".join(run("predict", "gemm", "--m", size, "--n", size, "--k", size).stdout.split())
        assert "overhead-bound" in said
        assert f"{reached} alone, as 1 launch takes 2 to 5 \u00b5s of host time" in said
    said = " ".join(run("about", "regime").stdout.split())
    assert "its launches, which cost 2 to 5 \u00b5s of host time each" in said
    assert "launch" not in run(*GEMM).stdout


def test_a_sweep_over_gpus_names_each_link() -> None:
    """Two H100 PCIe use a bridge; four of them use PCIe."""
    said = run("predict", "decode", "--tensor-parallel", "1,2,4", "--gpu", "h100-pcie", "--format", "md").stdout
    assert "- link of 2 GPUs: NVLink 4, 300 GB/s each way" in said
    assert "- link of 4 GPUs: PCIe 5, 64.0 GB/s each way" in said


def test_a_gpu_without_the_link_is_left_out_and_named() -> None:
    """`--link nvlink` predicts for GPUs with NVLink and warns of the others."""
    both = ("--gpu", "h100-sxm", "--gpu", "rtx-4090")
    done = run("predict", "all-reduce", "--bytes", "1000000", "--link", "nvlink", *both, "--format", "json")
    assert json.loads(done.stdout)["gpu"] == "NVIDIA H100 80GB HBM3"
    assert "warning: `NVIDIA GeForce RTX 4090`: it has no NVLink" in done.stderr


def test_help_says_what_is_sent() -> None:
    """The help of operations that GPUs can share says what each sends; the help of others does not mention it."""
    told = " ".join(run("predict", "all-reduce", "-h").stdout.split())
    assert "Sent by each of N GPUs: the whole buffer at least; 2 (N - 1) / N of it in a ring." in told
    for name, operation in OPERATIONS.items():
        shared = any(size.name in {"gpus", "tensor_parallel", "expert_parallel", "combine"} for size in operation.sizes)
        assert bool(operation.sent_source) == (shared or name == "send"), name


def test_json_names_the_bounds_beside_flops_and_memory() -> None:
    """A product with tiles of 128 is bound by L2 on an H100; an unknown L2 gives null and no bound."""
    tiled = (*GEMM, "--l2-tile", "128", "--format", "json")
    found = json.loads(run(*tiled).stdout)
    assert (found["regime"], found["longest"]) == ("memory", "t_l2_s")
    assert found["t_l2_s"] == found["t_lower_s"] == pytest.approx(found["l2_bytes"] / found["l2_bytes_per_s"])
    unknown = next(gpu.id for gpu in load_datasheets() if gpu.l2_bandwidth is None and "tensor_bf16" in gpu.peaks)
    found = json.loads(run(*tiled, "--gpu", unknown).stdout)
    assert (found["l2_bytes_per_s"], found["t_l2_s"], found["longest"]) == (None, None, "t_math_s")


def test_the_table_has_a_column_for_what_counts_beside() -> None:
    """Attention counts its exponentials and packed weights their unpacking; a plain product has neither."""
    narrow = run("predict", "attention-flash", "--length", "8192", "--width", "32", "--format", "md").stdout
    assert "| T MUFU |" in narrow
    assert "special functions" in run("about", "T MUFU").stdout
    packed = run("predict", "quantized-gemm", "--m", "16", "--n", "4096", "--k", "4096", "--format", "md").stdout
    assert "| T issue |" in packed
    plain = run(*GEMM, "--format", "md").stdout
    assert not any(name in plain for name in ("T MUFU", "T issue", "T L2"))


def test_sizes_in_scientific_notation() -> None:
    """64e9 and 64G are the same number, for a product and for a custom count."""
    one, other = (
        run("predict", "custom", "--flop", text, "--bytes", "1Gi", "--format", "json") for text in ("64e9", "64G")
    )
    assert one.stdout == other.stdout
    found = json.loads(one.stdout)
    assert (found["flop"], found["bytes"]) == (64e9, 1 << 30)


def test_work_that_gpus_repeat_is_named_and_counted() -> None:
    """Four GPUs split k = 10 into 3 each, 12 in all, a fifth more work; even divisions and one GPU repeat nothing."""
    sizes = ("predict", "gemm", "--m", "8", "--n", "8")
    split = (*sizes, "--k", "10", "--tensor-parallel", "4")
    assert json.loads(run(*split, "--format", "json").stdout)["repeated_flop_share"] == pytest.approx(0.2)
    assert (
        "- 4 GPUs do not divide 10 k: the one with most has 3, as if there were 20 % more"
        in run(*split, "--format", "md").stdout
    )
    even = json.loads(run(*sizes, "--k", "16", "--tensor-parallel", "8", "--format", "json").stdout)
    assert even["repeated_flop_share"] == 0
    alone = json.loads(run(*sizes, "--k", "16", "--format", "json").stdout)
    assert (alone["repeated_flop_share"], alone["repeated_bytes_share"]) == (None, None)


def test_the_page_says_which_other_wall_is_met(tmp_path: Path) -> None:
    """The page of an attention with narrow heads says that exponentials bound it, and shows their sums."""
    file = tmp_path / "p.html"
    assert (
        run(
            "predict", "attention-flash", "--length", "8192", "--heads", "1", "--width", "32", "-o", str(file)
        ).exit_code
        == 0
    )
    page = file.read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "Compute-bound: 67.1 M special functions take 2.0x as long as its products." in page
    assert "<dt>T MUFU</dt>" in page
    assert "one exponential per pair of tokens" in page


def test_tiles_against_dram_say_so() -> None:
    """A tile's 138 MB assume no hits in L2 (a published kernel moved 20.7 MB), and the other option is named."""
    product = ("predict", "gemm", "--m", "1024", "--n", "1024", "--k", "1024", "--dtype", "fp32", "--gpu", "a10g")
    tiled = run(*product, "--tile", "64").stdout
    assert "138 MB" in tiled
    assert "as if L2 caught none" in tiled
    assert "as if L2 caught none" not in run(*product).stdout
    assert "as if L2 caught none" not in run(*product, "--l2-tile", "64").stdout
    assert "l2_tile instead" in " ".join(run("predict", "gemm", "--help").stdout.split())


def test_operands_that_do_not_fit_into_the_memory_are_told() -> None:
    """Llama 3 8B caches 131,072 bytes per token: 256 x 8192 tokens are 275 GB, and its weights 15.0 GB."""
    cached, weights = 256 * 8192 * 131_072, 2 * (32 * (4096 * 6144 + 4096**2 + 3 * 4096 * 14336) + 4096 * 128256)
    large = ("predict", "decode", "--batch", "256", "--length", "8192", "--gpu", "h100-sxm")
    found = json.loads(run(*large, "--format", "json").stdout)
    assert found["held_bytes"] == cached + weights
    assert (found["memory_bytes"], found["gpus_to_hold"]) == (80e9, 4)
    told = "does not fit: weights and cache alone take 290 GB of a GPU's 80.0 GB; it takes 4 such GPUs or more"
    assert told in run(*large).stdout.replace("\n", " ")
    assert "does not fit" not in run("predict", "decode", "--batch", "1", "--gpu", "h100-sxm").stdout


PUBLISHED = Path(__file__).parents[3] / "fixtures" / "published"
MEASURED = PUBLISHED / "GPU_workshop__MW_Baseline.ncu-rep"


def test_a_measured_kernel_is_predicted_elsewhere() -> None:
    """A DRAM-bound kernel is predicted on an H100 by bandwidth; a waiting kernel gets no time but the reason."""
    done = run("predict", "--from", str(MEASURED), "--gpu", "h100-sxm", "--format", "json")
    assert done.exit_code == 0, done.stderr
    found = {row["kernel"]: row for row in json.loads(done.stdout)["kernels"]}
    step = found["semi_discrete_step_232_gpu"]
    ratio = 3.35e12 / the_datasheet("v100-sxm2-32gb").dram_bandwidth.value
    assert step["factor"] == pytest.approx(ratio, rel=1e-3)
    assert step["about_ns"] == pytest.approx(step["measured_ns"] / ratio, rel=1e-3)
    assert step["limited_by"] == "memory"
    waiting = found["set_halo_values_x_419_gpu"]
    assert (waiting["about_ns"], waiting["limited_by"]) == (None, None)
    assert waiting["reason"].startswith("limited by latency")


def test_a_measured_kernel_is_predicted_in_another_type() -> None:
    """A DRAM-bound fp64 kernel moves half the bytes in fp32: at best twice as fast, as the table says."""
    done = run("predict", "--from", str(MEASURED), "--kernel", "step_232", "--dtype", "fp32")
    assert done.exit_code == 0, done.stderr
    assert "2.0x" in done.stdout
    assert "Another type is the best case" in done.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (f"predict --from {MEASURED}", "nothing to predict"),
        (f"predict --from {MEASURED} --kernel step_232 --dtype fp64", "`--dtype fp64` has no effect"),
        (f"predict --from {MEASURED} --kernel step_232 --dtype fp61", "no type is called `fp61`"),
        (f"predict --from {MEASURED} --gpu h100-sxm gemm --m 1 --n 1 --k 1", "--from takes the place of an operation"),
        ("predict --from-gpu h100-sxm", "--from-gpu goes with --from REPORT, and has no effect here"),
        ("predict --gpu h100-sxm", "--gpu before an operation goes with --from REPORT, and has no effect here"),
        ("predict --dtype fp16 gemm --m 1 --n 1 --k 1", "--dtype before an operation goes with --from REPORT"),
        ("predict gemm --m 1 --n 1 --k 1 --link pcie", "--link has no effect: one GPU alone sends nothing"),
    ],
)
def test_an_option_without_effect_is_refused(words: str, error: str) -> None:
    """An option without effect is refused with exit code 2 and a hint, as nobody would expect it to be ignored."""
    done = run(*words.split())
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {error}")
    assert "hint: " in done.stderr


EXPORT = (
    '"ID","Kernel Name","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit",'
    '"Metric Value"\n'
    '"0","k","(1, 1, 1)","(1, 1, 1)","0","8.0","Command line profiler metrics","gpu__time_duration.sum","ns","1000"\n'
)


def test_an_export_that_does_not_name_its_gpu_asks_for_it(tmp_path: Path) -> None:
    """For an export without a GPU the error asks for `--from-gpu`, since `--gpu` is where to predict."""
    amounts, shares = tmp_path / "amounts.csv", tmp_path / "shares.csv"
    amounts.write_text(EXPORT)
    shares.write_text(EXPORT + EXPORT.splitlines()[1].replace("gpu__time_duration.sum", "sm__warps_active.sol_pct"))
    for given in ((amounts, "--gpu", "h100-sxm"), (shares, "--dtype", "fp8")):
        done = run("predict", "--from", *map(str, given))
        assert done.exit_code == 1
        assert "does not name its GPU" in done.stderr
        assert "name it with --from-gpu" in done.stderr
        assert "--dtype None" not in done.stderr
        assert "`--gpu NAME`" not in done.stderr
    named = run("predict", "--from", str(amounts), "--gpu", "h100-sxm", "--from-gpu", "a100-pcie-40gb")
    assert named.exit_code == 0, named.stderr
    assert "k: FLOPs not counted, DRAM bytes not measured" in named.stdout


def test_kernels_that_a_type_does_not_change_are_named() -> None:
    """Kernels unchanged by a type get a note each if the reasons differ; a shared reason is in the error."""
    done = run("predict", "--from", str(MEASURED), "--dtype", "fp64")
    assert done.exit_code == 2
    assert done.stderr.count("left out: `--dtype fp64` has no effect; most of its arithmetic is fp64 already") == 3
    assert done.stderr.count("left out: `--dtype fp64` has no effect; the kernel does no floating-point") == 2
    assert "error: none of these kernels can be predicted\n\nhint: the notes above say why" in done.stderr
    alike = run("predict", "--from", str(MEASURED), "--dtype", "fp64", "--kernel", "halo").stderr
    assert alike.startswith("error: `--dtype fp64` has no effect\n\nhint: the kernel does no floating-point")


@pytest.mark.parametrize("name", ["sglang__profile", "self-join-MiSTIC__profile"])
def test_measured_is_the_sum_that_analyze_shows(name: str) -> None:
    """The measured time is the sum over a kernel's launches, not the median times their number."""
    report = str(PUBLISHED / f"{name}.ncu-rep")
    found = json.loads(run("predict", "--from", report, "--gpu", "h100-sxm", "--format", "json").stdout)["kernels"]
    launches = json.loads(run("analyze", report, "--format", "json").stdout)["kernels"]
    for kernel in found:
        times = [
            one["duration_ns"] for one in launches if one["name"] == kernel["kernel"] and one["status"] != "failed"
        ]
        assert kernel["measured_ns"] == pytest.approx(sum(times))


def test_names_are_those_of_analyze() -> None:
    """Long template arguments are cut in table and notes to the part that distinguishes kernels."""
    done = run("predict", "--from", str(PUBLISHED / "cutlass__384.ncu-rep"), "--gpu", "h100-sxm")
    assert done.exit_code == 0, done.stderr
    assert "B2bGemm<32x384x64>" in done.stdout
    assert "\n  B2bGemm<32x384x64>, Gemm<128x96x64>: limited by latency" in done.stdout
    assert "GemmShape" not in done.stdout


def test_no_column_contradicts_the_note() -> None:
    """An L1-bound kernel is called so, as in `analyze`; without a time no side is shown."""
    report = str(PUBLISHED / "KernelBench__matmul_kernel.ncu-rep")
    row, note = run("predict", "--from", report, "--dtype", "fp16").stdout.splitlines()[1:3]
    assert row.split()[-3:] == ["-", "-", "-"]
    assert note == "  matmul_kernel: limited by L1, which datasheets do not cover"


@for_all(
    "name, meant",
    [
        ("matmul", "gemm"),
        ("mm", "gemm"),
        ("linear", "gemm"),
        ("sdpa", "attention-flash"),
        ("flash", "attention-flash"),
        ("flash-attention", "attention-flash"),
        ("Paged-Attention", "attention-decode"),
    ],
)
def test_another_word_for_an_operation_is_understood(name: str, meant: str) -> None:
    """A usual word for an operation predicts that operation."""
    sizes = [word for one in OPERATIONS[meant].sizes if one.default is None for word in (_option(one.name), "64")]
    assert run("predict", name, *sizes).stdout == run("predict", meant, *sizes).stdout != ""


def test_an_unknown_operation_is_answered_with_those_that_there_are() -> None:
    """For an unknown operation the hint lists all."""
    done = run("predict", "fft")
    assert done.exit_code == 2
    assert "no operation is called `fft`" in done.stderr
    assert "one of: elementwise, saxpy" in done.stderr


@for_all(
    "typed", ["4096 512 64", "4096x512x64", "4096*512*64", "-m 4096 -n 512 -k 64", "-M=4096 512 64", "--n 512 4096 64"]
)
def test_sizes_stand_for_themselves_in_their_order(typed: str) -> None:
    """Numbers, or numbers joined by x, are the sizes that an operation needs and nobody named, in their order."""
    named = run("predict", "gemm", "--m", "4096", "--n", "512", "--k", "64")
    assert run("predict", "gemm", *typed.split()).stdout == named.stdout != ""


def test_sizes_that_nobody_gave_are_named() -> None:
    """Without any size a note names those that were taken; with one there is none."""
    assert "usual sizes: batch 1, heads 32, length 2048, width 128" in run("predict", "attention").stderr
    assert "usual sizes" not in run("predict", "attention", "--length", "1024").stderr


def test_sizes_that_are_too_few_or_too_many_are_not_guessed() -> None:
    """Two sizes of three, or four, are refused with a line that works."""
    for sizes in (("4096", "512"), ("1", "2", "3", "4")):
        done = run("predict", "gemm", *sizes)
        assert done.exit_code == 2
        assert "predict gemm 4096 4096 4096" in done.stderr


def test_the_usual_type_is_one_that_the_gpu_has() -> None:
    """A T4 has no bf16, so fp16 is predicted, with a note; a GTX 1080 uses fp32, 64 times as fast as its fp16."""
    done = run(*GEMM, "--gpu", "t4", "--gpu", "gtx-1080", "--gpu", "h100-sxm", "--format", "json")
    assert [one["dtype"] for one in json.loads(done.stdout)["predictions"]] == ["fp16", "fp32", "bf16"]
    assert done.stderr.splitlines() == [
        "note: Tesla T4: no published peak for bf16; predicted in fp16",
        "note: NVIDIA GeForce GTX 1080: no published peak for bf16; predicted in fp32",
    ]
    on_cuda_cores = run("predict", "softmax", "--width", "64", "--gpu", "t4", "--gpu", "h100-sxm", "--format", "json")
    assert [one["dtype"] for one in json.loads(on_cuda_cores.stdout)["predictions"]] == ["fp16", "bf16"]
    for gpu in load_datasheets():
        assert run(*GEMM, "--gpu", gpu.id).exit_code == 0, gpu.id


def test_the_types_of_a_hint_can_be_given() -> None:
    """For a GPU without the type, the hint lists types that `--dtype` accepts."""
    hint = run(*GEMM, "--gpu", "t4", "--dtype", "bf16").stderr.splitlines()[-1]
    assert hint == "hint: it has: fp64, fp32, fp16, int8"
    for dtype in hint.removeprefix("hint: it has: ").split(", "):
        assert run(*GEMM, "--gpu", "t4", "--dtype", dtype).exit_code == 0


def test_sizes_and_types_in_capitals_are_the_same() -> None:
    """M, N, K and BF16 are accepted in capitals, as most texts write them."""
    small = run("predict", "gemm", "--m", "512", "--n", "m", "--k", "64", "--dtype", "bf16", "--format", "csv")
    large = run("predict", "gemm", "--M", "512", "--N", "M", "--K", "64", "--dtype", "BF16", "--format", "csv")
    assert large.stdout == small.stdout != ""
