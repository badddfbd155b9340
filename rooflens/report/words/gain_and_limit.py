"""What a kernel can gain and what limits it, in words, in full and where there is room for a number only."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from rooflens.format import MISSING, count, duration, factor, percent, si, significant
from rooflens.model.records import FAR, Analysis, Bottleneck, Gain, Limit, Move, ratio
from rooflens.model.roofline.occupancy import few_blocks
from rooflens.model.roofline.roof import at_top_clock
from rooflens.model.roofline.standing import ceiling
from rooflens.model.roofline.unit_names import (
    LEVEL_LABELS,
    bytes_part,
    resource_label,
    sides_words,
    spoken,
    unit_label,
)
from rooflens.model.roofline.units import LSU_INPUT
from rooflens.model.verdict.limit import DRAM_TRAFFIC, INNER_TRAFFIC, LAUNCH
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.words.labels import UNITS
from rooflens.report.words.verdict import few_ready, unmeasured_words


def share_words(bottleneck: Bottleneck) -> tuple[str | None, str]:
    """Return what a limiter is called before its share, and the share: `70 %`, or `FMA pipe 70 %` of another unit.

    An FP64 pipe says itself what fills it.
    """
    share, unit = percent(bottleneck.share), unit_label(bottleneck)
    if bottleneck.unit is None or unit.startswith(resource_label(bottleneck.resource)):
        return bottleneck.unit or bottleneck.resource, share
    return bottleneck.resource, f"{unit} {share}"


def limit_words(analysis: Analysis, missing: str = "") -> str:
    """Name the unit nearest its peak, with its share; of a kernel near two limits both: `FP32 74 %, HBM3 70 %`."""
    kernel, found = analysis.kernel, analysis.verdict.bottleneck
    sides = [found] if analysis.verdict.bound != "balanced" else analysis.verdict.sides
    return sides_words(sides, kernel.gpu, missing=missing)


def roof_words_at_dram(analysis: Analysis) -> str:
    """Say what its intensity allows a kernel, whatever its time: `0.167 FLOP/B at HBM2e allows at most 340 GFLOP/s`.

    Empty where its FLOPs or the bytes of DRAM are not known.
    """
    if (found := ceiling(analysis)) is None:
        return ""
    unit = UNITS[found.unit]
    allows = f" allows at most {si(found.per_s, f'{unit}/s')}" if found.per_s else ""
    return f"{significant(found.intensity)} {unit}/B at {resource_label('dram', analysis.kernel.gpu)}{allows}"


def limit_factor_words(analysis: Analysis) -> str:
    """Say the limit with the side that sets it: `limit 2.1x (FP32 arithmetic)`; empty if unknown.

    One that is not proven is not called a limit: `today's DRAM traffic allows 3.0x`, and what rests on another clock or
    on fewer bytes is told apart. Where a unit bounds the kernel, one that is far says what it takes: `over 10x if it
    moves fewer bytes through L1 (limit FP32 arithmetic)`.
    """
    verdict, limit = analysis.verdict, analysis.verdict.limit
    if limit.over_floor is None:
        return ""
    today = limit.by if limit.by == LAUNCH else f"today's {limit.by}"
    is_at_another = verdict.resource is not None and spoken(verdict.resource, None).upper() not in limit.by.upper()
    if limit.far and is_at_another:
        return (
            f"over 10x if it {' '.join(_relieved(verdict.resource))} ({f'limit {limit.by}' if limit.proven else today})"
        )
    if limit.proven or (limit.far and limit.by == LAUNCH):
        return f"far from any limit ({limit.by})" if limit.far else f"limit {factor(limit.factor)} ({limit.by})"
    if limit.far:
        return f"far from what {today} allows"
    if beyond := _beyond_today(analysis):
        return f"{beyond[0]} would allow {factor(limit.factor)}, with {beyond[1]} today"
    return f"{today} allows {factor(limit.factor)}"


def floor_words(analysis: Analysis, span: str = "") -> str:
    """Say what no change beats, and the nearer floor of a busy unit: `At best 1.71 ms (1.2x) with today's traffic`.

    `span` is as `gain_words` has it. Empty if no floor is known.
    """
    limit = analysis.verdict.limit
    if limit.over_floor is None:
        return ""
    most = "over 10x" if limit.far else factor(limit.factor)
    each = "" if limit.by == LAUNCH else span
    time = f"{duration(limit.floor_ns)}{each} ({most})" if limit.floor_ns else f"{most} faster"
    if beyond := _beyond_today(analysis):
        words = f"At best {time} with {beyond[0]}; {beyond[1]} today"
    else:
        by = limit.by if limit.by == LAUNCH else f"today's {limit.by}"
        head = f"Limit {time}: its {limit.by} at peak" if limit.proven else f"At best {time} with {by}"
        words = " ".join(filter(None, (head, at_full_clock(analysis))))
    return "; ".join(filter(None, (words, today_words(analysis, span))))


def _beyond_today(analysis: Analysis) -> tuple[str, str] | None:
    """Say on what a limit rests that is above what today's traffic allows, and how busy that level is.

    `GDDR6's full clock and fewer bytes`, `GDDR6 91 % busy`; None for other limits.
    """
    limit, allowed = analysis.verdict.limit, allowed_today(analysis)
    if allowed is None:
        return None
    clock = at_full_clock(analysis)
    faster = max(1.0, _over_profiled_clock(analysis)) if clock else 1.0
    is_fewer = (limit.over_floor or 0.0) > (1 + default_thresholds().noise_share) * allowed * faster
    hows = " and ".join(filter(None, (clock.removeprefix("at "), "fewer bytes" if is_fewer else "")))
    return hows, f"{resource_label(_LEVEL_OF[limit.by], analysis.kernel.gpu)} {percent(1 / allowed)} busy"


def allowed_today(analysis: Analysis) -> float | None:
    """Return what the traffic of a level allows as it is; None where the limit is proven, or says just that.

    Else that rests on a higher clock, or on the bytes that the kernel needs.
    """
    limit = analysis.verdict.limit
    level = None if limit.proven or limit.far else analysis.levels.get(_LEVEL_OF.get(limit.by, ""))
    allowed = ratio(1.0, min(level.share or 0.0, 1.0)) if level else None  # passes that disagree add up to more
    is_less = allowed is not None and (limit.factor or 0.0) >= default_thresholds().limiter_gain * allowed
    return allowed if is_less else None


_LEVEL_OF = {DRAM_TRAFFIC: "dram", **{by: level for level, by in INNER_TRAFFIC.items()}}
"""Side that sets a limit by today's traffic -> the level that it passes."""


