"""Building blocks from outside the package: a sweep area and an aggregate, against the reference.

Only what docs/building-blocks.md documents is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import millstream as ms
from millstream.logical.expressions import AggregateCall
from millstream.physical.accumulators import Answer, TableAccumulator
from millstream.physical.batch import Batch, Columns, Ints, Mask
from millstream.physical.joins.areas.area import Area
from millstream.physical.joins.areas.forms import AreaChoice, area_forms, register_area
from millstream.physical.operator import Pattern

DOCUMENT = Path(__file__).parents[1] / "docs/building-blocks.md"


# --- an area --------------------------------------------------------------------------------------


class ListArea(Area):
    """A Python list of elements, probed by a nested loop."""

    opened = 0

    def __init__(self, types: Sequence[pa.DataType], lazy: int = 0) -> None:
        super().__init__(types, lazy)
        ListArea.opened += 1
        self._codes: list[int] = []
        self._times: list[tuple[int, int, int]] = []
        self._rows: list[list[pa.Scalar]] = []

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def nbytes(self) -> int:
        return 100 * len(self)

    def insert(self, codes: Ints, batch: Batch) -> None:
        self._codes += codes.tolist()
        times = batch.start.tolist(), batch.end.tolist(), batch.weight.tolist()
        self._times += zip(*times, strict=True)
        columns = list(batch.columns)
        self._rows += [[column[i] for column in columns] for i in range(len(batch))]

    def probe(self, codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        pairs = [
            (number, slot)
            for number, (code, since, until) in enumerate(zip(codes, start, end, strict=True))
            for slot, (other, (begin, stop, _)) in enumerate(
                zip(self._codes, self._times, strict=True)
            )
            if code == other and since < stop and begin < until
        ]
        self.touched += len(codes) * len(self)
        found = np.array(pairs, np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _expire(self, frontier: int) -> None:
        kept = [slot for slot, (_, end, _) in enumerate(self._times) if end > frontier]
        self._codes = [self._codes[slot] for slot in kept]
        self._times = [self._times[slot] for slot in kept]
        self._rows = [self._rows[slot] for slot in kept]

    def slots(self) -> Ints:
        return np.arange(len(self))

    def times(self, slots: Ints) -> tuple[Ints, Ints, Ints]:
        found = np.array([self._times[slot] for slot in slots], np.int64).reshape(-1, 3)
        return found[:, 0], found[:, 1], found[:, 2]

    def rows(self, slots: Ints) -> Columns:
        values = [[self._rows[slot][i].as_py() for slot in slots] for i in range(len(self.types))]
        return Columns.of(map(pa.array, values, self.types))

    def codes(self) -> Ints:
        return np.array(self._codes, np.int64)

    def live_codes(self) -> Ints:
        return np.unique(self.codes())

    def renumber(self, renumbered: Ints) -> None:
        self._codes = renumbered[self.codes()].tolist()


@pytest.fixture
def list_area() -> str:
    def opened(types: Sequence[pa.DataType], pattern: Pattern, choice: AreaChoice) -> Area:
        return ListArea(types, choice.lazy)

    if "list" not in area_forms():
        register_area("list", opened)
    ListArea.opened = 0
    return "list"


# --- an aggregate ---------------------------------------------------------------------------------


class SumOfSquares(TableAccumulator):
    """SUM(x * x) of small integers: per group the sum, and the number of rows without NULL."""

    width = 2  # x * x, and 1 if the row counts

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(columns=2)

    def encode(
        self,
        arguments: Sequence[pa.Array],
        order: Sequence[pa.Array],
        included: Mask | None,
        length: int,
    ) -> list[Ints]:
        counts = np.asarray(arguments[0].is_valid()).astype(np.int64)
        if included is not None:
            counts = counts * included
        values = np.asarray(arguments[0].fill_null(0)).astype(np.int64)
        return [values * values * counts, counts]

    def step(self, group: Ints, words: Sequence[Ints], delta: Ints, bounds: Ints) -> Answer:
        after = np.empty((len(bounds) - 1, 2), np.int64)
        for j, (first, stop) in enumerate(pairwise(bounds)):
            changes = [(word[first:stop] * delta[first:stop]).sum() for word in words]
            self._table.rows[group[first]] += np.array(changes)
            after[j] = self._table.rows[group[first]]
        return Answer(pa.array(after[:, 0], mask=after[:, 1] == 0))


# --- queries --------------------------------------------------------------------------------------

QUERIES = [
    "SELECT a.k, b.x FROM A WINDOW(RANGE 6) AS a JOIN B WINDOW(RANGE 9) AS b ON a.k = b.k",
    "SELECT a.x FROM A WINDOW(RANGE 4) AS a JOIN B WINDOW(ROWS 3) AS b ON a.x < b.x",
    "SELECT k, squares(x) AS s FROM A WINDOW(RANGE 7) GROUP BY k",
    "SELECT squares(x) FILTER (WHERE k > 1) AS s, squares(DISTINCT x) AS d FROM B WINDOW(ROWS 5)",
    "SELECT squares(a.x) AS s FROM A WINDOW(RANGE 6) AS a JOIN B WINDOW(RANGE 9) AS b ON a.k = b.k",
]


def rows(random: Random) -> list[dict[str, Any]]:
    times = sorted(random.randrange(60) for _ in range(40))
    value = lambda: random.choice([None, *range(-5, 9)])  # noqa: E731
    return [{"t": t, "k": random.randrange(4), "x": value()} for t in times]


def session(engine: str, seed: int, area: str | None = None) -> ms.Session:
    random = Random(seed)
    made = ms.Session(engine, area=area)
    made.aggregate(
        "squares",
        init=lambda x: x * x,
        merge=lambda a, b: a + b,
        eval=lambda total: total,
        accumulator=SumOfSquares,
        returns="BIGINT",
    )
    columns = dict.fromkeys("tkx", "BIGINT")
    for name in ("A", "B"):
        made.stream(name, rows(random), time="t", schema=columns)
    return made


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_the_reference(query: str, seed: int, list_area: str) -> None:
    answer = session("local", seed, list_area).sql(query).run()
    assert answer.equals(session("reference", seed).sql(query).run())
    assert ("JOIN" in query) == (ListArea.opened > 0)


def test_explain_names_the_area(list_area: str) -> None:
    plan = session("local", 0, list_area).sql(QUERIES[0]).explain(physical=True)
    assert "state=[list, list]" in str(plan)


def test_an_area_that_is_not_registered() -> None:
    with pytest.raises(ms.QueryError, match='area "lists" does not exist'):
        session("local", 0, "lists").sql(QUERIES[0]).run()


def test_nothing_is_imported_that_is_not_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for module, names in imports(Path(__file__).read_text(encoding="utf-8")):
        assert f"`{module}`" in text, module
        for name in names:
            assert f"`{name}`" in text, name


def imports(text: str) -> Iterator[tuple[str, list[str]]]:
    for module, names in re.findall(r"^from (millstream\S*) import (.*)$", text, re.MULTILINE):
        yield module, names.split(", ")
