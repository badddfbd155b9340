"""Turn the text that ncu prints on a terminal into rows of its details page: a row per metric, a row per rule.

The reader relies only on what all versions since 2019 share: the line that names a kernel, `Section:`, tables of three
columns under dashed lines, and rule results that begin with three letters. It skips the rest: output of the program and
the profiler, colours, and quote marks of the page that the text was copied from. Of what somebody wrote in between, it
takes rows that carry ncu's labels, and sentences of ncu's rules that state a measurement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from rooflens.errors import InputError
from rooflens.files import TEXT_HEAD_BYTES, is_utf16
from rooflens.format import LONGEST_NAME
from rooflens.ingest.exports.kernels import function_of
from rooflens.ingest.exports.margins import as_printed, margin_of, without_margin
from rooflens.ingest.exports.notes import noted
from rooflens.ingest.exports.sentences import is_stating
from rooflens.ingest.exports.tables import (
    BLOCK,
    CC,
    CONTEXT,
    DEVICE,
    GRID,
    HOST,
    ID,
    INVOCATIONS,
    KERNEL,
    METRIC,
    PROCESS,
    PROCESS_ID,
    RULE,
    RULE_TEXT,
    SECTION,
    SPEEDUP,
    SPEEDUP_OF,
    STREAM,
    UNIT,
    VALUE,
    ExportFacts,
    Header,
    lines_of,
    open_text,
)
from rooflens.model.counters.labels import SECTIONS

_EXPORT_COLUMNS = (
    *(ID, PROCESS_ID, PROCESS, HOST, KERNEL, CONTEXT, STREAM, BLOCK, GRID, DEVICE, CC),
    *(SECTION, METRIC, UNIT, VALUE, RULE, RULE_TEXT, SPEEDUP_OF, SPEEDUP, INVOCATIONS),
)
HEADER = Header(_EXPORT_COLUMNS, ",", {name: place for place, name in enumerate(_EXPORT_COLUMNS)})
"""The columns of the rows: those of a details page, without a rule's type."""

_MARKUP = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # colours, titles of windows
    r"|^(?:\ufeff|\d{4}-\d\d-\d\dT[\d:.]+Z ?|\[\d+,\d+\]<std(?:out|err)>: ?|\[rank\d+\]: ?)+"  # byte order mark, logs
    r"|^\s*(?:(?:>|//)(?: |$))+"  # quotes, comments
)
_SPACES = str.maketrans({"\u00a0": " ", "\u2007": " ", "\u200b": "", **dict.fromkeys("│┃║", "|")})
_SIZES_TEXT = r"\([\d.,'\u202f ]+\)"
_KERNEL_LINE = re.compile(
    r"(?P<name>\S.*?)(?:, (?P<time>\d{4}-\w{1,12}-\d\d \d\d:\d\d:\d\d))?"
    rf"(?: (?P<grid>{_SIZES_TEXT}) ?x ?(?P<block>{_SIZES_TEXT}))?"
    r",\s+Context (?P<context>[\d.,]+)(?=,\s+(?:Stream|Device|CC) )(?:,\s+Stream (?P<stream>[\w.,]*\w))?"
    r"(?:,\s+Device (?P<device>\d+))?(?:,\s+CC (?P<cc>\d+[.,]\d+))?(?:,\s+Invocations (?P<launches>[\d.,]+))?\s*"
)
_SUMMED = re.compile(
    rf"(?P<name>\S.*?)(?: (?P<grid>{_SIZES_TEXT}) ?x ?(?P<block>{_SIZES_TEXT}))?(?:,\s+Device (?P<device>\d+))?"
    r"(?:,\s+CC (?P<cc>\d+[.,]\d+))?,\s+Invocations (?P<launches>[\d.,]+)\s*"
)
"""A kernel of a summary over launches (`--print-summary`), since 2023."""
_CONTEXT = re.compile(r",\s+Context [\d.,]+")
_COMPARED = re.compile(r"\) ?>=? ?\(")
_LONGEST_TAIL, _LONGEST_PART = 200, 1_000
"""Longest accepted part after a kernel's name, and longest accepted part of a line that a terminal wrapped."""

