"""The GPU chips: families that count alike, their compute capability, and the tensor counters each has.

Standard library only: `collect` reads this on machines that have nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflens.errors import EnvironmentMissingError, UsageError

GV100 = frozenset({"gv100"})
TU10X = frozenset({"tu102", "tu104", "tu106"})
TU11X = frozenset({"tu116", "tu117"})
GA100 = frozenset({"ga100"})
GA10X = frozenset({"ga102", "ga103", "ga104", "ga106", "ga107"})
ORIN = frozenset({"ga10b"})
AD10X = frozenset({"ad102", "ad103", "ad104", "ad106", "ad107"})
GH100 = frozenset({"gh100"})
GB10X = frozenset({"gb100", "gb102"})
GB11X = frozenset({"gb110", "gb112"})
THOR = frozenset({"gb10b"})
GR100 = frozenset({"gr100"})
GB20X = frozenset({"gb202", "gb203", "gb205", "gb206", "gb207"})
SPARK = frozenset({"gb20b", "gb20c"})

FAMILIES: tuple[tuple[str, frozenset[str]], ...] = (
    ("7.0", GV100),
    ("7.5", TU10X),
    ("7.5", TU11X),
    ("8.0", GA100),
    ("8.6", GA10X),
    ("8.7", ORIN),
    ("8.9", AD10X),
    ("9.0", GH100),
    ("10.0", GB10X),
    ("10.1", THOR),
    ("10.3", GB11X),
    ("10.7", GR100),
    ("11.0", THOR),
    ("12.0", GB20X),
    ("12.1", SPARK),
)
"""Compute capability -> chips; all chips of a family have the same metrics. CUDA 12 calls Thor's 10.1, CUDA 13 11.0."""

CHIPS: tuple[str, ...] = tuple(dict.fromkeys(chip for _, family in FAMILIES for chip in sorted(family)))
"""Every chip, oldest family first."""

SOC = ORIN | THOR | SPARK
"""Chips whose memory is the system's: they have no DRAM counters."""
TCGEN05 = GB10X | GB11X | THOR | GR100
"""Chips with tcgen05 matrix instructions, whose opcodes name neither shape nor type."""


@dataclass(frozen=True, slots=True)
class ChipChoice:
    """The chip that stands for a compute capability.

    Attributes:
        certain: Every chip of that compute capability has the same metrics.
        reason: Why it is not certain, for people; empty where it is.
    """

    chip: str
    certain: bool
    reason: str = ""


def check_chip(chip: str) -> str:
    """Return the chip as it is spelled here.

    Raises:
        UsageError: No such chip.
    """
    if chip.lower() not in CHIPS:
        raise UsageError(f"no GPU chip `{chip}` is known", f"one of: {', '.join(CHIPS)}")
    return chip.lower()


def chip_of(compute_capability: str) -> ChipChoice:
    """Choose the chip whose metrics fit a compute capability best.

    Where none is known, it is the newest chip of the same major version; else the newest of all.

    Args:
        compute_capability: As `9.0`.

    Raises:
        UsageError: It is no compute capability.
        EnvironmentMissingError: Such GPUs are older than the counters.
    """
    version = _version(compute_capability)
    families = [family for known, family in FAMILIES if known == compute_capability]
    if families:
        return ChipChoice(min(families[0]), len(families) == 1, _several(compute_capability, families))
    discrete = {_version(known): min(family) for known, family in FAMILIES if not family <= SOC}
    if version < min(discrete):
        message = f"GPUs of compute capability {compute_capability} have no counters that Nsight Compute reads"
        raise EnvironmentMissingError(message, "profile on a GPU of compute capability 7.0 or higher")
    newest = max((known for known in discrete if known[0] == version[0]), default=max(discrete))
    reason = f"compute capability {compute_capability} is not known: the metrics of {discrete[newest]} are used"
    return ChipChoice(discrete[newest], certain=False, reason=reason)


def _several(compute_capability: str, families: list[frozenset[str]]) -> str:
    if len(families) == 1:
        return ""
    others = ", ".join(sorted(chip for family in families[1:] for chip in family))
    return f"compute capability {compute_capability} may be {min(families[0])} or {others}, which lack some metrics"


