"""Lines from a socket: `SOURCE socket(host => 'localhost', port => 9999)`.

Each line is a row: one STRING column has it as it is, or `format => 'json'` or `'csv'` reads the
declared columns out of it. The end of the connection is the end of the stream.
"""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.catalog import Stream
from millstream.connectors.arguments import Arguments
from millstream.connectors.csv_rows import Layout, csv_rows
from millstream.connectors.json_rows import json_rows, keys_in
from millstream.connectors.live import Live
from millstream.connectors.parts import Part, Place, check_text, checked, read_text
from millstream.errors import DataError
from millstream.local.sources import Reader
from millstream.records import Checked
from millstream.types import STRING

_PATIENCE = 0.1  # seconds after which a silent connection looks whether anyone still reads
_CONNECTING = 10.0
_BYTES = 1 << 16
_NO_HEADER = Layout(header=False)


@dataclass(frozen=True)
class SocketArguments:
    """What a stream says of its socket."""

    host: str
    port: int
    format: str


def socket_arguments(stream: Stream) -> SocketArguments:
    given = Arguments(stream, ["host", "port", "format"])
    found = SocketArguments(
        given.text("host", "localhost"),
        given.whole("port", 1, 65_535),
        given.one_of("format", ["text", "json", "csv"]),
    )
    if found.format == "text" and [column.type for column in stream.columns] != [STRING]:
        raise given.error(
            "gives lines: one STRING column", "for others write format => 'json' or 'csv'"
        )
    if found.format == "csv":
        check_text(stream, "socket")
    return found


def connect(stream: Stream, available_now: bool) -> Reader:
    """Nobody knows what is available: it is read to its end."""
    lines = SocketLines(stream, socket_arguments(stream))
    return Reader(stream, lambda: Live(lines.rows), replays=False)


class SocketLines:
    def __init__(self, stream: Stream, given: SocketArguments) -> None:
        self._stream = stream
        self._given = given
        self._place = Place(f"{given.host}:{given.port}")

    def rows(self, closed: threading.Event) -> Iterator[Checked]:
        number = 1
        for lines in self._lines(closed):
            yield from self._read(lines, number)
            number += len(lines)

    def _read(self, lines: list[bytes], number: int) -> Iterator[Checked]:
        fields = self._stream.columns
        if self._given.format == "json":
            keys = keys_in(lines[0], fields)
            yield json_rows(self._stream, lines, number, keys, self._place)
        elif self._given.format == "csv":
            source = io.BytesIO(b"\n".join(lines))
            names = [field.name for field in fields]
            yield from csv_rows(self._stream, source, _NO_HEADER, names, self._place, number - 1)
        else:
            table = pa.table([pa.array(lines, pa.binary())], names=[fields[0].name])
            numbers = np.arange(number, number + len(lines))
            yield checked(
                self._stream,
                read_text(fields, Part(table, numbers), self._stream.units),
                self._place,
            )

    def _lines(self, closed: threading.Event) -> Iterator[list[bytes]]:
        """The lines that came, without their ends; the last one may lack its own."""
        rest = b""
        with self._connected() as connection:
            while not closed.is_set():
                try:
                    data = connection.recv(_BYTES)
                except TimeoutError:
                    continue
                *lines, rest = (rest + data).split(b"\n")
                if not data and rest:
                    lines.append(rest)
                if lines:
                    yield [line.removesuffix(b"\r") for line in lines]
                if not data:
                    return

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
