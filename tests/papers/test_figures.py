"""Figures that show how answers come, not only what they are: N figures 2, 5 and 6, G5 figure 7."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from millstream.model.elements import Element
from millstream.model.time import INFINITY
from millstream.optimizer.choice import Approach, Choices, choose
from millstream.physical.batch import Batch
from millstream.physical.joins.areas.calendar import CalendarArea
from millstream.physical.operator import Context
from millstream.runtime.graph import Graph
from papers.cases import Case, read_cases
from papers.local_engine import elements_of, records_of

CASES = {
    case.name: case for case in read_cases(Path(__file__).parent / "ghanem/negative-tuples.case")
}
Change = tuple[int, object, int]  # at, value, change


def changes(case: Case, approach: Approach, until: int) -> Iterator[tuple[int, list[Change]]]:
    """For each instant, the changes that are given once every source has come to its end."""
    plan = case.plan(case.queries[0])
    physical = choose(plan, "CHANGES", Choices(approach=approach))
    given: list[Element] = []
    graph = Graph(
        physical, Context(), lambda batch: given.extend(elements_of(batch, physical.schema))
    )
    records = records_of(plan, case.inputs)
    for now in range(until):
        for stream, vertices in graph.sources.items():
            rows = records[stream]
            index = np.flatnonzero(rows.start == now)
            start, end, weight = rows.start[index], rows.end[index], np.ones(len(index), np.int64)
            columns = [column.take(index) for column in rows.columns]
            for vertex in vertices:
                graph.push(vertex, Batch.of(columns, start, end, weight, now + 1))
        yield now, [(e.start, e.row[0], e.weight) for e in given]
        given.clear()


@pytest.mark.parametrize("approach", [Approach.HYBRID, Approach.SIGNED])
def test_ghanem_figure_2(approach: Approach) -> None:
    """The count falls to 3 at T5 and to 2 at T6 though no row that joins arrives: input-triggered
    evaluation would stay at 4 until T7. (As intervals, a count is given when it has ended.)"""
    case = CASES["Figure 2: count over a join with a relation"]
    told = dict(changes(case, approach, 9))
    assert sorted(told[4]) == [(4, 3, -1), (4, 4, 1)]
    assert sorted(told[5]) == [(5, 3, 1), (5, 4, -1)]
    assert sorted(told[6]) == [(6, 2, 1), (6, 3, -1)]
    assert sorted(told[7]) == [(7, 2, -1), (7, 3, 1)]


@pytest.mark.parametrize("approach", Approach)
def test_ghanem_figure_5(approach: Approach) -> None:
    """At T7 a 1 expires and another is there: the distinct values stay as they are."""
    told = dict(changes(CASES["Figure 5: distinct"], approach, 13))
    assert {now: each for now, each in told.items() if each} == {
        1: [(1, 1, 1)],
        3: [(3, 4, 1)],
        6: [(6, 5, 1)],
        11: [(11, 1, -1)],
        12: [(12, 5, -1)],
    }


@pytest.mark.parametrize("approach", [Approach.HYBRID, Approach.SIGNED])
def test_ghanem_figure_6(approach: Approach) -> None:
    """At T6 the 1 of S is taken back, at T7 its 5 is not reported, at T8 it is: R's 5 expires."""
    told = dict(changes(CASES["Figure 6: minus"], approach, 10))
    assert {now: each for now, each in told.items() if each} == {
        3: [(3, 2, 1)],
        4: [(4, 1, 1)],
        5: [(5, 3, 1)],
        6: [(6, 1, -1)],
        8: [(8, 5, 1)],
        9: [(9, 2, -1)],
    }


# --- G5 figure 7 ----------------------------------------------------------------------------------


def partitions(area: CalendarArea) -> list[list[int]]:
    """The ends of the elements in each partition of a calendar."""
    found = []
    for place in area._due.tolist():
        ends = []
        while place >= 0:
            ends.append(int(area._end[place]))
            place = int(area._next_due[place])
        found.append(sorted(ends))
    return found


def ending(ends: range) -> Batch:
    return Batch.of([], [0] * len(ends), ends)


def test_golab_figure_7() -> None:
    """Window 50, now 50: five partitions of ten ends each, in a circle. At 60 the first of them is
    over, and ends from 100 on find a place. G5's partitions end with a multiple of ten (51 to 60,
    and at 60 101 to 110), ours begin with one (50 to 59, and 100 to 109); so one may be half over,
    and there is a sixth to spare."""
    area = CalendarArea([], partitions=6)
    area._width = 10
    area.insert(np.zeros(50, np.int64), ending(range(50, 100)))
    filled = [[*range(first, first + 10)] for first in (60, 70, 80, 90)]
    assert partitions(area) == [*filled, [], [*range(50, 60)]]
    area.expire(60)
    area.insert(np.zeros(10, np.int64), ending(range(100, 110)))
    assert partitions(area) == [[*range(61, 70)], *filled[1:], [*range(100, 110)], []]
    area.expire(70)
    area.insert(np.zeros(1, np.int64), ending(range(110, 111)))
    assert partitions(area)[5] == [110], "where 50 to 59 were"


def test_expiry_looks_at_partitions_that_are_over() -> None:
    area = CalendarArea([], partitions=6)
    area._width = 10
    area.insert(np.zeros(50, np.int64), ending(range(50, 100)))
    area.expire(49)
    before = area.touched
    area.expire(60)
    assert area.touched - before == 20, "those of 50 to 59 and of 60 to 69"
    assert len(area) == 39


def test_what_holds_for_ever_is_in_no_partition() -> None:
    area = CalendarArea([], partitions=6)
    area.insert(np.zeros(1, np.int64), Batch.of([], [0], [INFINITY]))
    area.expire(1_000_000)
    assert partitions(area) == [[]] * 6
    assert len(area) == 1
