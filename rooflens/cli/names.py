"""The names that a shell completes in more than one command; each list is read only when TAB is pressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.cli.usage import completed_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click
    from click.shell_completion import CompletionItem


def _gpus() -> list[str]:
    from rooflens.model.roofline.datasheets import load_datasheets

    return [gpu.id for gpu in load_datasheets()]


def _chips() -> Sequence[str]:
    from rooflens.model.counters.chips import CHIPS

    return CHIPS


def _workloads() -> list[str]:
    from rooflens.workloads.registry import load_workloads

    return [workload.name for workload in load_workloads()]


GPUS = completed_by(_gpus)
CHIPS = completed_by(_chips)
WORKLOADS = completed_by(_workloads)


def complete_cases(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the cases of the workload on the line; none where it names no workload."""
    from rooflens.workloads.registry import load_workloads

    typed = {context.params.get("workload"), *context.args}  # click leaves it in `args` where `--case` has no value yet
    cases = [case.name for workload in load_workloads() if workload.name in typed for case in workload.cases]
    return completed_by(lambda: cases)(context, parameter, begun)
