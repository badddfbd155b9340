"""Compare the estimated speed-ups of rules, and what they refer to, with those from NVIDIA's module."""

from __future__ import annotations

import ncu_report

from rooflens.ingest.load import Loaded

_OF_UNIT, _OF_KERNEL = 1, 2


def test_estimates_are_of_the_kernel_or_of_a_unit(loaded: Loaded) -> None:
    """A rule has exactly the estimate that it states, and never that of the other scope."""
    found = {_OF_UNIT: 0, _OF_KERNEL: 0}
    for run, kernels in loaded.reports:
        context = ncu_report.load_report(run.source)
        ranges = [context.range_by_idx(index) for index in range(context.num_ranges())]
        actions = [one.action_by_idx(index) for one in ranges for index in range(one.num_actions())]
        for kernel, action in zip(kernels, actions, strict=True):
            for rule, stated in zip(kernel.rules, action.rule_results_as_dicts(), strict=True):
                estimate = stated.get("speedup_estimation") or {}
                of, value = estimate.get("type"), estimate.get("speedup")
                assert rule.speedup_pct == (value if of == _OF_KERNEL else None)
                assert rule.unit_speedup_pct == (value if of == _OF_UNIT else None)
                if of in found:
                    found[of] += 1
    assert found[_OF_UNIT] > 40
    assert found[_OF_KERNEL] > 70
