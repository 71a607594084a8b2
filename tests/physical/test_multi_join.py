"""MultiJoin: equal to the reference and to binary joins, whatever the order and the cut."""

from __future__ import annotations

from functools import reduce
from itertools import product
from random import Random

import pytest

from millstream.logical import plan as logical
from millstream.logical.expressions import Call, Expression
from millstream.logical.plan import JoinKind, Lifetime
from millstream.logical.reference import Reference
from millstream.model import types
from millstream.model.elements import Element, normal_form
from millstream.model.time import INFINITY, RAW_TIME
from millstream.optimizer.choice import choose
from millstream.optimizer.multi_way import multi_way
from millstream.papers.multi_way_heuristics import as_they_stand
from millstream.physical.joins.areas.area import Probing
from millstream.physical.joins.areas.calendar import Closing
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.joins.steps import equality_classes, new_first
from millstream.physical.operator import Pattern, PhysicalPlan
from millstream.physical.operators.join import Join
from millstream.physical.operators.multi_join import MultiJoin, MultiJoinOperator
from physical.feeding import Inputs, Run, given, random_elements, run
from physical.multi_join_cases import (
    JOINS,
    NAMES,
    VALUES,
    column,
    compared,
    failing,
    link,
    logical_join,
    schema_of,
)


def random_choice(chance: Random) -> AreaChoice:
    return AreaChoice(
        probing=chance.choice(list(Probing)),
        closing=chance.choice(list(Closing)),
        lazy=chance.choice([0, 0, 7]),
        partitions=chance.choice([2, 64]),
        calendar=chance.random() < 0.3,
    )


def random_orders(chance: Random, count: int) -> tuple[tuple[int, ...], ...]:
    ports = list(range(count))
    shuffled = [tuple(chance.sample(ports, count)) for _ in ports]
    return chance.choice(
        [
            new_first(shuffled[0]),
            as_they_stand(shuffled[0]),
            tuple(shuffled),
            tuple((port, *(p for p in shuffled[port] if p != port)) for port in ports),
        ]
    )


def random_join(chance: Random, name: str) -> tuple[MultiJoin, Inputs]:
    count, links, conditions = JOINS[name]
    patterns = [chance.choice(list(Pattern)) for _ in range(count)]
    sources: list[PhysicalPlan] = [
        given(stream, schema_of(stream), pattern)
        for stream, pattern in zip(NAMES, patterns, strict=False)
    ]
    join = MultiJoin(
        tuple(sources),
        links,
        conditions,
        orders=random_orders(chance, count),
        areas=tuple(random_choice(chance) for _ in range(count)),
        interval=chance.choice([0, 0, 1, 5, 100, INFINITY]),
    )
    inputs = {
        stream: random_elements(chance, pattern, chance.choice([2, 8, 14]), VALUES)
        for stream, pattern in zip(NAMES, patterns, strict=False)
    }
    return join, inputs


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("seed", range(10))
def test_it_is_a_tree_of_binary_joins(name: str, seed: int) -> None:
    chance = Random(f"{name} {seed}")
    join, inputs = random_join(chance, name)
    count, links, conditions = JOINS[name]
    plan = logical_join(count, links, conditions)
    settled = {stream: normal_form(elements) for stream, elements in inputs.items()}
    expected = Reference(plan, settled).result()
    assert normal_form(run(join, inputs, chance).elements) == expected
    assert normal_form(run(choose(plan, "ELEMENTS"), settled, chance).elements) == expected


@pytest.mark.parametrize("name", JOINS)
def test_a_tree_becomes_one_join(name: str) -> None:
    chance = Random(name)
    count, links, conditions = JOINS[name]
    plan = logical_join(count, links, conditions)
    inputs = {
        stream: normal_form(random_elements(chance, Pattern.WEAK, 10, VALUES))
        for stream in NAMES[:count]
    }
    joined = multi_way(choose(plan, "ELEMENTS"))
    assert isinstance(joined, MultiJoin) == (count > 2)
    assert normal_form(run(joined, inputs, chance).elements) == Reference(plan, inputs).result()


def test_a_join_that_is_shared_stays_one() -> None:
    sources = [given(name, schema_of(name), Pattern.WEAK) for name in "ABCD"]
    shared = Join(sources[0], sources[1])
    plan = multi_way(Join(Join(shared, sources[2]), Join(sources[3], shared)))
    assert isinstance(plan, MultiJoin)
    assert [type(source).__name__ for source in plan.sources] == ["Join", "Given", "Given", "Join"]
    assert plan.sources[0] is plan.sources[3] is shared


