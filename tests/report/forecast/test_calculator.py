"""The calculator in a browser: its numbers are those of the command line, wherever its controls stand."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from browsing import faults
from click.testing import CliRunner
from forecasting import SQUARE, row
from support.thorough import mostly_thorough

from rooflens.cli.group import main
from rooflens.report.forecast.page import render_forecasts
from rooflens.report.forecast.sentences import answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

TEXTS = {"regime"}


def command(operation: str, **options: Any) -> dict[str, Any]:
    """Ask the command line for the same forecast."""
    given = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    done = CliRunner().invoke(main, ["predict", operation, *given, "--format", "json"])
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.output))


def shown(page: Page, of: str = "first") -> dict[str, Any]:
    """Read the values that the page shows of one GPU."""
    pairs = page.locator(f"#calculator [data-key][data-of='{of}']").evaluate_all(
        "cells => cells.map(cell => [cell.dataset.key, cell.dataset.value])"
    )
    return {key: value if key in TEXTS else float(value) if value else None for key, value in pairs}


def assert_same(page: Page, wanted: dict[str, Any], of: str = "first", least: int = 8) -> None:
    """Hold every value on the page to the command's, to the twelfth digit."""
    found = shown(page, of)
    assert len(found) >= least
    for key, value in found.items():
        assert value == (wanted[key] if key in TEXTS else pytest.approx(wanted[key], rel=1e-12)), key


def choose(page: Page, **choices: Any) -> None:
    """Set controls as a reader does: selects, and the fields of sizes."""
    for name, value in choices.items():
        control = page.locator(f"#calculator select[name={name}], #calculator input[type=number][name={name}]")
        if control.evaluate("control => control.tagName") == "SELECT":
            control.select_option(str(value))
        else:
            control.fill(str(value))


def fragment(page: Page) -> str:
    """Read the address once it is written."""
    page.wait_for_timeout(200)
    return str(page.evaluate("location.hash"))


def dot(page: Page) -> tuple[float, float]:
    """Find the middle of the dot in the plane."""
    x, y = page.locator("#calculator svg .dot.first").evaluate(
        "dot => [dot.getBBox()].flatMap(box => [box.x + box.width / 2, box.y + box.height / 2])"
    )
    return x, y


@pytest.fixture
def opened(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., Page]:
    """Open the page of a square product on an H100, with a fragment in its address."""

    def open_(fragment: str = "", **options: Any) -> Page:
        file = tmp_path / "predict.html"
        one = row("gemm", m="4096", n="4096", k="4096")
        file.write_text(render_forecasts([one]), encoding="utf-8")
        return open_file(file, fragment, **{"viewport": {"width": 1440, "height": 900}, **options})

    return open_


def test_every_value_is_that_of_the_command(opened: Callable[..., Page]) -> None:
    """Operations, GPUs, types, links and sizes chosen on the page; simple and composite, one GPU and several."""
    page = opened()
    assert_same(page, command("gemm", m=4096, n=4096, k=4096))
    choose(page, m=887, gpu="b200", dtype="fp8")
    assert_same(page, command("gemm", m=887, n=887, k=887, gpu="b200", dtype="fp8"))
    assert page.locator("h1").inner_text() == "gemm, fp8: m = n = k = 887"
    choose(page, out_dtype="fp32")
    assert_same(page, command("gemm", m=887, n=887, k=887, gpu="b200", dtype="fp8", out_dtype="fp32"))
    choose(page, out_dtype="")
    assert "asked for: gemm, bf16: m = n = k = 4,096" in page.locator("#as-asked").inner_text()
    page.get_by_label("Move m, n and k together").uncheck()
    choose(page, k=100_003, tile=64, gpu="v100-sxm2", dtype="fp16")
    assert_same(page, command("gemm", m=887, n=887, k=100_003, tile=64, gpu="v100-sxm2", dtype="fp16"))
    page.get_by_label("Move m, n and k together").check()
    assert page.locator("#size-k").input_value() == "887"
    page.get_by_label("Move m, n and k together").uncheck()
    choose(page, k=100_003, tensor_parallel=8, link="pcie", measured="0.5")
    sizes = {"m": 887, "n": 887, "k": 100_003, "tile": 64, "tensor_parallel": 8}
    assert_same(page, command("gemm", **sizes, gpu="v100-sxm2", dtype="fp16", link="pcie", measured_ms=0.5), least=14)
    choose(page, op="attention-flash", gpu="a100-sxm4-80gb", dtype="bf16", length=3001)
    page.locator("input[type=checkbox][name=causal]").check()
    assert_same(page, command("attention-flash", length=3001, causal=1, gpu="a100-sxm4-80gb"))
    choose(page, op="conv2d", stride=2, kernel=7, image_width=223)
    conv = {"batch": 32, "in_channels": 64, "out_channels": 64, "height": 56, "image_width": 223}
    assert_same(page, command("conv2d", **conv, stride=2, kernel=7, gpu="a100-sxm4-80gb"))


