"""The queries of G3 and A: streams, windows and selectivities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from millstream.optimizer.join_graph import Equality, JoinGraph, JoinInput, Predicate
from millstream.papers.join_trees import over_rows, over_time


def one_column(*streams: tuple[float, float, float]) -> JoinGraph:
    """Streams joined on one column: per stream its rate, its window and its distinct values."""
    inputs = [over_time(f"S{i + 1}", rate, span) for i, (rate, span, _) in enumerate(streams)]
    distinct = tuple((i, float(values)) for i, (_, _, values) in enumerate(streams))
    return JoinGraph(tuple(inputs), (Equality(distinct),))


TABLE_5 = one_column((10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5))
TABLE_6 = one_column((100, 100, 200), (1, 100, 200), (1, 100, 20), (3, 100, 2))
TABLE_7 = one_column((11, 100, 200), (10, 100, 100), (1, 100, 65), (1, 100, 20))


def conjunctive(
    inputs: Sequence[JoinInput], selectivities: Mapping[tuple[int, int], float]
) -> JoinGraph:
    predicates = (Predicate(1 << a | 1 << b, share) for (a, b), share in selectivities.items())
    return JoinGraph(tuple(inputs), (), tuple(predicates))


# A, example 1: three streams, the last ten rows of each.
EXAMPLE_1 = conjunctive(
    [over_rows("A", 10, 10), over_rows("B", 70, 10), over_rows("C", 20, 10)],
    {(0, 1): 0.5, (1, 2): 0.2},
)


def random_query(chance: Random) -> JoinGraph:
    """A, table 2: windows and selectivities are fixed, rates are random."""
    rows = {"A": 100, "B": 300, "C": 500, "D": 400, "E": 1000}
    inputs = [over_rows(name, chance.uniform(10, 1000), size) for name, size in rows.items()]
    return conjunctive(inputs, {(0, 1): 0.2, (0, 2): 0.5, (1, 3): 0.1, (3, 4): 0.001})


def any_query(chance: Random, count: int, windows: str) -> JoinGraph:
    """A random tree of conditions over streams with windows over "time", "rows", or both."""
    inputs = []
    for number in range(count):
        rate, span = chance.uniform(10, 1000), chance.uniform(0.1, 10)
        by_rows = windows == "rows" or (windows == "mixed" and number % 2 == 0)
        inputs.append(JoinInput(f"S{number + 1}", rate, rate * span, by_rows))
    links = {(chance.randrange(i), i): 10 ** chance.uniform(-4, -1) for i in range(1, count)}
    return conjunctive(inputs, links)
