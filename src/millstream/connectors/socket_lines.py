"""Lines from a socket: `SOURCE socket(host => 'localhost', port => 9999)`.

Each line is a row: a single STRING column holds the line itself, or `format => 'json'` or `'csv'`
parses the declared columns from it. The stream ends with the connection. A line of more than
`max_line` bytes (default: 16 MiB) is a bad row.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.connectors.arguments import Arguments
from millstream.connectors.contracts import RowSource
from millstream.connectors.csv_rows import CsvColumns, CsvFormat, csv_lines
from millstream.connectors.interruptible import InterruptibleItems
from millstream.connectors.json_rows import JsonLines
from millstream.connectors.lines import LONGEST, SHOWN, Dropped, cut_lines, is_whole_row
from millstream.connectors.raw_rows import (
    RawRows,
    RowLocation,
    check_text,
    checked,
    left_out,
    read_text,
)
from millstream.logical.catalog import Stream
from millstream.model.errors import DataError
from millstream.model.long_texts import MOST_BYTES
from millstream.model.records import Checked, Ints
from millstream.model.types import STRING

_PATIENCE = 0.1  # seconds of silence before checking whether the query still reads
_CONNECTING = 10.0
_BYTES = 1 << 16
_NO_HEADER = CsvFormat(header=False)


@dataclass(frozen=True)
class SocketArguments:
    """The socket options of a stream."""

    host: str
    port: int
    format: str
    longest: int  # bytes per line


def socket_arguments(stream: Stream) -> SocketArguments:
    given = Arguments(stream, ["host", "port", "format", "max_line"])
    found = SocketArguments(
        given.text("host", "localhost"),
        given.whole("port", 1, 65_535),
        given.one_of("format", ["text", "json", "csv"]),
        given.whole("max_line", 1, MOST_BYTES, LONGEST),
    )
    if found.format == "text" and [column.type for column in stream.columns] != [STRING]:
        raise given.error(
            "gives lines: one STRING column", "for other columns write format => 'json' or 'csv'"
        )
    if found.format == "csv":
        check_text(stream, "socket")
    return found


def connect(stream: Stream, available_now: bool) -> RowSource:
    """With `available_now` too, the socket is read to its end: what is available is not known."""
    lines = SocketLines(stream, socket_arguments(stream))
    return RowSource(lambda: InterruptibleItems(lines.rows), replays=False)


class SocketLines:
    def __init__(self, stream: Stream, given: SocketArguments) -> None:
        self._stream = stream
        self._given = given
        self._place = RowLocation(f"{given.host}:{given.port}")

    def rows(self, closed: threading.Event) -> Iterator[Checked]:
        lines = cut_lines(self._chunks(closed), self._given.longest)
        if self._given.format == "json":
            reader = JsonLines(self._stream, self._place)
            for some in lines:
                yield from reader.rows(some)
            return
        read = self._csv if self._given.format == "csv" else self._texts
        number = 1
        for some in lines:
            if isinstance(some, Dropped):
                yield left_out(self._stream, number, some, self._place)
                number += 1
            else:
                yield from read(some, np.arange(number, number + len(some)))
                number += len(some)

    def _texts(self, lines: list[bytes], numbers: Ints) -> Iterator[Checked]:
        fields = self._stream.columns
        table = pa.table([pa.array(lines, pa.binary())], names=[fields[0].name])
        part = RawRows(table, numbers)
        yield checked(self._stream, read_text(fields, part, self._stream.units), self._place)

    def _csv(self, lines: list[bytes], numbers: Ints) -> Iterator[Checked]:
        """Each line is a row by itself: an unclosed quote affects no other line."""
        names = [field.name for field in self._stream.columns]
        columns = CsvColumns(names, names)
        first = 0
        for index, line in enumerate([*lines, None]):
            if line is None or not line.strip() or not is_whole_row(line, b","):
                if first < index:
                    rows, own = lines[first:index], numbers[first:index]
                    yield from csv_lines(self._stream, rows, own, _NO_HEADER, columns, self._place)
                first = index + 1
                if line is not None and line.strip():
                    fault = (
                        "it contains a line end" if b"\r" in line else "it has an unclosed quote"
                    )
                    dropped = Dropped(line[:SHOWN], fault)
                    yield left_out(self._stream, int(numbers[index]), dropped, self._place)

    def _chunks(self, closed: threading.Event) -> Iterator[bytes]:
        """The bytes as they arrive."""
        with self._connected() as connection:
            while not closed.is_set():
                try:
                    data = connection.recv(_BYTES)
                except TimeoutError:
                    continue
                if not data:
                    return
                yield data

    def _connected(self) -> socket.socket:
        host, port = self._given.host, self._given.port
        try:
            connection = socket.create_connection((host, port), _CONNECTING)
        except OSError as error:
            raise DataError(
                f'stream "{self._stream.name}": cannot connect to {host}:{port}: {error}',
                help="a server must listen there before the query starts",
            ) from error
        connection.settimeout(_PATIENCE)
        return connection
