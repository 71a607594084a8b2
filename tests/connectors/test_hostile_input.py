"""Input that is wrong, endless or hostile: it costs its own rows, and never the query.

The usual run tries some hundred random texts; MILLSTREAM_EXAMPLES=100000 tries so many.
"""

from __future__ import annotations

import datetime
import json
import math
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream as ms
from effort import examples
from millstream.connectors.files import StreamFiles, file_arguments
from millstream.connectors.lines import Dropped, cut_lines, cut_rows
from millstream.connectors.listing import listed_files
from millstream.connectors.socket_lines import SocketLines, socket_arguments
from millstream.logical.catalog import Stream
from millstream.model.records import Checked
from millstream.model.values import to_type

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

FORMATS = ["text", "csv", "json"]
COLUMNS = {"text": "line STRING", "csv": "a STRING, n BIGINT", "json": "a STRING, n BIGINT"}


def declared(source: str, columns: str) -> Stream:
    session = ms.Session("local")
    session.sql(f"CREATE STREAM S ({columns}) SOURCE {source}")
    return session._origins.stream("S")


def started(source: str, columns: str, sql: str = "SELECT * FROM S") -> tuple[list[Any], list[str]]:
    """The rows of a stream, and what is wrong with others."""
    session = ms.Session("local")
    session.sql(f"CREATE STREAM S ({columns}) SOURCE {source}")
    running = session.sql(sql).start()
    running.wait(60)
    names = [field.name for field in session._origins.stream("S").columns]
    rows = [tuple(row[name] for name in names) for row in running.results().to_pylist()]
    return rows, [row.message for row in running.errors]


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], int]]:
    with socket.create_server(("localhost", 0)) as server:

        def serving(send: Callable[[socket.socket], None]) -> int:
            def run() -> None:
                with server.accept()[0] as connection:
                    send(connection)

            threading.Thread(target=run, daemon=True).start()
            return int(server.getsockname()[1])

        yield serving


# --- sockets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_empty_lines_on_a_socket(format: str, serve: Any) -> None:
    good = {"text": b"x\n", "csv": b"x,1\n", "json": b'{"A": "x", "n": 1}\n'}[format]

    def send(connection: socket.socket) -> None:
        for part in (b"\n", b"\r\n", good, b"\n\n", good):
            connection.sendall(part)
            time.sleep(0.02)

    rows, errors = started(f"socket(port => {serve(send)}, format => '{format}')", COLUMNS[format])
    if format == "text":
        assert rows == [("",), ("",), ("x",), ("",), ("",), ("x",)]
    else:
        assert rows == [("x", 1), ("x", 1)]
    assert errors == []


def test_deep_nesting_on_a_socket(serve: Any) -> None:
    deep = b"[" * 100_000
    lines = [
        deep,
        b'{"a": ' + deep,
        b'{"z": ' + deep + b"]" * 100_000 + b', "a": "x"}',
        b'{"a":"y"}',
    ]
    port = serve(lambda connection: connection.sendall(b"\n".join(lines)))
    rows, errors = started(f"socket(port => {port}, format => 'json')", COLUMNS["json"])
    assert rows == [("y", None)]
    assert [error.partition(": ")[0] for error in errors] == [
        f"localhost:{port}, line {number}" for number in (1, 2, 3)
    ]
    assert all("has more than 256 nested objects and arrays" in e for e in errors)
    assert all(len(error) < 300 for error in errors)


def test_brackets_in_texts_are_not_nesting(serve: Any) -> None:
    line = json.dumps({"a": '[{"' * 300}).encode()
    port = serve(lambda connection: connection.sendall(line))
    rows, errors = started(f"socket(port => {port}, format => 'json')", COLUMNS["json"])
    assert (rows, errors) == ([('[{"' * 300, None)], [])


@pytest.mark.parametrize("format", FORMATS)
def test_a_line_without_end_on_a_socket(format: str, serve: Any) -> None:
    good = {"text": b"x\n", "csv": b"x,1\n", "json": b'{"a": "x", "n": 1}\n'}[format]

    def send(connection: socket.socket) -> None:
        connection.sendall(good)
        for _ in range(300):
            connection.sendall(b"y" * 10_000)
        connection.sendall(b"\n" + good)
        connection.sendall(b"z" * 20_000)

    source = f"socket(port => {serve(send)}, format => '{format}', max_line => 10000)"
    rows, errors = started(source, COLUMNS[format])
    assert len(rows) == 2
    assert [error.split(", ")[1][:6] for error in errors] == ["line 2", "line 4"]
    assert errors[0].endswith("…: it is longer than 10,000 bytes")


