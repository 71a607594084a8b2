"""Orders of joins of many inputs: G3's tables, its figures 2 and 3, its heuristics."""

from __future__ import annotations

from itertools import permutations
from math import inf
from random import Random

import pytest
from benchmarks.papers.join_queries import TABLE_5, TABLE_6, TABLE_7, any_query, one_column

from millstream.optimizer.join_graph import Equality, JoinGraph, Predicate
from millstream.optimizer.multi_way_orders import MultiWay, Order
from millstream.optimizer.multi_way_search import Weights, best_orders
from millstream.papers.join_trees import over_time
from millstream.papers.multi_way_heuristics import (
    fast_streams_up,
    greedy_orders,
    selective_order,
    sized_tables,
    tree_or_multi_way,
)


def order(text: str) -> Order:
    """G3 numbers streams from 1."""
    return tuple(int(port) - 1 for port in text)


def all_costs(graph: JoinGraph) -> dict[Order, float]:
    join = MultiWay(graph)
    return {each: join.cost_of(each) for each in permutations(join.ports)}


# --- tables 5, 6 and 7 ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "text", "cost"),
    [
        (TABLE_5, "1234", 16_000),
        (TABLE_5, "2134", 19_600),
        (TABLE_6, "2134", 80_400),
        (TABLE_6, "2314", 123_150),
        (TABLE_6, "2341", 248_450),
        (TABLE_6, "1234", 120_000),
        (TABLE_7, "3412", 49_542),
        (TABLE_7, "3142", 47_977),
        (TABLE_7, "3124", 51_954),
        (TABLE_7, "1234", 68_200),
        (TABLE_7, "2134", 79_000),
    ],
)
def test_costs_that_g3_names(graph: JoinGraph, text: str, cost: float) -> None:
    assert round(MultiWay(graph).cost_of(order(text))) == cost


def test_best_and_worst_orders() -> None:
    five, six, seven = (all_costs(graph) for graph in (TABLE_5, TABLE_6, TABLE_7))
    assert min(five, key=lambda each: five[each]) == order("1234")
    assert round(max(five.values())) == 86_850
    assert sorted(map(round, five.values())).index(19_600) == 4, "the fifth best"
    assert min(six, key=lambda each: six[each]) == order("2134")
    assert round(max(six.values())) == 646_050
    assert round(min(seven.values())) == round(seven[order("3142")])
    assert round(sum(seven.values()) / len(seven)) == 63_362


@pytest.mark.parametrize(
    ("graph", "first", "best"),
    [
        (TABLE_5, "1234", "1234"),
        (TABLE_6, "2341", "2134"),
        (TABLE_7, "3412", "3142"),
    ],
)
def test_what_the_heuristic_picks(graph: JoinGraph, first: str, best: str) -> None:
    """By selectivity, and with fast streams moved up; the optimum in all three."""
    join = MultiWay(graph)
    assert selective_order(join) == order(first)
    found = fast_streams_up(join)
    assert found.orders[0] == (0, *(port for port in order(best) if port != 0))
    assert found.cost == pytest.approx(join.cost_of(order(best)))
    assert found.cost == pytest.approx(min(all_costs(graph).values()))
    assert found.steps <= 4 ** len([each for each in graph.inputs if each.rate >= 10])


def test_an_order_for_each_input_is_no_worse_than_one_for_all() -> None:
    for graph in (TABLE_5, TABLE_6, TABLE_7):
        best = best_orders(MultiWay(graph))
        assert best.cost <= min(all_costs(graph).values())
    assert round(best_orders(MultiWay(TABLE_7)).cost) < 47_977


# --- figures 2 and 3 ------------------------------------------------------------------------------


def equal_streams(count: int, fast: float = 1.0) -> JoinGraph:
    return one_column(*[(1, 100, 50)] * (count - 1), (fast, 100, 50))


def test_figure_2_new_elements_first_scale_better() -> None:
    joins = [MultiWay(equal_streams(count)) for count in range(2, 7)]
    naive = [join.naive_cost(tuple(join.ports)) for join in joins]
    eager = [join.cost_of(tuple(join.ports)) for join in joins]
    assert eager[:3] == [200, 900, 2_800]
    assert naive[0] == eager[0]
    assert all(slow >= 10 * fast for slow, fast in zip(naive[1:], eager[1:], strict=True))


