from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import Raw

from rooflens.errors import InputError
from rooflens.ingest.timelines import events as module
from rooflens.ingest.timelines import kineto
from rooflens.ingest.timelines.budget import TimelineBudget
from rooflens.ingest.timelines.events import read_events, read_pieces
from rooflens.ingest.timelines.kernel_events import span_of
from rooflens.ingest.timelines.kineto import Arguments, Event, EventDecoder, event_of, value_of

_EVENT = b'{"ph":"X","name":"k","ts":12.50,"args":{"a":[1,{"b":"}]"}]}}'


def _read(tmp_path: Path, data: bytes) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    """Return the whole text of a trace, its events, and the values of its other keys."""
    file = tmp_path / "trace.json"
    file.write_bytes(data)
    pieces = list(read_pieces(file))
    found = [piece.event for piece in pieces if piece.event is not None]
    return "".join(piece.text for piece in pieces), found, {piece.key: piece.value for piece in pieces if piece.key}


@pytest.mark.parametrize(
    "data",
    [
        b'{"traceEvents":[]}',
        b"[]",
        b'\xef\xbb\xbf { "a" : 1 , "traceEvents" : [ %b , %b ] , "b" : [{}] }\n' % (_EVENT, _EVENT),
        b'{"traceEvents":[%b],}' % _EVENT,
        b"[%b,\r\n\t%b,]" % (_EVENT, _EVENT),
    ],
)
def test_no_character_is_lost(tmp_path: Path, data: bytes) -> None:
    """The joined parts equal the file, in each of its possible forms."""
    text, found, _ = _read(tmp_path, data)
    assert text.encode() == data
    assert len(found) == data.count(b'"ts"')


def test_values_are_read_and_numbers_keep_their_digits(tmp_path: Path) -> None:
    """Other keys are returned with their values; a fraction keeps the text of the trace."""
    _, found, keys = _read(tmp_path, b'{"z":"\\u00e9","traceEvents":[%b],"n":12}' % _EVENT)
    assert found == [{"ph": "X", "name": "k", "ts": "12.50", "args": {"a": [1, {"b": "}]"}]}}]
    assert keys == {"z": "é", "n": 12}


def test_what_other_decoders_refuse(tmp_path: Path) -> None:
    """NaN, Infinity, raw control characters and bytes that are not UTF-8 are accepted."""
    data = b'[{"a":NaN,"b":-Infinity,"c":"\x01\n\xff"}]'
    text, found, _ = _read(tmp_path, data)
    assert text.encode("utf-8", "surrogateescape") == data
    assert found[0]["c"] == "\x01\n\udcff"


def test_paths_of_windows_are_mended(tmp_path: Path) -> None:
    r"""A single backslash is doubled: `C:\data`."""
    text, found, _ = _read(tmp_path, b'[{"a":"C:\\data\\pop"},{"a":1}]')
    assert found == [{"a": "C:\\data\\pop"}, {"a": 1}]
    assert json.loads(text) == found


def test_bad_escapes_are_mended_in_one_pass(tmp_path: Path) -> None:
    """A hundred thousand bad escapes, mixed with good ones and cut by the ends of chunks, are mended in one pass."""
    piece = b'\\q\\u00e9\\\\\\u12x\\"\\ud'
    text, found, _ = _read(tmp_path, b'[{"a":"%b"},{"a":"\\u00e9"}]' % (piece * 100_000))
    assert found[0]["a"] == '\\qé\\\\u12x"\\ud' * 100_000
    assert json.loads(text) == found


@pytest.mark.parametrize("chunk_bytes", [1, 2, 7, 64])
def test_chunks_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int) -> None:
    """Strings, escapes, numbers and letters may be cut between two chunks without changing the result."""
    events = r'{"a":"\u00e9é\"","b":-1.5e3,"c":[-Infinity,null]},{"d":"\q\u1"}'
    data = f'{{"n":1234,"t":true,"traceEvents":[{events}],"e":-7}}'.encode()

    def small(path: Path, _max_bytes: int) -> Any:
        content = path.read_bytes()
        return (content[at : at + chunk_bytes] for at in range(0, len(content), chunk_bytes))

    whole = _read(tmp_path, data)
    monkeypatch.setattr(module, "chunks", small)
    assert _read(tmp_path, data) == whole
    assert whole[2] == {"n": 1234, "t": True, "e": -7}


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    """Wherever an object of events ends too early, it is refused, and the hint says what to do."""
    data = b'{"n":[1,2],"traceEvents":[%b,%b],"t":"x\\n"}' % (_EVENT, _EVENT)
    for length in range(1, len(data)):
        with pytest.raises(InputError, match="is cut: its JSON ends in the middle") as caught:
            _read(tmp_path, data[:length])
        assert caught.value.hint == module.CUT_HINT


