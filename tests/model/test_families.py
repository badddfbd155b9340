"""Families of kernels: the page of each is there, and names lead to it."""

from __future__ import annotations

from pathlib import Path

from rooflens.model.knowledge.families import WORDS, family_page

PAGES = Path(__file__).parents[2] / "docs" / "kernels"
NAMES = {
    "ampere_sgemm_128x64_nn": "gemm",
    "naiveMatMul": "gemm",
    "gemv2T_kernel_val": "gemv",
    "flash_fwd_splitkv_kernel": "attention-decode",
    "flash_fwd_kernel": "attention-prefill",
    "DeviceRadixSortHistogramKernel": "sort",
    "cunn_SoftMaxForward": "softmax",
    "vectorized_layer_norm_kernel": "normalisation",
    "distribution_elementwise_grid_stride_kernel": "random",
    "vectorized_elementwise_kernel": "elementwise",
    "matrixTranspose": "copy-transpose",
    "compute_tendencies_x_279_gpu": None,
    "kernel_A": None,
    "Kernel2": None,
}


def test_names_lead_to_pages() -> None:
    """A name in snake or camel case leads to the page of its family, and a name that tells none to no page."""
    found = {name: family_page(name) for name in NAMES}
    assert found == {name: page and f"docs/kernels/{page}.md" for name, page in NAMES.items()}


def test_every_family_has_its_page() -> None:
    """The documentation has a page for each family that a card can name."""
    assert [page for page in WORDS if not (PAGES / f"{page}.md").is_file()] == []