def test_parts_and_links_are_those_of_the_command(opened: Callable[..., Page]) -> None:
    """A whole model over eight GPUs shows each of its parts; a collective has no place in the roofline."""
    page = opened("#op=decode&tensor_parallel=8&length=8192&vs=b200")
    wanted = command("decode", batch=16, length=8192, tensor_parallel=8)
    assert_same(page, wanted, least=10)
    assert_same(page, command("decode", batch=16, length=8192, tensor_parallel=8, gpu="b200"), "second", least=10)
    for part in wanted["parts"]:
        assert_same(page, part, part["part"], least=2)
    choose(page, vs="", op="all-reduce", bytes=123_456_789)
    assert_same(page, command("all-reduce", bytes=123_456_789), least=7)
    assert page.locator("#calculator svg.live").is_hidden()
    assert "Communication-bound" in page.locator("#answer").inner_text()


def test_sentences_are_those_of_the_page_without_scripts(opened: Callable[..., Page]) -> None:
    """Each kind of answer has the same words in the calculator and in the model's page, also without any bytes."""
    square = {"m": "4096", "n": "4096", "k": "4096"}
    cases = {
        "": row("gemm", **square),
        "measured=1.5": row("gemm", measured_s=1.5e-3, **square),
        "measured=0.3": row("gemm", measured_s=0.3e-3, **square),
        "measured=0.18": row("gemm", measured_s=0.18e-3, **square),
        "measured=0.1": row("gemm", measured_s=0.1e-3, **square),
        "op=embedding&tokens=1000000&measured=10": row("embedding", measured_s=10e-3, tokens="1000000"),
        "op=softmax&rows=65536": row("softmax", rows="65536", width="4096"),
        "op=decode&batch=1&length=64&tensor_parallel=8": row("decode", batch="1", length="64", tensor_parallel="8"),
        "m=128&n=128&k=128": row("gemm", m="128", n="128", k="128"),
        "tensor_parallel=8": row("gemm", tensor_parallel="8", **square),
        "op=all-reduce&bytes=1000000": row("all-reduce", bytes="1000000"),
        "op=decode&batch=16&length=8192": row("decode", batch="16", length="8192"),
        "l2_tile=128": row("gemm", l2_tile="128", **square),
        "op=attention-flash&length=8192&width=32": row("attention-flash", length="8192", width="32"),
        "op=quantized-gemm&m=128&l2_tile=1&gpu=rtx-4090": row(
            "quantized-gemm", gpu="rtx-4090", m="128", n="4096", k="4096", l2_tile="1"
        ),
        "op=elementwise&n=1000&flops=0": row("elementwise", n="1000", flops="0"),
        "op=elementwise&n=1000&reads=0&writes=0": row("elementwise", n="1000", reads="0", writes="0"),
    }
    page = opened()
    for address, wanted in cases.items():
        page.evaluate("address => { location.hash = address; dispatchEvent(new Event('hashchange')) }", address)
        assert page.locator("#answer").inner_text().replace("\u00a0", " ") == answer(wanted), address


def test_sliders_move_the_dot_and_the_address(opened: Callable[..., Page]) -> None:
    """With keys alone: the dot goes left and down its roof, the view can be shared, and Reset brings it back."""
    page = opened()
    before = dot(page)
    slider = page.get_by_role("slider", name="n, slider")
    slider.focus()
    for _ in range(24):
        page.keyboard.press("ArrowLeft")
    after = dot(page)
    assert after[0] < before[0]
    assert after[1] > before[1]
    assert page.locator("#size-m").input_value() == page.locator("#size-n").input_value() == "512"
    assert slider.get_attribute("aria-valuetext") == "512"
    assert_same(page, command("gemm", m=512, n=512, k=512))
    address = fragment(page)
    assert set(address.removeprefix("#").split("&")) == {"m=512", "n=512", "k=512"}
    page.get_by_role("button", name="Reset").click()
    assert dot(page) == pytest.approx(before, abs=0.5)
    assert fragment(page) == ""
    assert page.locator("#as-asked").is_hidden()
    page.evaluate("address => { location.hash = address }", address)
    page.wait_for_timeout(50)
    assert_same(page, command("gemm", m=512, n=512, k=512))


