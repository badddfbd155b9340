"""Families of kernels: each has its page, and names lead to it."""

from __future__ import annotations

from pathlib import Path

from support import markdown

from rooflens.model.knowledge.families import COUNTER_TITLES, TITLES, WORDS, family_page, named_page

PAGES = Path(__file__).parents[2] / "docs" / "kernels"
NAMES = {
    "ampere_sgemm_128x64_nn": "gemm.md",
    "naiveMatMul": "gemm.md",
    "gemv2T_kernel_val": "gemm.md#few-rows",
    "flash_fwd_splitkv_kernel": "attention-decode.md",
    "flash_fwd_kernel": "attention-prefill.md",
    "DeviceRadixSortHistogramKernel": "sort.md",
    "cunn_SoftMaxForward": "reduction.md#softmax",
    "vectorized_layer_norm_kernel": "normalisation.md",
    "distribution_elementwise_grid_stride_kernel": None,
    "flash_bwd_dq_dk_dv_loop_kernel": None,
    "vectorized_elementwise_kernel": "elementwise.md",
    "matrixTranspose": "elementwise.md#copies-and-transposes",
    "compute_tendencies_x_279_gpu": None,
    "kernel_A": None,
    "Kernel2": None,
}


def test_names_lead_to_pages() -> None:
    """A name in snake or camel case leads to the page of its family; other names lead to no page."""
    found = {name: family_page(name) for name in NAMES}
    assert found == NAMES


def test_pages_are_named_by_their_titles() -> None:
    """With only the wheel installed, each page, of a family or of counters, is found by its title."""
    for folder, titles in ((PAGES, TITLES), (PAGES.parent / "reference/counters", COUNTER_TITLES)):
        found = {
            file.name: file.read_text("utf-8").partition("\n")[0].removeprefix("# ") for file in folder.glob("*.md")
        }
        for beside in ("index.md", "tensor-cores.md"):  # of no family
            found.pop(beside, None)
        assert found == titles
    assert named_page("gemm.md#few-rows", TITLES) == '"Matrix products: GEMM", few rows'


def test_every_family_has_its_page() -> None:
    """The documentation has the page and section of each family that a card can name."""
    for page, _, section in (name.partition("#") for name in WORDS if name):
        assert (PAGES / page).is_file(), page
        assert not section or section in markdown.anchors(PAGES / page), f"{page}#{section}"