def test_a_quote_that_is_not_closed_spoils_one_line_of_a_socket(serve: Any) -> None:
    text = b'a,1\n"b,2\n"c\nd",3\n"e,e",4\nf,5'
    for parts in (1, len(text)):
        size = -(-len(text) // parts)

        def send(connection: socket.socket, size: int = size) -> None:
            for first in range(0, len(text), size):
                connection.sendall(text[first : first + size])

        port = serve(send)
        rows, errors = started(f"socket(port => {port}, format => 'csv')", COLUMNS["csv"])
        assert rows == [("a", 1), ('d"', 3), ("e,e", 4), ("f", 5)]
        assert errors == [
            f"localhost:{port}, line {line}: {shown!r}: it has an unclosed quote"
            for line, shown in [(2, '"b,2'), (3, '"c')]
        ]


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3 << 20, (1 << 20) - 10, 1 << 20])
def test_a_field_of_megabytes(size: int, tmp_path: Path) -> None:
    long = "x" * size
    rows = [("a", 1), (long, 2), (f"{long}\n,", 3), ("b", 4)]
    csv_file, json_file = tmp_path / "a.csv", tmp_path / "a.json"
    csv_file.write_text("a,n\n" + "".join(f'"{a}",{n}\n' for a, n in rows))
    json_file.write_text("\n".join(json.dumps({"a": a, "n": n}) for a, n in rows))
    assert started(f"csv('{csv_file}')", COLUMNS["csv"]) == (rows, [])
    assert started(f"json('{json_file}')", COLUMNS["json"]) == (rows, [])


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_row_that_is_longer_than_the_limit(format: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    long = "x" * 5_000
    if format == "csv":
        path.write_text(f'a,n\na,1\n"{long}",2\nb,3\nc,"{long}\n')
    else:
        path.write_text(f'{{"a":"a","n":1}}\n{{"a":"{long}"}}\n{{"a":"b","n":3}}\n{long}')
    rows, errors = started(f"{format}('{path}', max_line => 4000)", COLUMNS[format])
    assert rows == [("a", 1), ("b", 3)]
    header = 1 if format == "csv" else 0
    assert [error.split(":")[0] for error in errors] == [
        f'file "{path}", line {number + header}' for number in (2, 4)
    ]
    assert all(error.endswith(": it is longer than 4,000 bytes") for error in errors)


def test_a_quote_that_is_not_closed_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,n\na,1\n"b,2\nc,3\n')
    rows, errors = started(f"csv('{path}')", COLUMNS["csv"])
    assert rows == [("a", 1)]
    assert errors == [f'file "{path}", line 3: \'"b,2\\nc,3\\n\': it has an unclosed quote']


def test_lines_that_are_no_objects_in_followed_files(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('nonsense\n[1]\n{"a": "x"}\n{"a": "x", "n": 1}{"a": "y"}\n')
    rows, errors = started(f"json('{tmp_path}')", COLUMNS["json"])
    assert rows == [("x", None)]
    assert len(errors) == 3


# --- texts that are not UTF-8 ---------------------------------------------------------------------

BROKEN = [b"good", b"br\xffken", None, b"\xed\xa0\x80", "é".encode()]
KEPT, WRONG = ["good", None, "é"], [2, 4]


def broken(values: list[bytes | None] = BROKEN, type: pa.DataType | None = None) -> pa.Array:
    """Texts that Arrow does not look at."""
    raw = pa.array(values, pa.binary())
    array = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    return array if type is None else array.cast(type)


def of_table(table: Any) -> tuple[list[Any], list[int | None], set[str]]:
    session = ms.Session("local")
    feed = session.feed("S", {"a": "STRING", "t": "BIGINT"}, time="t")
    with session.sql("SELECT a FROM S").start() as running:
        feed.send(table)
        feed.close()
        running.wait(60)
    found = running.results().column("a").to_pylist()
    return found, [row.number for row in running.errors], {row.message for row in running.errors}


@pytest.mark.parametrize("type", [None, pa.large_string()])
def test_arrow_tables_sent_to_feeds(type: pa.DataType | None) -> None:
    table = pa.table({"a": broken(type=type), "t": range(5)})
    expected = (KEPT, WRONG, {'the text in column "a" is not UTF-8'})
    assert of_table(table) == expected
    assert of_table(pa.table({"a": pa.chunked_array([broken(), broken()]), "t": range(10)})) == (
        KEPT * 2,
        [2, 4, 7, 9],
        expected[2],
    )
    encoded = pa.DictionaryArray.from_arrays(pa.array(range(5)), broken())
    assert of_table(pa.table({"a": encoded, "t": range(5)})) == expected


def test_data_in_memory() -> None:
    table = pa.table({"a": broken(), "t": range(5)})
    frames: list[Any] = [table, table.to_batches(), table.slice(1)]
    for data in frames:
        with pytest.raises(ms.DataError, match=r'row [12]: the text in column "a" is not UTF-8'):
            ms.Session("local").stream("S", data, time="t")
    arrow = pandas.DataFrame({"a": pandas.arrays.ArrowStringArray(broken()), "t": range(5)})
    with pytest.raises(ms.DataError, match='row 2: the text in column "a" is not UTF-8'):
        ms.Session("local").stream("S", arrow, time="t")
    surrogate = [{"a": "good", "t": 1}, {"a": "\ud800", "t": 2}]
    for rows in (surrogate, pandas.DataFrame(surrogate)):
        with pytest.raises(ms.DataError):
            ms.Session("local").stream("S", rows, time="t", schema={"a": "STRING", "t": "BIGINT"})


def test_polars_frames() -> None:
    frame = polars.from_arrow(pa.table({"a": broken(), "t": range(5)}))
    assert of_table(frame) == (KEPT, WRONG, {'the text in column "a" is not UTF-8'})
    with pytest.raises(ms.DataError, match='row 2: the text in column "a" is not UTF-8'):
        ms.Session("local").stream("S", frame, time="t")


def test_texts_within_arrays_and_structs() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4, 5], pa.int32()), broken())
    for array in (lists, pa.StructArray.from_arrays([broken()], ["x"])):
        session = ms.Session("local")
        feed = session.feed("S", {"a": array.type, "t": "BIGINT"}, time="t")
        with session.sql("SELECT t FROM S").start() as running:
            feed.send(pa.table({"a": array, "t": range(5)}))
            feed.close()
            running.wait(60)
        assert running.results().column("t").to_pylist() == [0, 2, 4]
        assert [row.number for row in running.errors] == WRONG