def today_words(analysis: Analysis, span: str = "") -> str:
    """Say the floor of today's instructions and traffic where it is nearer than the limit; empty elsewhere.

    It is empty, too, where the limit says beside itself what today's traffic allows.
    It is a fact of the unit, and no factor of what can be won: asking less of the unit beats it, as the best move may.
    `span` is as `gain_words` has it.
    """
    verdict, gpu = analysis.verdict, analysis.kernel.gpu
    today, least_ns = verdict.today, verdict.limit.floor_ns or 0.0
    is_told = (
        allowed_today(analysis) is not None and today is not None and today.resource == _LEVEL_OF[verdict.limit.by]
    )
    if (
        today is None
        or is_told
        or today.share * FAR < 1
        or today.floor_ns <= default_thresholds().limiter_gain * least_ns
    ):
        return ""
    after_ns = verdict.gain.time_after_ns if verdict.gain else None
    is_beaten = after_ns is not None and after_ns < today.floor_ns
    does = " ".join(_relieved(today.resource, gpu))
    return f"{duration(today.floor_ns)}{span} unless it {does}{', as the best move does' if is_beaten else ''}"


def _relieved(resource: str | None, gpu: str | None = None) -> tuple[str, str]:
    """Name the verb and object of what relieves a unit: `issues`, `fewer instructions`."""
    if resource == "issue":
        return "issues", "fewer instructions"
    where = spoken(resource, gpu)
    return ("moves", f"fewer bytes through {where}") if resource in LEVEL_LABELS else ("has", f"less work for {where}")


def at_full_clock(analysis: Analysis) -> str:
    """Say that a limit of DRAM holds at a clock above the profiled one: `at GDDR6's full clock`; else empty."""
    is_higher = (
        analysis.verdict.limit.by == DRAM_TRAFFIC
        and _over_profiled_clock(analysis) > 1 + default_thresholds().negligible_share
    )
    return f"at {resource_label('dram', analysis.kernel.gpu)}'s full clock" if is_higher else ""


def _over_profiled_clock(analysis: Analysis) -> float:
    """Return DRAM's peak at its own top clock over that at the profiled one; 1 where either is unknown."""
    level, top = analysis.levels.get("dram"), at_top_clock(analysis.kernel)
    if level is None or top is None:
        return 1.0
    return ratio(top.value, level.peak_bytes_per_s) or 1.0


def limit_in_short(analysis: Analysis) -> str:
    """Say the limit in short, without what sets a proven one."""
    return limit_factor_words(analysis).partition(" (")[0]


TODAY = "~ holds for today's traffic, and is no proven limit"
"""What the sign before a factor means in `limit_cell`."""


def limit_cell(limit: Limit, missing: str = MISSING) -> str:
    """Say the limit where only a number fits: `2.1x`, `~3.0x` where it is not proven, `far` where it is no news."""
    if limit.over_floor is None:
        return missing
    return f"{'' if limit.proven else '~'}{'far' if limit.far else factor(limit.factor)}"