_PROCESS = re.compile(r"\[(?P<pid>\d+)\] (?P<name>.+)@(?P<host>[^\s@]+)\s*")
_SECTION = re.compile(r"Section: (?P<name>.*?)(?: \(Overview\))?")
_DASHES = re.compile(r"-{3,}(?: -{3,})+\s*")
_HEADINGS = re.compile(r"Metric Name\s+Metric Unit\s+(?P<last>Metric Value|Minimum.*)\s*")
_RULE = re.compile(r"(?:(?:OPT|INF|WRN)\s+|(?:OK|ERR|WARN|INFO)\s{2,})(?P<text>\S.*)")
_FENCE = re.compile(r"(?:`{3,}|~{3,})[\w+-]*")
_PROFILER = re.compile(r"==[A-Z]+==")
_SPEEDUP = re.compile(r"\s*Est\. (?P<local>Local )?Speedup: (?P<pct>[\d.,]+)\s?%\s*")
_LONGEST_LINE = LONGEST_NAME + _LONGEST_TAIL
"""Of a longer line only the start and the end are read: enough for a kernel's name and what follows it."""
_MOST_JOINED = 40
"""Most lines over which ncu wraps a kernel's name."""

_TABLE_COLUMNS, _SUMMARY_COLUMNS = 3, 5
"""Name, unit and value; in a summary the last three are minimum, maximum and mean."""
_SECTIONS: Mapping[str, str] = {name: one.identifier for one in SECTIONS for name in one.names}
"""Section title in the text -> its name in rule results."""

_RULES: Sequence[tuple[str, str]] = (
    (r"exhibits? low compute throughput|of the available compute or memory performance", "SOLBottleneck"),
    (r"grid is too small to fill|is more heavily utilized than|Compute and Memory are well-balanced", "SOLBottleneck"),
    (r"The ratio of peak float|The achieved fp\d+ performance is", "SOLFPRoofline"),
    (r"highest-utilized pipeline|pipelines? (?:is|are) (?:over|under)-utilized", "HighPipeUtilization"),
    (r"L2 Compression unit|lts__average_gcomp", "MemoryL2Compression"),
    (r"memory access pattern for shared", "SharedMemoryConflicts"),
    (r"memory access pattern for", "MemoryCacheAccessPattern"),
    (r"Every scheduler is capable of", "IssueSlotUtilization"),
    (r"On average,? each warp of|for the top stall locations in your source", "CPIStall"),
    (r"Instructions are executed in warps", "ThreadDivergence"),
    (r"fused and .{1,40} non-fused FP\d+ instructions", "FPInstructions"),
    (r"Threads are executed in groups of|grid for this launch is configured", "LaunchConfiguration"),
    (r"If you execute __syncthreads\(\)|A wave of thread blocks", "LaunchConfiguration"),
    (r"theoretical warps per scheduler this kernel can issue", "TheoreticalOccupancy"),
    (r"^This \w+'s theoretical occupancy", "Occupancy"),
    (r"difference between calculated theoretical", "AchievedOccupancy"),
    (r"have a much (?:lower|higher) number of active cycles", "WorkloadImbalance"),
    (r"[Uu]ncoalesced global access", "UncoalescedGlobalAccess"),
    (r"[Uu]ncoalesced shared access", "UncoalescedSharedAccess"),
    (r"Sampling interval is larger than", "PMSamplingData"),
    (r"Sampling metrics were enabled", "PCSamplingData"),
)
"""Words in a rule's text -> the rule's name, which the text omits; the first match counts."""


class _Kernel(Struct):
    """The kernel that is being read.

    Attributes:
        cells: Its identifying cells, by column.
        sections: Sections seen so far.
        has_rows: Whether any of its rows was read.
        first: The label of its first row.
    """

    cells: dict[str, str]
    sections: set[str] = field(default_factory=set)
    has_rows: bool = False
    first: str = ""


class _OpenTable(Struct):
    """A table that is being read.

    Attributes:
        columns: Start and end of each column, counted from the start of the dashed line.
        indent: Where the dashed line starts.
        rows: How many rows it has so far.
        is_headed: The last line held its headings.
        held: The first part of a name that ncu broke.
    """

    columns: tuple[tuple[int, int], ...]
    indent: int
    rows: int = 0
    is_headed: bool = False
    held: str = ""


