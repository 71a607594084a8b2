"""LookupJoin: equal to the reference whatever comes first, never taken back, and it forgets."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from millstream.logical import plan as logical
from millstream.logical.expressions import Call, Column, Expression, Literal
from millstream.logical.plan import Field, JoinKind, Lifetime, Schema
from millstream.logical.reference import Reference
from millstream.model import types
from millstream.model.elements import Element, normal_form
from millstream.model.time import INFINITY, RAW_TIME
from millstream.optimizer.conditions import join_keys
from millstream.physical.batch import NEVER, Batch
from millstream.physical.operator import Context, Pattern
from millstream.physical.operators.lookup_join import LookupJoin, LookupJoinOperator
from physical.feeding import Inputs, given, random_elements, run

VALUES: Sequence[Sequence[object]] = [(1, 2, 3, None), (0, 1, 2), ("x", "yy", None)]
KINDS = [JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI]


def schema_of(name: str) -> Schema:
    return (
        Field("k", types.BIGINT, name),
        Field("m", types.BIGINT, name),
        Field("s", types.STRING, name),
    )


def column(name: str) -> Column:
    qualifier, _, own = name.partition(".")
    (found,) = (field for field in schema_of(qualifier) if field.name == own)
    return found.column


def compared(left: str, operator: str, right: str) -> Expression:
    return Call(operator, (column(left), column(right)), types.BOOLEAN)


def both(*parts: Expression) -> Expression:
    return Call("and", parts, types.BOOLEAN)


# What divides by zero is told of some pairs only.
DIVIDED = Call(
    ">",
    (Call("/", (column("A.m"), column("R.m")), types.DOUBLE), Literal(0.6, types.DOUBLE)),
    types.BOOLEAN,
)
CONDITIONS: dict[str, Expression | None] = {
    "a number": compared("A.k", "=", "R.k"),
    "a text": compared("A.s", "=", "R.s"),
    "NULL equals NULL": compared("A.s", "<=>", "R.s"),
    "two columns": both(compared("A.k", "=", "R.k"), compared("A.s", "<=>", "R.s")),
    "a key and more": both(compared("A.k", "=", "R.k"), compared("A.m", "<", "R.m")),
    "no key": compared("A.m", "<=", "R.m"),
    "no condition": None,
    "what fails for some": both(compared("A.k", "=", "R.k"), DIVIDED),
}


# --- elements to feed -----------------------------------------------------------------------------


def instants(chance: Random, ordered: bool) -> list[Element]:
    """Rows that live one instant, many at the same."""
    times = sorted(chance.randrange(40) for _ in range(chance.choice([0, 5, 30])))
    rows = [tuple(map(chance.choice, VALUES)) for _ in times]
    weights = [chance.choice([1, 1, 2]) for _ in times]
    given = [Element(r, t, t + 1, n) for r, t, n in zip(rows, times, weights, strict=True)]
    return given if ordered else sorted(given, key=lambda e: e.start + chance.choice([0, 3, 9]))


def changes(chance: Random) -> list[Element]:
    """Rows that are inserted, deleted, changed and inserted again, also within an instant; equal
    ones, and deletes that come before the inserts of their instant."""
    there: list[tuple[object, ...]] = []
    given: list[tuple[int, float, Element]] = []

    def put(row: tuple[object, ...], weight: int, time: int) -> None:
        given.append((time, chance.random(), Element(row, time, INFINITY, weight)))

    for time in sorted(chance.randrange(40) for _ in range(chance.choice([3, 20, 60]))):
        if there and chance.random() < 0.5:
            gone = there.pop(chance.randrange(len(there)))
            put(gone, -1, time)
            if chance.random() < 0.3:  # an update that may change nothing
                there.append(gone)
                put(gone, 1, time)
        else:
            there.append(tuple(map(chance.choice, VALUES)))
            put(there[-1], 1, time)
    return [element for _, _, element in sorted(given, key=lambda each: each[:2])]


RELATIONS = ["changes", *Pattern]


def random_join(
    chance: Random, condition: Expression | None, kind: JoinKind, relation: str | Pattern
) -> tuple[LookupJoin, logical.Join, Inputs]:
    left_pattern = chance.choice([Pattern.WEAKEST, Pattern.WEAK])
    right_pattern = relation if isinstance(relation, Pattern) else Pattern.STRICT
    sources = [
        logical.Source(name, name, schema_of(name), RAW_TIME, Lifetime.INTERVAL) for name in "AR"
    ]
    plan = logical.Join(*sources, kind, condition)
    keys, rest = join_keys(plan)
    join = LookupJoin(
        given("A", schema_of("A"), left_pattern),
        given("R", schema_of("R"), right_pattern),
        plan.schema,
        keys,
        rest,
        kind,
    )
    if isinstance(relation, Pattern):
        right = random_elements(chance, relation, chance.choice([3, 15]), VALUES)
    else:
        right = changes(chance)
    return join, plan, {"A": instants(chance, left_pattern is Pattern.WEAKEST), "R": right}


# --- the answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_it_is_the_join(condition: str, kind: JoinKind, relation: str | Pattern) -> None:
    for seed in range(6):
        chance = Random(f"{condition} {kind} {relation} {seed}")
        join, plan, inputs = random_join(chance, CONDITIONS[condition], kind, relation)
        expected = Reference(plan, {s: normal_form(e) for s, e in inputs.items()}).result()
        running = run(join, inputs, chance)
        assert normal_form(running.elements) == expected
        assert all(element.weight > 0 for element in running.elements), "nothing is taken back"
        assert all(element.end == element.start + 1 for element in running.elements)
        if join.pattern is Pattern.WEAKEST:
            starts = [element.start for element in running.elements]
            assert starts == sorted(starts)
        assert running.frontier == INFINITY


def test_a_change_counts_from_its_instant_on() -> None:
    plan = simple()
    inputs = {
        "A": [Element((1, t, "a"), t, t + 1) for t in range(4, 9)],
        "R": [
            Element((1, 7, "old"), 0, INFINITY),
            Element((1, 7, "old"), 6, INFINITY, -1),
            Element((1, 8, "new"), 6, INFINITY),
            Element((1, 8, "new"), 8, INFINITY, -1),
        ],
    }
    found = [(e.start, e.row[5]) for e in run(plan, inputs).elements]
    assert found == [(4, "old"), (5, "old"), (6, "new"), (7, "new")]


def test_many_rows_and_restarts() -> None:
    """More versions than there is room for at first, and more rows than are kept."""
    chance = Random(7)
    there, given = dict[int, int](), list[Element]()
    for time in range(3_000):
        key = chance.randrange(800)
        if key in there:
            given.append(Element((key, there.pop(key), "x"), time, INFINITY, -1))
        if chance.random() < 0.7:
            there[key] = time
            given.append(Element((key, time, "x"), time, INFINITY))
    asked = [Element((chance.randrange(800), 0, "y"), time, time + 1) for time in range(3_000)]
    expected = _latest(given, asked)
    found = run(simple(), {"A": asked, "R": given}, chance).elements
    assert [(e.start, e.row[4]) for e in found] == expected


def _latest(changes: Sequence[Element], asked: Sequence[Element]) -> list[tuple[int, object]]:
    """When each finds which value, by a dictionary."""
    ahead, there, found = list(changes)[::-1], dict[object, object](), list[tuple[int, object]]()
    for element in asked:
        while ahead and ahead[-1].start <= element.start:
            change = ahead.pop()
            there[change.row[0]] = change.row[1] if change.weight > 0 else None
        value = there.get(element.row[0])
        found += [] if value is None else [(element.start, value)]
    return found


# --- when, and what is kept -----------------------------------------------------------------------


def simple(condition: str = "a number") -> LookupJoin:
    chance = Random(1)
    return random_join(chance, CONDITIONS[condition], JoinKind.INNER, "changes")[0]


def opened(condition: str = "a number") -> LookupJoinOperator:
    operator = simple(condition).open(Context())
    assert isinstance(operator, LookupJoinOperator)
    return operator


def left(times: Sequence[int], keys: Sequence[int], frontier: int) -> Batch:
    start = np.array(times, np.int64)
    texts = pa.array([f"text {key}" for key in keys], pa.string())
    columns = [pa.array(keys, pa.int64()), pa.array(times, pa.int64()), texts]
    return Batch.of(columns, start, start + 1, frontier=frontier)


def right(
    times: Sequence[int], keys: Sequence[int], weights: Sequence[int], frontier: int, value: int = 0
) -> Batch:
    texts = pa.array([f"text {key}" for key in keys], pa.string())
    columns = [pa.array(keys, pa.int64()), pa.array([value] * len(keys), pa.int64()), texts]
    return Batch.of(columns, times, [INFINITY] * len(keys), weights, frontier)


def starts(batches: Sequence[Batch]) -> list[int]:
    return [start for batch in batches for start in batch.start.tolist()]


def test_rows_wait_for_the_relation_and_not_for_the_stream() -> None:
    operator = opened()
    assert starts(operator.process(0, left([3, 5], [1, 1], NEVER))) == []
    (given,) = operator.process(1, right([0], [1], [1], 5))
    assert (given.start.tolist(), given.frontier) == ([3], NEVER)
    (given,) = operator.process(0, left([4], [1], 4))
    assert (given.start.tolist(), given.frontier) == ([4], 4)
    (given,) = operator.process(1, right([], [], [], 6))
    assert (given.start.tolist(), given.frontier) == ([5], 4)
    assert operator.rows == 1


def test_versions_are_forgotten_with_the_frontier_of_the_stream() -> None:
    operator = opened()
    operator.process(0, left([], [], 0))
    for time in range(1, 101):
        change = right([time], [7], [1], time, value=time)
        if time > 1:
            operator.process(1, right([time], [7], [-1], time - 1, value=time - 1))
        operator.process(1, change)
    assert operator.rows == 199 + 0  # changes lie ahead until somebody asks
    assert starts(operator.process(0, left([98], [7], 0))) == [98]
    assert starts(operator.process(0, left([3, 50], [7, 7], 50))) == [3, 50]
    operator.process(1, right([], [], [], 200))
    operator.process(0, left([], [], 200))
    assert operator.rows == 1


@pytest.mark.parametrize("condition", ["a number", "a text"])
def test_memory_follows_the_relation(condition: str) -> None:
    """However many rows were in it once, and however many other keys are asked for."""
    operator = opened(condition)
    sizes = []
    for round in range(40):
        keys = list(range(500 * round, 500 * round + 500))
        times = [round] * 500
        operator.process(1, right(times, keys, [1] * 500, round))
        if round:
            gone = list(range(500 * round - 500, 500 * round))
            operator.process(1, right(times, gone, [-1] * 500, round))
        others = list(range(100_000 + 500 * round, 100_000 + 500 * round + 500))
        operator.process(0, left([round] * 500, others, round))
        sizes.append(operator.nbytes)
        assert operator.rows <= 2_500
    assert max(sizes[20:]) <= 1.2 * max(sizes[5:20])


def test_memory_is_given_back_after_a_burst() -> None:
    operator = opened()
    operator.process(0, left([], [], 0))
    columns = [pa.array([7]), pa.array([0]), pa.array(["x"])]
    operator.process(1, Batch.of(columns, [0], [INFINITY]))
    for time in range(1, 20_001, 100):
        operator.process(1, changed(range(time, time + 100), 7))
    assert starts(operator.process(0, left([5, 19_900], [7, 7], 19_900))) == [5, 19_900]
    most = operator.nbytes
    for time in range(20_001, 24_001, 100):
        operator.process(1, changed(range(time, time + 100), 7))
        operator.process(0, left([], [], time))
    assert operator.nbytes < most / 4
    assert starts(operator.process(0, left([24_000], [7], 24_000))) == []
    assert starts(operator.process(1, right([], [], [], 24_001))) == [24_000]


def changed(times: Sequence[int], key: int) -> Batch:
    """At each of these times its row is replaced by another."""
    at = np.repeat(np.array(times, np.int64), 2)
    value = at - np.tile([1, 0], len(times))
    columns = [pa.array(np.full(len(at), key)), pa.array(value), pa.array(["x"] * len(at))]
    weights = np.tile([-1, 1], len(times))
    return Batch.of(columns, at, [INFINITY] * len(at), weights, int(at[0]))


def test_what_a_row_costs_does_not_follow_the_relation() -> None:
    looked_at = []
    for size in (100, 10_000):
        operator = opened()
        operator.process(1, right([0] * size, range(size), [1] * size, 1))
        operator.process(0, left([0], [1], 1))
        before = operator.touched
        for time in range(1, 200):  # one key changes again and again
            operator.process(1, right([time], [5], [-1], time, value=time - 1))
            operator.process(1, right([time], [5], [1], time, value=time))
        operator.process(1, right([], [], [], 200))
        operator.process(0, left(range(1, 200), [5] * 199, 199))
        looked_at.append(operator.touched - before)
    assert looked_at[0] == looked_at[1] <= 4 * 400
