"""Join graphs, and orders of binary joins."""

from __future__ import annotations

from itertools import permutations
from math import factorial, inf, isclose, prod
from random import Random

import pytest
from benchmarks.papers.join_queries import EXAMPLE_1, TABLE_5, any_query

from millstream.optimizer.join_graph import Equality, JoinGraph, Predicate, flows_of
from millstream.optimizer.join_orders.costs import Asymmetric, Cheapest, SideCost
from millstream.optimizer.join_orders.greedy import BLOCK, good_tree
from millstream.optimizer.join_orders.search import cheapest
from millstream.optimizer.join_orders.trees import Tree, joins, leaves, left_deep
from millstream.papers.join_trees import (
    PerElement,
    all_trees,
    cheapest_of_all,
    over_rows,
    over_time,
    tree_cost,
    tree_text,
)

LOOPS = SideCost(insert=1, expire=1, look=0.01)
TABLES = SideCost(insert=2, expire=2, probe=1, look=0.01, by_key=True)
COSTS = {
    "per element": PerElement(0.001),
    "asymmetric": Asymmetric(LOOPS, TABLES),
    "cheapest": Cheapest(LOOPS, TABLES),
}


# --- graphs ---------------------------------------------------------------------------------------


def test_what_inputs_give_does_not_depend_on_the_order() -> None:
    """A, observation 1: by steps as in equations 3 and 4 it is what equations 5 and 6 say."""
    graph = any_query(Random(1), 4, "time")
    flows = flows_of(graph)
    for order in permutations(range(4)):
        rate, size = graph.inputs[order[0]].rate, graph.inputs[order[0]].size
        bound = 1 << order[0]
        for port in order[1:]:
            share, other = graph.between(bound, 1 << port), graph.inputs[port]
            rate = share * (rate * other.size + size * other.rate)
            size *= share * other.size
            bound |= 1 << port
        assert isclose(rate, flows.of(graph.all).rate)
        assert isclose(size, flows.of(graph.all).size)


def test_equal_columns_of_many_inputs_are_one_condition() -> None:
    """G3 §4.2: |S₁ ⋈ S₂| = |S₁|·|S₂| / max(v₁, v₂), and what remains has the fewer values."""
    graph = TABLE_5
    assert graph.between(0b0001, 0b0010) == pytest.approx(1 / 500)
    assert graph.between(0b0011, 0b0100) == pytest.approx(1 / 50)
    assert graph.between(0b0101, 0b0010) == pytest.approx(1 / 50)
    assert graph.selectivity(0b1111) == pytest.approx(1 / (500 * 50 * 40))
    assert flows_of(graph).of(0b0011).size == pytest.approx(1000 * 100 / 500)


def test_shares_between_sets_stay_in_the_range_of_a_double() -> None:
    """σ of 200 inputs with 1000 values each is 1e-597; that between two halves of them is not."""
    inputs = tuple(over_time(f"S{i}", 1, 10) for i in range(200))
    graph = JoinGraph(inputs, (Equality(tuple((i, 1000.0) for i in range(200))),))
    half = (1 << 100) - 1
    assert graph.selectivity(graph.all) == 0.0
    assert graph.between(half, half << 100) == pytest.approx(1 / 1000)


def test_values_that_never_come_twice_never_meet() -> None:
    inputs = tuple(over_time(name, 1, 10) for name in "AB")
    graph = JoinGraph(inputs, (Equality(((0, inf), (1, 20.0))),))
    assert graph.between(0b01, 0b10) == 0.0


def test_links() -> None:
    inputs = tuple(over_time(name, 1, 10) for name in "ABCD")
    graph = JoinGraph(
        inputs,
        (Equality(((0, 10.0), (1, 20.0))),),
        (Predicate(0b0110, 0.5), Predicate(0b1101, 0.1)),
    )
    assert graph.keyed(0b0001, 0b0010)
    assert not graph.keyed(0b0010, 0b0100)
    assert graph.linked(0b0010, 0b0100)
    assert not graph.linked(0b0001, 0b1000), "one more is needed to tell"
    assert graph.linked(0b0101, 0b1000)
    assert graph.tested(0b0101, 0b1010) == graph.predicates
    assert graph.tested(0b0110, 0b0001) == ()


