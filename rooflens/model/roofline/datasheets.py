"""What NVIDIA publishes of each GPU: one TOML file a GPU in `rooflens/gpus`, every number with its unit and source.

The roofs of an analysis come from the report itself, at the clock of the profiled run. These are the datasheet's roofs,
at the boost clock, to stand beside them; a `predict` with no report has nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from rooflens.cache import keep, kept
from rooflens.errors import InputError, UnknownNameError, UsageError
from rooflens.format import GUESSED

_GPU_FOLDER = Path(__file__).parents[2] / "gpus"

PeakKey = Literal[
    "fp64",
    "fp32",
    "fp16",
    "tensor_fp64",
    "tensor_tf32",
    "tensor_bf16",
    "tensor_fp16",
    "tensor_fp16_acc16",
    "tensor_fp8",
    "tensor_fp8_acc16",
    "tensor_fp4",
    "tensor_mxfp8",
    "tensor_mxfp4",
    "tensor_nvfp4",
    "tensor_int8",
    "tensor_int4",
    "tensor_int1",
]
PEAK_KEYS: tuple[str, ...] = get_args(PeakKey)
"""Pipes a file may give a peak for, as `Analysis.pipes` names them: dense rates, tensor ones with fp32 accumulation.

`_acc16` is accumulation in fp16, and those of `BLOCK_SCALED` have a scale for each block of operands: in a file only
where they are faster than the pipe that they otherwise share, as on GeForce boards.
"""

ACC16 = "_acc16"

BLOCK_SCALED: Mapping[str, str] = MappingProxyType(
    {"tensor_mxfp8": "tensor_fp8", "tensor_mxfp4": "tensor_fp4", "tensor_nvfp4": "tensor_fp4"}
)
"""Pipes of operands with a scale for each block -> the pipe whose rate they have on chips that apply scales."""

_APPLIES_SCALES = "tensor_fp4"
"""Chips whose tensor cores apply scales have this pipe, too: both came with CC 10."""

ASSUMED_BOOST = 1.15
"""Highest clock over the rated boost clock, where a card may run above that and nobody has said how far.

Published products imply no more on 14 of 16 boards whose clock nobody has told, and 1.16 on the two others; records say
1.12 (RTX 4090, RTX A5000) to 1.34 (RTX 2080 Ti).
"""

_BOOSTS_FREELY = re.compile(r"GeForce|RTX (?!.*Server Edition)|T\d00\b")
"""Names of cards that run above their rated boost clock while power and temperature allow it; boards of data centres
stop at it."""

_AT_BOOST_CLOCK = frozenset({"fp64", "fp32", "fp16", "tensor_fp64"})
"""Peaks stated for the boost clock on every GPU: Hopper's whitepaper counts fp64 on tensor cores among them."""

MemoryKind = Literal[
    "GDDR5",
    "GDDR5X",
    "GDDR6",
    "GDDR6X",
    "GDDR7",
    "HBM2",
    "HBM2e",
    "HBM3",
    "HBM3e",
    "HBM4",
    "LPDDR4x",
    "LPDDR5",
    "LPDDR5X",
]

ANY_MEMORY = "DRAM"
"""Label of DRAM of unknown or mixed kind."""

LinkKind = Literal["nvlink", "pcie"]

LINK_KINDS: tuple[LinkKind, ...] = ("nvlink", "pcie")
"""Links to other GPUs, the fastest first."""

LINK_NAMES: Mapping[LinkKind, str] = MappingProxyType({"nvlink": "NVLink", "pcie": "PCIe"})

ARCHITECTURES = MappingProxyType(
    {
        "gr": "Rubin",
        "gb": "Blackwell",
        "gh": "Hopper",
        "ad": "Ada Lovelace",
        "ga": "Ampere",
        "tu": "Turing",
        "gv": "Volta",
        "gp": "Pascal",
    }
)
"""First letters of a chip -> architecture, the newest first."""

ASSUMED = "assumed"
"""Begins the source of a number that nobody has published."""

_GPU_FILE_HINT = "`rooflens/gpus/h200.toml` of the package is a complete file"

_Text = Annotated[str, Meta(pattern=r"\S")]
_Amount = Annotated[float, Meta(gt=0, le=1e100)]
_Count = Annotated[int, Meta(gt=0)]
_Unit_co = TypeVar("_Unit_co", bound=str, covariant=True)


class Quantity(Struct, Generic[_Unit_co], frozen=True, forbid_unknown_fields=True):
    """A number, its SI base unit, and the document, attribute or formula it came from."""

    value: _Amount
    unit: _Unit_co
    source: _Text