def test_what_cannot_be_is_refused_in_words(opened: Callable[..., Page]) -> None:
    """A size of no sense, sizes that do not fit, a type that the GPU lacks: a message, and numbers stay."""
    page = opened("#op=prefill")
    before = shown(page)
    refusal = page.get_by_role("alert")
    page.locator("#size-layers").fill("0")
    assert refusal.inner_text().startswith("layers must be a whole number from 1")
    assert page.locator("#size-layers").get_attribute("aria-invalid") == "true"
    page.locator("#size-layers").blur()
    assert page.locator("#size-layers").input_value() == "32"
    page.locator("#size-heads").fill("33")
    assert refusal.inner_text() == "hidden must be a multiple of heads: 4,096 is none of 33."
    assert shown(page) == before
    page.locator("#size-heads").fill("32")
    assert refusal.is_hidden()
    choose(page, op="gemm", gpu="t4")
    assert refusal.inner_text() == "Tesla T4 has no published peak for bf16."
    choose(page, dtype="fp16", vs="p100-pcie")
    assert refusal.is_hidden()
    choose(page, dtype="int8")
    assert refusal.inner_text() == "Tesla P100-PCIE-16GB has no published peak for int8."
    assert_same(page, command("gemm", m=4096, n=4096, k=4096, gpu="t4", dtype="int8"))
    assert page.locator("select[name=dtype] option:disabled").all_inner_texts() == ["tf32", "bf16", "fp8", "fp4"]


@pytest.mark.parametrize(("width", "scheme"), mostly_thorough([(1440, "light"), (390, "dark")], kept=[(390, "dark")]))
def test_it_can_be_used_by_everybody(opened: Callable[..., Page], axe: str, width: int, scheme: str) -> None:
    """No fault that axe calls serious, nothing wider than the window at the extremes, and sliders take a finger."""
    page = opened("#vs=b200", viewport={"width": width, "height": 844}, color_scheme=scheme, has_touch=True)
    assert faults(page, axe) == []
    slider = page.get_by_role("slider", name="m, slider")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box
    for part, most in ((0.995, 1 << 18), (0.005, 1)):
        page.touchscreen.tap(box["x"] + part * box["width"], box["y"] + box["height"] / 2)
        assert page.locator("#size-k").input_value() == str(most)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if width == 390:
        # The plane stays in sight above the sliders.
        top = page.locator("#calculator svg.live").bounding_box()
        assert top
        assert 0 <= top["y"] < 100


def test_paper_shows_the_result_without_its_controls(opened: Callable[..., Page]) -> None:
    """Print: the sizes stand in the picture, the fields are gone."""
    page = opened("#m=1024&n=1024&k=1024")
    page.emulate_media(media="print")
    assert page.locator("#calculator form").is_hidden()
    assert page.locator("#calculator svg.live").is_visible()
    assert "m = n = k = 1,024" in page.locator("#calculator svg.live").text_content()
    assert page.locator("#times").is_visible()


def test_the_picture_can_be_saved(opened: Callable[..., Page]) -> None:
    """SVG and PNG, with the page's colours written into them."""
    page = opened()
    for kind in ("SVG", "PNG"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=f"Save the roofline as {kind}").click()
        assert waiting.value.suggested_filename == f"rooflens-gemm.{kind.lower()}"
        content = waiting.value.path().read_bytes()
        assert content.startswith(b"<svg" if kind == "SVG" else b"\x89PNG")
        assert kind == "PNG" or re.search(rb"stroke: ?rgb", content)


def test_a_sweep_keeps_its_planes_and_starts_at_its_last_size(open_file: Callable[..., Page], tmp_path: Path) -> None:
    """What was asked for stands first, and the calculator goes on from it."""
    file = tmp_path / "predict.html"
    file.write_text(render_forecasts([row("gemm", **SQUARE)]), encoding="utf-8")
    page = open_file(file)
    assert page.locator(".planes .chart svg").count() == 1
    assert page.locator("#size-n").input_value() == "8192"
    assert_same(page, command("gemm", m=8192, n=8192, k=8192))
