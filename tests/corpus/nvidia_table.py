"""Print the results of `nvidia_findings.py`."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import finding_goals as goals
from nvidia_cache import folders_beside, read_all, user_cache
from nvidia_findings import (
    LIMITER,
    Expected,
    Judged,
    Silent,
    expected,
    findings_of,
    best_move,
    judge,
    pair_counts,
    part,
    says_collect,
    says_number,
    silent,
    spoken,
    timed,
    unmatched,
)
from nvidia_markdown import write
from nvidia_markers import marked
from nvidia_ranks import first_ranks

_CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
PUBLISHED = Path(__file__).parents[2] / "fixtures" / "published"
"""What every clone has: figures of some of these reports, with the results of NVIDIA's rules."""

_SHOWN = 34


def main() -> None:
    """Print the table and the requested lists."""
    options = _options()
    folders = options.paths or folders_beside(Path(os.environ.get("ROOFLENS_CORPUS") or _CORPUS)) or [PUBLISHED]
    if options.write and folders == [PUBLISHED]:
        sys.exit("error: accuracy.md has the figures of the whole corpus, which is not here: give its folder")
    reports = read_all(folders, user_cache())
    if options.pairs:
        _print_pairs([nvidia for _, pairs in reports for nvidia, _ in pairs])
        return
    by_report = [(run, judge(pairs)) for run, pairs in reports]
    if options.write:
        write(by_report)
        return
    judged = [one for _, part_of in by_report for one in part_of]
    aims = "; the goals are for the whole corpus, which is not here" if folders == [PUBLISHED] else ""
    print(f"{len(by_report)} reports of {', '.join(map(str, folders))}{aims}")
    hits, quiet, old = list(expected(judged)), list(silent(judged)), list(unmatched(judged))
    _print_topics(hits, quiet, old, judged)
    _print_moves(judged)
    _print_ranks(by_report, show=options.ranks)
    _print_markers(judged, show=options.markers)
    topic = options.topic
    if options.misses:
        _print_results("misses", [e for e in hits if e.severity is None and topic in {None, e.topic}])
    if options.old:
        _print_results("misses, no estimate", [e for e in old if e.severity is None and topic in {None, e.topic}])
    if options.false:
        _print_false([case for case in quiet if case.false and topic in {None, case.topic}])
    if options.kernels:
        _print_kernels([one for one in judged if topic is None or topic in one.severities])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Hold our findings against NVIDIA's own rules.")
    parser.add_argument(
        "paths", nargs="*", type=Path, help="folders or reports; by default the corpus, else fixtures/published"
    )
    parser.add_argument("--topic", help="only this finding in the lists")
    for flag, what in (
        ("misses", "list NVIDIA's results that no finding of ours matches"),
        ("old", "list the same for results without an estimate, which count for nothing"),
        ("false", "list limiters where NVIDIA's rules see nothing"),
        ("kernels", "list every kernel with its findings and first move"),
        ("ranks", "list the first rank of each report"),
        ("markers", "list marked places that are not among our top three"),
        ("write", "write the part of docs/explanation/accuracy.md about findings"),
        ("pairs", "list the pairs of rule and title, and what is made of them"),
    ):
        parser.add_argument(f"--{flag}", action="store_true", help=what)
    return parser.parse_args()


def _print_topics(
    hits: Sequence[Expected], quiet: Sequence[Silent], old: Sequence[Expected], judged: Sequence[Judged]
) -> None:
    ours = Counter(finding.id for one in judged for finding in findings_of(one.analysis) if finding.severity == LIMITER)
    all_ours = Counter(finding.id for one in judged for finding in findings_of(one.analysis))
    print(f"{'topic':26}{'NVIDIA >= 20 %':>15}{'hit':>5}{'silent':>8}{'false':>6}{'old':>6}{'hit':>5}   ours (limiter)")
    topics = {e.topic for e in (*hits, *old)} | {case.topic for case in quiet} | set(all_ours)
    for topic in sorted(topics):
        mine = [e for e in hits if e.topic == topic]
        mute = [case for case in quiet if case.topic == topic]
        past = [e for e in old if e.topic == topic]
        print(
            f"{topic:26}{len(mine):15}{_found(mine):5}{len(mute):8}{sum(case.false for case in mute):6}"
            f"{len(past):6}{_found(past):5}   {all_ours[topic]} ({ours[topic]})"
        )
    false = sum(case.false for case in quiet)
    print(
        f"{'all':26}{len(hits):15}{_found(hits):5}{len(quiet):8}{false:6}{len(old):6}{_found(old):5}"
        f"   {all_ours.total()} ({ours.total()})"
    )
    _print_goal("recall", part(e.severity is not None for e in hits), ">=", goals.RECALL)
    _print_goal(
        "false limiters where NVIDIA's rules are silent", part(c.false for c in quiet), "<=", goals.FALSE_LIMITERS
    )
    by_name: dict[tuple[str, str, str], bool] = {}
    for case in quiet:
        key = case.judged.nvidia.report, case.judged.nvidia.name, case.topic
        by_name[key] = by_name.get(key, False) or case.false
    right = sum(severity == LIMITER for one in judged for severity in _spoken_severities(one))
    print(f"  a kernel's launches counted once: {sum(by_name.values())}/{len(by_name)} = {part(by_name.values()):.1%}")
    print(f"  limiters that the rules can tell: {right} right, {false} false")