_Peak = Quantity[Literal["op/s"]]


class Link(Struct, frozen=True, forbid_unknown_fields=True):
    """A link from one GPU to others, as its maker states it.

    Attributes:
        generation: 4 of NVLink 4, 5 of PCIe 5.
        width: Links of NVLink, lanes of PCIe.
        bytes_per_s_per_direction: What a GPU can send while it receives as much.
        bytes_per_s_total: Both directions together, the figure that datasheets print.
        joins: GPUs that it can join, where it is a bridge between boards; None if a system decides.
    """

    kind: LinkKind
    generation: _Count
    width: _Count
    bytes_per_s_per_direction: _Amount
    bytes_per_s_total: _Amount
    source: _Text
    joins: _Count | None = None

    def __post_init__(self) -> None:
        if self.bytes_per_s_total != 2 * self.bytes_per_s_per_direction:
            raise ValueError("`bytes_per_s_total` must be twice the rate of a direction")

    @property
    def name(self) -> str:
        """Its name, such as `NVLink 4`."""
        return f"{LINK_NAMES[self.kind]} {self.generation}"

    def reaches(self, gpus: int) -> bool:
        """Return whether the link can connect this many GPUs, as far as the GPU alone determines it."""
        return self.joins is None or gpus <= self.joins


class _NoLink(Struct, frozen=True, forbid_unknown_fields=True):
    """A link that a GPU does not have, with the document that tells."""

    none: _Text


class Datasheet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One GPU as its maker describes it; what is not published is None or absent.

    Attributes:
        id: Short name: the stem of its file, such as `h100-sxm`.
        names: Display names as ncu's `device__attribute_display_name` spells them, the usual first.
        compute_capability: `9.0`, as in `Kernel.compute_capability`.
        chip: Chip in lower case: `gh100`.
        peaks: Dense operations per second by `PEAK_KEYS`, at the clock of `clock_of`; an FMA is two operations.
        memory_kind: One of `MemoryKind`; None where boards of one display name differ.
        tensor_boost_clock: Clock for which the tensor peaks are stated, where that is not the boost clock.
        highest_clock: The highest clock that was seen under load, where that is above the boost clock.
        special_rate: Special functions (MUFU), such as powers of two and reciprocals, at the boost clock.
        issue_rate: Thread instructions that its schedulers issue at the boost clock: 32 a scheduler and cycle.
        links: Links to other GPUs that it has, by kind. One that is in neither mapping is not known.
        absent_links: Links that it does not have, with the document that tells.
        l2_bandwidth: What the L2 cache can return to the SMs.
        dram_size: Device memory, in the decimal gigabytes of the datasheet.
    """

    id: str
    names: Annotated[tuple[_Text, ...], Meta(min_length=1)]
    compute_capability: _Text
    chip: _Text
    sm_count: Quantity[Literal["SM"]]
    boost_clock: Quantity[Literal["Hz"]]
    dram_bandwidth: Quantity[Literal["byte/s"]]
    peaks: Mapping[str, Quantity[str]]
    memory_kind: MemoryKind | None = None
    base_clock: Quantity[Literal["Hz"]] | None = None
    tensor_boost_clock: Quantity[Literal["Hz"]] | None = None
    highest_clock: Quantity[Literal["Hz"]] | None = None
    special_rate: Quantity[Literal["op/s"]] | None = None
    issue_rate: Quantity[Literal["op/s"]] | None = None
    l2_size: Quantity[Literal["byte"]] | None = None
    links: Mapping[LinkKind, Link] = {}
    absent_links: Mapping[LinkKind, str] = {}
    l2_bandwidth: Quantity[Literal["byte/s"]] | None = None
    dram_size: Quantity[Literal["byte"]] | None = None

    def __repr__(self) -> str:
        return f"<Datasheet of {self.name}: {self.id}, CC {self.compute_capability}>"

    @property
    def name(self) -> str:
        """The usual display name."""
        return self.names[0]

    @property
    def architecture(self) -> str:
        """Name of its generation: `Hopper`; its compute capability where that has no name here."""
        return ARCHITECTURES.get(self.chip[:2], f"CC {self.compute_capability}")

    def clock_of(self, key: str) -> Quantity[str]:
        """Return the clock for which the peak of a pipe is stated."""
        return self.boost_clock if key in _AT_BOOST_CLOCK else self.tensor_boost_clock or self.boost_clock

    @property
    def fastest_clock(self) -> Quantity[str]:
        """The highest clock that the card may run at: as seen, else assumed, else its boost clock.

        Floors are for this clock, shares of peak for the boost clock.
        """
        if self.highest_clock is not None:
            return self.highest_clock
        if not any(map(_BOOSTS_FREELY.search, self.names)):
            return self.boost_clock
        source = f"{ASSUMED}: {ASSUMED_BOOST} x the boost clock, as no higher clock is known to have been seen"
        return Quantity(ASSUMED_BOOST * self.boost_clock.value, "Hz", source)

    @property
    def above_boost(self) -> float:
        """Highest clock over the boost clock: 1 if the card never exceeds it."""
        return max(1.0, self.fastest_clock.value / self.boost_clock.value)

    def peak(self, key: str) -> Quantity[str] | None:
        """Return the peak of a pipe; None without it.

        Accumulation in fp16, and blocks with scales, have the peak of the plain pipe if they have none of their own.
        """
        shared = BLOCK_SCALED.get(key, "") if _APPLIES_SCALES in self.peaks else ""
        return self.peaks.get(key) or self.peaks.get(key.removesuffix(ACC16)) or self.peaks.get(shared)

    def peak_at(self, clock_hz: float, key: str, sm_count: float | None = None) -> float | None:
        """Return the peak of a pipe at another clock; None without it.

        The published rate is a number of operations a cycle and SM, so it scales with the clock that it was stated for,
        and with the SMs of the device where they are known: boards that differ in them may share a display name.
        """
        peak = self.peak(key)
        part = (sm_count or self.sm_count.value) / self.sm_count.value
        if peak is None:
            return None
        stated_hz = self.clock_of(key).value
        return (peak.value if clock_hz == stated_hz else peak.value / stated_hz * clock_hz) * part


@functools.cache
def load_datasheets() -> tuple[Datasheet, ...]:
    """Read every GPU file of the package, in the order of the file names.

    Raises:
        InputError: A file is damaged, or two files claim one display name.
    """
    gpus = tuple(_datasheet(file, values) for file, values in _documents().items())
    index_by_name(gpus)
    return gpus


@functools.lru_cache(maxsize=256)
def datasheet_of(display_name: str | None) -> Datasheet | None:
    """Look a GPU up by the display name of a report; None when no file has exactly that name.

    Case and a leading `NVIDIA ` do not count: older drivers leave the maker out. Only files in which the name
    stands are parsed.
    """
    if display_name is None:
        return None
    wanted = name_key(display_name)
    having = (parse_datasheet(file, text) for file, text in _gpu_file_texts().items() if wanted in text.casefold())
    return next((gpu for gpu in having if wanted in map(name_key, gpu.names)), None)


@functools.cache
def _gpu_file_texts() -> dict[str, str]:
    """Read every GPU file of the package, in the order of the file names."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(_GPU_FOLDER.glob("*.toml"))}