def test_parquet_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": broken(), "n": range(5)}), tmp_path / "a")
    rows, errors = started(f"parquet('{tmp_path / 'a'}')", "a STRING, n BIGINT")
    assert rows == list(zip(KEPT, [0, 2, 4], strict=True))
    assert errors == [
        f'file "{tmp_path / "a"}", row {row}: the text in column "a" is not UTF-8' for row in WRONG
    ]


def test_json_lines(tmp_path: Path) -> None:
    """Also in keys that are not read, and whatever the other lines contain."""
    lines = [
        b'{"a": "good"}',
        b'{"a": "br\xffken"}',
        b'{"z": "\xff", "a": "x"}',
        b'{"a": "\xc3\xa9"}',
    ]
    for more in ([], [b"nonsense"]):
        path = tmp_path / "a.json"
        path.write_bytes(b"\n".join([*lines, *more]))
        rows, errors = started(f"json('{path}')", COLUMNS["json"])
        assert rows == [("good", None), ("é", None)]
        assert [error.split(": ")[0][-1] for error in errors[:2]] == ["2", "3"]
        assert all(error.endswith(" is not UTF-8") for error in errors[:2])


# --- random texts ---------------------------------------------------------------------------------

WORDS: list[bytes] = [
    b"\n", b"\n", b"\n", b"\r\n", b"\r", b",", b",", b'"', b'""', b"a", b"1", b"-7", b" ", b"\0",
    b"\xff", "é".encode(), b"\xed\xa0\x80", b"\\", b"\\ud800", b"{", b"}", b"[", b"]", b":",
    b"null", b"\nnull\n",
    b'{"a":"x","n":1}', b'{"a":"x"}\n', b"x,1\n", b'"x\ny",2\n', b"\xef\xbb\xbf", b"1e999", b"NaN",
    b"9" * 30, b"[" * 300, b"z" * 60,
]  # fmt: skip
LONGEST = 40


def hostile(chance: random.Random) -> bytes:
    return b"".join(chance.choices(WORDS, k=chance.randrange(30)))