def _version(compute_capability: str) -> tuple[int, int]:
    major, _, minor = compute_capability.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise UsageError(f"`{compute_capability}` is no compute capability", "it looks like 9.0")
    return int(major), int(minor)


@dataclass(frozen=True, slots=True)
class TensorCounters:
    """Tensor operation counters that chips have: one for each type, of one instruction or of all.

    Attributes:
        op: Opcode of the instruction; empty where operations of all instructions are counted.
        split: Counted for dense and for sparse operands apart, too.
    """

    chips: frozenset[str]
    op: str
    sources: tuple[str, ...]
    split: bool = False

    def names(self, suffix: str = "") -> tuple[str, ...]:
        """Return the base names, those of dense or sparse operands with `_sparsity_off` or `_sparsity_on`."""
        op = f"op_{self.op}_" if self.op else ""
        return tuple(f"sm__ops_path_tensor_{op}src_{source}{suffix}" for source in self.sources)


_FP16 = ("fp16_dst_fp16", "fp16_dst_fp32")
_HMMA = ("bf16_dst_fp32", *_FP16, "tf32_dst_fp32")
_NARROW = ("fp4_dst_fp32", "fp4_fp6_dst_fp16", "fp4_fp6_dst_fp32", "fp8_dst_fp16", "fp8_dst_fp32")
_AMPERE = GA100 | GA10X | ORIN

TENSOR_COUNTERS: tuple[TensorCounters, ...] = (
    TensorCounters(GV100, "", _FP16),
    TensorCounters(TU10X, "", ("fp16_bf16_tf32_dst_fp32", "fp16_dst_fp16", "int1", "int4", "int8")),
    TensorCounters(_AMPERE | AD10X, "", (*_HMMA, "int4", "int8"), split=True),
    TensorCounters(_AMPERE | AD10X | GH100, "", ("fp64", "int1")),
    TensorCounters(AD10X | GH100, "", ("fp8",), split=True),
    TensorCounters(GH100, "", ("bf16_dst_fp32", "fp16", "int8", "tf32_dst_fp32")),
    TensorCounters(GH100, "hgmma", ("bf16_dst_fp32", "fp16", "tf32_dst_fp32"), split=True),
    TensorCounters(GH100, "igmma", ("int8",), split=True),
    TensorCounters(GH100, "bgmma", ("int1",)),
    TensorCounters(GH100, "bmma", ("int1",)),
    TensorCounters(TCGEN05 | GB20X | SPARK, "", (*_HMMA, "fp64", "int8")),
    TensorCounters(GH100 | TCGEN05 | GB20X | SPARK, "hmma", _HMMA, split=True),
    TensorCounters(GH100 | TCGEN05 | GB20X | SPARK, "imma", ("int8",), split=True),
    TensorCounters(GB10X | THOR, "", ("fp4_dst_fp32", "fp4_fp6_fp8_dst_fp16", "fp4_fp6_fp8_dst_fp32")),
    TensorCounters(GB11X | GR100, "", _NARROW),
    TensorCounters(GB20X | SPARK, "", _NARROW, split=True),
    TensorCounters(TCGEN05, "utchmma", _HMMA, split=True),
    TensorCounters(TCGEN05, "utcomma", ("fp4_dst_fp32",), split=True),
    TensorCounters(GB10X | THOR, "utcimma", ("int8",), split=True),
    TensorCounters(GB10X | THOR, "utcqmma", ("fp4_fp6_fp8_dst_fp16", "fp4_fp6_fp8_dst_fp32"), split=True),
    TensorCounters(GB11X | GR100, "utcqmma", _NARROW[1:], split=True),
)
"""Chips' tensor counters. TU11X has none. Sums over instructions and sums over density are both stored as `src_*`."""


def tensor_counters(chip: str) -> tuple[TensorCounters, ...]:
    """Return the tensor counters that a chip has."""
    return tuple(row for row in TENSOR_COUNTERS if chip in row.chips)