def _documents() -> dict[str, Any]:
    """Return what the GPU files hold, unchecked, from the user's cache where that was made of these very files.

    Parsing all of them takes 31 ms and reading them back 4. One packed file in the package would be as fast, but a
    second copy of each number, to be written anew with every change of a GPU file.
    """
    texts = _gpu_file_texts()
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    with contextlib.suppress(ValueError, TypeError, KeyError):
        known = json.loads(kept(_CACHED_GPUS) or b"")
        if known["digest"] == digest:
            return dict(known["files"])
    found = {file: _parsed(file, text) for file, text in texts.items()}
    keep(_CACHED_GPUS, json.dumps({"digest": digest, "files": found}).encode())
    return found


_CACHED_GPUS = "gpus.json"


def memory_label(*display_names: str | None) -> str:
    """Name the kind of DRAM that these GPUs share: `HBM3`; `DRAM` where kinds differ or one is unknown."""
    kinds = {gpu.memory_kind if (gpu := datasheet_of(name)) else None for name in display_names}
    (kind,) = kinds if len(kinds) == 1 else (None,)
    return kind or ANY_MEMORY


def index_by_name(gpus: Iterable[Datasheet]) -> dict[str, Datasheet]:
    """Map each normalised display name to its GPU.

    Raises:
        InputError: Two GPUs claim one name.
    """
    index: dict[str, Datasheet] = {}
    for gpu in gpus:
        for name in gpu.names:
            if index.setdefault(name_key(name), gpu) is not gpu:
                raise InputError(f"two GPU files claim the name `{name}`", "a display name belongs to one file")
    return index


def parse_datasheet(file: str, text: str) -> Datasheet:
    """Build a GPU from the text of its file.

    Raises:
        InputError: Not TOML; a key unknown, missing or of the wrong kind; a unit that is not the key's own.
    """
    return _datasheet(file, _parsed(file, text))


