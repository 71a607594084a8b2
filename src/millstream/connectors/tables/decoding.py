"""Logical decoding by PostgreSQL's plugin pgoutput: the messages of a publication of one table.

*Source*: the PostgreSQL manual, "Logical Replication Message Formats" and "Streaming Replication
Protocol".
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from millstream.connectors.tables.postgres_wire import received, run

if TYPE_CHECKING:
    from millstream.connectors.tables.postgres_wire import Connection

_PATIENCE = 0.1  # seconds of silence before control returns to the caller
_STATUS_EVERY = 5.0  # seconds between two status messages to the server
_EPOCH = 946_684_800  # PostgreSQL counts time from the year 2000
_COUNT, _LENGTH = struct.Struct(">H"), struct.Struct(">I")
_HEARTBEAT, _NEW, _TEXT, _NULL = b"kNtn"


class Unchanged:
    """Stands for a long value that an UPDATE did not change and the server does not send."""


UNCHANGED: Final = Unchanged()
Value: TypeAlias = "bytes | Unchanged | None"
Values: TypeAlias = "tuple[Value, ...]"


@dataclass(frozen=True)
class RelationLayout:
    """The columns of the following rows: name, type oid and modifier, and whether the column
    belongs to the replica identity."""

    columns: tuple[tuple[str, int, int, bool], ...]


class RowChange(NamedTuple):
    """A row before and after the change: no row before an INSERT and none after a DELETE. In the
    row before, only the columns of the replica identity are valid."""

    before: Values | None
    after: Values | None


@dataclass(frozen=True)
class Truncated:
    """All rows are gone."""


@dataclass(frozen=True)
class Committed:
    """The end of a transaction."""


Message: TypeAlias = "RelationLayout | RowChange | Truncated | Committed"


class Decoder:
    """Reads the changes of a slot, transaction by transaction in commit order."""

    def __init__(self, connection: Connection, slot: str) -> None:
        self._connection = connection
        self._done = 0  # the position in the server's log up to which all is received
        self._in_transaction = False
        self._last_status = time.monotonic()
        options = f"""proto_version '1', publication_names '"{slot}"'"""
        run(connection, f'START_REPLICATION SLOT "{slot}" LOGICAL 0/0 ({options})')

    def messages(self) -> Iterator[Message]:
        """The messages received, until none arrives for a moment."""
        for data in received(self._connection, _PATIENCE):
            if data[0] == _HEARTBEAT:
                self._heartbeat(data)
            else:
                message = self._read(bytes(data[25:]))
                if isinstance(message, Committed):
                    self._tell_status_in_time()
                if message is not None:
                    yield message
        self._tell_status_in_time()

    def _read(self, data: bytes) -> Message | None:
        kind = data[:1]
        if kind == b"I":
            return RowChange(None, _values(data, 6)[0])
        if kind == b"U":
            return _update(data)
        if kind == b"D":
            return RowChange(_values(data, 6)[0], None)
        if kind == b"R":
            return _layout(data)
        if kind == b"T":
            return Truncated()
        if kind == b"B":
            self._in_transaction = True
        elif kind == b"C":
            self._in_transaction = False
            (self._done,) = struct.unpack_from(">q", data, 10)
            return Committed()
        return None  # not needed: the origin of a transaction, the name of a type

    def _heartbeat(self, data: memoryview) -> None:
        end, _, wants_answer = struct.unpack_from(">qqb", data, 1)
        if not self._in_transaction:
            self._done = max(self._done, end)
        if wants_answer:
            self._tell_status()

    def _tell_status_in_time(self) -> None:
        if time.monotonic() - self._last_status > _STATUS_EVERY:
            self._tell_status()

    def _tell_status(self) -> None:
        """Report progress, so that the server can discard its log and keeps the connection."""
        self._last_status = time.monotonic()
        now = int((time.time() - _EPOCH) * 1e6)
        self._connection.pgconn.put_copy_data(
            struct.pack(">cqqqqb", b"r", self._done, self._done, self._done, now, 0)
        )
        self._connection.pgconn.flush()


def _update(data: bytes) -> RowChange:
    """The server sends the old row only if its replica identity has changed or is FULL."""
    first, end = _values(data, 6)
    return RowChange(first, first if data[5] == _NEW else _values(data, end + 1)[0])


def _values(data: bytes, place: int) -> tuple[Values, int]:
    """The values of the row at `place`, and its end."""
    (count,) = _COUNT.unpack_from(data, place)
    place += 2
    values: list[Value] = []
    for _ in range(count):
        kind = data[place]
        if kind == _TEXT:
            begin = place + 5
            place = begin + _LENGTH.unpack_from(data, place + 1)[0]
            values.append(data[begin:place])
        else:
            values.append(None if kind == _NULL else UNCHANGED)
            place += 1
    return tuple(values), place


def _layout(data: bytes) -> RelationLayout:
    place = data.index(b"\0", data.index(b"\0", 5) + 1) + 2  # behind schema, name and identity
    (count,) = _COUNT.unpack_from(data, place)
    place += 2
    columns = []
    for _ in range(count):
        end = data.index(b"\0", place + 1)
        type, modifier = struct.unpack_from(">Ii", data, end + 1)
        columns.append((data[place + 1 : end].decode(), type, modifier, data[place] == 1))
        place = end + 9
    return RelationLayout(tuple(columns))
