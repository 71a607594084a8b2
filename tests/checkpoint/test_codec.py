"""Records: what goes in comes out, and nothing else goes in."""

from __future__ import annotations

import datetime
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.model.codec import RecordError, packed, unpacked
from millstream.model.masking import Secret
from millstream.model.values import NAN

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC)).map(lambda t: t.replace(fold=0))
    | st.times().map(lambda t: t.replace(fold=0))
    | st.timedeltas(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(st.integers() | st.tuples(st.integers(), st.text()), inner)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_values(value: object) -> None:
    back = unpacked(packed(value))
    assert back == value
    assert repr(back) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(5),
        np.zeros((3, 0), np.int64),
        np.arange(12, dtype=np.int32).reshape(3, 4)[:, 1:3],
        np.arange(12).reshape(3, 4).T,
        np.array([True, False]),
        np.array([0.5, np.nan, -0.0]),
        np.array([], np.uint8),
        np.array(7, np.uint64),
        np.array([1, 2], ">i4"),
    ],
    ids=repr,
)
def test_numpy(array: np.ndarray) -> None:
    back = unpacked(packed({"array": array}))["array"]
    assert back.shape == array.shape
    assert back.dtype == array.dtype.newbyteorder("=")
    assert np.array_equal(back, array, equal_nan=array.dtype.kind == "f")
    assert back.flags.writeable


def test_arrow() -> None:
    arrays = [
        pa.array([1, None, 3]),
        pa.array(["a", "", None]),
        pa.array([], pa.string()),
        pa.array([[1], [], None], pa.list_(pa.int32())),
        pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int64()), ("b", pa.string())])),
        pa.array([Decimal("1.50"), None, None], pa.decimal128(10, 2)),
        pa.nulls(3),
        pa.array(["x", "y"], pa.large_string()),
        pa.array([True, None, False]),
        pa.array([1, 2], pa.timestamp("us")),
    ]
    back = unpacked(packed([arrays, {"again": tuple(arrays)}]))
    assert back == [arrays, {"again": tuple(arrays)}]
    assert [a.type for a in back[0]] == [a.type for a in arrays]


def test_a_slice_brings_nothing_but_itself() -> None:
    long = pa.array(["x" * 100] * 10_000)
    told = packed(long.slice(5000, 2))
    assert len(told) < 2000
    assert unpacked(told).to_pylist() == ["x" * 100] * 2
    assert len(packed(np.arange(100_000)[5:7])) < 200


def test_there_is_one_nan() -> None:
    assert unpacked(packed([float("nan")]))[0] is NAN
    assert unpacked(packed([float("inf"), -float("inf")])) == [float("inf"), -float("inf")]


def test_numbers_of_numpy_become_plain() -> None:
    back = unpacked(packed([np.int64(3), np.bool_(True), np.float64(0.5)]))
    assert back == [3, True, 0.5]
    assert [type(value) for value in back] == [int, bool, float]


def test_exactly() -> None:
    with pytest.raises(TypeError, match="cannot contain a value of type float64"):
        packed([np.float64(0.5)], exact=True)


class Odd:
    pass


@pytest.mark.parametrize(
    "value",
    [
        Odd(), Odd, {1}, frozenset(), 1j, len, Secret("hidden"), np.array([object()]),
        np.array(["a"]), pa.table({"a": [1]}), pa.chunked_array([[1]]), range(3), bytearray(b"x"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
@pytest.mark.parametrize("around", [lambda v: v, lambda v: {"a": [(v,)]}, lambda v: {1: v}])
def test_nothing_else(value: object, around: Any) -> None:
    with pytest.raises(TypeError, match="a record cannot contain"):
        packed(around(value))


RECORD = packed({"a": [1, b"bytes"], "n": np.arange(10), "x": pa.array(["a", "b"])})


def test_whatever_is_cut_off_is_told() -> None:
    for length in range(len(RECORD) - 8):
        with pytest.raises(RecordError):
            unpacked(RECORD[:length])


@given(st.integers(0, len(RECORD) - 1), st.integers(0, 255))
def test_whatever_is_damaged_ends_in_one_way(place: int, byte: int) -> None:
    damaged = bytearray(RECORD)
    damaged[place] = byte
    with suppress(RecordError):
        unpacked(bytes(damaged))


def test_another_version() -> None:
    with pytest.raises(RecordError, match="does not begin with MSR1"):
        unpacked(b"MSR2" + RECORD[4:])