# --- trees ----------------------------------------------------------------------------------------


def test_all_trees_are_there_once() -> None:
    for count in range(2, 7):
        everything = (1 << count) - 1
        linear, bushy = (list(all_trees(everything, each)) for each in (False, True))
        assert len(linear) == len({*linear}) == factorial(count) // 2
        assert len(bushy) == len({*bushy}) == prod(range(1, 2 * count - 2, 2))
        assert all(sorted(leaves(tree)) == list(range(count)) for tree in linear + bushy)
    assert list(joins(((0, 1), (2, 3)))) == [(1, 2), (4, 8), (3, 12)]
    assert tree_text(((0, 1), (2, 3)), "ABCD") == "(A ⋈ B) ⋈ (C ⋈ D)"


# --- orders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("bushy", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_dynamic_programming_finds_what_trying_finds(name: str, bushy: bool, seed: int) -> None:
    chance = Random(f"{name} {bushy} {seed}")
    for windows in ("time", "rows", "mixed"):
        graph = any_query(chance, chance.choice([2, 3, 4, 5]), windows)
        found = cheapest(graph, COSTS[name], bushy)
        best = cheapest_of_all(graph, COSTS[name], bushy)
        assert found.cost == pytest.approx(best.cost)
        assert tree_cost(flows_of(graph), found.tree, COSTS[name]) == pytest.approx(found.cost)
        assert cheapest(graph, COSTS[name], bushy) == found, "always the same"


def test_example_1_of_a() -> None:
    """Plans (a), (b), (c): utilizations at 0.5 ms and at 3 ms; the rate is the same for all."""
    flows = flows_of(EXAMPLE_1)
    plans = {"a": left_deep([0, 1, 2]), "b": left_deep([1, 2, 0]), "c": left_deep([0, 2, 1])}
    for cost, used in {0.0005: (0.25, 0.14, 0.20), 0.003: (1.50, 0.84, 1.20)}.items():
        found = [tree_cost(flows, tree, PerElement(cost)) for tree in plans.values()]
        assert found == pytest.approx(list(used))
    assert flows.of(EXAMPLE_1.all).rate == pytest.approx(1000)
    found = cheapest(EXAMPLE_1, PerElement(0.003))
    assert tree_text(found.tree, "ABC") == "A ⋈ (B ⋈ C)"
    assert found.cost == pytest.approx(0.84)


def test_a_cross_product_is_taken_where_it_wins() -> None:
    """Two slow streams with a row each first, rather than a selective join of fast ones."""
    slow = [over_rows("A", 1, 1), over_rows("B", 1, 1)]
    graph = JoinGraph(
        (*slow, over_rows("C", 1000, 1000)), (), (Predicate(5, 0.5), Predicate(6, 0.5))
    )
    assert cheapest(graph, PerElement(1.0)).tree == ((0, 1), 2)


def test_each_side_is_kept_in_the_cheaper_way() -> None:
    """A, equation 8: the sides of a join are independent. A table is worth it where it is probed
    often."""
    inputs = (over_rows("slow", 0.1, 1000), over_rows("fast", 100, 10))
    keyed = JoinGraph(inputs, (Equality(((0, 100.0), (1, 100.0))),))
    cost = Cheapest(LOOPS, TABLES)
    meeting = flows_of(keyed).meeting(1, 2)
    assert cost.sides(meeting) == (TABLES, LOOPS)
    assert cost(meeting) == pytest.approx(Asymmetric(TABLES, LOOPS)(meeting))
    assert cost(meeting) <= min(
        Asymmetric(a, b)(meeting) for a in (LOOPS, TABLES) for b in (LOOPS, TABLES)
    )
    free = flows_of(JoinGraph(inputs)).meeting(1, 2)
    assert cost.sides(free) == (LOOPS, LOOPS), "without a key there is no table"


