"""Who launched each kernel of a trace: the operator, module, ranges and code that were open on the host then."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, repeat
from operator import itemgetter
from typing import Any, NamedTuple

from rooflens.format import bounded_name
from rooflens.ingest.timelines.budget import READING, TimelineBudget
from rooflens.ingest.timelines.columns import BACKWARD, BETWEEN, UNSEEN, Call, Kernels, TraceColumns
from rooflens.ingest.timelines.kernel_events import LATEST_NS, shape_of, text_of
from rooflens.ingest.timelines.kineto import value_of
from rooflens.ingest.timelines.ranges import OpenRanges, Paths
from rooflens.ingest.timelines.spans import NONE, Spans, in_order, ordered
from rooflens.model.program.launches import NO_STEP, Launches, indices
from rooflens.model.program.steps import StepRanges
from rooflens.model.program.timeline import KernelEvent, Operands, StepRange

_MOST_ARGUMENTS, _MOST_DIMENSIONS, _LONGEST_ARGUMENT = 64, 16, 100
"""Limits of a call: arguments of an operator, dimensions of a tensor, characters of a type or value."""


_GB = 10**9
_FUSED = re.compile(r"triton_\w+?_fused_(?P<nodes>\w+)")

_Step = tuple[Any, int]
"""What links a backward step to its forward step: the process, and a number."""


class _Around(NamedTuple):
    """The operators that may be open at some moments.

    Attributes:
        events: All of them, in the order in which they began.
        innermost: Finds the innermost of some of them at each moment.
        process: Tells the process of one.
    """

    events: Sequence[int]
    innermost: Callable[[Iterable[int]], array[int]]
    process: Callable[[int], Any]


class _Origins:
    """What the host had open at given moments: in each column, item i is of moment i.

    Attributes:
        operators: The innermost operator; `NONE` where there is none.
        paths: The ranges.
        generated: The innermost file that a compiler wrote.
        modules: The innermost module.
        lines: File and line of the innermost function that is neither PyTorch's nor Python's.
        collectives: Index of the collective that the innermost operator names, else that the range names; else `NONE`.
    """

    def __init__(
        self,
        trace: TraceColumns,
        around: _Around,
        inside: Mapping[str, array[int]],
        paths: Sequence[str | None] = (),
    ) -> None:
        """Find the operators at each moment.

        Args:
            trace: The trace.
            around: Its operators that may be open at one of the moments.
            inside: The innermost module and the innermost function at each moment, where there are any.
            paths: The ranges at each moment; empty where there are none.
        """
        self._trace, self._process = trace, around.process
        self.operators = around.innermost(around.events)
        steps = trace.operators.steps
        backward = [at for at in around.events if steps[at] <= BACKWARD]
        self._backward = around.innermost(backward) if backward else None
        nowhere = (None,) * len(self.operators)
        self.paths: Sequence[str | None] = paths or nowhere
        said = {field: self._operator_field(around, field) for field in _OPERATOR_FIELDS} if trace.says_more else {}
        self.generated = said.get("generated") or nowhere
        self.modules = (
            _filled_up(self._texts_of_events(trace.modules, inside.get("module")), said.get("hierarchy")) or nowhere
        )
        self.lines = _filled_up(self._texts_of_events(trace.frames, inside.get("frame")), said.get("stack")) or nowhere
        self.collectives = self._collectives(inside) or array("i", [NONE]) * len(self.operators)

    @property
    def steps(self) -> Iterator[_Step]:
        """What links backward steps to their forward steps, wherever there is one."""
        return filter(None, map(self.step, range(len(self.operators)))) if self._backward else iter(())

    def step(self, place: int) -> _Step | None:
        """Return what links the innermost backward step to its forward step; None where there is none."""
        event = NONE if self._backward is None else self._backward[place]
        return None if event == NONE else (self._process(event), BACKWARD - self._trace.operators.steps[event])

    def _collectives(self, inside: Mapping[str, array[int]]) -> array[int] | None:
        found = None
        for kind, spans in (("title", self._trace.titles), ("communication", self._trace.communications)):
            if kind in inside:
                outer = found or repeat(NONE)
                events = zip(inside[kind], outer, strict=False)
                found = array("i", (other if event == NONE else spans.facts[event] for event, other in events))
        return found

    def _texts_of_events(self, spans: Spans, events: array[int] | None) -> Sequence[str | None] | None:
        texts, facts = self._trace.texts, spans.facts
        return None if events is None else [None if at == NONE else texts[facts[at]] for at in events]

    def _operator_field(self, around: _Around, field: str) -> Sequence[str | None] | None:
        """Return what the innermost operators say that say it; None if none does."""
        said, facts = self._trace.said, self._trace.operators.facts
        those = [at for at in around.events if getattr(said[facts[at]], field) is not None]
        return (
            [None if at == NONE else getattr(said[facts[at]], field) for at in around.innermost(those)]
            if those
            else None
        )


def _filled_up(
    columns: Sequence[str | None] | None, others: Sequence[str | None] | None
) -> Sequence[str | None] | None:
    """Return the texts of a column, and those of another one where it has none."""
    if columns is None or others is None:
        return columns or others
    return [text or other for text, other in zip(columns, others, strict=True)]


_OPERATOR_FIELDS = ("generated", "hierarchy", "stack")
"""What only some operators say."""


class _Origin(NamedTuple):
    """What the host had open at a launch.

    Attributes:
        path: The ranges.
        said: Index of what the operator says; `NONE` without one.
        generated, module, line, collective: As in `_Origins`.
        forward_module, forward_line: Those at the forward step of a backward step.
    """

    path: str | None
    said: int
    generated: str | None
    module: str | None
    line: str | None
    collective: int
    forward_module: str | None
    forward_line: str | None


_NOWHERE = None, NONE, None, None, None, NONE, None, None


def launched(trace: TraceColumns, budget: TimelineBudget) -> Launches:
    """Put the kernels of a trace in the order in which they began, each with what launched it.

    The columns of the kernels are taken out of the trace, and those that only told who launched them.
    """
    return _Launched(trace, budget).launches()


class _Launched:
    """Finds what launched the kernels of a trace."""

    def __init__(self, trace: TraceColumns, budget: TimelineBudget) -> None:
        self._trace, self._budget = trace, budget
        self._paths = Paths(budget)
        # What was open at each launch, and the call of its operator; those of `NONE` are the last.
        self._origin_of: defaultdict[tuple[Any, ...], int] = defaultdict(count().__next__)
        nowhere = self._origin_of[_NOWHERE]
        self._threads = trace.launches.threads + array("i", [UNSEEN])
        self._around = array("i", [nowhere]) * len(self._threads)
        self._calls = array("i", bytes(4 * len(self._threads)))
        self._steps = array("i", [NO_STEP]) * len(self._threads)
        self._step_of: defaultdict[StepRange, int] = defaultdict(count().__next__)
        self._origins: dict[int, tuple[array[int], _Origins]] = {}
        self._find_launches()
        self._by_id: dict[Any, int] = {}
        self._origins_by_id = self._find_by_id()
        self._forward: dict[_Step, tuple[_Origins, int]] = {}
        self._find_forward_steps()
        for launches, origins in self._origins.values():
            for launch, origin, at in zip(launches, self._each(origins), origins.operators, strict=True):
                self._around[launch] = self._origin_of[origin]
                self._calls[launch] = at + 1
        self._origins.clear()
        trace.forget_origins()

    def launches(self) -> Launches:
        """Return the kernels."""
        kernels, made = self._trace.kernels, Launches()
        order = in_order(kernels.starts)

        made.starts, made.durations = ordered(kernels.starts, order), ordered(kernels.durations, order)
        made.launched_by = launches = ordered(kernels.launches, order)
        made.lanes, lanes = indices(ordered(kernels.lanes, order))
        made.streams = [kernels.streams[lane] for lane in lanes]
        around = array("i", map(self._around.__getitem__, launches))
        made.calls = array("i", map(self._calls.__getitem__, launches))
        if self._origins_by_id:
            by_id = [*zip(self._each(self._origins_by_id), self._origins_by_id.operators, strict=True)]
            for at, number in enumerate(order):
                external = kernels.externals[number] if self._threads[launches[at]] < 0 else None
                if (place := self._by_id.get(external)) is not None:
                    origin, operator = by_id[place]
                    around[at], made.calls[at] = self._origin_of[origin], operator + 1
        told = [ordered(column, order) for column in (kernels.names, kernels.shapes, kernels.collectives)]
        made.kinds, kinds = indices(zip(around, *told, strict=True))
        steps = array("i", map(self._steps.__getitem__, launches))
        each = [*self._step_of]
        step_order = [step for step in dict.fromkeys(steps) if step != NO_STEP]
        place_of = {step: place for place, step in enumerate(step_order)} | {NO_STEP: NO_STEP}
        made.steps, made.step_ranges = array("i", map(place_of.__getitem__, steps)), [each[step] for step in step_order]
        origins, operands = [_Origin(*one) for one in self._origin_of], _Operands(self._trace.calls)
        made.alike = [self._event(told, origins[origin], operands) for origin, *told in kinds]
        self._trace.kernels = Kernels()
        self._budget.moved(1.0 - READING)
        return made

    def _event(self, told: Sequence[int], origin: _Origin, operands: _Operands) -> KernelEvent:
        """Return what alike launches have in common."""
        trace, (name, shape, collective) = self._trace, told
        title, (grid, block) = trace.texts[name], trace.kernels.sizes[shape]
        collective = origin.collective if collective == NONE else collective
        said = None if origin.said == NONE else trace.said[origin.said]
        return KernelEvent(
            title,
            shape_of(grid),
            shape_of(block),
            start_ns=0,
            duration_ns=0,
            nvtx_range=origin.path,
            operator=said and said.operator,
            module=origin.module or origin.forward_module,
            code=_code(origin.generated, title) or origin.line or origin.forward_line,
            call=0 if said is None else 1,
            operands=said and operands[said.call],
            collective=None if collective == NONE else trace.collectives[collective],
        )

    def _each(self, origins: _Origins) -> Iterator[tuple[Any, ...]]:
        """Yield what was open at each of some moments, as the parts of an origin."""
        facts = self._trace.operators.facts
        modules: Iterable[str | None] = repeat(None)
        lines: Iterable[str | None] = repeat(None)
        if self._forward:
            steps = map(origins.step, range(len(origins.operators)))
            forward = [None if step is None else self._forward.get(step) for step in steps]
            modules = (one and one[0].modules[one[1]] for one in forward)
            lines = (one and one[0].lines[one[1]] for one in forward)
        said = (NONE if at == NONE else facts[at] for at in origins.operators)
        own = origins.generated, origins.modules, origins.lines, origins.collectives
        return zip(origins.paths, said, *own, modules, lines, strict=False)

    def _find_launches(self) -> None:
        """Find what was open on each thread at the launches of kernels."""
        launches = self._trace.launches
        wanted: defaultdict[int, array[int]] = defaultdict(lambda: array("i"))
        is_known = bytearray(len(launches.threads))
        for launch in self._trace.kernels.launches:
            if (thread := self._threads[launch]) >= 0 and not is_known[launch]:
                is_known[launch] = 1
                wanted[thread].append(launch)
        step_ranges = self._find_step_ranges()
        for thread, unordered in wanted.items():
            moments = launches.moments(unordered)
            order = in_order(moments)
            own, moments = ordered(unordered, order), ordered(moments, order)
            self._origins[thread] = own, self._at(thread, moments, self._paths_at(thread, moments))
            for launch, moment in zip(own, moments, strict=True) if step_ranges else ():
                if (step := step_ranges.at(self._trace.processes[thread], moment)) is not None:
                    self._steps[launch] = self._step_of[step]

    def _at(self, thread: int, moments: array[int], paths: Sequence[str | None] = ()) -> _Origins:
        """Find what was open on a thread at some moments, which are in order, with the ranges at these."""
        self._budget.check_time()
        trace = self._trace
        inside = {
            kind: spans.innermost(spans.in_order(thread), moments)
            for kind, spans in (
                ("module", trace.modules),
                ("frame", trace.frames),
                ("communication", trace.communications),
                ("title", trace.titles),
            )
            if thread in spans.by_thread
        }
        around = _Around(
            trace.operators.in_order(thread),
            partial(trace.operators.innermost, moments=moments),
            lambda _: trace.processes[thread],
        )
        return _Origins(trace, around, inside, paths)

    def _paths_at(self, thread: int, moments: array[int]) -> Sequence[str | None]:
        """Return the ranges that were open on a thread at some moments; empty where none was at any."""
        ranges = self._trace.ranges
        around = [
            (ranges.starts[at], -ranges.ends[at], self._trace.texts[ranges.facts[at]])
            for at in ranges.by_thread.get(thread, ())
            if bisect_left(moments, ranges.starts[at]) < bisect_right(moments, ranges.ends[at])
        ]
        if not around:
            return ()
        opened, changes, path = OpenRanges(sorted(around)), -1, None
        found = []
        for moment in moments:
            opened.go_to(moment)
            if opened.changes != changes:
                changes, path = opened.changes, self._paths.of(opened)
            found.append(path)
        return found

    def _find_by_id(self) -> _Origins | None:
        """Find the operators of kernels without a launch, by the ID that both have; None if no kernel needs it."""
        trace, kernels = self._trace, self._trace.kernels
        for number, thread in enumerate(map(self._threads.__getitem__, kernels.launches)):
            if thread < 0 and (external := kernels.externals[number]) is not None:
                self._by_id.setdefault(external, len(self._by_id))
        if not self._by_id:
            return None
        operators = trace.operators
        processes = {
            at: trace.processes[thread]
            for thread, own in operators.by_thread.items()
            for at in own
            if operators.externals[at] in self._by_id
        }

        def innermost(some: Iterable[int]) -> array[int]:
            found = array("q", [NONE]) * len(self._by_id)
            for at in some:
                place = self._by_id[operators.externals[at]]
                if (known := found[place]) == NONE or operators.duration(at) < operators.duration(known):
                    found[place] = at
            return found

        return _Origins(trace, _Around(sorted(processes), innermost, processes.__getitem__), {})

    def _find_step_ranges(self) -> StepRanges:
        trace, ranges = self._trace, self._trace.ranges
        spans = defaultdict[Any, list[tuple[int, int, str]]](list)
        for thread, own in ranges.by_thread.items():
            spans[trace.processes[thread]] += [
                (ranges.starts[at], ranges.ends[at], trace.texts[ranges.facts[at]]) for at in own
            ]
        self._budget.check_time()
        return StepRanges(spans)

    def _find_forward_steps(self) -> None:
        """Find what was open at the forward steps of the backward steps that launched kernels.

        A backward step runs on a thread of PyTorch's own, where neither modules nor functions of the program are open.
        """
        trace = self._trace
        if not (trace.says_more or trace.modules.facts or trace.frames.facts):
            return
        every = [
            *(origins for _, origins in self._origins.values()),
            *([self._origins_by_id] if self._origins_by_id else []),
        ]
        wanted = {step for origins in every for step in origins.steps}
        began: dict[_Step, tuple[int, int] | None] = {}
        for thread, own in trace.operators.by_thread.items():
            self._budget.check_time()
            process = trace.processes[thread]
            for at in own:
                if (step := (process, trace.operators.steps[at])) in wanted:
                    moment = trace.operators.starts[at]
                    known = began.setdefault(step, (thread, moment))
                    # Of nested operators the innermost has the step; a step of several threads is none's.
                    is_own = known is not None and known[0] == thread
                    began[step] = (thread, max(known[1], moment)) if known and is_own else None
        by_thread = defaultdict[int, list[tuple[int, _Step]]](list)
        for step, place in began.items():
            if place is not None:
                by_thread[place[0]].append((place[1], step))
        for thread, steps in by_thread.items():
            steps.sort(key=itemgetter(0))
            origins = self._at(thread, array("q", [moment for moment, _ in steps]))
            self._forward |= {step: (origins, at) for at, (_, step) in enumerate(steps)}


def _code(generated: str | None, kernel: str) -> str | None:
    """Return where a kernel comes from: the file that a compiler wrote, with the node that it was made of."""
    fused = _FUSED.match(kernel)
    node = f"node {fused['nodes']}" if fused else None
    return bounded_name(f"{generated}, {node}") if generated and node else generated or node


class _Operands(dict[int, "Operands | None"]):
    """What operators were called with, by the index of the call, decoded when asked for; equal operands are one."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__({NONE: None})
        self._calls = calls
        self._equal: dict[Operands, Operands] = {}

    def __missing__(self, at: int) -> Operands | None:
        found = _operands_of(*map(value_of, self._calls[at].split(BETWEEN)))
        self[at] = None if found is None else self._equal.setdefault(found, found)
        return self[at]


