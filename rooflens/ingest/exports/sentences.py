"""The measurements that NVIDIA's rules state in sentences, under the names of their metrics.

Text and details pages have numbers in sentences that are in none of their tables. Each becomes the metric that a report
would store, so that counters and findings work alike for all of them. If a table has the metric too, its value is used:
it has more digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import NamedTuple, TypeAlias

Numbers: TypeAlias = Mapping[str, float]

_LONGEST_SENTENCE = 4_000
_N = r"(?:\d{1,3}(?:,\d{3}){1,6}(?:\.\d{1,9})?|\d[\d.]{0,24})"
"""A number; ncu groups the digits of counts from about 2025.3 on: `8,644,608 excessive sectors`."""
_MOST = 1e18
"""No count in a rule exceeds this."""

_ELAPSED, _ACTIVE = "pct_of_peak_sustained_elapsed", "pct_of_peak_sustained_active"
_SCHEDULERS = 4


class Sentence(NamedTuple):
    """One form of a sentence.

    Attributes:
        words: Its pattern. Groups named by one letter capture words that choose the metric; the others capture numbers.
        metrics: Metric, with `{letter}` for the captured words -> function from the sentence's numbers to its value.
        seen: First and last version of ncu whose reports were seen to print it; others may print it too.
    """

    rule: str
    words: re.Pattern[str]
    metrics: Mapping[str, Callable[[Numbers], float]]
    seen: str


def _is(group: str, scale: float = 1.0) -> Callable[[Numbers], float]:
    return lambda said: said[group] * scale


def _sentence(rule: str, words: str, seen: str, **metrics: Callable[[Numbers], float]) -> Sentence:
    return Sentence(rule, re.compile(words.replace("<N>", _N)), metrics, seen)


_WORDS: Mapping[str, str] = {
    "load": "ld",
    "store": "st",
    "ALU": "pipe_alu_cycles_active",
    "FMA": "pipe_fma_cycles_active",
    "FP64": "pipe_fp64_cycles_active",
    "Shared": "pipe_shared_cycles_active",
    "Tensor": "pipe_tensor_cycles_active",
    "Tensor (FP)": "pipe_tensor_op_hmma_cycles_active",
    "FP16": "inst_executed_pipe_fp16",
}
"""Word of a sentence -> the part of a metric's name that it stands for."""

_BY_INSTRUCTIONS: Mapping[str, str] = {
    **{name.upper(): f"inst_executed_pipe_{name}" for name in ("adu", "alu", "cbu", "fma", "fp16", "lsu", "tex", "xu")},
    "FP64": "inst_executed_pipe_fp64",
    "Uniform": "inst_executed_pipe_uniform",
    "TMEM (Tensor Memory)": "inst_executed_pipe_tmem",
    "Tensor (FP)": "inst_executed_pipe_tensor_op_hmma",
    "Tensor (INT)": "inst_executed_pipe_tensor_op_imma",
    "Tensor (DP)": "inst_executed_pipe_tensor_op_dmma",
}
"""The same for pipes, by the instructions that they execute."""

_STALLS: tuple[tuple[str, str], ...] = (
    ("barrier", "for sibling warps at a CTA barrier"),
    ("branch_resolving", "for a branch target to be computed"),
    ("dispatch_stall", "on a dispatch stall"),
    ("drain", "(?:waiting )?(?:after|for) (?:an )?EXIT|after EXIT"),
    ("gmma", "on a? ?WARPGROUP|for a? ?GMMA"),
    ("imc_miss", r"for an immediate constant cache \(IMC\) miss"),
    ("lg_throttle", r"for the (?:L1 instruction queue for local and global \(LG\)|local/global instruction queue)"),
    ("long_scoreboard", "for a scoreboard dependency on an? L1TEX"),
    ("math_pipe_throttle", "for (?:a math execution pipeline|the execution pipe) to be available"),
    ("membar", "on a memory barrier"),
    ("mio_throttle", r"for the MIO (?:\(memory input/output\) )?instruction queue"),
    ("misc", "for a miscellaneous"),
    ("no_instruction", "to be selected to fetch an instruction"),
    ("not_selected", "for the micro scheduler to select"),
    ("short_scoreboard", r"for a scoreboard dependency on an? MIO"),
    ("sleeping", "due to all threads in the warp being in the blocked"),
    ("tex_throttle", "for the L1 instruction queue for texture"),
    ("wait", "on a fixed latency execution dependency"),
)
"""Stall reason -> the words that follow the number of cycles."""

_OF_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_{}_op_{}.ratio"
_LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
_PIPE = r"(?P<p>\w[\w ()]{0,20}?) is the highest-utilized pipeline \((?P<pct><N>)%\)"
_BY_COUNT = (
    r"number of executed instructions, the highest utilized pipeline \((?P<pct><N>)%\) is (?P<i>\w[\w ()]{0,20}?)\."
)


