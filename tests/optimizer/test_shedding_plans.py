"""Plans and what to drop from them, chosen together: A §5 and its experiments of §6."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from benchmarks.papers.join_queries import EXAMPLE_1, any_query, random_query

from millstream.optimizer.join_orders.search import cheapest
from millstream.optimizer.join_orders.trees import left_deep
from millstream.papers.join_trees import PerElement
from millstream.papers.shed_trees import Shedding

QUERIES = 1_000
LEVELS = (0.9, 0.6, 0.3, 0.01)  # of the resources at which a query is just feasible
CHANGED = 1e-9  # gains below are none


@dataclass(frozen=True)
class Measured:
    """Over all queries at one level: the share that another plan is better for, the gain of all
    and of those, the largest one, and the errors of the heuristic."""

    reoptimized: float
    mean_gain: float
    largest_gain: float
    mean_error: float
    largest_error: float


def experiments() -> dict[float, Measured]:
    """A §6: queries with random rates; cost 1 for each element, so that resources are elements a
    second."""
    chance = Random(2004)
    gains: dict[float, list[float]] = {level: [] for level in LEVELS}
    errors: dict[float, list[float]] = {level: [] for level in LEVELS}
    for _ in range(QUERIES):
        shedding = Shedding(random_query(chance), PerElement(1.0))
        costs = shedding.all_costs()
        lowest = shedding.lowest
        cost = shedding.tree_cost(lowest)
        for level in LEVELS:
            resources = level * float(cost)
            best = shedding.best_of(costs, resources)
            gains[level].append(best.output / shedding.shed(lowest, resources).output - 1)
            errors[level].append(1 - shedding.heuristic(resources).output / best.output)
    return {
        level: Measured(
            sum(gain > CHANGED for gain in gains[level]) / QUERIES,
            sum(gains[level]) / QUERIES,
            max(gains[level]),
            sum(errors[level]) / QUERIES,
            max(errors[level]),
        )
        for level in LEVELS
    }


def check_figure_7(experiments: dict[float, Measured]) -> None:
    """How many need another plan: almost linear in what is missing; likelier than not from 60 % on;
    almost certain at the end."""
    found = {level: measured.reoptimized for level, measured in experiments.items()}
    assert 0 < found[0.9] < 0.2
    assert 0.35 < found[0.6] < 0.6
    assert found[0.3] > 0.8
    assert found[0.01] > 0.9
    assert list(found.values()) == sorted(found.values())


def check_figures_8_and_9(experiments: dict[float, Measured]) -> None:
    """What another plan gains: about 4 % at 60 % of the resources, almost 8 times as much at
    1 %."""
    found = experiments
    assert 0.02 < found[0.6].mean_gain < 0.06
    assert 6 < found[0.01].mean_gain < 9
    for measured in found.values():
        assert measured.largest_gain >= measured.mean_gain
    near, far = found[0.9], found[0.3]
    assert near.largest_gain / near.mean_gain > far.largest_gain / far.mean_gain


def check_figure_10(experiments: dict[float, Measured]) -> None:
    """How far the heuristic is from the best: on average at most 0.2 %. In A it is 28 % at 1 % of
    the resources, where ours finds the best."""
    for level, measured in experiments.items():
        assert measured.mean_error <= 0.002, level
        assert measured.largest_error < 1.0
    assert experiments[0.01].mean_error == pytest.approx(0, abs=1e-6)


def test_figures_7_to_10() -> None:
    found = experiments()
    check_figure_7(found)
    check_figures_8_and_9(found)
    check_figure_10(found)


def test_the_best_plan_of_example_1() -> None:
    for milliseconds, best in {3: [1, 2, 0], 4: [1, 2, 0], 5: [0, 2, 1], 17: [0, 2, 1]}.items():
        shedding = Shedding(EXAMPLE_1, PerElement(milliseconds / 1000))
        for plan in (shedding.best_of(shedding.all_costs()), shedding.heuristic()):
            assert plan.tree == left_deep(best)
    feasible = Shedding(EXAMPLE_1, PerElement(0.003)).heuristic()
    assert not feasible.sheds
    assert feasible.worth == pytest.approx(1000 / 0.84), "equation 21"


@pytest.mark.parametrize("windows", ["time", "rows", "mixed"])
@pytest.mark.parametrize("part", [2.0, 0.5, 0.05])
def test_the_heuristic_is_close_to_the_best(windows: str, part: float) -> None:
    """And where a query is feasible it is the cheapest left-deep tree."""
    for seed in range(3):
        graph = any_query(Random(f"{windows} {seed}"), 4, windows)
        shedding = Shedding(graph, PerElement(1.0))
        lowest = cheapest(graph, PerElement(1.0), bushy=False)
        best = shedding.best_of(shedding.all_costs(), part * lowest.cost)
        found = shedding.heuristic(part * lowest.cost)
        assert found.cost <= part * lowest.cost * (1 + 1e-5)
        assert found.output >= best.output / 2
        assert found.output >= shedding.shed(lowest.tree, part * lowest.cost).output * (1 - 1e-6)
        if part > 1:
            assert found.cost == pytest.approx(lowest.cost)


def test_bushy_trees_are_no_worse() -> None:
    for seed in range(3):
        graph = any_query(Random(f"bushy {seed}"), 4, "rows")
        shedding = Shedding(graph, PerElement(1.0))
        capacity = 0.3 * cheapest(graph, PerElement(1.0)).cost
        left_deep_ones, all_of_them = shedding.all_costs(), shedding.all_costs(bushy=True)
        assert len(all_of_them) > len(left_deep_ones)
        best = shedding.best_of(all_of_them, capacity)
        assert best.output >= shedding.best_of(left_deep_ones, capacity).output * (1 - 1e-9)
        assert shedding.heuristic(capacity, bushy=True).output >= 0.9 * best.output


def test_steps_are_as_many_as_promised() -> None:
    """Ten inputs take n·2ⁿ parts of plans, not n! plans."""
    shedding = Shedding(any_query(Random(10), 10, "rows"), PerElement(1.0))
    plan = shedding.heuristic(0.1 * cheapest(shedding.graph, PerElement(1.0)).cost)
    assert plan.sheds
    assert shedding.steps <= 10 * 2**10