def lazy_costs(graph: JoinGraph, interval: float) -> tuple[float, float, float]:
    """NAIVE, LAZY and GENERAL, each in its best order."""
    join = MultiWay(graph, interval=interval)
    orders = list(permutations(join.ports))
    naive = min(map(join.naive_cost, orders))
    return naive, min(map(join.cost_of, orders)), best_orders(join).cost


def test_figure_3a_of_equal_streams_new_elements_come_first() -> None:
    costs = [lazy_costs(equal_streams(4), interval) for interval in (1, 5, 10, 20, 30, 50)]
    for naive, lazy, general in costs:
        assert lazy == pytest.approx(general)
        assert naive > 1.1 * lazy
    lazy = [each[1] for each in costs]
    assert lazy == sorted(lazy), "windows hold more, the later they are cleared"
    assert costs[0][0] / costs[0][1] > costs[-1][0] / costs[-1][1]


def test_figure_3b_a_fast_stream_goes_last_when_much_is_new() -> None:
    graph = equal_streams(4, fast=10)
    for interval in (1, 5, 10, 20, 30, 50):
        naive, lazy, general = lazy_costs(graph, interval)
        assert general <= min(naive, lazy) * (1 + 1e-9)
        last = best_orders(MultiWay(graph, interval=interval)).orders[3][-1] == 3
        assert last == (interval > 10)
        if interval <= 10:
            assert lazy == pytest.approx(general)
            assert naive > lazy
        else:
            assert general < naive < lazy
            assert naive < 1.03 * general


# --- any orders -----------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [0, 3])
@pytest.mark.parametrize("seed", range(6))
def test_best_orders_are_the_best_of_all(interval: float, seed: int) -> None:
    join = MultiWay(any_query(Random(seed), 4, "time"), interval=interval)
    found = best_orders(join)
    for new, chosen in enumerate(found.orders):
        least = min(join.walk(each, new).comparisons for each in permutations(join.ports))
        assert join.walk(chosen, new).comparisons == pytest.approx(least)
    assert found.cost <= greedy_orders(join).cost * (1 + 1e-9)


def test_steps_are_as_many_as_promised() -> None:
    for count in (6, 10):
        join = MultiWay(any_query(Random(count), count, "time"))
        assert best_orders(join).steps <= count * count * 2**count
        assert fast_streams_up(join).steps <= count**3


def test_different_columns_follow_the_graph() -> None:
    """A chain A - B - C - D: from each input along its links, the more selective first."""
    inputs = tuple(over_time(name, 1, 100) for name in "ABCD")
    links = (Predicate(0b0011, 0.1), Predicate(0b0110, 0.01), Predicate(0b1100, 0.001))
    graph = JoinGraph(inputs, (), links)
    found = greedy_orders(MultiWay(graph))
    assert found.orders == ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 1, 0), (3, 2, 1, 0))
    assert found.cost == pytest.approx(best_orders(MultiWay(graph)).cost)


def test_expensive_predicates_come_early_or_late_by_cost() -> None:
    """One that leaves little out is met last; one that leaves much out near the top, where few
    rows are tested, so that the inner loops are spared."""
    inputs = tuple(over_time(name, 1, 100) for name in "ABC")
    cheap = Predicate(0b011, 0.1)
    for selectivity, expected in ((0.9, (0, 1, 2)), (0.0001, (0, 2, 1))):
        graph = JoinGraph(inputs, (), (cheap, Predicate(0b101, selectivity, cost=5.0)))
        assert best_orders(MultiWay(graph)).orders[0] == expected


def test_streams_that_fluctuate_stand_on_top() -> None:
    inputs = list(TABLE_7.inputs)
    assert fast_streams_up(MultiWay(TABLE_7)).orders[1] == (1, *order("314"))
    inputs[3] = over_time("S4", 1, 100, fluctuates=True)
    wild = MultiWay(JoinGraph(tuple(inputs), TABLE_7.equalities))
    assert fast_streams_up(wild).orders[1] == (1, *order("431"))
    assert fast_streams_up(wild).cost == wild.cost_of(order("4312"))


# --- tables ---------------------------------------------------------------------------------------