# --- orders ---------------------------------------------------------------------------------------


def test_new_elements_come_first_in_each_order() -> None:
    """G3 table 4."""
    assert new_first((0, 1, 2)) == ((0, 1, 2), (1, 0, 2), (2, 0, 1))


def test_equalities_that_hang_together_are_one_class() -> None:
    links = [link("A.k", "B.k"), link("C.m", "D.m"), link("B.k", "C.k", True), link("C.m", "A.m")]
    classes = equality_classes(links)
    members = [{f"{NAMES[port]}.{e.name}" for port, e in c.members} for c in classes]
    assert members == [{"A.k", "B.k", "C.k"}, {"C.m", "D.m", "A.m"}]
    assert not classes[0].null_matches, "NULL equals nothing in A.k = B.k"


def test_each_input_is_reached_by_all_that_links_it() -> None:
    _, links, conditions = JOINS["a chain of different columns"]
    sources = tuple(given(name, schema_of(name), Pattern.WEAK) for name in NAMES)
    join = MultiJoin(sources, links, conditions, orders=as_they_stand((2, 0, 1, 3)))
    steps = join.steps(0)
    assert [step.port for step in steps] == [2, 0, 1, 3]
    assert [step.shared for step in steps] == [(), (), (0, 1), (2,)], "A is not linked to C"


# --- G3's examples --------------------------------------------------------------------------------

WINDOW = 101  # G3's windows of 100 are closed


def attribute_join(orders: tuple[tuple[int, ...], ...], **more: object) -> MultiJoin:
    """All inputs on one attribute."""
    names = NAMES[: len(orders)]
    links = tuple(link(f"{names[0]}.k", f"{name}.k") for name in names[1:])
    sources = tuple(given(name, schema_of(name), Pattern.WEAKEST) for name in names)
    return MultiJoin(sources, links, orders=orders, **more)  # type: ignore[arg-type]


def arrived(times: tuple[int, ...]) -> list[Element]:
    return [Element((1, time, None), time, time + WINDOW) for time in times]


@pytest.mark.parametrize("interval", [0, 5, 110, INFINITY])
@pytest.mark.parametrize("orders", [new_first((0, 1, 2)), as_they_stand((0, 1, 2))])
def test_expired_rows_do_not_join(orders: tuple[tuple[int, ...], ...], interval: int) -> None:
    """G3 tables 2 and 3: however late the rows of S3 are joined."""
    inputs = {"A": arrived((90, 100)), "B": arrived((150, 180)), "C": arrived((195, 205))}
    joined = run(attribute_join(orders, interval=interval), inputs).elements
    times = sorted((e.row[1], e.row[4], e.row[7]) for e in joined)
    assert times == [(100, 150, 195), (100, 180, 195)]


def touched(orders: tuple[tuple[int, ...], ...], probing: Probing) -> float:
    """Elements looked at in a unit of time: windows of 100, one row a unit, 50 values."""
    areas = tuple(AreaChoice(probing=probing) for _ in orders)
    running = Run(attribute_join(orders, areas=areas))
    (vertex,) = (v for v in running.graph.vertices if isinstance(v.node, MultiJoin))
    operator = vertex.operator
    assert isinstance(operator, MultiJoinOperator)
    before = 0
    for time in range(150):
        before = operator.touched if time == 100 else before
        for port, _ in enumerate(orders):
            row = ((time * (7 + 2 * port)) % 50, time, None)
            running.push(NAMES[port], [Element(row, time, time + 100)], time)
    return (operator.touched - before) / 50


def test_new_elements_first_look_at_less() -> None:
    """G3 §4.2: a new row meets two of each window of 100; no window is scanned for each row of
    another, as the naive join does."""
    eager = touched(new_first((0, 1, 2)), Probing.LOOP)
    naive = touched(as_they_stand((0, 1, 2)), Probing.LOOP)
    assert eager == pytest.approx(3 * (100 + 2 * 100), rel=0.05)
    # The first input as before; the second for each row of the first; the third for each pair.
    expected = 300 + (100 + 100 + 2 * 100) + (100 + 100 * 100 + 200)
    assert naive == pytest.approx(expected, rel=0.05)


