"""Random streams: ties and bursts, gaps, NULLs, skew, duplicates, NaN and 1e17."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any, TypeVar

import pyarrow as pa

from oracle.judged_streams import JudgedStream, stream_of

T = TypeVar("T")

INT, DOUBLE, STRING, BOOLEAN, DECIMAL = "BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DECIMAL(6, 2)"

_ARROW = {
    INT: pa.int64(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    BOOLEAN: pa.bool_(),
    DECIMAL: pa.decimal128(6, 2),
}


class Tape:
    """Bytes that make choices, one after the other. The first of several options is the simplest
    and 0 chooses it, so that a smaller tape makes a simpler case; beyond its end all is 0."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def number(self, below: int) -> int:
        self.place += 1
        return self.content[self.place - 1] % below if self.place <= len(self.content) else 0

    def pick(self, *options: T) -> T:
        return options[self.number(len(options))]


# --- streams --------------------------------------------------------------------------------------

_VALUES: dict[str, Sequence[Any]] = {
    INT: (1, 1, 1, 2, 2, 3, 0, -4, 7, None),
    DOUBLE: (0.5, 0.0, -2.25, 3.0, 3.0, 1e17, -1e17, float("nan"), None),
    STRING: ("a", "a", "b", "", "ab", "B", None),
    BOOLEAN: (True, False, None),
    DECIMAL: (Decimal("0.10"), Decimal("1.25"), Decimal("-3.00"), Decimal("9.99"), None),
}

# Ties and bursts, then gaps.
_TIMES = (0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 8, 9, 13, 17)
_LENGTHS = (1, 2, 3, 5, 9, None)

COLUMNS: dict[str, dict[str, str]] = {
    "S": {"t": INT, "k": INT, "v": INT, "x": DOUBLE, "s": STRING, "b": BOOLEAN, "d": DECIMAL},
    "R": {"m": INT, "k": INT, "w": INT, "y": DOUBLE, "s": STRING},
    "V": {"lo": INT, "hi": INT, "k": INT, "z": DOUBLE, "c": BOOLEAN},
}


def streams_of(tape: Tape) -> list[JudgedStream]:
    """Two streams of events and one whose rows bring their own interval."""
    origin = tape.pick(0, 1, -4)
    return [
        _stream(tape, "S", ("t",), origin),
        _stream(tape, "R", ("m",), origin),
        _stream(tape, "V", ("lo", "hi"), origin),
    ]


def _stream(tape: Tape, name: str, time: tuple[str, ...], origin: int) -> JudgedStream:
    """Each row follows from one number, so that a smaller failure has fewer rows."""
    columns = COLUMNS[name]
    count = (
        tape.pick(0, 5, 6, 7, 8, 9, 8, 7, 6, 5) if len(time) == 1 else tape.pick(0, 3, 4, 5, 4, 3)
    )
    numbers: list[int] = []
    for _ in range(count):
        number = tape.number(256)
        numbers.append(numbers[-1] if numbers and number > 220 else number)  # duplicates
    rows = [_row(Random(number), columns, time, origin) for number in numbers]
    return stream_of(name, {c: _ARROW[type_] for c, type_ in columns.items()}, rows, *time)


def _row(random: Random, columns: dict[str, str], time: tuple[str, ...], origin: int) -> list[Any]:
    start = origin + random.choice(_TIMES)
    length = random.choice(_LENGTHS)
    interval = [start, None if length is None else start + length][: len(time)]
    others = [type_ for column, type_ in columns.items() if column not in time]
    return [*interval, *(random.choice(_VALUES[type_]) for type_ in others)]