def test_an_array_may_lack_its_end_but_not_half_an_event(tmp_path: Path) -> None:
    """An array without its end gives a note only, as Chrome accepts it; within an event it counts as cut."""
    data = b"[%b,%b]" % (_EVENT, _EVENT)
    starts = {1, 1 + len(_EVENT), 2 + len(_EVENT), 2 + 2 * len(_EVENT)}
    for length in range(1, len(data)):
        if length in starts:
            assert "cut" in _read(tmp_path, data[:length])[2]
        else:
            with pytest.raises(InputError, match="is cut"):
                _read(tmp_path, data[:length])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not start as JSON"),
        (b"SQLite format 3\0", "does not start as JSON"),
        (b"12", "does not start as JSON"),
        (b'{"kernels":[]}', "it has no `traceEvents`"),
        (b'{"traceEvents":5}', "it has no `traceEvents`"),
        (b"{}", "it has no `traceEvents`"),
        (b"[1,2]", "its array holds no events"),
        (b'{"traceEvents":[{"a":1;%b]}' % (b" " * 99), "not JSON: Expecting ',' delimiter"),
        (b'{"traceEvents":[{}]} x', "more follows"),
        (b"[" * 100_000, "its array holds no events|nested too deep"),
        (b'[{"a":' + b"[" * 100_000, "nested too deep"),
        (b'[{"a":' + b"9" * 9_999 + b"}]", "a number is too long"),
        (b"{1:2}", "a key is missing"),
        (b'{"a":1 "b":2}', "a comma is missing"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    """The error says that it is not a trace, and the hint gives the next step."""
    with pytest.raises(InputError, match=message) as caught:
        _read(tmp_path, data)
    assert caught.value.hint


def test_an_event_without_end_is_not_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a string that never ends stops after so many characters."""
    monkeypatch.setattr(module, "MOST_CHARACTERS", 1 << 20)
    with pytest.raises(InputError, match="ends within"):
        _read(tmp_path, b'[{"a":"' + b"x" * (9 << 20))


@pytest.mark.parametrize("length", [15, 40, -8, -1])
def test_a_cut_gzip_is_noticed(tmp_path: Path, length: int) -> None:
    """A gzip file is refused even if only its checksum is missing."""
    file = tmp_path / "t.json.gz"
    file.write_bytes(gzip.compress(b"[%b]" % b",".join([_EVENT] * 100))[:length])
    with pytest.raises(InputError, match=r"cannot read the trace .*: damaged: ") as caught:
        list(read_pieces(file))
    assert caught.value.hint


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    """The error contains the system's own reason."""
    with pytest.raises(InputError, match="No such file"):
        list(read_pieces(tmp_path / "none.json"))


_ODD = (
    r'{"ph":"X","cat":"cpu_op","name":"a","ts":1.25,"dur":68.0,"pid":1,"tid":2,"args":{"Input Dims":[[1,2],[]]}}',
    r'{"cat":"kernel","name":"k","ts":"7","dur":9,"args":{"grid":[1,2,3],"block":[4,5],"device":null}}',
    r'{"cat":"kernel","name":"k","args":{"grid":[1.0,2,3],"correlation":1.5,"External id":-0}}',
    r'{"cat":"x","name":"},{","args":{"list":[{"a":1},{"b":2}, {"c":"},"}]}}',
    r'{"cat":null,"name":7,"ph":[],"args":"none","pid":"p","tid":[1]}',
    r'{"name":"NaN","ts":NaN,"args":{"Input type":[Infinity]}}',
    r'{"name":"C:\data\pop","args":{"Call stack":"C:\q"}}'.replace(r"\\", "\\"),
    r'{"name":"\ud800 half","args":{"Concrete Inputs":["\udc00"]}}'.replace(r"\\", "\\"),
    '{"name":"raw \xff\x01","ts":12345678901234567890123,"args":{"Sequence number":12345678901234567890123}}',
    r'{"name":"twice","name":"again","args":{"device":1},"args":{"stream":2}}',
    "{}",
)


def _plain(event: Event) -> tuple[object, ...]:
    """Return what is read of an event, with what stays text decoded."""
    args = event.args or Arguments()
    values = [getattr(args, name) for name in Arguments.__struct_fields__]
    return (
        *(getattr(event, name) or None for name in ("ph", "cat", "name")),
        *map(str, (event.ts, event.dur, event.pid, event.tid)),
        *(value_of(bytes(one)) if isinstance(one, Raw) else one for one in values),
    )


@pytest.mark.parametrize("slice_characters", [1 << 17, 200])
@pytest.mark.parametrize("chunk_bytes", [1 << 20, 7, 64])
def test_whatever_decodes_an_event_the_same_is_read_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int, slice_characters: int
) -> None:
    """Events come alike from the typed decoder and from the standard library's, whatever they stand beside."""

    def small(path: Path, _max_bytes: int) -> Any:
        content = path.read_bytes()
        return (content[at : at + chunk_bytes] for at in range(0, len(content), chunk_bytes))

    monkeypatch.setattr(module, "chunks", small)
    monkeypatch.setattr(module, "_SLICE_CHARACTERS", slice_characters)
    chance = Random(5)  # noqa: S311 - repeatable, not secret
    good, file = _ODD[0], tmp_path / "t.json"
    for _ in range(30):
        some = [chance.choice((good, good, *_ODD)) for _ in range(chance.randint(1, 30))]
        file.write_bytes(b"[%b]" % chance.choice((", ", ",", " ,\n", ",\n  ")).join(some).encode("latin-1"))
        found = [
            _plain(event)
            for piece in read_events(file, TimelineBudget(file, ""))
            for event in (piece.events if piece.event is None else [event_of(piece.event)])
        ]
        assert found == [_plain(event_of(piece.event)) for piece in read_pieces(file) if piece.event is not None]
        assert len(found) == len(some)


