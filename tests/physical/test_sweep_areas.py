"""Areas find the pairs that a nested loop over everything finds, whichever way they look."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from millstream.model.time import INFINITY
from millstream.physical.batch import Batch, Ints
from millstream.physical.joins.areas import area as areas
from millstream.physical.joins.areas.area import Area, Probing
from millstream.physical.joins.areas.calendar import CalendarArea, Closing
from millstream.physical.joins.areas.ring import RingArea

Open = Callable[[Probing], Area]

FORMS: dict[str, Open] = {
    "ring": lambda probing: RingArea([pa.int64()], probing),
    "calendar": lambda probing: CalendarArea([pa.int64()], probing),
    "keyed calendar": lambda probing: CalendarArea([pa.int64()], probing, closing=Closing.KEYED),
    "scanned calendar": lambda probing: CalendarArea(
        [pa.int64()], probing, closing=Closing.SCANNED
    ),
}


def batch_of(numbers: Ints, start: Ints, end: Ints) -> Batch:
    return Batch.of([pa.array(numbers)], start, end)


def drawn(random: np.random.Generator, form: str, count: int, since: int) -> tuple[Ints, Ints]:
    """Starts and ends; those of a ring are in order."""
    start = since + random.integers(0, 60, count)
    if form == "ring":
        start.sort()
        return start, start + 7
    end = start + random.integers(1, 25, count)
    end[random.random(count) < 0.05] = INFINITY
    return start, end


def pairs_of(area: Area, codes: Ints, start: Ints, end: Ints) -> list[tuple[int, int]]:
    """By number of the probing element and number of the row."""
    found, slots = area.probe(codes, start, end)
    (rows,) = area.rows(slots)
    return sorted(zip(found.tolist(), rows.to_pylist(), strict=True))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("impatient", [False, True])
def test_chains_sweeps_and_loops_find_the_same(
    form: str, seed: int, impatient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if impatient:
        monkeypatch.setattr(areas, "FEW_LOOKS", 0)
        monkeypatch.setattr(areas, "LOOKS", 0)
        monkeypatch.setattr(areas, "FEW_PROBES", 1)
    random = np.random.default_rng(seed)
    area, loop = FORMS[form](Probing.HASH), FORMS[form](Probing.LOOP)
    everything: list[tuple[int, int, int, int]] = []  # number, code, start, end
    keys, since = int(random.choice([1, 3, 40])), 0
    for _ in range(8):
        count = int(random.integers(0, 120))
        codes = random.integers(0, keys, count)
        start, end = drawn(random, form, count, since)
        numbers = np.arange(len(everything), len(everything) + count)
        for each in (area, loop):
            each.insert(codes, batch_of(numbers, start, end))
        everything += zip(numbers, codes, start, end, strict=True)
        since += 60 if form == "ring" else int(random.integers(0, 40))
        for each in (area, loop):
            each.expire(since - 70)

        probes = int(random.integers(0, 90))
        mine = random.integers(-1, keys + 2, probes)
        from_, to = drawn(random, "calendar", probes, since - 60)
        expected = sorted(
            (i, int(number))
            for i in range(probes)
            for number, code, start, end in everything
            if code == mine[i] and start < to[i] and max(from_[i], since - 70) < end
        )
        seen = pairs_of(area, mine, from_, to)
        assert [pair for pair in seen if _is_alive(everything, pair, since - 70)] == expected
        assert pairs_of(loop, mine, from_, to) == seen
        pieces = [*area.probe_in_pieces(np.maximum(mine, 0), from_, to)]
        whole = area.probe(np.maximum(mine, 0), from_, to)
        together = [np.concatenate(part) for part in zip(*pieces, strict=True)] if pieces else whole
        assert sorted(zip(*map(np.ndarray.tolist, together), strict=True)) == sorted(
            zip(*map(np.ndarray.tolist, whole), strict=True)
        )


def _is_alive(
    everything: list[tuple[int, int, int, int]], pair: tuple[int, int], frontier: int
) -> bool:
    """Elements that the frontier has passed may still be there: expiry goes by partitions."""
    return everything[pair[1]][3] > frontier


@pytest.mark.parametrize("form", FORMS)
def test_a_key_with_many_rows_that_hardly_overlap_is_swept(form: str) -> None:
    """What is looked at follows the elements and the pairs, not their product."""
    area = FORMS[form](Probing.HASH)
    count = 20_000
    start = np.arange(count)
    codes = np.zeros(count, np.int64)
    area.insert(codes, batch_of(start, start, start + 3))
    found, slots = area.probe(codes, start, start + 3)
    assert len(found) == len(slots) == 5 * count - 6
    assert area.touched < (areas.LOOKS + 10) * count


@pytest.mark.parametrize("form", FORMS)
def test_pieces_grow_where_few_pairs_are_found(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.physical.joins.portions.PAIRS", 64)
    area = FORMS[form](Probing.HASH)
    start = np.arange(1000)
    codes = np.zeros(1000, np.int64)
    area.insert(codes, batch_of(start, start, start + 1))
    pieces = [*area.probe_in_pieces(codes, start, start + 1)]
    assert sum(len(found) for found, _ in pieces) == 1000
    assert 15 < len(pieces) < 100
