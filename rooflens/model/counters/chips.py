"""The GPU chips: families that count alike, and their compute capability.

Standard library only: `collect` reads this on machines that have nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflens.errors import EnvironmentMissingError, UnknownNameError, UsageError

GV100 = frozenset({"gv100"})
XAVIER = frozenset({"gv11b"})
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
    ("7.2", XAVIER),
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
EVERY_CHIP = frozenset(CHIPS)

VOLTA = GV100 | XAVIER
PM_SAMPLED = EVERY_CHIP - VOLTA
"""Chips whose units can be sampled over time."""
SOC = XAVIER | ORIN | THOR | SPARK
"""Chips whose memory is the system's: they have no DRAM counters."""
OWN_DRAM = EVERY_CHIP - SOC
TCGEN05 = GB10X | GB11X | THOR | GR100
"""Chips with tcgen05 matrix instructions, whose opcodes name neither shape nor type."""
ONE_FMA = VOLTA | TU10X | TU11X | GA100
"""Chips with one FMA pipe and a pipe for fp16."""
LGDS = GH100 | TCGEN05 | GB20X | SPARK
"""Chips that count distributed shared memory with global loads, and have TMA."""


@dataclass(frozen=True, slots=True)
class ChipChoice:
    """The chip that stands for a compute capability.

    Attributes:
        reason: Why its metrics may not be those of the GPU, for people; empty if they are.
    """

    chip: str
    reason: str = ""


def check_chip(chip: str) -> str:
    """Return the chip as it is spelled here.

    Raises:
        UsageError: No such chip.
    """
    if chip.lower() not in CHIPS:
        raise UnknownNameError("GPU chip", chip, CHIPS)
    return chip.lower()


def chip_of(compute_capability: str) -> ChipChoice:
    """Choose the chip whose metrics fit a compute capability best.

    Where none is known, it is the newest chip of the same major version; else the newest of all.

    Args:
        compute_capability: As `9.0`.

    Raises:
        UsageError: It is not a compute capability.
        EnvironmentMissingError: Such GPUs are older than the counters.
    """
    version = _version(compute_capability)
    families = [family for known, family in FAMILIES if known == compute_capability]
    if families:
        return ChipChoice(min(families[0]), _several(compute_capability, families))
    discrete = {_version(known): min(family) for known, family in FAMILIES if not family <= SOC}
    if version < min(discrete):
        message = f"GPUs of compute capability {compute_capability} have no counters that Nsight Compute reads"
        raise EnvironmentMissingError(message, "profile on a GPU of compute capability 7.0 or higher")
    newest = max((known for known in discrete if known[0] == version[0]), default=max(discrete))
    reason = f"compute capability {compute_capability} is not known: the metrics of {discrete[newest]} are used"
    return ChipChoice(discrete[newest], reason)


def _several(compute_capability: str, families: list[frozenset[str]]) -> str:
    if len(families) == 1:
        return ""
    others = ", ".join(sorted(chip for family in families[1:] for chip in family))
    return f"compute capability {compute_capability} may be {min(families[0])} or {others}, which lack some metrics"


def _version(compute_capability: str) -> tuple[int, int]:
    major, _, minor = compute_capability.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise UsageError(f"`{compute_capability}` is not a compute capability", "it looks like 9.0")
    return int(major), int(minor)