def test_equation_8_and_9() -> None:
    meeting = flows_of(EXAMPLE_1).meeting(1, 2)
    side = SideCost(insert=0.2, expire=0.3, probe=0.5)
    assert Asymmetric(side, side)(meeting) == pytest.approx(PerElement(1.0)(meeting))
    left, right = SideCost(insert=1, expire=2, probe=4), SideCost(insert=8, expire=16, probe=32)
    # λ_R·C_P(L) + λ_L·(C_I(L) + C_V(L)) + λ_L·C_P(R) + λ_R·(C_I(R) + C_V(R))
    assert Asymmetric(left, right)(meeting) == pytest.approx(70 * 4 + 10 * 3 + 10 * 32 + 70 * 24)


def test_steps_are_as_many_as_promised() -> None:
    """n·2ⁿ for left-deep trees, 3ⁿ for bushy ones, whatever the inputs."""
    for count in (6, 10):
        graph = any_query(Random(count), count, "time")
        assert cheapest(graph, PerElement(1.0), bushy=False).steps <= count * 2**count
        assert cheapest(graph, PerElement(1.0), bushy=True).steps <= 3**count / 2


# --- more inputs than can be searched exactly -----------------------------------------------------


def has_product(graph: JoinGraph, tree: Tree) -> bool:
    return not all(graph.linked(left, right) for left, right in joins(tree))


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("seed", range(5))
def test_a_block_is_the_cheapest_without_products(name: str, seed: int) -> None:
    chance = Random(f"{name} {seed}")
    for windows in ("time", "rows", "mixed"):
        graph = any_query(chance, chance.choice([2, 3, 4, 5, 6]), windows)
        found, flows = good_tree(graph, COSTS[name]), flows_of(graph)
        trees = [tree for tree in all_trees(graph.all, True) if not has_product(graph, tree)]
        best = min(tree_cost(flows, tree, COSTS[name]) for tree in trees)
        assert found.cost <= best * (1 + 1e-9)  # asymmetric joins may be turned round
        assert tree_cost(flows, found.tree, COSTS[name]) == pytest.approx(found.cost)


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("count", [BLOCK + 1, 9])
def test_blocks_come_near_to_the_cheapest(name: str, count: int) -> None:
    """Over what dynamic programming can still search: never cheaper, seldom more expensive."""
    chance = Random(f"{name} {count}")
    ratios = []
    for _ in range(9):
        graph = any_query(chance, count, "time")
        found, best = good_tree(graph, COSTS[name]), cheapest(graph, COSTS[name])
        assert found.cost >= best.cost * (1 - 1e-9)
        ratios.append(found.cost / best.cost)
    assert sorted(ratios)[len(ratios) // 2] < 1.05


@pytest.mark.parametrize("count", [20, 40, 100])
def test_many_inputs_without_products_in_few_steps(count: int) -> None:
    graph = any_query(Random(count), count, "time")
    found = good_tree(graph, PerElement(1.0))
    assert sorted(leaves(found.tree)) == list(range(count))
    assert not has_product(graph, found.tree)
    assert found.steps <= 100 * count**2
    assert good_tree(graph, PerElement(1.0)) == found, "always the same"


def test_what_no_condition_connects_is_joined_last() -> None:
    """Three chains of six: two products, above everything else."""
    inputs = tuple(over_time(f"S{i}", 10, 10) for i in range(18))
    pairs = [(i, i + 3) for i in range(15)]
    equalities = tuple(Equality(((a, 100.0), (b, 100.0))) for a, b in pairs)
    graph = JoinGraph(inputs, equalities)
    found = good_tree(graph, Cheapest(LOOPS, TABLES))
    linked = [graph.linked(left, right) for left, right in joins(found.tree)]
    assert linked.count(False) == 2
    assert isinstance(found.tree, tuple)
    assert not linked[-1]


def test_estimates_beyond_the_range_of_a_double() -> None:
    """A hundred inputs of a million rows, with conditions that hardly select anything."""
    inputs = tuple(over_rows(f"S{i}", 1e6, 1e6) for i in range(100))
    graph = JoinGraph(inputs, (), tuple(Predicate(0b11 << i, 0.9) for i in range(99)))
    found = good_tree(graph, Cheapest(LOOPS, TABLES))
    assert sorted(leaves(found.tree)) == list(range(100))
    assert not has_product(graph, found.tree)