def cut(text: bytes, chance: random.Random) -> list[bytes]:
    places = sorted(chance.choices(range(len(text) + 1), k=chance.randrange(4)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True) if a < b]


class _Given(SocketLines):
    """A socket that brings these bytes."""

    def __init__(self, stream: Stream, chunks: list[bytes]) -> None:
        super().__init__(stream, socket_arguments(stream))
        self._given_chunks = chunks

    def _chunks(self, closed: threading.Event) -> Iterator[bytes]:
        return iter(self._given_chunks)


def outcome(parts: list[Checked]) -> tuple[list[Any], list[str]]:
    rows = [element.row for part in parts for element in part.records.elements()]
    return rows, [row.message for part in parts for row in part.bad]


@pytest.mark.parametrize("format", FORMATS)
def test_random_lines_of_a_socket(format: str) -> None:
    """Every line is a row or an error, whatever lines and bytes come together."""
    source = f"socket(port => 1, format => '{format}', max_line => {LONGEST})"
    stream = declared(source, COLUMNS[format])
    chance = random.Random(format)
    for _ in range(examples(400)):
        text = hostile(chance)
        whole = outcome(list(_Given(stream, [text]).rows(threading.Event())))
        parts = outcome(list(_Given(stream, cut(text, chance)).rows(threading.Event())))
        assert repr(whole) == repr(parts), text
        lines = text.removesuffix(b"\n").split(b"\n") if text else []
        counted = lines if format == "text" else [line for line in lines if line.strip()]
        assert len(whole[0]) + len(whole[1]) == len(counted), text


