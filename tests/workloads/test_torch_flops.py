"""The FLOP formulas against PyTorch's own counter, where both use the same convention."""

from __future__ import annotations

import pytest
from support.loops import for_all

from rooflens.workloads import torch_harness
from rooflens.workloads.registry import find_workload

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402 - only where torch is
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count  # noqa: E402

from rooflens.workloads import torch_measure  # noqa: E402 - it imports torch

SAME = [
    *(("gemm", case.name) for case in find_workload("gemm").cases),
    ("gemv", "bf16_16384"),
    ("attention", "fused"),
    ("attention", "naive"),
    ("attention", "naive_causal"),
    ("decode_attention", "batch_16"),
    ("decode_attention", "batch_1"),
    ("mlp", "batch_1"),
    ("mlp", "batch_32"),
    ("mlp", "batch_512"),
    ("transformer_block", "forward"),
    ("conv2d", "full_3x3"),
    ("conv2d", "pointwise"),
    ("conv2d", "depthwise_3x3"),
    ("paged_decode", "gathered"),
    ("paged_decode", "in_place"),
    ("moe", "tokens_32"),
    ("moe", "tokens_4096"),
    ("training_step", "eager"),
    ("training_step", "graph"),
]
UNCOUNTED = [
    ("elementwise", "relu"),
    ("elementwise", "gelu"),
    ("elementwise", "cos_cos"),
    ("bias_dropout", "separate"),
    ("layernorm", "bf16_4096"),
    ("rmsnorm", "bf16_4096"),
    ("softmax", "bf16_4096"),
    ("dot", "bf16"),
]


def _formula_and_count(name: str, case_name: str, device: str = "meta") -> tuple[float, int]:
    """Evaluate a case's formula and count its run: full sizes on `meta` without data, toy sizes on `cpu`.

    The counter does not know fused attention on these devices, so attention runs as separate products.
    """
    workload = find_workload(name)
    case = workload.case(case_name)
    parameters = case.toy if device == "cpu" else case.parameters
    program = torch_harness.load_program(workload)
    state = program.prepare(parameters, torch_measure.DTYPES[case.dtype].torch, torch.device(device))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        program.run(*state)
    formula = case.flop_count(parameters)
    assert formula is not None
    return formula, counter.get_total_flops()


@for_all("device", ["meta", "cpu"])
@for_all("workload, case", SAME)
def test_products_are_counted_as_pytorch_counts_them(workload: str, case: str, device: str) -> None:
    """For matrix products the formula equals PyTorch's count exactly, with full and toy sizes."""
    formula, counted = _formula_and_count(workload, case, device)
    assert formula == counted


@pytest.mark.parametrize(("workload", "case"), UNCOUNTED)
def test_pytorch_counts_nothing_but_products(workload: str, case: str) -> None:
    """PyTorch counts nothing for the operations for which the documentation says so."""
    formula, counted = _formula_and_count(workload, case)
    assert counted == 0
    assert formula > 0


def test_pytorch_counts_masked_products_too() -> None:
    """With a causal mask PyTorch counts the whole square; the fused case's formula counts only the unmasked part."""
    formula, counted = _formula_and_count("attention", "fused_causal")
    length = find_workload("attention").case("fused_causal").parameters["length"]
    assert formula / counted == (length + 1) / (2 * length)


def test_backward_differs_by_the_scores_that_the_fused_kernel_computes_again() -> None:
    """Backward attention has four products unfused; fused, PyTorch and the formula count a fifth."""
    formula, counted = _formula_and_count("transformer_block", "forward_backward")
    sizes = find_workload("transformer_block").case("forward_backward").parameters
    shape = (sizes["batch"], sizes["heads"], sizes["length"], sizes["width"] // sizes["heads"])
    unfused = 8 * sizes["batch"] * sizes["length"] ** 2 * sizes["width"]
    assert formula == counted - unfused + sdpa_backward_flop_count(shape, shape, shape, shape)