def why_no_gain(move: Move, analysis: Analysis) -> str:
    """Say why a move has no figure: `gain not known: it depends on the algorithm`.

    Empty of one that has, or that asks for counters.
    """
    if move.gain or move.kind == "collect":
        return ""
    if analysis.verdict.or_bound:
        why = unmeasured_words(analysis.verdict)
    elif any(one.confidence == "low" for one in analysis.findings if one.id == move.finding):
        why = "the counters only hint at it"
    elif move.finding is None or move.kind == "algorithm":
        why = "it depends on the algorithm"
    elif move.kind == "blocks":
        why = "it depends on how much of the work is independent"
    else:
        why = "no counter says how much time it takes"
    return f"gain not known: {why}"


A_LAUNCH = " a launch"
"""Stands behind a time of a kernel that is launched several times, where the time is that of one of them."""


def in_launches(launches: int) -> str:
    """Say of a time that it is the sum over several launches: ` in 12 launches`; empty of one."""
    return f" in {count(launches, 'launch')}" if launches > 1 else ""


def best_gain_words(analysis: Analysis, time_ns: float | None = None, span: str = "") -> str:
    """Say what the best move brings, or why that is not known; empty without one. `span`: as `gain_words` has it."""
    best = analysis.verdict.best
    return gain_words(best.gain, time_ns, span) or why_no_gain(best, analysis) if best else ""


def gain_words(gain: Gain | None, time_ns: float | None = None, span: str = "") -> str:
    """Say what a move brings to so much time: `10.4 s to about 8.7 s (1.2x)` with an arrow; empty where unknown.

    Args:
        gain: What it brings.
        time_ns: The time before it.
        span: Of which launches that is, where there are several: `A_LAUNCH`, or `in_launches`.
    """
    if gain is None:
        return ""
    changes = f", changes the {gain.changes}" if gain.changes else ""
    if time_ns is None:
        return f"{'at most' if gain.proven else 'about'} {factor(gain.factor)}{changes}"
    after = f"{gain_how(gain)} {duration(time_ns / gain.factor)}"
    return f"{duration(time_ns)} \u2192 {after}{span} ({factor(gain.factor)}{changes})"


def gain_figure(gain: Gain | None, time_ns: float | None, launches: int) -> str:
    """Say what a move brings to so many launches, `6.19 \u2192 about 4.73 ms in 12 launches`; empty if unknown."""
    if gain is None or time_ns is None:
        return gain_words(gain and replace(gain, changes=None), time_ns)
    before, _, unit = duration(time_ns).rpartition(" ")
    after = duration(time_ns / gain.factor)
    said = f"{before}{'' if after.endswith(f' {unit}') else f' {unit}'} \u2192 {gain_how(gain)} {after}"
    return f"{said}{in_launches(launches)}"


def time_figure(gain: Gain | None, time_ns: float | None, launches: int, above_ns: float | None = None) -> str:
    """Say the same, or where no gain is known what lies above the floor: `3.48 ms, 672 \u00b5s above its floor`.

    Args:
        gain: What the best move brings.
        time_ns: The time of all launches; None if unknown.
        launches: How many these are.
        above_ns: What of that time lies above the floor; None if unknown.
    """
    if known := gain_figure(gain, time_ns, launches):
        return known
    if time_ns is None:
        return "no time"
    return f"{duration(time_ns)}{in_launches(launches)}{_above_words(above_ns, time_ns)}"


def _above_words(above_ns: float | None, time_ns: float) -> str:
    if above_ns is None or not time_ns:
        return ""
    part, negligible = above_ns / time_ns, default_thresholds().negligible_share
    if part < negligible:
        return ", at the floor of today's work"
    return f", {f'over {percent(1 - 1 / FAR)} of it' if part > 1 - 1 / FAR else duration(above_ns)} above its floor"


def gain_how(gain: Gain) -> str:
    """Say how sure the time after a move is."""
    return "at best" if gain.proven else "about"


_FULL_BEFORE: Mapping[str, str] = {
    LSU_INPUT: "Each load or store of a warp takes a slot, small ones too: these carry {part} of the bandwidth",
    "data": "A data pass moves up to 128 bytes for a warp: these carry {part} of the bandwidth",
}
"""What a stage is that fills up before the bandwidth of its level does, where the verdict names it."""


def stage_full_words(analysis: Analysis) -> str:
    """Say what the stage is that is full where the bandwidth of its level is not, so that a dot is below its roof."""
    limiter = analysis.verdict.bottleneck
    level = analysis.levels.get(limiter.resource or "") if limiter else None
    said = _FULL_BEFORE.get(level.binding_stage or "") if level else None
    return f"{said.format(part=part)}." if level and said and (part := bytes_part(level)) else ""


def reason_words(analysis: Analysis) -> str:
    """Say in a few words why a kernel keeps no unit busy: its blocks, its ready warps, or what these wait for."""
    counters = analysis.kernel.counters
    return few_blocks(counters) or few_ready(counters) or (analysis.verdict.cause or "").replace("_", " ")