@pytest.mark.parametrize("format", ["csv", "json"])
def test_random_files(format: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    options = "header => FALSE, " if format == "csv" else ""
    path.write_bytes(b"x")
    stream = declared(f"{format}('{path}', {options}max_line => {LONGEST})", COLUMNS[format])
    files = StreamFiles(stream, file_arguments(stream), available_now=True)
    chance = random.Random(format)
    for _ in range(examples(400)):
        text = hostile(chance)
        path.write_bytes(text)
        (file,) = listed_files(str(path))
        rows, errors = outcome(list(files.rows(file)))
        if format == "json":
            lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
            assert len(rows) + len(errors) == sum(bool(line.strip()) for line in lines), text


def test_random_bytes_are_cut_into_the_same_lines_and_rows() -> None:
    chance = random.Random(1)
    for _ in range(examples(2_000)):
        text = hostile(chance)
        chunks = cut(text, chance)
        assert _lines(cut_lines([text], LONGEST)) == _lines(cut_lines(chunks, LONGEST)), text
        assert _rows(cut_rows([text], b",", 10**6)) == _rows(cut_rows(chunks, b",", 10**6)), text
        kept = _rows(cut_rows(chunks, b",", LONGEST))
        assert len(kept) <= len(text) + 3


def _lines(found: Iterator[Any]) -> list[Any]:
    lines = []
    for each in found:
        lines += [each.why] if isinstance(each, Dropped) else each
    return lines


def _rows(found: Iterator[Any]) -> list[Any]:
    rows: list[Any] = [b""]
    for each in found:
        if isinstance(each, Dropped):
            rows += [each.why, b""]
        else:
            rows[-1] += each
    return rows


# --- values of JSON, whatever stands in the lines beside them -------------------------------------

TYPES = {
    "d": "DOUBLE",
    "c": "DECIMAL(10, 2)",
    "long": "DECIMAL(38, 20)",
    "half": "DECIMAL(38, 38)",
    "day": "DATE",
    "ts": "TIMESTAMP",
    "cs": "ARRAY<DECIMAL(10, 2)>",
    "days": "ARRAY<DATE>",
    "s": "STRUCT<day: DATE, d: DOUBLE>",
}
NEW_YEAR = datetime.date(2020, 1, 1)
VALUES: list[tuple[str, str, Any]] = [
    ("d", "-0", -0.0),
    ("d", "9223372036854775808", 2.0**63),
    ("d", "1" * 5_000, math.inf),
    ("d", '"1"', ms.DataError),
    ("c", "1e5", Decimal("100000.00")),
    ("c", "1e-999999999", Decimal("0.00")),
    ("c", '"1e-999999999"', Decimal("0.00")),
    ("c", "1e999999999", ms.DataError),
    ("c", "1e99999999999999999999", ms.DataError),
    ("c", "2147483648", ms.DataError),
    ("c", '"\\ud800"', ms.DataError),
    ("long", "1234567.12345678901234567890", Decimal("1234567.12345678901234567890")),
    ("half", "2147483648", ms.DataError),
    ("day", '"2020-01-01T10:00"', NEW_YEAR),
    ("day", '"\\udc00"', ms.DataError),
    ("ts", '"\\ud800\\ud800"', ms.DataError),
    ("cs", "[2147483648]", ms.DataError),
    ("cs", "[1e-999999999]", ms.DataError),
    ("cs", "[1.5]", [Decimal("1.50")]),
    ("days", '["2020-01-01", "2020-01-01 10:00"]', [NEW_YEAR, NEW_YEAR]),
    ("days", '["\\ud800"]', ms.DataError),
    ("s", '{"day": "2020-01-01", "d": -0}', {"day": NEW_YEAR, "d": -0.0}),
    ("s", '{"\\ud800": 1}', ms.DataError),
]


@pytest.mark.parametrize("beside", ["", "nonsense\n"])
@pytest.mark.parametrize(("column", "text", "expected"), VALUES)
def test_values_of_json(column: str, text: str, expected: Any, beside: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(f'{beside}{{"{column}": {text}}}\n')
    rows, errors = started(f"json('{path}')", f"{column} {TYPES[column]}")
    if expected is ms.DataError:
        assert rows == []
        assert any(f"line {1 + bool(beside)}: " in error for error in errors)
    else:
        assert repr(rows) == repr([(expected,)])
    assert len(errors) == bool(beside) + (expected is ms.DataError)


def test_json_that_begins_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf{"a":"x"}\n{"a":"y"}\n')
    assert started(f"json('{path}')", COLUMNS["json"]) == ([("x", None), ("y", None)], [])


def test_json_is_not_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes('{"a":"x"}'.encode("utf-16-le") + b'\n{"a":"y"}\n')
    rows, errors = started(f"json('{path}')", COLUMNS["json"])
    assert rows == [("y", None)]
    assert len(errors) == 1
    assert "is not JSON" in errors[0]


# --- decimals, which Arrow crashes on or takes for others -----------------------------------------


@pytest.mark.parametrize(
    "text", ["1e-999999999", "1e-77", "2147483648", "0.001", "1e9", "x", "1_0", "１", "", "nan"]
)
def test_texts_that_are_no_decimals_of_their_type(text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot read string data as DECIMAL\(10, 2\)"):
        to_type(pa.array(["1.5", text]), pa.decimal128(10, 2))


def test_texts_that_are_decimals() -> None:
    texts = pa.array(["1", "-1.5", "+00001.50", "1.", ".5", "12e-1", "1E3", "0e-50", "1.500", None])
    values = ["1.00", "-1.50", "1.50", "1.00", "0.50", "1.20", "1000.00", "0.00", "1.50", None]
    expected = [None if value is None else Decimal(value) for value in values]
    assert to_type(texts, pa.decimal128(10, 2)).to_pylist() == expected
    assert to_type(texts.slice(1, 1), pa.decimal128(10, 2)).to_pylist() == [Decimal("-1.50")]
    nines = "9" * 38
    assert to_type(pa.array([nines]), pa.decimal128(38, 0)).to_pylist() == [Decimal(nines)]
    assert to_type(pa.array([f"0.{nines}"]), pa.decimal128(38, 38)).to_pylist() == [
        Decimal(f"0.{nines}")
    ]
    with pytest.raises(ValueError, match="does not fit"):
        to_type(pa.array(["2147483648"]), pa.decimal128(38, 38))


@pytest.mark.parametrize(
    "values",
    [
        {"c": Decimal("1e-999999999"), "cs": None},
        {"c": None, "cs": [Decimal("1e-999999999")]},
        {"c": Decimal("1e-77"), "cs": None},
        {"c": Decimal("1e999999"), "cs": None},
    ],
)
def test_decimals_beyond_all_bounds(values: dict[str, Any]) -> None:
    session = ms.Session("local")
    feed = session.feed("S", {"c": "DECIMAL(10, 2)", "cs": "ARRAY<DECIMAL(10, 2)>"})
    with session.sql("SELECT c FROM S").start() as running:
        feed.send([values, {"c": Decimal("1.5"), "cs": None}])
    assert [row["c"] for row in running.results().to_pylist()] == [Decimal("1.50")]
    (error,) = running.errors
    assert " is not " in error.message