def _stalls() -> Iterator[Sentence]:
    for reason, words in _STALLS:
        yield _sentence(
            "CPIStall",
            rf"spends (?P<cycles><N>) cycles being stalled (?:waiting )?(?:{words}).{{0,2000}}?about <N>% of the total "
            r"average of (?P<all><N>) cycles between issuing",
            "2020.3 to 2025.1",
            **{
                f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio": _is("cycles"),
                _LATENCY: _is("all"),
            },
        )


SENTENCES: tuple[Sentence, ...] = (
    _sentence(
        "SharedMemoryConflicts",
        r"bank conflict across all (?P<requests><N>) shared (?P<o>load|store) requests.{0,20}results in "
        r"(?P<conflicts><N>) bank conflicts,\s+which represent <N>% of the overall (?P<all><N>) wavefronts",
        "2023.2 to 2024.1",
        **{
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{o}.sum": _is("conflicts"),
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{o}.sum": _is("all"),
        },
    ),
    _sentence(
        "UncoalescedSharedAccess",
        r"(?P<excess><N>) excessive wavefronts \(<N>% of the total (?P<all><N>) wavefronts\)",
        "2022.2 to 2024.1",
        memory_l1_wavefronts_shared=_is("all"),
        memory_l1_wavefronts_shared_ideal=lambda said: said["all"] - said["excess"],
    ),
    _sentence(
        "UncoalescedGlobalAccess",
        r"(?P<excess><N>) excessive sectors \(<N>% of the total (?P<all><N>) sectors\)",
        "2022.1 to 2025.4",
        memory_l2_theoretical_sectors_global=_is("all"),
        memory_l2_theoretical_sectors_global_ideal=lambda said: said["all"] - said["excess"],
    ),
    *(
        _sentence(
            "MemoryCacheAccessPattern",
            rf"access pattern for {space} (?P<o>load|store)s (?:from|to) L(?:1|1TEX|2) might not be optimal\. On "
            r"average,? only (?P<bytes><N>) of the 32 bytes transmitted per sector",
            "2024.1 to 2025.4",
            **{_OF_SECTOR.format(space, "{o}"): _is("bytes")},
        )
        for space in ("global", "local")
    ),
    _sentence(
        "MemoryCacheAccessPattern",
        r"access pattern for global (?P<o>load|store)s in L1TEX might not be optimal.{0,250}results in "
        "(?P<sectors><N>) sectors per request",
        "2022.1 to 2023.2",
        **{"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{o}.ratio": _is("sectors")},
    ),
    *_stalls(),
    _sentence(
        "HighPipeUtilization",
        rf"{_PIPE} based on active cycles",
        "2022.4 to 2025.1",
        **{f"sm__{{p}}.avg.{_ACTIVE}": _is("pct")},
    ),
    _sentence(
        "HighPipeUtilization",
        rf"{_PIPE} based on elapsed cycles",
        "2025.4",
        **{f"sm__{{p}}.avg.{_ELAPSED}": _is("pct")},
    ),
    _sentence(
        "HighPipeUtilization",
        _PIPE.replace("?P<p>", "?P<i>") + r"\. ",
        "2022.2",
        **{f"sm__{{i}}.avg.{_ACTIVE}": _is("pct")},
    ),
    _sentence("HighPipeUtilization", _BY_COUNT, "2023.2 to 2025.1", **{f"sm__{{i}}.avg.{_ACTIVE}": _is("pct")}),
    _sentence(
        "ThreadDivergence",
        r"average of (?P<threads><N>) threads being active per cycle",
        "2020.3 to 2024.3",
        **{"smsp__thread_inst_executed_per_inst_executed.ratio": _is("threads")},
    ),
    _sentence(
        "ThreadDivergence",
        r"further reduced to (?P<threads><N>) threads per warp due to predication",
        "2020.3 to 2024.3",
        **{"smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": _is("threads")},
    ),
    _sentence(
        "LaunchConfiguration",
        r"configured to execute only (?P<blocks><N>) blocks?, which is less than the (?:GPU's )?(?P<sms><N>) multiproc",
        "2021.2 to 2025.4",
        launch__grid_size=_is("blocks"),
        launch__sm_count=_is("sms"),
    ),
    _sentence(
        "SOLBottleneck",
        r"resulting in only (?P<waves><N>) full waves across all SMs",
        "2021.2 to 2025.2",
        launch__waves_per_multiprocessor=_is("waves"),
    ),
    _sentence(
        "IssueSlotUtilization",
        r"each scheduler only issues an instruction every (?P<cycles><N>) cycles",
        "2020.3 to 2025.4",
        **{"smsp__issue_active.avg.per_cycle_active": lambda said: 1 / said["cycles"]},
    ),
    _sentence(
        "IssueSlotUtilization",
        r"Out of the maximum of (?P<most><N>) warps per scheduler, this \w+ allocates an average of (?P<active><N>) "
        r"active warps per scheduler, but only an average of (?P<ready><N>) warps were eligible",
        "2020.3 to 2025.4",
        **{
            "device__attribute_max_warps_per_multiprocessor": _is("most", _SCHEDULERS),
            "smsp__warps_active.avg.per_cycle_active": _is("active"),
            "smsp__warps_eligible.avg.per_cycle_active": _is("ready"),
        },
    ),
    _sentence(
        "AchievedOccupancy",
        r"theoretical \((?P<allowed><N>)%\) and measured achieved occupancy \((?P<achieved><N>)%\)",
        "2021.2 to 2025.2",
        sm__maximum_warps_per_active_cycle_pct=_is("allowed"),
        **{f"sm__warps_active.avg.{_ACTIVE}": _is("achieved")},
    ),
)
"""Every form of sentence with a measurement; if two state the same metric, the first counts."""


