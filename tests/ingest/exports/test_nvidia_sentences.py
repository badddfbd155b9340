"""Measurements in the sentences of NVIDIA's rules: what each states, and nothing from sentences without numbers."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest
from support.loops import for_all

from rooflens.ingest.exports.read import read_export
from rooflens.ingest.exports.sentences import SENTENCES, metrics_of_messages, title_of

_CONFLICTS = (
    "and causes on average a 2.4 - way bank conflict across all 4096 shared load requests.This results in 5734 bank "
    "conflicts, which represent 58.33% of the overall 9830 wavefronts for shared loads."
)
_STALL = (
    "On average, each warp of this kernel spends 7.6 cycles being stalled waiting for a scoreboard dependency on a "
    "L1TEX (local, global) operation. This stall type represents about 57.1% of the total average of 13.3 cycles "
    "between issuing two instructions."
)
_PIPE = "ALU is the highest-utilized pipeline (24.9%) based on {} cycles, taking into account the rates. It is well."

SAID = {
    _CONFLICTS: {
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 5734,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 9830,
    },
    _STALL: {
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 7.6,
        "smsp__average_warp_latency_per_inst_issued.ratio": 13.3,
    },
    _PIPE.format("active"): {"sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active": 24.9},
    _PIPE.format("elapsed"): {"sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed": 24.9},
    "a total of 30 excessive sectors (75% of the total 40 sectors).": {
        "memory_l2_theoretical_sectors_global": 40,
        "memory_l2_theoretical_sectors_global_ideal": 10,
    },
    "The memory access pattern for global stores to L1TEX might not be optimal. On average, only 8.2 of the 32 bytes "
    "transmitted per sector are utilized by each thread.": {
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio": 8.2
    },
    "configured to execute only 4 blocks, which is less than the GPU's 108 multiprocessors.": {
        "launch__grid_size": 4,
        "launch__sm_count": 108,
    },
    "configured to execute only 1 block, which is less than the 40 multiprocessors used.": {
        "launch__grid_size": 1,
        "launch__sm_count": 40,
    },
    "a total of 8,644,608 excessive sectors (50% of the total 17,289,216 sectors).": {
        "memory_l2_theoretical_sectors_global": 17_289_216,
        "memory_l2_theoretical_sectors_global_ideal": 8_644_608,
    },
}


@for_all("message, metrics", [*SAID.items()], lambda case: case[0][:50])
def test_a_sentence_is_the_metrics_that_it_states(message: str, metrics: dict[str, float]) -> None:
    """Numbers in a rule's message are stored under the names that reports use."""
    assert metrics_of_messages([message]) == metrics


@for_all(
    "message",
    [
        "Required metric launch__waves_per_multiprocessor could not be found.",
        "DMMA is the highest-utilized pipeline (24.9%) based on active cycles, taking",
        "a total of 1,23 excessive sectors (75% of the total 4,0 sectors)",
        "a total of 1.2.3 excessive sectors (75% of the total 40 sectors)",
        "resulting in only 0.0 full waves across all SMs",
        "(" * 10_000 + "is the highest-utilized pipeline",
        "",
    ],
)
def test_what_states_no_number_gives_none(message: str) -> None:
    """An unknown pipe, an invalid number, a rounded zero and hostile text are no measurements."""
    assert metrics_of_messages([message]) == {}


def test_a_stall_has_the_title_that_reports_give_it() -> None:
    """Rules of a text get the titles by which findings recognise them, although texts print none."""
    assert title_of(_STALL) == "Long Scoreboard Stalls"
    assert title_of("The grid for this launch is configured to execute only 4 blocks, which") == "Small Grid"
    assert title_of("unheard of") == ""


def test_every_sentence_names_the_versions_that_were_seen_to_print_it() -> None:
    """Every sentence names the versions that were seen to print it; the documentation's table is made from these."""
    assert all(sentence.seen.startswith("20") and sentence.metrics for sentence in SENTENCES)


@pytest.mark.corpus
@for_all(
    "report",
    ("CudaCode__naive", "GPU_workshop__MW_Baseline", "KernelBench__matmul_kernel", "cutlass__384",
     "llm.c__adamw_coalsecing_shared", "nsight-training__manual_nvtx", "self-join-MiSTIC__profile"),
)  # fmt: skip
def test_a_sentence_says_what_the_raw_page_holds(corpus: Path, report: str) -> None:
    """A sentence's values equal those on the raw page of the same report, to the sentence's digits."""
    details, raw = (
        list(read_export(gzip.decompress((corpus / "cli" / f"{report}.{page}.base.csv.gz").read_bytes())))
        for page in ("details", "raw")
    )
    compared = 0
    for printed, stored in zip(details, raw, strict=True):
        for metric, value in metrics_of_messages(rule.message for rule in printed.rules).items():
            if metric in stored.numbers and not metric.startswith("smsp__issue_active"):  # a rounded reciprocal
                assert math.isclose(value, stored.numbers[metric], rel_tol=0.005, abs_tol=0.051), metric
                compared += 1
    assert compared
