"""Records in files, addressed by reference and verified on reading."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

from millstream.checkpoint.files import CheckpointError, Files
from millstream.model.codec import RecordError, packed, unpacked


@dataclass(frozen=True)
class Ref:
    """A range of bytes in a file, and its checksum."""

    name: str
    offset: int
    length: int
    checksum: int

    def told(self) -> list[Any]:
        """As plain values."""
        return [self.name, self.offset, self.length, self.checksum]

    def read_record(self, files: Files) -> Any:
        return record_of(self.name, self.read(files))

    def read(self, files: Files) -> bytes:
        try:
            data = files.read(self.name, self.offset, self.length)
        except FileNotFoundError:
            raise damaged(self.name, "it is missing") from None
        if len(data) != self.length:
            raise damaged(self.name, "it is truncated")
        if zlib.crc32(data) != self.checksum:
            raise damaged(self.name, "its checksum is wrong")
        return data


@dataclass
class Writer:
    """Collects records for one file, which `close` creates."""

    files: Files
    name: str
    _parts: list[bytes] = field(default_factory=list)
    _length: int = 0

    def add(self, record: bytes) -> Ref:
        ref = Ref(self.name, self._length, len(record), zlib.crc32(record))
        self._parts.append(record)
        self._length += len(record)
        return ref

    def close(self) -> None:
        if self._parts:
            self.files.write(self.name, self._parts)


def sealed_record(value: object) -> bytes:
    """A record with a checksum."""
    return sealed(packed(value))


def read_record(name: str, data: bytes) -> Any:
    """The value of a sealed record."""
    return record_of(name, unsealed(name, data))


def record_of(name: str, data: bytes) -> Any:
    """The value of a record whose checksum is verified already."""
    try:
        return unpacked(data)
    except RecordError as error:
        raise damaged(name, str(error)) from error


def sealed(data: bytes) -> bytes:
    """Data with a checksum."""
    return b"%08x\n" % zlib.crc32(data) + data


def unsealed(name: str, data: bytes) -> bytes:
    head, found, body = data.partition(b"\n")
    if not found or head != b"%08x" % zlib.crc32(body):
        raise damaged(name, "its checksum is wrong")
    return body


def damaged(name: str, why: str) -> CheckpointError:
    return CheckpointError(
        f'the file "{name}" of the checkpoint is damaged: {why}',
        help="restore the checkpoint's folder, or start the query with a new one",
    )
