"""Rows on their way in: the short way to typed rows is the long one, held rows come in order."""

from __future__ import annotations

import datetime
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.connectors.intake.checking import checked_records
from millstream.connectors.intake.data import table_of
from millstream.connectors.intake.plain_rows import PlainRows
from millstream.connectors.intake.rows import typed, typed_rows
from millstream.logical.catalog import Stream
from millstream.model.records import Records
from millstream.runtime.held import HeldRows

COLUMNS = {
    "ts": "TIMESTAMP",
    "i": "INT",
    "b": "BIGINT",
    "d": "DOUBLE",
    "r": "REAL",
    "s": "STRING",
    "f": "BOOLEAN",
}


def declared(schema: dict[str, str], time: str | None) -> Stream:
    session = ms.Session()
    session.feed("S", schema, time)
    return session._origins.stream("S")


STREAM = declared(COLUMNS, "ts")

VALUES = {
    "ts": st.datetimes() | st.datetimes(timezones=st.just(datetime.UTC)) | st.none(),
    "i": st.integers(-(2**31), 2**31 - 1) | st.none() | st.just(2**40) | st.just(1.5),
    "b": st.integers(-(2**63), 2**63 - 1) | st.none() | st.just(True) | st.just(2**70),
    "d": st.floats() | st.integers(-(2**60), 2**60) | st.none() | st.just("1"),
    "r": st.floats(width=32) | st.none(),
    "s": st.text(max_size=3) | st.none() | st.just(b"x") | st.just(5),
    "f": st.booleans() | st.none() | st.just(1),
}


@settings(max_examples=200)
@given(st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=4))
def test_the_short_way_gives_what_the_long_one_gives(rows: list[dict[str, object]]) -> None:
    short = PlainRows(STREAM).records(rows)
    if short is None:
        return
    long, bad = checked_records(STREAM, table_of(rows, STREAM.columns, "S"))
    assert bad == []
    assert pa.table(short.columns, names=list(COLUMNS)).equals(
        pa.table(long.columns, names=list(COLUMNS))
    ) or any(isinstance(value, float) and value != value for row in rows for value in row.values())
    assert short.start.tolist() == long.start.tolist()
    assert short.end.tolist() == long.end.tolist()


def test_plain_rows_take_the_short_way() -> None:
    moment = datetime.datetime(2024, 1, 1)
    row = {"ts": moment, "i": 1, "b": 2, "d": 3, "r": 0.5, "s": "x", "f": None}
    records = PlainRows(STREAM).records([row, row])
    assert records is not None
    assert records.start.tolist() == [1_704_067_200_000_000] * 2
    assert PlainRows(STREAM).records([tuple(row.values())]) is not None


@pytest.mark.parametrize(
    "row",
    [
        {"ts": None, "i": 1, "b": 2, "d": 3.0, "r": 0.5, "s": "x", "f": True},
        {"ts": datetime.datetime(2024, 1, 1), "i": 2**40, "b": 2, "d": 3.0, "r": 0.5, "s": "x",
         "f": True},
        {"ts": datetime.datetime(2024, 1, 1)},
        (1, 2),
        "row",
    ],
)  # fmt: skip
def test_what_is_not_plain_takes_the_long_way(row: object) -> None:
    assert PlainRows(STREAM).records([row]) is None


def test_a_row_that_is_not_null_and_one_without_a_time() -> None:
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    session = ms.Session()
    session.feed("S", schema)
    stream = session._origins.stream("S")
    records, bad = typed_rows(stream, [{"x": 1}, {"x": None}, {"x": 3}])
    assert records.columns[0].to_pylist() == [1, 3]
    assert [(row.number, row.message) for row in bad] == [(2, 'column "x" is NOT NULL')]


def test_bad_rows_of_several_batches_are_numbered_through() -> None:
    stream = declared({"t": "BIGINT"}, "t")
    batches = [pa.table({"t": [1, None]}), pa.table({"t": [None, 4]})]
    records, bad = typed(stream, batches)
    assert records.start.tolist() == [1, 4]
    assert [row.number for row in bad] == [2, 3]


@pytest.mark.parametrize("seed", range(20))
def test_held_rows_come_by_time_then_by_arrival(seed: int) -> None:
    rng = random.Random(seed)
    held = HeldRows()
    frontier, number, released = 0, 0, []
    arrived = []
    for _ in range(30):
        times = [frontier + rng.randint(0, 8) for _ in range(rng.randint(0, 6))]
        start = np.array(times, np.int64)
        ids = np.arange(number, number + len(times))
        number += len(times)
        arrived += list(zip(times, ids.tolist(), strict=True))
        frontier += rng.randint(0, 4)
        out = held.released(Records([pa.array(ids)], start, start + 1), frontier)
        assert (out.start < frontier).all()
        released += list(zip(out.start.tolist(), out.columns[0].to_pylist(), strict=True))
        assert len(released) + len(held) == number
    assert released == sorted(arrived)[: len(released)]
