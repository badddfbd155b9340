"""First screens of reports of every kind in a browser: words, fold, overlaps, ghosts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.rendered import rendered

from rooflens.analyzing import Basis, analyze_inputs, read_timeline
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.data import to_document
from rooflens.report.roofline.choices import choices
from rooflens.report.roofline.ghost import ghost_rows
from rooflens.report.roofline.launches import plane

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playwright.sync_api import Page

    from rooflens.model.records import AnalyzedReport

pytestmark = pytest.mark.browser

MOST_WORDS = 50
FOLD_PX = 900
WIDTHS = (360, 390, 768, 1280)

OWN = {
    "one kernel": ["published/KernelBench__matmul_kernel.ncu-rep"],
    "several kernels": ["published/GPU_workshop__MW_Baseline.ncu-rep"],
    "versions": ["published/GPU_workshop__MW_Baseline.ncu-rep", "published/GPU_workshop__MW_DivToMult.ncu-rep"],
    "two GPUs": ["published/IndexSpaces.jl__profile.ncu-rep", "published/Hyper-Spec-M__profile.ncu-rep"],
    "154 launches": ["published/self-join-MiSTIC__profile.ncu-rep"],
    "tensor": ["published/cutlass__384.ncu-rep"],
    "a library": ["published/sglang__profile.ncu-rep"],
    "no cause": ["synthetic/verdict_unknown.synthetic.ncu-rep"],
    "a failed kernel": ["synthetic/failed_kernel.synthetic.ncu-rep"],
    "nothing to win": ["synthetic/verdict_overhead.synthetic.ncu-rep"],
}
CORPUS = {
    "one kernel": ["CudaCode__naive.ncu-rep"],
    "154 launches": ["self-join-MiSTIC__profile.ncu-rep"],
    "versions": ["cs599k__silu-2025-04-19-v1.ncu-rep", "cs599k__silu-2025-04-19-v3.ncu-rep"],
    "two GPUs": ["GPU-MMS__profile.ncu-rep", "llm.c__adamw_coalsecing_shared.ncu-rep"],
    "divisions": ["GPU_workshop__MW_Baseline.ncu-rep"],
    "after them": ["GPU_workshop__MW_DivToMult.ncu-rep"],
    "integer only": ["CudaProgramming__ncu_reduceInteger.csv"],
    "tensor": ["cutlass__384.ncu-rep"],
    "wmma": ["cuda-fused-linear-layer__profile_report_(1).ncu-rep"],
    "attention": ["blackwell-kernels__v5_swizzle_D64_N2048_causal.ncu-rep"],
    "Julia": ["IndexSpaces.jl__profile.ncu-rep"],
    "Triton": ["cs599k__rms_norm_triton_looping.ncu-rep"],
    "partial": ["accelsim-test__profile.ncu-rep"],
    "few counters": ["cudaCode__profile.ncu-rep"],
    "per cents alone": ["benchmark__decode_ncu.csv"],
    "details in CSV": ["accelsim-test__details.csv"],
    "long names in CSV": ["Roofline-Analysis__gqa_bf16_b128_ctx2k_p64.ncu.csv"],
    "failed main kernel": ["self-join-MiSTIC__profileHIGGS.out.ncu-rep"],
    "all failed": ["SpectraPBR__kernel_report.ncu-rep"],
    "old format": ["Twisty__profile.nsight-cuprof-report"],
    "a GEMM ladder": ["ESMM-Research__profile_output.ncu-rep"],
    "a library": ["sglang__profile.ncu-rep"],
    "text": ["../outcomes/texts/ncu_cublastc_8192.txt"],
    "eight versions": ["../outcomes/reports/LeRatonLaveurSolitaire__A5_TP_conway"],
    "a timeline": ["../outcomes/timelines/algo64.ncu-rep"],
}
"""Kinds of reports -> files, each page one of them: those of the repository, and of the published ones."""

BEFORE_MOVE = """() => {
  const headline = document.querySelector('h1');
  const move = document.querySelector('.ladder-of p, .move, .first-moves .state') || headline;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let words = 0;
  while (walker.nextNode()) {
    const { parentElement: home, textContent } = walker.currentNode;
    if (headline.contains(home)) break;
    const unseen = home.closest('.visually-hidden, .skip, .banner, option:not(:checked), script, style, noscript, svg');
    if (!unseen && home.checkVisibility()) words += textContent.split(/\\s+/).filter((word) => /\\w/.test(word)).length;
  }
  return [words, move.getBoundingClientRect().bottom + scrollY];
}"""

WIDER = """() => [...document.querySelectorAll('body *')].filter((one) => {
  const { right, width } = one.getBoundingClientRect();
  const isSeen = width && one.checkVisibility() && !one.closest('.scroll, svg, .visually-hidden, .skip, dialog');
  return isSeen && right > innerWidth + 1;
}).map((one) => `${one.tagName}.${one.className}: ${one.textContent.slice(0, 40)}`).slice(0, 3)
 .concat(document.scrollingElement.scrollWidth > innerWidth ? ["the page"] : [])"""

TIME = re.compile(r"\d (?:s|ms|\u00b5s|ns)\b")
SAID_OTHERWISE = (
    *("No kernels here", "no time in the report", "faster than", "no difference", "could not be profiled"),
    *("Only kernels that fill inputs", "Done: ", "At its roof: "),
)
"""Headlines of pages that have no kernel, or no time, to speak of, of finished kernels, and of versions."""

EXCLUDED = """() => {
  const CLASSES = ['memory', 'compute', 'latency', 'overhead', 'balanced', 'unknown'];
  const wordsOf = (element) => (element?.innerText || '').replaceAll('\\u00a0', ' ');
  const seen = wordsOf(document.querySelector('main'));
  const found = [];
  const rows = [...document.querySelectorAll('.ranking > li:not([hidden])')];
  for (const row of rows) {
    const why = wordsOf(row.querySelector('.why'));
    const isOpen = /-bound\\?/.test(why);
    const hasArrow = wordsOf(row.querySelector('.gain')).includes('\\u2192');
    if (isOpen && hasArrow) found.push(`an arrow beside an open class: ${why}`);
    if (row.querySelector('.members')) continue;
    const { k } = row.dataset;
    const said = why.includes('near two limits') ? 'balanced' : CLASSES.find((one) => why.includes(one));
    const verdict = wordsOf(document.querySelector(`#kernels-table tr[data-k="${k}"] .verdict`));
    const line = verdict.split('at roof')[0].trim();
    if (line && line !== said + (isOpen ? '?' : '')) found.push(`a class here and another there: ${why}, ${line}`);
    const cell = document.querySelector(`.map .cell[data-k="${k}"] i`);
    const drawn = cell && CLASSES.find((one) => cell.classList.contains(one));
    const isMixed = row.querySelectorAll('.meter i').length > 1;
    const isOther = drawn && !isMixed && line && drawn !== line.replace('?', '');
    if (isOther) found.push(`another class in the map: ${drawn}, ${line}`);
  }
  const shares = rows.map((row) => wordsOf(row.querySelector('.took')).match(/([\\d.]+) % of GPU time/)?.[1] || 0);
  if (shares.reduce((sum, one) => sum + Number(one), 0) > 101) found.push(`shares over 100 %: ${shares}`);
  for (const [words, share] of seen.matchAll(/[^\\n]*?\\b(\\d{3,}) % of GPU time/g)) {
    if (share !== '100') found.push(words);
  }
  for (const [words] of seen.matchAll(/[^\\n]*(?<![\\d.])0 % of GPU time/g)) found.push(words);
  for (const [words, from, to] of seen.matchAll(/gone: ([\\d.]+) to ([\\d.]+)/g)) {
    if (Number(to) > Number(from)) found.push(`gone beside a worse number: ${words}`);
  }
  const commands = (seen.match(/rooflens profile /g) || []).length;
  if (seen.includes('no longer profiles') && commands) found.push('a command that cannot run');
  if (commands > 1) found.push('more than one collecting command');
  for (const raw of ['<b>', '&lt;', 'undefined', 'NaN', 'N/A', '`']) if (seen.includes(raw)) found.push(`raw: ${raw}`);
  for (const one of document.querySelectorAll('h1, .first p, .first li, .who *')) {
    const isCut = one.checkVisibility() && one.clientWidth && one.scrollWidth > one.clientWidth + 1;
    if (isCut) found.push(`cut: ${wordsOf(one).slice(0, 60)}`);
  }
  return found;
}"""
"""What excludes other words of the screen, is raw or cut."""

TEXTS = """() => [...document.querySelectorAll('.first .chart')].filter((one) => one.checkVisibility()).map((one) =>
  [...one.querySelectorAll('svg text:not([stroke]):not([transform*=rotate])')]
    .filter((text) => text.textContent.trim() && getComputedStyle(text).opacity !== '0')
    .map((text) => [text.textContent, text.getBoundingClientRect()])
    .map(([words, { left, top, right, bottom }]) => [words, left, top, right, bottom]))"""


def read(paths: Sequence[Path]) -> list[AnalyzedReport]:
    """Analyze reports with the timelines beside them; exports without a GPU are assigned an A100."""
    options = ReadOptions(gpu="NVIDIA A100-SXM4-40GB") if "LearningNote" in str(paths[0]) else None
    beside = paths[0].with_suffix(".sqlite")
    basis = Basis(timeline=read_timeline(beside) if beside.exists() else None)
    inputs = find_inputs([str(path) for path in paths])
    return list(analyze_inputs(inputs, basis, reading=options).reports)


@pytest.fixture
def first_screen(open_file: Callable[..., Page], tmp_path: Path) -> Callable[[Sequence[Path]], Page]:
    """Open the page of some reports at 1440 x 900."""

    def open_(paths: Sequence[Path]) -> Page:
        file = tmp_path / "page.html"
        file.write_text(rendered(read(paths), paths[0].name.partition(".")[0]), encoding="utf-8")
        return open_file(file, viewport={"width": 1440, "height": FOLD_PX})

    return open_


@pytest.mark.parametrize("kind", OWN)
def test_a_first_screen_of_ours_reads_at_a_glance(first_screen: Callable[[Sequence[Path]], Page], kind: str) -> None:
    """The repository's own reports pass the same checks as others'."""
    folder = Path(__file__).parents[3] / "fixtures"
    hold(first_screen([folder / name for name in OWN[kind]]))


@pytest.mark.corpus
@pytest.mark.parametrize("kind", CORPUS)
def test_a_first_screen_reads_at_a_glance(
    first_screen: Callable[[Sequence[Path]], Page], corpus: Path, kind: str
) -> None:
    """At most 50 words precede the first move, which is above the fold; no text overlaps or leaves the screen."""
    hold(first_screen([corpus / name for name in CORPUS[kind]]))


def hold(page: Page) -> None:
    """Check the requirements for a first screen."""
    headline = page.locator("h1").inner_text().replace("\u00a0", " ")
    if not any(words in headline for words in SAID_OTHERWISE):
        assert TIME.search(headline), headline
        assert len(headline.partition(TIME.findall(headline)[0])[2].split()) >= 2, headline
    assert page.evaluate(EXCLUDED) == []
    words, bottom = page.evaluate(BEFORE_MOVE)
    assert words <= MOST_WORDS
    assert bottom <= FOLD_PX
    rows = page.locator(".ranking > li:not([hidden])")
    texts = [text.partition("\n")[2] for text in rows.all_inner_texts()]
    assert len(set(texts)) == len(texts)
    for own in page.evaluate(TEXTS):
        for i, one in enumerate(own):
            for other in own[i + 1 :]:
                assert not overlap(one, other), (one, other)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": FOLD_PX})
        page.evaluate("lens.settled()")
        assert page.evaluate(WIDER) == [], width


def overlap(one: list[Any], other: list[Any]) -> bool:
    """Return whether two texts overlap by more than the rim that browsers add to a line."""
    wide = min(one[3], other[3]) - max(one[1], other[1])
    high = min(one[4], other[4]) - max(one[2], other[2])
    return wide > 1 and high > 3


def test_choosing_a_move_moves_ghost_and_time(first_screen: Callable[[Sequence[Path]], Page]) -> None:
    """The arrow keys go from move to move, and the large time and the dashed ring follow."""
    name = "published/KernelBench__matmul_kernel.ncu-rep"
    page = first_screen([Path(__file__).parents[3] / "fixtures" / name])
    ghost = page.locator("svg .mark-symbol path[stroke-dasharray='4,3']")
    radios = page.locator("input[name=move]")
    assert radios.count() >= 1
    radios.first.focus()
    seen = set()
    for at in range(radios.count()):
        if at:
            page.keyboard.press("ArrowDown")
        page.evaluate("lens.settled()")
        assert radios.nth(at).is_checked()
        figure = radios.nth(at).get_attribute("data-said")
        assert page.locator("#gain").inner_text() == figure
        assert ghost.count() == 1
        seen.add((figure, ghost.get_attribute("transform")))
    assert len({place for _, place in seen}) == len({figure for figure, _ in seen})


@pytest.mark.corpus
def test_ghosts_agree_with_the_json(corpus: Path) -> None:
    """Every move with a gain has a ghost as much faster, or with as many fewer FLOPs, as the finding says."""
    checked = 0
    for path in sorted(corpus.glob("*.ncu-rep")):
        for report in read([path]):
            content = build_content([report], "", default_thresholds())
            kernels = {one["index"]: one for one in to_document(report.analyses)["kernels"]}
            for gpu in content.gpus:
                keys = {launch.key: launch for launch in content.timed}
                for row in ghost_rows(plane(content, gpu, dict.fromkeys(keys, 1)), ""):
                    launch = keys[row["k"]]
                    choice = choices(launch.analysis)[row["m"]]
                    gains = {f["id"]: f["gain"] for f in kernels[launch.analysis.kernel.index]["findings"]}
                    gain = gains[choice.finding]
                    # Fewer FLOPs from as many bytes: the dot goes left by what it wins.
                    saves_flop = row["x"] < row["x0"]
                    assert gain["changes"] == "instructions" or not saves_flop
                    won = row["x0"] / row["x"] if saves_flop else row["y"] / row["y0"]
                    assert won == pytest.approx(gain["factor"], rel=2e-3)
                    assert row["y"] == row["y0"] or not saves_flop
                    checked += 1
    assert checked > 20
