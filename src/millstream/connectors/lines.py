"""Cuts bytes into lines, or into CSV rows, of limited length.

Longer ones are dropped while they are read, and reported. The cost is linear in the bytes for any
input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

LONGEST = 1 << 24  # default maximum of bytes per line
BLOCK_BYTES = 1 << 20  # read at once

SHOWN = 200  # bytes shown of a dropped line


@dataclass(frozen=True)
class Dropped:
    """Stands for a line or row that was not read: its first bytes and the reason."""

    beginning: bytes
    why: str


Lines: TypeAlias = "list[bytes] | Dropped"
Rows: TypeAlias = "bytes | Dropped"


def _too_long(start: bytes, longest: int) -> Dropped:
    return Dropped(start[: min(SHOWN, longest)], f"it is longer than {longest:,} bytes")


def cut_lines(chunks: Iterable[bytes], longest: int) -> Iterator[Lines]:
    """The lines without line ends, in groups as the chunks arrive; the last line may lack its
    end."""
    pending: list[bytes] = []  # the start of an unfinished line
    size = 0
    dropped: Dropped | None = None
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        lines: list[bytes] = []
        for part in whole:
            if size + len(part) > longest or dropped is not None:
                if lines:
                    yield lines
                    lines = []
                yield dropped or _too_long(b"".join([*pending, part]), longest)
            elif pending:
                lines.append(b"".join([*pending, part]).removesuffix(b"\r"))
            else:
                lines.append(part.removesuffix(b"\r"))
            pending, size, dropped = [], 0, None
        if lines:
            yield lines
        if rest and dropped is None:
            pending.append(rest)
            size += len(rest)
            if size > longest:
                dropped = _too_long(b"".join(pending), longest)
                pending = []
    if dropped is not None:
        yield dropped
    elif pending:
        yield [b"".join(pending).removesuffix(b"\r")]


# --- rows of CSV ----------------------------------------------------------------------------------


@cache
def _whole_rows(delimiter: bytes) -> re.Pattern[bytes]:
    """Matches all complete rows. A quote opens a value only at its start; a doubled quote inside
    stands for one. The pattern never backtracks."""
    mark = re.escape(delimiter)
    rest = rb"[^" + mark + rb"\r\n]*+"
    quoted = rb'"(?:[^"]++|"")*+"' + rest
    plain = rb"[^" + mark + rb'"\r\n]' + rest
    nothing = rb"(?=[" + mark + rb"\r\n])"
    value = rb"(?:" + plain + rb"|" + quoted + rb"|" + nothing + rb")"
    row = value + rb"(?:" + mark + value + rb")*+(?:\r\n|\n|\r(?=[^\n]))"
    return re.compile(rb"(?:" + row + rb")*+")


@cache
def _one_row(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(_whole_rows(delimiter).pattern[:-2])


def first_row(rows: bytes, delimiter: bytes) -> tuple[bytes, bytes]:
    """The first row, and the rest."""
    found = _one_row(delimiter).match(rows)
    end = found.end() if found is not None and found.end() else len(rows)
    return rows[:end], rows[end:]


def is_whole_row(line: bytes, delimiter: bytes) -> bool:
    """Whether a line is a complete row: it has no open quote and no line end inside."""
    if b'"' not in line and b"\r" not in line:
        return True
    return _one_row(delimiter).fullmatch(line + b"\n") is not None


def cut_rows(chunks: Iterable[bytes], delimiter: bytes, longest: int) -> Iterator[Rows]:
    """Blocks of complete rows. Line ends inside quotes belong to the value; the last row may lack
    its end."""
    pending, wanted = bytearray(), 0
    skipping = False
    for chunk in chunks:
        if skipping:
            end = _line_end(chunk)
            if not end:
                continue
            chunk, skipping = chunk[end:], False
        pending += chunk
        if len(pending) < wanted:
            continue
        end = _rows_end(pending, delimiter)
        if end:
            yield from _without_long(bytes(pending[:end]), delimiter, longest)
            del pending[:end]
        wanted = 2 * len(pending)  # look at an incomplete row again once it has doubled
        if len(pending) > longest:
            yield _unfinished(bytes(pending), delimiter, longest)
            pending, wanted, skipping = bytearray(), 0, True
    rest = bytes(pending)
    if rest and not rest.endswith((b"\n", b"\r")):
        rest += b"\n"
    end = _rows_end(rest + b" ", delimiter) if rest else 0
    if end:
        yield from _without_long(rest[:end], delimiter, longest)
    if end < len(rest):
        yield _unfinished(rest[end:], delimiter, longest)


def _without_long(rows: bytes, delimiter: bytes, longest: int) -> Iterator[Rows]:
    """Complete rows, with `Dropped` for those that are too long."""
    first = 0
    if len(rows) > longest:
        for row in _one_row(delimiter).finditer(rows):
            if len(row[0].rstrip(b"\r\n")) > longest:
                if first < row.start():
                    yield rows[first : row.start()]
                yield _too_long(row[0], longest)
                first = row.end()
    if first < len(rows):
        yield rows[first:]


def _unfinished(rest: bytes, delimiter: bytes, longest: int) -> Dropped:
    if b'"' in rest and len(rest) <= longest:
        return Dropped(rest[:SHOWN], "it has an unclosed quote")
    return _too_long(rest, longest)


def _rows_end(data: bytes | bytearray, delimiter: bytes) -> int:
    """How many leading bytes are complete rows."""
    if b'"' in data:
        end = _end_by_parity(bytes(data), delimiter)
        if end is None:
            found = _whole_rows(delimiter).match(data)
            end = found.end() if found is not None else 0
        return end
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1


def _end_by_parity(data: bytes, delimiter: bytes) -> int | None:
    """The same as the pattern finds, if every quote is at the start or end of a value or doubled:
    then a row ends at a line end with an even number of quotes before it. None if a quote is
    elsewhere, or if there are other line ends."""
    if data.count(b"\r") != data.count(b"\r\n"):
        return None
    text = np.frombuffer(b"\n" + data + b"\n", np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    borders = np.frombuffer(b'"\r\n' + delimiter, np.uint8)
    before, after = text[quotes[::2] - 1], text[quotes[1::2] + 1]
    if not np.isin(before, borders).all() or not np.isin(after, borders).all():
        return None
    ends = np.flatnonzero(text[1:-1] == ord("\n"))
    if not len(ends):
        return None
    even = np.flatnonzero(np.searchsorted(quotes, ends + 1) % 2 == 0)
    return int(ends[even[-1]]) + 1 if len(even) else 0


def _line_end(chunk: bytes) -> int:
    """The end of the first line of a chunk, or 0."""
    found = re.search(rb"\r\n|\n|\r(?=[^\n])", chunk)
    return found.end() if found is not None else 0