def _parsed(file: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"GPU file `{file}` is not valid TOML: {error}", _GPU_FILE_HINT) from error


def _datasheet(file: str, values: Mapping[str, Any]) -> Datasheet:
    """Check what a file holds against the types above, and make its record.

    Raises:
        InputError: A key is unknown, missing or of the wrong kind, or a unit is not the key's own.
    """
    try:
        with _errors_at("links"):
            named = msgspec.convert(values.get("links", {}), dict[LinkKind, Any])
        links = {kind: _link(kind, one) for kind, one in named.items()}
        with _errors_at("peaks"):
            peaks = msgspec.convert(values.get("peaks", {}), dict[PeakKey, Any])
        for key, one in peaks.items():
            with _errors_at(f"peaks.{key}"):
                peaks[key] = msgspec.convert(one, _Peak)
        known = {
            "id": file.removesuffix(".toml"),
            "peaks": peaks,
            "links": {kind: link for kind, link in links.items() if isinstance(link, Link)},
            "absent_links": {kind: link.none for kind, link in links.items() if isinstance(link, _NoLink)},
        }
        return msgspec.convert({**values, **known}, Datasheet)
    except (msgspec.ValidationError, TypeError) as error:
        raise InputError(f"GPU file `{file}`: {str(error).replace('$.', '')}", _GPU_FILE_HINT) from error


def schema_text() -> str:
    """Write the JSON Schema of a GPU file, for editors: the types above, with peaks and links as files hold them."""
    types = (Datasheet, _Peak, Link, _NoLink)
    (whole, peak, link, no_link), known = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for part in known.values():
        part["description"] = part.get("description", "").partition("\n")[0]
    for part, names in ((known["Datasheet"], ("id", "absent_links")), (known["Link"], ("kind",))):
        part["properties"] = {name: of for name, of in part["properties"].items() if name not in names}
        part["required"] = [name for name in part["required"] if name not in names]
    either = {"anyOf": [link, no_link]}
    for name, keys in (("peaks", dict.fromkeys(PEAK_KEYS, peak)), ("links", dict.fromkeys(LINK_KINDS, either))):
        table = {"type": "object", "properties": keys, "additionalProperties": False}
        known["Datasheet"]["properties"][name] = table
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "a GPU file", **whole, "$defs": known}
    return json.dumps(schema, indent=2) + "\n"


def _link(kind: str, values: Any) -> Link | _NoLink:
    """Read a link that a GPU has, or one that its documents say it has not."""
    with _errors_at(f"links.{kind}"):
        return msgspec.convert(values, _NoLink) if "none" in values else msgspec.convert({"kind": kind, **values}, Link)


@contextlib.contextmanager
def _errors_at(path: str) -> Iterator[None]:
    """Begin errors with their place in the file: msgspec names no keys of mappings."""
    try:
        yield
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"`{path}`: {error}") from error


def name_key(display_name: str) -> str:
    """Write the name of a GPU so that the ways to spell it are alike."""
    return display_name.removesuffix(GUESSED).strip().casefold().removeprefix("nvidia ")


def datasheet_of_id(short_name: str) -> Datasheet | None:
    """Find a GPU by its short name, in capitals or not; None if none has it."""
    return next((gpu for gpu in load_datasheets() if gpu.id == short_name.casefold()), None)


def matching_datasheets(name: str) -> tuple[Datasheet, ...]:
    """Find GPUs by short name, by display name, or by any part of either.

    Raises:
        UnknownNameError: None has it in its name.
    """
    wanted = name.strip().casefold()
    exact = datasheet_of_id(wanted) or datasheet_of(name)
    if exact is not None:
        return (exact,)
    known = ((gpu, (gpu.id, *gpu.names)) for gpu in load_datasheets())
    found = tuple(gpu for gpu, names in known if wanted and any(wanted in one.casefold() for one in names))
    if not found:
        raise UnknownNameError("GPU", name, [gpu.id for gpu in load_datasheets()], "rooflens gpus")
    return found


def the_datasheet(name: str) -> Datasheet:
    """Find the only GPU with a short name, a display name, or a part of it.

    Raises:
        UsageError: None has that name, or several have it in them.
    """
    found = matching_datasheets(name)
    if len(found) == 1:
        return found[0]
    listed = ", ".join(gpu.id for gpu in found)
    raise UsageError(f"`{name}` is the name of {len(found)} GPUs", f"choose one of: {listed}")
