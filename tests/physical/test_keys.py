"""Keys that are forgotten take their strings with them, also those within arrays and structs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millstream.physical.state.keys import KeySpace

TEXTS = pa.list_(pa.string())
PAIR = pa.struct([("n", pa.int64()), ("texts", TEXTS)])

KEYS: dict[str, tuple[pa.DataType, Any]] = {
    "texts": (pa.string(), lambda i: f"text {i}"),
    "arrays of texts": (TEXTS, lambda i: [f"text {i}", None, "the same"]),
    "arrays of arrays": (pa.list_(TEXTS), lambda i: [[f"text {i}"], None, [], ["x", f"y {i}"]]),
    "arrays of structs": (pa.list_(PAIR), lambda i: [{"n": i, "texts": [f"text {i}"]}, None]),
    "structs": (PAIR, lambda i: {"n": 1, "texts": [f"text {i}", "z"]}),
}


@pytest.mark.parametrize("kind", KEYS)
def test_what_is_kept_is_found_again(kind: str) -> None:
    type, value = KEYS[kind]
    keys = KeySpace([type])
    values = [*(value(i) for i in range(50)), None]
    array = pa.array(values, type)
    assert keys.encode([array], len(array)).tolist() == list(range(51))
    kept = np.array([3, 7, 20, 50])
    keys.keep(kept)
    assert keys.encode([array.take(pa.array(kept))], 4, add=False).tolist() == [0, 1, 2, 3]
    assert keys.encode([pa.array([value(4)], type)], 1, add=False).tolist() == [-1]
    assert keys.encode([pa.array([value(60), value(7)], type)], 2).tolist() == [4, 1]


@pytest.mark.parametrize("kind", KEYS)
def test_memory_does_not_grow_with_keys_that_are_gone(kind: str) -> None:
    type, value = KEYS[kind]
    keys = KeySpace([type])
    sizes = []
    for first in range(0, 20_000, 1_000):
        array = pa.array([value(i) for i in range(first, first + 1_000)], type)
        codes = keys.encode([array], len(array))
        keys.keep(np.unique(codes[-100:]))
        sizes.append(keys.nbytes)
    assert sizes[-1] <= 1.5 * sizes[2]


def test_the_key_of_no_columns_outlives_restarts() -> None:
    keys = KeySpace([])
    for _ in range(2):
        keys.encode([], 3)
        state = keys.save()
        keys = KeySpace([])
        keys.restore(state)
    assert keys.encode([], 2, add=False).tolist() == [0, 0]


def test_texts_that_are_only_asked_for_are_forgotten_too() -> None:
    keys = KeySpace([pa.string()])
    keys.encode([pa.array(["here"])], 1)
    for first in range(0, 20_000, 500):
        asked = pa.array([f"text {i}" for i in range(first, first + 500)])
        assert keys.encode([asked], 500, add=False).max() == -1
        if keys.is_stale:
            keys.keep(np.array([0]))
        assert keys.nbytes < 200_000
    assert keys.encode([pa.array(["here"])], 1, add=False).tolist() == [0]
