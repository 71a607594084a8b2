"""Tables compared as multisets, and keys that come twice."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from connectors.tables.followers import bag, declared
from millstream.connectors.tables.comparing import UniqueKeys, check_key, differences, net_changes
from millstream.model import types
from millstream.model.errors import DataError


@pytest.mark.parametrize("seed", range(20))
def test_differences_make_the_one_table_the_other(seed: int) -> None:
    choose = random.Random(seed)
    schema = pa.schema([("a", pa.int64()), ("s", pa.string()), ("d", pa.decimal128(5, 2))])

    def table(count: int) -> pa.Table:
        rows = [
            {
                "a": choose.choice([None, 1, 2]),
                "s": choose.choice([None, "", "x"]),
                "d": choose.choice([None, Decimal("0.50")]),
            }
            for _ in range(count)
        ]
        return pa.Table.from_pylist(rows, schema)

    old, new = table(choose.randrange(30)), table(choose.randrange(30))
    changes = differences(old, new)
    found = bag(old)
    for row, weight in zip(changes.rows.to_pylist(), changes.weight.tolist(), strict=True):
        assert weight != 0
        found[tuple(row.values())] += weight
    assert +found == bag(new)
    assert changes.rows.schema == schema
    assert max(bag(changes.rows).values(), default=1) == 1


def test_values_that_are_equal_in_sql_are_no_difference() -> None:
    old = pa.table({"x": [0.0, float("nan")], "l": [[1, None], [2]]})
    new = pa.table({"x": [float("nan"), -0.0], "l": [[2], [1, None]]})
    assert len(differences(old, new)) == 0


def test_weights_cancel_out() -> None:
    rows = pa.table({"x": [1, 2, 1, 3]})
    changes = net_changes(rows, np.array([2, 1, -2, 5]))
    assert (changes.rows["x"].to_pylist(), changes.weight.tolist()) == ([2, 3], [1, 5])


TABLE = declared("csv", {"a": types.BIGINT, "b": types.STRING}, key=("b", "a"))
ROWS = pa.table({"a": [1, 1, 2, 1], "b": ["x", "y", "x", "y"]})


def test_a_key_that_comes_twice() -> None:
    with pytest.raises(DataError) as error:
        check_key(TABLE, ROWS)
    assert str(error.value) == (
        'error: table "T": 2 rows have the key (y, 1)\n'
        'help: "b" and "a" must identify a row: declare another PRIMARY KEY, or none'
    )
    check_key(TABLE, ROWS.slice(0, 3))


def test_a_key_that_is_null() -> None:
    with pytest.raises(DataError, match='table "T": column "b" of its key is NULL'):
        check_key(TABLE, pa.table({"a": [1], "b": pa.array([None], pa.string())}))


def test_keys_that_come_and_go() -> None:
    """What is refused has not happened."""
    keys = UniqueKeys(declared("csv", {"a": types.BIGINT}, key=("a",)))
    choose = random.Random(1)
    there: Counter[int] = Counter()
    for _ in range(3000):
        some = {choose.randrange(50) + len(there): choose.choice([-1, 1]) for _ in range(3)}
        some = {a: weight for a, weight in some.items() if weight > 0 or there[a]}
        table = pa.table({"a": pa.array(some, pa.int64())})
        weight = np.fromiter(some.values(), np.int64)
        if any(there[a] + w > 1 for a, w in some.items()):
            with pytest.raises(DataError, match="2 rows have the key"):
                keys.add(table, weight)
        else:
            keys.add(table, weight)
            there.update(some)
