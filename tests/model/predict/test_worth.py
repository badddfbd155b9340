"""Findings and moves of `analyze`, `explain` and `predict --from` agree on whether fp16 is worth it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.findings import make_facts
from support.kernels import make_kernel

from rooflens.analyzing import analyze_paths
from rooflens.errors import RooflensError
from rooflens.model.predict.other_gpu import WhatIf, next_type, what_if
from rooflens.model.records import Pipe
from rooflens.model.summary import KernelSummary, summarize
from rooflens.model.verdict.narrower import is_product_on_cuda_cores, pipe_in_type, roofs_over_fp32
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.kernel.document import explain
from rooflens.report.words.worth import worth_words

PIPES = {"fp32": Pipe(2e9, "FLOP", "opcode", share=0.7)}


def answer(kernel: KernelSummary, dtype: str) -> WhatIf | None:
    """Return the benefit of a type; None if it changes nothing, or the GPU is unknown."""
    try:
        return what_if(kernel, None, dtype)
    except RooflensError:
        return None


def disagreements(path: Path) -> Iterator[str]:
    """Yield the kernels of a report on which two of the three disagree, with their statements."""
    for report in analyze_paths([path]).reports:
        for kernel in summarize(report.analyses):
            if kernel.is_failed:
                continue
            analysis, answers = kernel.analysis, {dtype: answer(kernel, dtype) for dtype in ("fp16", "bf16", "tf32")}
            worth = {dtype: one.worth for dtype, one in answers.items() if one is not None}
            texts = [move.text for move in analysis.verdict.moves]
            told = f"{path.name}: {kernel.shown}: {worth}"
            if any("narrower type" in text or " fp16 " in text for text in texts) and worth.get("fp16") is False:
                yield f"{told}: advised {texts}"
            if any("TF32" in text for text in texts) and worth.get("tf32") is False:
                yield f"{told}: TF32 advised {texts}"
            found = any(finding.id == "tensor_cores_unused" for finding in analysis.findings)
            on_tensor = [
                one for one in answers.values() if one and one.worth and (one.pipe or "").startswith("tensor_")
            ]
            if found and worth and not on_tensor:
                yield f"{told}: tensor cores found"
            asked = answer(summarize([analysis])[0], next_type(analysis))
            if (words := worth_words(asked) if asked is not None else "") and words not in explain(report, analysis):
                yield f"{told}: explained otherwise than {words!r}"


def test_findings_moves_and_predictions_of_real_kernels_agree(fixtures: Path) -> None:
    """For the published figures: no type is advised that `predict --from` calls not worth it."""
    paths = sorted((fixtures / "published").glob("*.ncu-rep"))
    assert len(paths) > 20
    assert [wrong for path in paths for wrong in disagreements(path)] == []


@pytest.mark.corpus
def test_products_of_the_outcomes_agree(corpus: Path) -> None:
    """Includes fp32 products on GeForce boards, whose TF32 is no faster and whose fp16 is twice as fast."""
    folder = corpus.parent / "outcomes" / "reports"
    if not folder.is_dir():
        pytest.skip(f"no reports at {folder}")
    paths = sorted(path for path in folder.rglob("*gemm*.ncu-rep"))
    assert paths
    assert [wrong for path in paths for wrong in disagreements(path)] == []


@pytest.mark.parametrize(
    ("gpu", "types"),
    [
        ("NVIDIA A100-SXM4-80GB", {"tf32", "bf16", "fp16"}),
        ("NVIDIA GeForce RTX 3090", {"bf16", "fp16"}),
        ("NVIDIA GeForce RTX 4090", {"bf16", "fp16"}),
        ("Tesla T4", {"fp16"}),
        ("Tesla P100-PCIE-16GB", set()),
        ("NVIDIA of no known name", set()),
    ],
)
def test_tf32_counts_only_where_its_roof_is_over_that_of_fp32(gpu: str, types: set[str]) -> None:
    """On GeForce 30 and 40 both are equal; a P100 has no tensor cores."""
    facts = make_facts({"sm_clock_hz": 1.4e9}, kernel={"gpu": gpu})
    assert set(roofs_over_fp32(facts)) == types


@pytest.mark.parametrize(
    ("pipe", "dtype", "product", "runs_on"),
    [
        ("fp32", "fp16", True, "tensor_fp16"),
        ("fp32", "fp16", False, "fp32"),
        ("fp64", "fp32", True, "fp32"),
        ("fp64", "tf32", False, "fp32"),
        ("tensor_bf16", "fp8", False, "tensor_fp8"),
    ],
)
def test_products_go_to_tensor_cores_and_other_arithmetic_stays(
    pipe: str, dtype: str, *, product: bool, runs_on: str
) -> None:
    """CUDA cores compute narrow types in fp32."""
    assert pipe_in_type(pipe, dtype, product=product) == runs_on


@pytest.mark.parametrize(
    ("opcodes", "product"),
    [
        ({"FFMA": 90, "FADD": 10}, True),
        ({"FFMA": 70, "FADD": 30}, False),
        ({"FFMA": 90, "MUFU.EX2": 5}, False),
        ({}, False),
    ],
)
def test_a_product_is_multiply_adds_and_little_else(opcodes: dict[str, int], *, product: bool) -> None:
    """Separate additions and special functions belong to other work; without counts nothing is assumed."""
    kernel = make_kernel(thread_opcodes=opcodes)
    assert is_product_on_cuda_cores(kernel, PIPES, default_thresholds()) is product