def test_more_inputs_make_it_worse() -> None:
    eager = touched(new_first((0, 1, 2, 3)), Probing.LOOP)
    naive = touched(as_they_stand((0, 1, 2, 3)), Probing.LOOP)
    assert eager == pytest.approx(4 * (100 + 200 + 400), rel=0.05)
    assert naive > 10 * eager


def test_hash_probing_looks_at_partners_only() -> None:
    hashed = touched(new_first((0, 1, 2)), Probing.HASH)
    assert hashed == pytest.approx(3 * (2 + 4), rel=0.2)


# --- time -----------------------------------------------------------------------------------------


def test_a_lazy_join_does_not_pass_what_it_evaluated() -> None:
    running = Run(attribute_join(new_first((0, 1)), interval=10))
    for time in range(40):
        for name in "AB":
            running.push(name, [Element((1, time, None), time, time + 3)], time)
        assert running.frontier == time // 10 * 10
    seen = {e.start for e in running.elements}
    assert seen == set(range(31)), "all up to the last evaluation, and nothing of later rows"


def test_what_nobody_can_meet_is_dropped() -> None:
    running = Run(attribute_join(new_first((0, 1, 2))))
    operator = running.graph.root.operator
    for first in range(0, 4000, 10):
        new = [Element((t, t, str(t)), t, t + 10) for t in range(first, first + 10)]
        for name in "ABC":
            running.push(name, new, first + 9)
    assert operator.rows <= 3 * 20
    assert operator.nbytes < 1_000_000, "with the strings of rows that are gone"
    assert isinstance(operator, MultiJoinOperator)
    spaces = operator._spaces
    assert all(space.count <= 2 * operator.rows + 1030 for space in spaces), "keys are forgotten"


def test_rows_that_fail_are_noted_and_not_given() -> None:
    zero = Call("=", (Call("div", (column(0, "k"), column(2, "m")), types.BIGINT), column(1, "k")),
                types.BOOLEAN)  # fmt: skip
    sources = tuple(given(name, schema_of(name), Pattern.WEAK) for name in "ABC")
    join = MultiJoin(sources, (), condition=zero)
    rows = {
        "A": [Element((4, 0, "a"), 0, 5)],
        "B": [Element((2, 0, "b"), 0, 5)],
        "C": [Element((0, m, "c"), 0, 5) for m in (0, 1, 2)],
    }
    running = run(join, rows)
    assert [element.row for element in running.elements] == [(4, 0, "a", 2, 0, "b", 0, 2, "c")]
    (failed,) = running.graph.context.errors
    assert failed[0] == (4, 0, "a", 2, 0, "b", 0, 0, "c")


def conjunction(*parts: Expression) -> Expression:
    return reduce(lambda a, b: Call("and", (a, b), types.BOOLEAN), parts)


@pytest.mark.parametrize("first_fails", [False, True])
def test_errors_are_those_of_the_tree(first_fails: bool) -> None:
    chance = Random("errors")
    equal = Call("=", (column(0, "s"), column(1, "s")), types.BOOLEAN)
    inner = conjunction(equal, failing("A.k", "B.m")) if first_fails else equal
    last = conjunction(
        compared("B.s", "=", "C.s"), failing("C.k", "A.m"), compared("A.k", "<", "C.k")
    )
    sources = [
        logical.Source(name, name, schema_of(name), RAW_TIME, Lifetime.INTERVAL) for name in "ABC"
    ]
    pairs = logical.Join(sources[0], sources[1], JoinKind.INNER, inner)
    plan = logical.Join(pairs, sources[2], JoinKind.INNER, last)
    values = [(0, 1, 5, 10), (0, 1, 2), ("x", "y")]
    inputs = {
        name: normal_form(random_elements(chance, Pattern.WEAK, 10, values)) for name in "ABC"
    }
    reference = Reference(plan, inputs)
    joined = multi_way(choose(plan, "ELEMENTS"))
    assert isinstance(joined, Join if first_fails else MultiJoin)
    running = run(joined, inputs, chance)
    assert normal_form(running.elements) == reference.result()
    assert set(running.graph.context.errors) == set(reference.errors)
    assert reference.errors


def test_no_more_than_some_pairs_are_formed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.physical.joins.portions.PAIRS", 7)
    for name, seed in product(["theta", "hybrid", "no condition"], range(5)):
        test_it_is_a_tree_of_binary_joins(name, seed)
