"""Whole answers in normal form and in order, however cheaply that is found."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from millstream.model import elements
from millstream.model.elements import Element
from millstream.model.time import INFINITY
from millstream.model.values import to_plain
from millstream.physical.batch import Batch, merged
from millstream.physical.ordering import in_order, order_words
from millstream.runtime import normal_form as module
from millstream.runtime.normal_form import normal_form, whole_answer

TYPES = [pa.int64(), pa.float64(), pa.string()]
VALUES = [(None, 1, 2, 7), (None, 0.0, -0.0, 1.5, float("nan")), (None, "", "a", "ab")]


def batch_of(rows: Sequence[Element], types: Sequence[pa.DataType] = TYPES) -> Batch:
    columns = [pa.array([element.row[i] for element in rows], type) for i, type in enumerate(types)]
    return Batch.of(
        columns,
        [element.start for element in rows],
        [element.end for element in rows],
        [element.weight for element in rows],
    )


def pieces_of(batches: Sequence[Batch], types: Sequence[pa.DataType] = TYPES) -> list[Element]:
    """As they come, a row n times for weight n; NaN as text, so that it equals itself."""
    found = []
    for batch in batches:
        columns = [to_plain(a, type) for a, type in zip(batch.columns, types, strict=True)]
        rows = zip(zip(*columns, strict=True), batch.start, batch.end, batch.weight, strict=True)
        for row, start, end, weight in rows:
            found += [Element(comparable(row), int(start), int(end))] * int(weight)
    return found


def comparable(row: Sequence[object]) -> tuple[object, ...]:
    return tuple("NaN" if value != value else value for value in row)


def expected(rows: Sequence[Element]) -> list[Element]:
    """By the definition; 0.0 stands for -0.0, and one NaN for all."""
    nan = float("nan")
    unified = [
        Element(
            tuple(nan if v != v else v + 0.0 if isinstance(v, float) else v for v in each.row),
            each.start,
            each.end,
            each.weight,
        )
        for each in rows
    ]
    found = elements.normal_form(unified)
    each = (Element(comparable(e.row), e.start, e.end) for e in found for _ in range(e.weight))
    return list(each)


def random_elements(chance: Random, count: int) -> list[Element]:
    """Of several kinds: instants, touching pieces, overlaps, negative weights, nothing in order."""
    kind = chance.choice(["instants", "touching", "overlapping", "forever", "weighted"])
    spread = chance.choice([3, 20, 200])
    made = []
    for _ in range(count):
        row = tuple(map(chance.choice, VALUES))
        start = chance.randrange(spread)
        length = {"instants": 1, "forever": INFINITY - start}.get(kind, chance.randrange(1, 6))
        if kind == "touching":
            start, length = start // 5 * 5, 5
        weight = chance.choice([1, 2]) if kind == "weighted" else 1
        made.append(Element(row, start, start + length, weight))
    if chance.random() < 0.5:
        made.sort(key=lambda element: element.start)
    if kind == "weighted":  # some go before their time
        gone = [e for e in made if e.end < INFINITY and chance.random() < 0.3]
        made += [Element(e.row, e.start + 1, e.end, -e.weight) for e in gone if e.start + 1 < e.end]
    return made


@pytest.mark.parametrize("seed", range(60))
def test_it_is_what_the_definition_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(seed)
    rows = random_elements(chance, chance.choice([1, 5, 40, 300]))
    assert pieces_of([normal_form(batch_of(rows))]) == expected(rows)
    monkeypatch.setattr(module, "SMALL", 0)
    for size in (1, 7, 50):
        batches = [batch_of(rows[i : i + size]) for i in range(0, len(rows), size)]
        assert pieces_of(whole_answer(batches)) == expected(rows)


def test_rows_apart_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor copied: they come as they are."""
    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.delattr(module, "row_hashes")
    rows = [Element((1, 1.5, "a"), 2 * t, 2 * t + 1) for t in range(10)]
    batches = [batch_of(rows[:4]), batch_of(rows[4:])]
    assert pieces_of(whole_answer(batches)) == rows
    assert [part.columns[2] for part in whole_answer(batches)] == [b.columns[2] for b in batches]


def test_instants_that_follow_each_other_become_one() -> None:
    rows = [Element((1, 1.5, "a"), t, t + 1) for t in range(5)]
    assert pieces_of([normal_form(batch_of(rows))]) == [Element((1, 1.5, "a"), 0, 5)]


def test_only_rows_that_meet_equals_are_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[int] = []
    pieces = module._pieces
    monkeypatch.setattr(module, "_pieces", lambda batch: cut.append(len(batch)) or pieces(batch))
    rows = [Element((t, 1.5, "a"), t, t + 10) for t in range(50)]
    assert pieces_of([normal_form(batch_of(rows))]) == rows
    assert cut == []
    more = [*rows, Element((7, 1.5, "a"), 12, 30)]
    assert pieces_of([normal_form(batch_of(more))]) == expected(more)
    assert cut == [2]


def test_parts_end_where_nothing_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties across batches stay together; a late start holds back all that it may meet."""
    monkeypatch.setattr(module, "SMALL", 0)
    instants = [Element((k, None, None), t, t + 1) for t in (0, 5, 5, 5, 9) for k in (2, 1)]
    batches = [batch_of(instants[:5]), batch_of(instants[5:])]
    parts = whole_answer(batches)
    assert [len(part) for part in parts] == [2, 8]
    assert pieces_of(parts) == expected(instants)
    late = [batch_of([Element((1, None, None), 5, 8)]), batch_of([Element((1, None, None), 2, 5)])]
    assert pieces_of(whole_answer(late)) == [Element((1, None, None), 2, 8)]


def test_rows_of_arrays() -> None:
    type = pa.list_(pa.float64())
    rows = [Element(([0.5],), 0, 4), Element(([0.5],), 4, 6), Element(([1.5],), 1, 2)]
    batch = Batch.of(
        [pa.array([element.row[0] for element in rows], type)],
        [element.start for element in rows],
        [element.end for element in rows],
    )
    found = normal_form(batch)
    assert found.columns[0].to_pylist() == [[0.5], [1.5]]
    assert (found.start.tolist(), found.end.tolist()) == ([0, 1], [6, 2])


def test_empty_intervals_are_nothing() -> None:
    rows = [Element((1, None, None), 3, 3), Element((2, None, None), 3, 4)]
    assert pieces_of([normal_form(batch_of(rows))]) == rows[1:]
    assert pieces_of([normal_form(batch_of(rows[:1]))]) == []


@pytest.mark.parametrize("seed", range(30))
def test_order_is_that_of_all_words_at_once(seed: int) -> None:
    chance = Random(seed)
    rows = random_elements(chance, chance.choice([0, 1, 30, 500]))
    batch = batch_of(rows)
    words = [batch.start, batch.end]
    words += [word for array in batch.columns for word in order_words(array)]
    wanted = batch.take(np.lexsort(words[::-1]))
    assert pieces_of([in_order(batch)]) == pieces_of([wanted])
    assert pieces_of([merged([batch])]) == pieces_of([batch_of(rows)]), "the batch is not changed"