def _operands_of(  # noqa: PLR0913, PLR0917 - what a trace says of a call
    dims: Any, types: Any, strides: Any, values: Any, num_gb: Any, flop: Any
) -> Operands | None:
    """Return an operator's arguments; None if the trace does not give them, or gives more than a real call has."""
    sizes, names = _lists(dims), _argument_texts(types)
    moved_gb, flops = _positive_number(num_gb), _positive_number(flop)
    counted = (moved_gb * _GB if moved_gb else None), flops
    if sizes is None or names is None or len(names) != len(sizes):
        return Operands((), (), (), (), *counted) if moved_gb else None
    steps, numbers = _lists(strides), _argument_texts(values)
    return Operands(
        sizes,
        names,
        steps if steps is not None and len(steps) == len(sizes) else (),
        numbers if numbers is not None and len(numbers) == len(sizes) else (),
        *counted,
    )


def _positive_number(value: Any) -> float | None:
    """Return a finite positive number, which is a text if it has a fraction; None for anything else."""
    if type(value) is not int and not isinstance(value, str):
        return None
    try:
        found = float(value)
    except (OverflowError, ValueError):
        return None
    return found if 0 < found < LATEST_NS else None


def _lists(value: Any) -> tuple[tuple[int, ...], ...] | None:
    """Return a list of sizes per argument, empty for a list of tensors; None if the value has another form."""
    if not isinstance(value, list) or len(value) > _MOST_ARGUMENTS:
        return None
    found = []
    for one in value:
        if not isinstance(one, list):
            return None
        is_sizes = len(one) <= _MOST_DIMENSIONS and all(type(size) is int and 0 <= size < LATEST_NS for size in one)
        found.append(tuple(one) if is_sizes else ())
    return tuple(found)


def _argument_texts(value: Any) -> tuple[str, ...] | None:
    """Return a text per argument, empty for a list; None if the value has another form."""
    if not isinstance(value, list) or len(value) > _MOST_ARGUMENTS:
        return None
    return tuple(text_of(one) if len(text_of(one)) <= _LONGEST_ARGUMENT else "" for one in value)