def test_equal_tables_do_not_change_the_order() -> None:
    """G3 §5.3: each step is cheaper by the same factor."""
    for graph in (TABLE_5, TABLE_6, TABLE_7):
        lists, tables = MultiWay(graph), MultiWay(graph, (2.0,) * 4)
        assert fast_streams_up(tables).orders == fast_streams_up(lists).orders
        assert fast_streams_up(tables).cost == pytest.approx(fast_streams_up(lists).cost / 2)


def test_a_window_in_buckets_is_as_large_as_a_bucket() -> None:
    same = one_column(*[(1, 100, 50)] * 4)
    assert selective_order(MultiWay(same, (1.0, 1.0, 10.0, 10.0)))[:2] == (2, 3)


def test_large_windows_get_more_buckets() -> None:
    """G3 §6.5: four windows, one of a stream that is fifty times faster."""
    graph = one_column(*[(1, 100, 50)] * 3, (50, 100, 50))
    sized = sized_tables(MultiWay(graph), 4 * 12)
    assert sum(sized.buckets) <= 48
    assert sized.buckets[3] == max(sized.buckets) > sized.buckets[0]
    equal = MultiWay(graph, (12.0,) * 4)
    assert fast_streams_up(sized).cost < fast_streams_up(equal).cost


def test_with_little_memory_some_windows_stay_lists_and_go_first() -> None:
    """G3 §5.4, hybrid: those with an index are innermost, where loops repeat most."""
    graph = one_column(*[(1, 100, 50)] * 3, (50, 100, 50))
    sized = sized_tables(MultiWay(graph), 7)
    assert 1.0 in sized.buckets
    for new, chosen in enumerate(best_orders(sized).orders[:3]):
        assert new == chosen[0]
        assert chosen[-1] == 3
    assert sized_tables(MultiWay(graph), 4).buckets == (1.0,) * 4


# --- one join or a tree ---------------------------------------------------------------------------


def test_a_tree_keeps_what_is_dear_to_find_again() -> None:
    """Two slow streams that give few of many pairs, and a fast one that needs them: the tree keeps
    the pairs; the join of many would look for them with each row of the fast one."""
    slow = [over_time("A", 1, 1000), over_time("B", 1, 1000)]
    graph = JoinGraph(
        (*slow, over_time("C", 1000, 1)), (), (Predicate(0b011, 1e-5), Predicate(0b110, 0.01))
    )
    choice = tree_or_multi_way(graph, Weights())
    assert not choice.is_multi_way
    assert choice.tree in (((0, 1), 2), (2, (0, 1)))
    assert choice.hashed == (False, False, False), "there is no key"


def test_one_join_where_intermediate_results_are_large() -> None:
    graph = one_column((10, 100, 10), (10, 100, 10), (0.01, 100, 10), (0.01, 100, 10))
    graph = JoinGraph(graph.inputs, graph.equalities)
    choice = tree_or_multi_way(graph, Weights(make=5.0, hash=20.0))
    assert choice.multi_way_cost != choice.tree_cost
    assert choice.is_multi_way == (choice.multi_way_cost < choice.tree_cost)


def test_lists_and_tables_are_mixed_by_cost() -> None:
    """A window that is hardly probed is not worth a table."""
    graph = JoinGraph(
        (over_time("A", 0.01, 100), over_time("B", 0.01, 100), over_time("C", 100, 10)),
        (Equality(((0, 5.0), (1, 5.0), (2, 1000.0))),),
    )
    choice = tree_or_multi_way(graph, Weights(hash=10.0))
    assert choice.hashed[2] is False
    assert MultiWay(graph, (inf, inf, inf)).cost(choice.orders) <= MultiWay(graph).cost(
        choice.orders
    )


@pytest.mark.parametrize("distinct", [(inf, inf, inf), (10.0, inf, 5.0)])
def test_values_that_never_come_twice_meet_nothing(distinct: tuple[float, ...]) -> None:
    inputs = tuple(over_time(name, 1.0, 10.0) for name in "abc")
    graph = JoinGraph(inputs, (Equality(tuple(enumerate(distinct))),))
    found = best_orders(MultiWay(graph, (inf, inf, inf)))
    assert graph.selectivity(0b111) == 0.0
    assert sorted(found.orders[0]) == [0, 1, 2]