def test_only_what_is_beside_a_refused_event_is_decoded_one_by_one(tmp_path: Path) -> None:
    """A NaN among ten thousand events costs the events of its own part the fast decoder, and no other."""
    file = tmp_path / "t.json"
    events = [_ODD[0]] * 10_000
    events[5_000] = '{"name":"odd","ts":NaN}'
    file.write_text(f"[{','.join(events)}]")
    budget = TimelineBudget(file, "")
    pieces = [*read_events(file, budget)]
    assert budget.refused_slices == 1
    assert sum(len(piece.events) for piece in pieces) >= 10_000 - 1 - module._SLICE_CHARACTERS // len(_ODD[0])
    assert sum(len(piece.events) + (piece.event is not None) for piece in pieces) == 10_000


def test_times_are_exact_to_the_nanosecond() -> None:
    """Start and duration equal those that decimal arithmetic gives, as whole numbers, fractions and texts."""
    chance = Random(7)  # noqa: S311 - repeatable, not secret
    for _ in range(3_000):
        digits = chance.randint(0, 6)
        ts = f"{chance.randrange(10 ** chance.randint(1, 15))}.{chance.randrange(10**digits):0{digits}}".rstrip(".")
        dur = f"{chance.choice(('', '-', '+', ' '))}{chance.randrange(10**9) / 1000:.{chance.randint(0, 5)}f}"
        exact = Decimal(ts) * 1000, Decimal(dur) * 1000
        expected = None if exact[1] < 0 else (round(exact[0]), round(exact[1]))
        assert span_of(ts, dur) == expected, (ts, dur)
        if dur[0] in "-0123456789":
            (event,) = EventDecoder()(f'[{{"ts": {ts}, "dur": {dur}}}]')
            read = None if event.ts is None else (event.ts, event.dur)
            if expected and abs(exact[0]) > 1 << 52 and digits > 3:
                expected = pytest.approx(expected[0], abs=1), expected[1]
            assert read == expected, (ts, dur)


def test_only_times_with_more_digits_than_a_float_has_are_read_from_their_digits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numbers of events are decoded once; of a trace whose times need all digits the first part alone is twice."""
    decoded: list[str] = []
    for name in ("_decode_numbers", "_decode_digits"):
        whole = getattr(kineto, name)

        def counted(text: str, name: str = name, whole: Any = whole) -> Any:
            decoded.append(name)
            return whole(text)

        monkeypatch.setattr(kineto, name, counted)
    few, many = EventDecoder(), EventDecoder()
    for _ in range(3):
        few('[{"ts": 5084329857012.345, "dur": 7}, {"ts": 1708634857293455, "dur": 1.5}, {"ph": "M"}]')
    assert decoded == ["_decode_numbers"] * 3
    decoded.clear()
    for _ in range(3):
        (event,) = many('[{"ts": 1708634857293455.123, "dur": 0.064}]')
        assert (event.ts, event.dur) == (1708634857293455123, 64)
    assert decoded == ["_decode_numbers"] + ["_decode_digits"] * 3
    for odd in (None, [], "", "x", "NaN", float("nan"), "Infinity", "1e40", 1 << 70, "9" * 5000, "-0.0001"):
        assert span_of(1, odd) is None
        assert odd == "-0.0001" or span_of(odd, 1) is None
    assert span_of(1, "-0.0") == (1000, 0)