def metrics_of(sentence: Sentence) -> Iterator[str]:
    """Yield the metrics that a sentence may state, over all words that choose a metric."""
    chosen = {"o": ("ld", "st"), "p": sorted({*_WORDS.values()} - {"ld", "st"}), "i": sorted(_BY_INSTRUCTIONS.values())}
    for metric in sentence.metrics:
        letter = next((letter for letter in chosen if f"{{{letter}}}" in metric), "")
        yield from (metric.replace(f"{{{letter}}}", word) for word in chosen.get(letter, ("",)))


_TITLES: tuple[tuple[str, str], ...] = (
    *(
        (f"cycles being stalled (?:waiting )?(?:{words})", f"{reason.replace('_', ' ').title()} Stalls")
        for reason, words in _STALLS
    ),
    (r"configured to execute only|If you execute __syncthreads\(\)", "Small Grid"),
    (r"A wave of thread blocks is", "Tail Effect"),
    (r"Threads are executed in groups of", "Block Size"),
    (r"access pattern for global loads", "L1TEX Global Load Access Pattern"),
    (r"access pattern for global stores", "L1TEX Global Store Access Pattern"),
    (r"access pattern for local loads", "L1TEX Local Load Access Pattern"),
    (r"access pattern for local stores", "L1TEX Local Store Access Pattern"),
    (r"access pattern for loads from L1TEX to L2", "L2 Load Access Pattern"),
    (r"access pattern for stores from L1TEX to L2", "L2 Store Access Pattern"),
    (r"access pattern for shared loads", "Shared Load Bank Conflicts"),
    (r"access pattern for shared stores", "Shared Store Bank Conflicts"),
    (r"One or more SMs have a much", "SMs Workload Imbalance"),
    (r"One or more SMSPs have a much", "SMSPs Workload Imbalance"),
    (r"One or more L1 Slices have a much", "L1 Slices Workload Imbalance"),
    (r"One or more L2 Slices have a much", "L2 Slices Workload Imbalance"),
    (r"One or more DRAM Slices have a much", "DRAM Slices Workload Imbalance"),
    (r"of its fp64 peak performance", "FP64/32 Utilization"),
    (r"non-fused FP64 instructions", "FP64 Non-Fused Instructions"),
    (r"non-fused FP32 instructions", "FP32 Non-Fused Instructions"),
)
"""Words of a rule's message -> the title of its result, which reports have, but not text and details pages."""


def is_stating(message: str) -> bool:
    """Return whether a text is in the words of a rule that states a measurement, with its numbers."""
    return any(sentence.words.search(message[:_LONGEST_SENTENCE]) for sentence in SENTENCES)


def title_of(message: str) -> str:
    """Return the title of a rule's result from its message; empty if unknown."""
    return next((title for words, title in _TITLES if re.search(words, message[:_LONGEST_SENTENCE])), "")


def metrics_of_messages(messages: Iterable[str]) -> dict[str, float]:
    """Return the metrics that the messages of a launch's rules state."""
    found: dict[str, float] = {}
    for message in messages:
        for sentence in SENTENCES:
            match = sentence.words.search(message[:_LONGEST_SENTENCE])
            for metric, value in _values(sentence, match) if match else ():
                found.setdefault(metric, value)
    return found


def _values(sentence: Sentence, match: re.Match[str]) -> Iterator[tuple[str, float]]:
    """Yield the metrics of one sentence; nothing if a number of it is not a number, or its pipe is unknown."""
    try:
        said = {name: float(text.replace(",", "")) for name, text in match.groupdict().items() if len(name) > 1}
        words = {name: _word(name, text) for name, text in match.groupdict().items() if len(name) == 1}
        values = [(metric.format(**words), value_of(said)) for metric, value_of in sentence.metrics.items()]
    except (ValueError, KeyError, ZeroDivisionError):
        return
    yield from ((name, value) for name, value in values if isfinite(value) and 0 < value <= _MOST)


def _word(group: str, text: str) -> str:
    return _BY_INSTRUCTIONS[text] if group == "i" else _WORDS[text]