def is_text(head: bytes) -> bool:
    """Return whether a file is ncu's terminal output or holds parts of it, judged by its first bytes or all of it."""
    if _is_bare(head):
        return not _is_binary(head) and _is_noted(head)
    has_section = has_table = False
    for line in _clean_lines(open_text(head), margin_of(open_text(head))):
        bare = line.strip()
        if bare.endswith(_ENDS) and (_KERNEL_LINE.fullmatch(bare) or _SUMMED.fullmatch(bare)):
            return True
        has_section = has_section or _SECTION.fullmatch(bare) is not None
        has_table = has_table or _HEADINGS.fullmatch(bare) is not None or _dashed(bare) is not None
        if has_section and has_table:
            return True
    return False


_ENDS = tuple("0123456789")
_FEWEST_NOTED = 3
"""So many rows of different labels make a text one of ncu's, if nothing else does."""
_NOTED = (b"Throughput", b"SOL ", b"[%]", b"Speedup:")
"""What stands in some of them."""


def _is_bare(data: bytes) -> bool:
    """Return whether a text has neither lines that name a kernel nor titles of sections."""
    plain = data.replace(b"\0", b"")  # of UTF-16
    return b"Section:" not in plain and b"Context" not in plain


_FIRST_BYTES = 64


def _is_binary(head: bytes) -> bool:
    """Return whether a file is no text: a report holds sentences of rules, too."""
    return b"\0" in head[:_FIRST_BYTES] and not is_utf16(head)


def _is_noted(head: bytes) -> bool:
    """Return whether a text holds rows that ncu prints, or a rule's result with its estimate."""
    plain = head.replace(b"\0", b"")
    if not any(word in plain for word in _NOTED):
        return False
    labels: set[str] = set()
    paragraph: list[str] = []
    has_estimate = False
    for line in _clean_lines(open_text(head)):
        bare = line.strip()
        has_estimate = has_estimate or _SPEEDUP.fullmatch(bare) is not None
        paragraph = [*paragraph[-_MOST_JOINED:], bare] if bare else []
        if row := noted(bare):
            labels.add(row[0])
        if len(labels) >= _FEWEST_NOTED:
            return True
        if has_estimate and paragraph and any(re.search(words, " ".join(paragraph)) for words, _ in _RULES):
            return True
    return False


def _clean_lines(lines: Iterable[str], margin: re.Pattern[str] | None = None) -> Iterator[str]:
    """Yield lines without colours, quote marks, their margin and line ends."""
    for line in lines:
        short = without_margin(line.rstrip("\r\n"), margin)
        if len(short) > _LONGEST_LINE + _LONGEST_TAIL:
            short = f"{short[:_LONGEST_LINE]}…{short[-_LONGEST_TAIL:]}"
        first = short.lstrip()[:1]
        if "\x1b" in short or (first and (first in ">/[\ufeff" or first.isdigit())):
            short = _MARKUP.sub("", short)
        for one in as_printed(short):
            yield one.translate(_SPACES).expandtabs()


def _dashed(bare: str) -> tuple[tuple[int, int], ...] | None:
    """Return the columns of a dashed line; None for other lines, and for the two-column lines between rules."""
    if not bare.startswith("---") or not _DASHES.fullmatch(bare):
        return None
    columns = tuple(part.span() for part in re.finditer("-+", bare))
    return columns if len(columns) >= _TABLE_COLUMNS else None


def text_rows(data: bytes, facts: ExportFacts) -> Iterator[list[str]]:
    """Yield the rows of a text in the order of `HEADER`, each with its kernel.

    Raises:
        InputError: The text is a summary over launches of an unknown form.
    """
    margin = margin_of(open_text(data[:TEXT_HEAD_BYTES]))
    return _TextReader(facts, is_bare=_is_bare(data)).rows(_clean_lines(lines_of(data, facts), margin))


