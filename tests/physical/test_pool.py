"""Strings that state refers to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.physical.state.pool import StringPool


def test_null_is_told_after_a_restart_with_nothing_else() -> None:
    pool = StringPool()
    codes = pool.encode(pa.array([None], pa.string()))
    again = StringPool()
    again.restore(pool.save())
    assert again.decode(codes, pa.string()).to_pylist() == [None]


def test_strings_come_back_as_they_went_in() -> None:
    pool = StringPool()
    texts = ["a", None, "", "bb", "a"]
    codes = pool.encode(pa.array(texts))
    assert codes.tolist() == [0, -1, 1, 2, 0]
    assert pool.decode(codes, pa.string()).to_pylist() == texts
    kept = pool.keep(np.array([2]))
    assert kept.tolist() == [-1, -1, 0, -1]
    assert pool.decode(kept[codes], pa.string()).to_pylist() == [None, None, None, "bb", None]
