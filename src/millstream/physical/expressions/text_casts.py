"""CAST from and to STRING: Arrow reads and writes the usual texts, the reference the rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.functions.civil import days_from_civil
from millstream.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    MICROS_PER_DAY,
    REAL,
    STRING,
    TIMESTAMP,
    decimal_type,
    is_decimal,
    is_floating,
    is_integral,
)
from millstream.physical.expressions import decimals
from millstream.physical.expressions.by_distinct import exact_cast
from millstream.physical.expressions.mixing import mixed
from millstream.physical.expressions.nodes import Kernel
from millstream.physical.expressions.vector import Vector, mask_of, numbers, text_bytes

# --- from text --------------------------------------------------------------------------------

_YEAR = r"(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"  # there is no year 0
_DAY = rf"{_YEAR}-[0-9]{{2}}-[0-9]{{2}}"

# Strings that Arrow and the reference read alike.
_USUAL = {
    INT: r"\A-?[0-9]{1,9}\z",
    BIGINT: r"\A-?[0-9]{1,18}\z",
    DOUBLE: r"\A-?[0-9]{1,15}(?:\.[0-9]{1,15})?\z",
    DATE: rf"\A{_DAY}\z",
    TIMESTAMP: rf"\A{_DAY}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]{{1,6}})?\z",
}

# Strings that only Arrow accepts have one of these characters: 0xFF, nan(1).
_STRANGE = {INT: b"xX", BIGINT: b"xX", DOUBLE: b"(", REAL: b"("}


def from_text(target: pa.DataType) -> Kernel | None:
    if target == BINARY:
        return lambda values: Vector(values.cast(BINARY))
    if is_decimal(target):
        return _decimal_from_text(target)
    if target == REAL:
        return _reading(target, _USUAL[DOUBLE], lambda v: Vector(_real(v)))
    if target not in _USUAL:
        return None
    return _reading(target, _USUAL[target], lambda values: Vector(values.cast(target)))


def _real(values: pa.Array) -> pa.Array:
    """By way of a double, as a REAL is a rounded double."""
    return values.cast(DOUBLE).cast(REAL, safe=False)


def _reading(target: pa.DataType, pattern: str, read: Callable[[pa.Array], Vector]) -> Kernel:
    exact = exact_cast(STRING, target)
    strange = _STRANGE.get(target)

    def attempt(values: pa.Array) -> Vector:
        try:
            return read(values)
        except pa.ArrowInvalid:  # such as the 30th of February
            return exact(values)

    def kernel(values: pa.Array) -> Vector:
        if strange and not _has(values, strange):
            try:
                return read(values)
            except pa.ArrowInvalid:
                pass
        usual = mask_of(pc.match_substring_regex(values, pattern))
        return mixed(values, usual, attempt, exact)

    return kernel


def _has(values: pa.Array, characters: bytes) -> bool:
    text = text_bytes(values)
    return any(bool((text == character).any()) for character in characters)


def _decimal_from_text(target: pa.DataType) -> Kernel:
    scale = min(target.scale, 18)
    fraction = rf"(?:\.[0-9]{{1,{scale}}})?" if scale else ""
    between = decimal_type(38, target.scale) if target.scale <= 20 else None
    if between is None:
        return exact_cast(STRING, target)

    def read(values: pa.Array) -> Vector:
        return decimals.fit(values.cast(between), target)

    return _reading(target, rf"\A-?[0-9]{{1,15}}{fraction}\z", read)


# --- to text ----------------------------------------------------------------------------------


def to_text(source: pa.DataType) -> Kernel | None:
    if is_integral(source) or source in (BOOLEAN, BINARY):
        return lambda values: Vector(values.cast(STRING))
    if is_decimal(source) and source.scale <= 6:  # else small numbers get an exponent
        return lambda values: Vector(values.cast(STRING))
    if is_floating(source):
        return _writing_floating(source)
    if source == DATE:
        return _writing(DATE, 1, lambda values: Vector(values.cast(STRING)))
    if source == TIMESTAMP:
        return _writing(TIMESTAMP, MICROS_PER_DAY, _write_timestamps)
    return None


def _writing_floating(source: pa.DataType) -> Kernel:
    """Without an exponent from 1E-3 to 1E7. The reference writes REALs that are powers of two:
    their shortest digits are not always the nearest ones."""
    exact = exact_cast(source, STRING)

    def kernel(values: pa.Array) -> Vector:
        x = numbers(values)
        size = np.abs(x)
        plain = ((size >= 1e-3) & (size < 1e7)) | (x == 0)
        if source == REAL:
            plain &= np.frexp(size)[0] != 0.5
        return mixed(values, plain, _write_plain, exact)

    return kernel


def _write_plain(values: pa.Array) -> Vector:
    text = values.cast(STRING)
    x = numbers(values)
    whole = x == np.trunc(x)
    if not whole.any():
        return Vector(text)
    pointed = pc.binary_join_element_wise(text, ".0", "")
    return Vector(pc.if_else(pa.array(whole), pointed, text))


_FIRST, _LAST = days_from_civil(1, 1, 1), days_from_civil(10_000, 1, 1)


def _writing(source: pa.DataType, units_per_day: int, write: Kernel) -> Kernel:
    """Arrow and the reference write years of four digits alike."""
    exact = exact_cast(source, STRING)
    first, last = _FIRST * units_per_day, _LAST * units_per_day

    def kernel(values: pa.Array) -> Vector:
        x = numbers(values)
        return mixed(values, (x >= first) & (x < last), write, exact)

    return kernel


def _write_timestamps(values: pa.Array) -> Vector:
    """Without trailing zeros of the fraction."""
    x = numbers(values)
    if not np.any(x % 1_000_000):
        return Vector(values.cast(pa.timestamp("s"), safe=False).cast(STRING))
    shortened = pc.ascii_rtrim(values.cast(STRING), characters="0")
    return Vector(pc.ascii_rtrim(shortened, characters="."))