def _spoken_severities(one: Judged) -> list[str | None]:
    return [one.severities.get(topic) for topic in {topic for _, _, topic in spoken(one.nvidia)}]


def _print_goal(what: str, value: float, sign: str, goal: float) -> None:
    print(f"{what}: {value:.1%} (goal {sign} {goal:.0%})")


def _found(results: Sequence[Expected]) -> int:
    return sum(e.severity is not None for e in results)


def _print_moves(judged: Sequence[Judged]) -> None:
    known = timed(judged)
    most = max((sum(s != "note" for s in one.severities.values()) for one in judged), default=0)
    print(f"\n{len(judged)} kernels, {len(known)} profiled without failure; at most {most} findings that are no notes")
    says, asks = (part(told(one.analysis) for one in known) for told in (says_number, says_collect))
    nothing = part(one.analysis.verdict.bound == "unknown" for one in known)
    _print_goal("first move holds a number of its evidence", says, ">=", goals.MOVES_WITH_EVIDENCE)
    _print_goal("first move is to collect", asks, "<=", goals.COLLECT_FIRST)
    _print_goal("bound unknown", nothing, "<=", goals.UNKNOWN)


def _print_ranks(by_report: Sequence[tuple], *, show: bool) -> None:
    ranks = first_ranks(by_report)
    low = [rank for rank in ranks if (rank.time_share or 0.0) < goals.FIRST_RANK_TIME]
    _print_goal("rank 1 has under a tenth of the time", len(low) / max(1, len(ranks)), "<=", goals.RANK_EXCEPTIONS)
    for rank in ranks if show else low:
        share = "no rank" if rank.time_share is None else f"{rank.time_share:.1%}"
        print(f"  {rank.report[:_SHOWN]:{_SHOWN}} {share:>8}  {rank.kernel[:60]}")


def _print_markers(judged: Sequence[Judged], *, show: bool) -> None:
    places = [place for one in judged for place in marked(one.nvidia, one.analysis.kernel)]
    _print_goal(f"{len(places)} marked places in top three", part(p.hit for p in places), ">=", goals.MARKED_PLACES)
    for place in places if show else ():
        if not place.hit:
            print(f"  {place.report[:_SHOWN]:{_SHOWN}} {place.index:3} {place.rule:24} {place.by:5} {place.what}")


def _print_results(title: str, results: Sequence[Expected]) -> None:
    print(f"\n{title}")
    for e in results:
        estimate = "" if e.result.estimate_pct is None else f"{e.result.estimate_pct:.1f} % {e.result.scope}"
        print(
            f"  {e.topic:26} {e.judged.nvidia.report[:_SHOWN]:{_SHOWN}} {e.judged.nvidia.index:3} "
            f"{e.judged.nvidia.name[:28]:28} {estimate:>15}  {e.result.identifier} {e.result.title}"
        )


def _print_false(cases: Sequence[Silent]) -> None:
    print("\nlimiters where NVIDIA's rules see nothing")
    for case in cases:
        kernel = case.judged.nvidia
        print(f"  {case.topic:26} {kernel.report[:_SHOWN]:{_SHOWN}} {kernel.index:3} {kernel.name[:28]:28} {case.why}")


def _print_kernels(judged: Sequence[Judged]) -> None:
    print("\nkernels")
    for one in judged:
        verdict = one.analysis.verdict
        nvidia = [f"{e.topic} {e.result.estimate_pct:.0f}" for e in expected([one])]
        kernel = f"{one.nvidia.report[:_SHOWN]} {one.nvidia.index} {one.nvidia.name[:40]}"
        print(f"  {kernel}: {verdict.bound} {verdict.resource or ''}")
        print(f"    ours: {', '.join(f'{key} ({severity})' for key, severity in one.severities.items()) or 'nothing'}")
        print(f"    NVIDIA: {', '.join(nvidia) or 'nothing'}")
        print(f"    first: {best_move(one.analysis.verdict) or 'nothing'}")


def _print_pairs(kernels: Sequence) -> None:
    for pair in pair_counts(kernels):
        largest = "" if pair.largest_pct is None else f"{pair.largest_pct:.1f} %"
        made = "; ".join((*pair.topics, *(f"not: {reason}" for reason in pair.exclusions)))
        print(f"{pair.identifier:26}{pair.title:36}{pair.count:5}{largest:>8}  {made}")