class _TextReader:
    """Read one text, line by line.

    A text without a kernel's name or a section's title begins a kernel where its first row comes again.
    """

    def __init__(self, facts: ExportFacts, *, is_bare: bool) -> None:
        self._facts = facts
        self._is_bare = is_bare
        self._process: Mapping[str, str] = {}
        self._kernel: _Kernel | None = None
        self._section, self._section_has_body = "", False
        self._table: _OpenTable | None = None
        self._last: list[str] | None = None
        self._rule: list[str] = []
        self._rule_indent = 0
        self._prose: list[str] = []
        self._estimate: re.Match[str] | None = None
        self._before: list[str] = []
        self._header = ""
        self._count = 0

    def rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Yield each row as soon as no later line can add to it."""
        for line in lines:
            bare = line.strip()
            done = self._structure(line, bare)
            if done is None:
                done = self._content(line, bare)
            yield from done
        if self._kernel is not None and (why := self._cut_at_the_end()):
            self._facts.cut[self._kernel.cells[ID]] = why
        yield from self._end_of_kernel()

    def _cut_at_the_end(self) -> str:
        """Say why the end of a text looks cut off: it is inside a rule, or right below a section's title."""
        if self._rule and not self._rule[-1].endswith((".", ")", ":")):
            return "its last rule ends early"
        is_bare = self._section and not self._section_has_body and not self._rule
        return f"its section `{self._section}` is empty" if is_bare else ""

    def _structure(self, line: str, bare: str) -> list[list[str]] | None:
        """Take a line that starts something new; return the rows that it completes, None for other lines."""
        if _PROFILER.match(bare):
            return []
        if not bare:
            self._before = []
            if self._table is not None and self._table.rows:
                return self._end_of_excerpt()
            return [] if len(self._rule) == 1 and _SPEEDUP.fullmatch(self._rule[0]) else self._end_of_rule()
        if _FENCE.fullmatch(bare):
            return self._end_of_excerpt()
        return self._take_heading(line, bare)

    def _end_of_excerpt(self) -> list[list[str]]:
        """End what is open where somebody ended it: a table that he left without its last line is not cut."""
        done = [*self._end_of_rule(), *self._end_of_row()]
        self._table = None
        return done

    def _take_heading(self, line: str, bare: str) -> list[list[str]] | None:
        """Take the line of a process, a kernel, a section or a table's columns; return as `_structure` does."""
        if found := _PROCESS.fullmatch(bare):
            done = self._end_of_kernel()
            self._process = {PROCESS_ID: found["pid"], PROCESS: found["name"], HOST: found["host"]}
            self._kernel, self._section = None, ""
            return done
        if found := _SECTION.fullmatch(bare):
            done = self._finished()
            self._begin_section(found["name"])
            return done
        if (kernel := self._kernel_of(line, bare)) is not None:
            done = self._end_of_kernel()
            self._begin_kernel({name: part or "" for name, part in kernel.groupdict().items()})
            self._header = kernel[0]
            return done
        if headings := _HEADINGS.fullmatch(bare):
            if self._table is None and not headings["last"].startswith("Metric"):
                raise InputError(*_SUMMARY)
            if self._table is not None:
                self._table.is_headed = True
            return self._end_of_rule()
        if not _DASHES.fullmatch(bare):
            self._before = [*self._before[-_MOST_JOINED:], line]
            self._header = ""
        return None

    def _kernel_of(self, line: str, bare: str) -> re.Match[str] | None:
        """Match the line that names a kernel, after joining it with the lines above that a terminal wrapped."""
        if not bare.endswith(_ENDS):
            return None
        if "Invocations" in bare and (summed := _SUMMED.fullmatch(bare)) is not None:
            return summed
        if self._header:
            whole = None if "Context" in bare else _KERNEL_LINE.fullmatch(_joined_line(self._header, line))
            self._header = ""
            if whole is not None:  # the terminal wrapped it after the name
                self._count, self._kernel = self._count - 1, None
                return whole
        joined, whole = bare, _KERNEL_LINE.fullmatch(bare) if "Context" in bare else None
        for before in reversed(self._before):
            is_whole = whole is not None and _is_closed(whole["name"])
            if is_whole or max(len(before), len(bare)) > _LONGEST_PART:
                break
            joined = _joined_line(before, line if joined is bare else joined)
            whole = _KERNEL_LINE.fullmatch(joined.strip()) if _CONTEXT.search(joined) else None
            if whole is None and len(joined) > _LONGEST_TAIL and not _CONTEXT.search(joined):
                break
        return whole if whole is not None and _is_closed(whole["name"]) else _KERNEL_LINE.fullmatch(bare)

    def _begin_kernel(self, heading: Mapping[str, str]) -> None:
        names = ((KERNEL, "name"), (CONTEXT, "context"), (STREAM, "stream"), (DEVICE, "device"), (CC, "cc"))
        sizes = {BLOCK: heading.get("block", ""), GRID: heading.get("grid", "")}
        sizes[INVOCATIONS] = heading.get("launches", "")
        cells = {ID: str(self._count), **self._process, **{to: heading.get(name, "") for to, name in names}, **sizes}
        self._count += 1
        self._kernel, self._section, self._before = _Kernel(cells), "", []

    def _begin_section(self, name: str) -> None:
        """Begin a section; in a text without kernel names, a repeated section starts the next kernel."""
        if self._kernel is None or (not self._kernel.cells[KERNEL] and name in self._kernel.sections):
            self._begin_kernel({})
        assert self._kernel is not None  # noqa: S101 - for the checker: it was just begun
        self._kernel.sections.add(name)
        self._section, self._section_has_body, self._before = name, False, []

    def _content(self, line: str, bare: str) -> list[list[str]]:
        """Read a line of a table or of a rule's text; return the rule that it ends."""
        if self._kernel is None and not self._is_bare:
            return []
        line = line.rstrip()
        indent = len(line) - len(line.lstrip())
        if bare.startswith("---") and _DASHES.fullmatch(bare):
            done = self._end_of_rule()
            self._dashes(_dashed(bare), indent)
            return done
        if self._table is None and (found := _RULE.fullmatch(bare)):
            done = self._end_of_rule()
            self._rule, self._rule_indent = [found["text"]], indent
            return done
        if self._rule:
            if indent > self._rule_indent or not self._rule_indent:
                self._rule.append(bare)
                return []
            return self._end_of_rule()
        return self._table_row(line, bare, indent)

    def _take_note(self, bare: str) -> list[list[str]]:
        """Read a line that somebody wrote: a row of one metric, or a part of what may be a rule's sentence."""
        if (row := noted(bare)) is not None:
            self._prose = []
            return self._take_row(*row)
        if self._table is not None:
            return []
        if bare.startswith("|"):  # each row of a table says its own
            self._prose = [bare.strip("| ")]
            return self._end_of_rule()
        self._prose = [*self._prose[-_MOST_JOINED:], bare]
        return []

    def _dashes(self, columns: tuple[tuple[int, int], ...] | None, indent: int) -> None:
        """Open a table, continue it below its headings, or close it."""
        if columns is None:
            return
        if len(columns) == _SUMMARY_COLUMNS:
            columns = (*columns[:2], columns[-1])
        if self._table is not None and not self._table.is_headed:
            self._table = None
        elif self._table is not None:
            self._table.is_headed = False
        else:
            self._table = _OpenTable(columns, indent)

    def _table_row(self, line: str, bare: str, indent: int) -> list[list[str]]:
        """Read the row of a table by its columns, else by known labels."""
        table = self._table
        if table is not None and len(table.columns) == _TABLE_COLUMNS:
            columns = [line[min(indent, table.indent) :][start:end] for start, end in _wide(table.columns)]
            gaps = "".join(line[min(indent, table.indent) :][end : end + 1] for _, end in table.columns[:-1])
            name, unit, value = (cell.strip() for cell in columns)
            value = value.partition("  ")[0]  # drop notes that somebody added
            width = table.columns[0][1]
            if not gaps.strip() and name and not unit and not value and " " not in name:
                return self._broken_name(table, name, width)
            if not gaps.strip() and not name and value and not unit and self._last is not None and table.rows:
                self._last[_EXPORT_COLUMNS.index(VALUE)] += value
                return []
            if not gaps.strip() and name and value and not columns[0].startswith(" ") and " " not in unit:
                return self._take_row(table.held + name, unit, value)
        return self._take_note(bare)

    def _broken_name(self, table: _OpenTable, name: str, width: int) -> list[list[str]]:
        """Join a name that ncu wrapped at its column's width; its value is on either line."""
        place = _EXPORT_COLUMNS.index(METRIC)
        if len(name) == width and (self._last is None or len(self._last[place]) % width):
            table.held += name
        elif self._last is not None and len(self._last[place]) % width == 0:
            self._last[place] += name
        return []

    def _take_row(self, name: str, unit: str, value: str) -> list[list[str]]:
        """Hold a row until the next line shows that it is complete; return the row before."""
        done = self._end_of_row()
        if self._kernel is None or self._begins_again(name):
            done += self._end_of_kernel()
            self._begin_kernel({})
        assert self._kernel is not None  # noqa: S101 - for the checker: it was just begun
        self._kernel.first = self._kernel.first or name
        if self._table is not None:
            self._table.rows += 1
            self._table.held, self._table.is_headed = "", False
        self._last = self._cells_of_row({SECTION: self._section, METRIC: name, UNIT: unit, VALUE: value})
        return done

    def _begins_again(self, name: str) -> bool:
        """Return whether a row is the first of another kernel, in a text that names none."""
        return self._is_bare and self._kernel is not None and name == self._kernel.first

    def _cells_of_row(self, cells: Mapping[str, str]) -> list[str]:
        identity = {}
        if self._kernel is not None:
            identity, self._kernel.has_rows = self._kernel.cells, True
        self._section_has_body = True
        return [cells.get(name) or identity.get(name, "") for name in _EXPORT_COLUMNS]

    def _end_of_row(self) -> list[list[str]]:
        done, self._last = [self._last] if self._last is not None else [], None
        return done

    def _end_of_rule(self) -> list[list[str]]:
        """Return the row before a rule, and the rule whose text ends here; a quoted one if it states a number.

        Copied from the tool's window, a rule's estimate is a paragraph before it.
        """
        parts, self._rule, prose, self._prose = self._rule, [], self._prose, []
        found = _SPEEDUP.fullmatch(parts[0]) if parts else None
        if not parts and prose:
            if estimate := _SPEEDUP.fullmatch(prose[-1]):
                self._estimate = estimate
                return []
            parts, found, self._estimate = prose, self._estimate, None
            message = " ".join(" ".join(parts).split())
            if not (is_stating(message) or (found and any(re.search(words, message) for words, _ in _RULES))):
                return []
            if self._kernel is None:
                self._begin_kernel({})
        else:
            message = " ".join(" ".join(parts[1:] if found else parts).split())
        if not parts:
            return []
        own = {SECTION: _SECTIONS.get(self._section, self._section), RULE: _rule_of(message, self._section)}
        own[RULE_TEXT] = message
        if found:
            own |= {SPEEDUP_OF: "local" if found["local"] else "global", SPEEDUP: found["pct"]}
        return [*self._end_of_row(), self._cells_of_row(own)]

    def _finished(self) -> list[list[str]]:
        """Close whatever is open; a table without its closing line was cut, and so was its kernel."""
        done = [*self._end_of_rule(), *self._end_of_row()]
        if self._table is not None and self._kernel is not None and self._table.rows:
            self._facts.cut[self._kernel.cells[ID]] = f"its table `{self._section or 'of metrics'}` is not complete"
        self._table = None
        return done

    def _end_of_kernel(self) -> list[list[str]]:
        """Close what is open; remember a kernel without metrics."""
        done = self._finished()
        if self._kernel is not None and not self._kernel.has_rows and self._kernel.cells[KERNEL]:
            self._facts.empty.append(function_of(self._kernel.cells[KERNEL]))
        return done


