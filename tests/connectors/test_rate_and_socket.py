"""Sources that have no files behind them: rows by the clock, lines from a connection."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from runtime.live import SOON, Seen


@contextmanager
def server(*pieces: bytes) -> Iterator[int]:
    """Sends pieces of bytes to the first who connects, then ends the connection; gives its port."""
    with socket.create_server(("localhost", 0)) as listening:

        def send() -> None:
            connection, _ = listening.accept()
            with connection:
                for piece in pieces:
                    connection.sendall(piece)
                    time.sleep(0.01)

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(SOON)


def session_of(source: str, columns: str) -> ms.Session:
    session = ms.Session()
    session.sql(f"CREATE STREAM S ({columns}) SOURCE {source}")
    return session


def received(pieces: list[bytes], columns: str, options: str = "") -> tuple[list[Any], list[str]]:
    with server(*pieces) as port:
        running = session_of(f"socket(port => {port}{options})", columns).sql("SELECT * FROM S")
        ended = running.start()
        ended.wait(SOON)
    rows = ended.results().drop_columns(["valid_from", "valid_to"]).to_pylist()
    return [tuple(row.values()) for row in rows], [error.message for error in ended.errors]


def test_lines() -> None:
    rows, errors = received([b"one\r\ntw", b"o\n\nthr\xff\nfive"], "line STRING")
    assert sorted(rows) == [("",), ("five",), ("one",), ("two",)]
    (error,) = errors
    assert error.endswith('line 4: the text in column "line" is not UTF-8')


def test_lines_of_json() -> None:
    pieces = [b'{"a": 1, "b": "x"}\n{"a"', b': 2}\nnonsense\n{"a": "y"}\n']
    rows, errors = received(pieces, "a BIGINT, b STRING", ", format => 'json'")
    assert sorted(rows) == [(1, "x"), (2, None)]
    assert [error.partition(", ")[2].partition(" is not")[0] for error in errors] == [
        "line 3: 'nonsense'",
        "line 4: 'y' in column \"a\"",
    ]


def test_lines_of_csv() -> None:
    pieces = [b'1,"x, y"\n2', b",\n3\nz,z\n"]
    rows, errors = received(pieces, "a BIGINT, b STRING", ", format => 'csv'")
    assert sorted(rows) == [(1, "x, y"), (2, None)]
    assert [error.partition(", ")[2] for error in errors] == [
        "line 3: expected 2 values, found 1: '3'",
        "line 4: 'z' in column \"a\" is not BIGINT",
    ]


def test_run_reads_a_socket_to_its_end() -> None:
    with server(b"a\nb\n") as port:
        session = session_of(f"socket('localhost', port => {port})", "line STRING")
        assert session.sql("SELECT line FROM S").run().num_rows == 2


def test_a_silent_connection_ends_with_its_query() -> None:
    with socket.create_server(("localhost", 0)) as listening:
        port = listening.getsockname()[1]
        running = (
            session_of(f"socket(port => {port})", "line STRING").sql("SELECT * FROM S").start()
        )
        connection, _ = listening.accept()
        assert running.stop(SOON)
        connection.settimeout(SOON)
        assert connection.recv(1) == b"", "it is closed from the other end"
        connection.close()


def test_nobody_listens() -> None:
    with socket.create_server(("localhost", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(ms.QueryError, match=f"cannot connect to localhost:{port}: .*refused"):
        session_of(f"socket(port => {port})", "line STRING").sql("SELECT * FROM S").start().wait()


def test_rows_by_the_clock() -> None:
    session = ms.Session()
    session.sql(
        "CREATE STREAM Tick (value BIGINT, timestamp TIMESTAMP) "
        "SOURCE rate(rows_per_second => 500) ORDERED BY timestamp"
    )
    seen = Seen()
    began = time.monotonic()
    with session.sql("SELECT value, timestamp FROM Tick").start(seen):
        seen.await_rows(50)
    assert 0.1 <= time.monotonic() - began < SOON
    rows = seen.rows()
    assert [row["value"] for row in rows] == list(range(len(rows)))
    gaps = {b["timestamp"] - a["timestamp"] for a, b in pairwise(rows)}
    assert {gap.microseconds for gap in gaps} == {2000}


@pytest.mark.parametrize(
    ("source", "columns", "message"),
    [
        ("socket()", "line STRING", 'connector "socket" needs "port"'),
        ("socket(port => 0)", "line STRING", 'connector "socket" cannot use 0 for "port"'),
        ("socket(port => 1)", "n BIGINT", 'connector "socket" gives lines: one STRING column'),
        ("socket(port => 1, format => 'xml')", "n STRING", "cannot use 'xml' for \"format\""),
        ("socket(port => 1, format => 'csv')", "n ARRAY<INT>", "ARRAY<INT> has no text form"),
        ("rate(rows_per_second => 0)", "value BIGINT", 'cannot use 0 for "rows_per_second"'),
        ("rate(1)", "value INT", 'connector "rate" has no column "value" INT'),
    ],
)
def test_wrong_declarations(source: str, columns: str, message: str) -> None:
    with pytest.raises(ms.DataError) as error:
        session_of(source, columns).sql("SELECT * FROM S").start()
    assert str(error.value).startswith('error: stream "S": ')
    assert message in str(error.value)


def test_rate_has_no_end() -> None:
    query = session_of("rate()", "value BIGINT").sql("SELECT value FROM S")
    with pytest.raises(ms.DataError, match='stream "S": connector "rate" has no end'):
        query.run()
    with pytest.raises(ms.DataError, match="has no end"):
        query.start(trigger="available_now")


def test_lines_are_kept_until_they_are_answered(tmp_path: Path) -> None:
    """A connection continues with new lines after a restart; earlier ones are not lost."""
    seen = Seen()
    with socket.create_server(("localhost", 0)) as listening:
        port = listening.getsockname()[1]
        for line in (b"one", b"two", b"three"):
            query = session_of(f"socket(port => {port})", "line STRING").sql("SELECT line FROM S")
            running = query.start(seen, checkpoint=str(tmp_path))
            connection, _ = listening.accept()
            before = len(seen.rows())
            connection.sendall(line + b"\n")
            seen.await_rows(before + 1)
            assert running.stop(SOON)
            connection.close()
    assert [row["line"] for row in seen.rows()] == ["one", "two", "three"]