_SUMMARY = (
    "a summary over launches (`--print-summary`) in a form that no ncu since 2023 prints",
    "print it again without `--print-summary`",
)


def _wide(columns: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int | None]]:
    """Let the last column extend to the end of the line."""
    yield from columns[:-1]
    yield columns[-1][0], None


def _joined_line(first: str, second: str) -> str:
    """Join a line that a terminal wrapped; the blank at the break may be lost."""
    is_indented = len(second) - len(second.lstrip()) > 1
    gap = " " if first.endswith((",", ")")) and second[:1] in "(CSD" else ""
    return f"{first}{gap}{second.lstrip() if is_indented else second}"


def _is_closed(name: str) -> bool:
    """Return whether a kernel's name has no unmatched closing bracket; otherwise it began on an earlier line.

    A `<` or `>` between round brackets may be a comparison: `enable_if<((8) > (0)), int>`.
    """
    compared = name.count("->") + len(_COMPARED.findall(name))
    return name.count("(") >= name.count(")") and name.count("<") >= name.count(">") - compared


def _rule_of(message: str, section: str) -> str:
    """Name the rule that prints a text; fall back to its section."""
    if section == "Scheduler Statistics":  # the second sentence of this section comes from another rule
        return "IssueSlotUtilization"
    named = (name for words, name in _RULES if re.search(words, message))
    return next(named, _SECTIONS.get(section, section) or "rule")
