"""Semi-joins on a comparison with one row: equal to the reference, and their cost follows what the
threshold crosses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import millstream as ms
from millstream.logical import plan as logical
from millstream.logical.expressions import Call, Expression
from millstream.logical.plan import Field, JoinKind, Lifetime, Schema
from millstream.logical.reference import Reference
from millstream.model import types
from millstream.model.elements import Element, normal_form
from millstream.model.time import INFINITY, RAW_TIME
from millstream.physical.batch import NEVER, Batch
from millstream.physical.operator import Context, Pattern
from millstream.physical.operators.pointwise import Form
from millstream.physical.operators.semi_join import SemiJoin, SemiJoinOperator
from millstream.physical.operators.threshold_semi_join import ThresholdOperator, compared
from millstream.physical.state import thresholds
from millstream.physical.state.thresholds import Comparison, Thresholds
from physical.feeding import given, random_elements, run

VALUES: dict[pa.DataType, Sequence[object]] = {
    types.BIGINT: (None, -(2**63), -3, 0, 1, 2, 7, 2**63 - 1),
    types.DOUBLE: (None, -math.inf, -1.5, -0.0, 0.0, 2.5, math.inf),
}
COMPARISONS: Sequence[Comparison] = ("<", "<=", ">", ">=")


def schema_of(name: str, type: pa.DataType) -> Schema:
    return Field("x", type, name), Field("s", types.STRING, name)


def condition_of(type: pa.DataType, comparison: str, turned: bool) -> Expression:
    left, right = (schema_of(name, type)[0].column for name in "AR")
    sides = (right, left) if turned else (left, right)
    return Call(comparison, sides, types.BOOLEAN)


def one_row(chance: Random, type: pa.DataType, pattern: Pattern) -> list[Element]:
    """At most one row at every instant: as intervals, or rows that come and go, in any order within
    an instant."""
    times = sorted(chance.sample(range(40), chance.choice([0, 1, 5, 15])))
    given: list[tuple[float, Element]] = []
    for start, end in pairwise([*times, INFINITY]):
        if chance.random() < 0.2:
            continue  # there is none for a while
        row = (chance.choice(VALUES[type]), chance.choice(["a", "b"]))
        end = end if chance.random() < 0.8 else max(start + 1, min(end, start + 2))
        if pattern is not Pattern.STRICT:
            given.append((start, Element(row, start, end)))
            continue
        given.append((start + chance.random() / 2, Element(row, start, INFINITY)))
        if end < INFINITY:
            given.append((end + chance.random() / 2, Element(row, end, INFINITY, -1)))
    return [element for _, element in sorted(given, key=lambda each: each[0])]


@pytest.mark.parametrize("form", Form, ids=lambda form: form.value)
@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("type", VALUES, ids=str)
def test_it_is_the_semi_join(
    type: pa.DataType, comparison: str, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "FEW", 2)  # so that new values are merged
    for seed in range(24):
        chance = Random(f"{type} {comparison} {form} {seed}")
        condition = condition_of(type, comparison, chance.random() < 0.5)
        kind = chance.choice([JoinKind.SEMI, JoinKind.ANTI])
        left, right = chance.choice([*Pattern]), chance.choice([Pattern.WEAK, Pattern.STRICT])
        values = [VALUES[type], ("a", "b", None)]
        inputs = {
            "A": random_elements(chance, left, chance.choice([3, 30, 80]), values),
            "R": one_row(chance, type, right),
        }
        sources = [
            logical.Source(name, name, schema_of(name, type), RAW_TIME, Lifetime.INTERVAL)
            for name in "AR"
        ]
        plan = logical.Join(*sources, kind, condition)
        join = SemiJoin(
            given("A", schema_of("A", type), left),
            given("R", schema_of("R", type), right),
            condition=condition,
            anti=kind is JoinKind.ANTI,
            form=form,
            threshold=True,
        )
        expected = Reference(plan, {k: normal_form(v) for k, v in inputs.items()}).result()
        assert normal_form(run(join, inputs, chance).elements) == expected
        assert normal_form(run(join, inputs).elements) == expected


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("seed", range(5))
def test_what_a_threshold_crosses(comparison: Comparison, seed: int) -> None:
    chance = np.random.default_rng(seed)
    sorted_in = Thresholds(comparison)
    words = chance.permutation(5_000)
    for part in np.split(words, [10, 20, 2_000, 3_500]):
        sorted_in.add(part, part + 7)
    moves, known = chance.integers(-10, 5_010, 30), chance.random(30) < 0.8
    covered = sorted_in.holds(words, int(moves[0]), bool(known[0])).astype(np.int64)
    crossed = sorted_in.crossed(moves, known)
    for move in range(29):
        own = crossed.move == move
        covered[np.argsort(words)[crossed.code[own] - 7]] += crossed.change[own]
        holds = sorted_in.holds(words, int(moves[move + 1]), bool(known[move + 1]))
        assert (covered == holds).all()


def operator() -> ThresholdOperator:
    condition = condition_of(types.BIGINT, ">=", False)
    node = SemiJoin(
        given("A", schema_of("A", types.BIGINT), Pattern.STRICT),
        given("R", schema_of("R", types.BIGINT), Pattern.STRICT),
        condition=condition,
        threshold=True,
    )
    opened = node.open(Context())
    assert isinstance(opened, ThresholdOperator)
    return opened


def batch(values: Sequence[int], starts: Sequence[int], weights: Sequence[int], at: int) -> Batch:
    columns = [pa.array(values, types.BIGINT), pa.array(["a"] * len(values))]
    return Batch.of(columns, starts, [INFINITY] * len(starts), weights, at)


def test_rows_on_one_side_of_the_threshold_are_not_looked_at() -> None:
    """Of 100,000 rows, a threshold that moves a hundred times between two of them touches none."""
    join = operator()
    join.process(0, batch(range(0, 1_000_000, 10), [0] * 100_000, [1] * 100_000, 1_000))
    before = join.touched
    moves = list(range(1, 101))
    values = [5 + t % 5 for t in moves]
    gone = [5 + (t - 1) % 5 for t in moves[1:]]
    given = join.process(1, batch(values + gone, moves + moves[1:], [1] * 100 + [-1] * 99, 1_000))
    assert sum(map(len, given)) == 99_999
    assert join.touched - before < 2 * 100_000 + 500, "each row comes, and passes"
    before = join.touched
    assert not any(map(len, join.process(1, batch([6, 5], [1_001, 1_001], [1, -1], 2_000))))
    assert join.touched - before < 10


def test_values_that_are_gone_are_forgotten() -> None:
    join = operator()
    join.process(1, batch([5], [0], [1], NEVER))
    sizes = []
    for t in range(1, 60):
        values = list(range(1_000 * t, 1_000 * (t + 1)))
        old = [value - 1_000 for value in values] if t > 1 else []
        weights = [1] * len(values) + [-1] * len(old)
        join.process(0, batch(values + old, [t] * len(weights), weights, t + 1))
        join.process(1, batch([], [], [], t + 1))
        sizes.append(join.nbytes)
    assert sizes[-1] < 3 * max(sizes[:8])


def test_only_an_order_of_plain_values_is_a_threshold() -> None:
    left, right = (schema_of(name, types.BIGINT) for name in "AR")
    a, r = left[0].column, right[0].column
    assert compared(Call("<", (a, r), types.BOOLEAN), left, right) == (a, "<", r)
    assert compared(Call("<", (r, a), types.BOOLEAN), left, right) == (a, ">", r)
    assert compared(Call("=", (a, r), types.BOOLEAN), left, right) is None
    assert compared(Call("<", (a, a), types.BOOLEAN), left, right) is None
    texts = Call("<", (left[1].column, right[1].column), types.BOOLEAN)
    assert compared(texts, left, right) is None
    assert compared(None, left, right) is None


def session() -> ms.Session:
    session = ms.Session(engine="local")
    rows = [{"t": t, "k": t * 7 % 13, "v": t % 5} for t in range(200)]
    session.stream("S", rows, time="t")
    return session


HAVING = """SELECT k, COUNT(*) AS n FROM S WINDOW(RANGE 50) GROUP BY k
HAVING COUNT(*) >= (SELECT COUNT(*) / NULLIF(COUNT(DISTINCT k), 0) FROM S WINDOW(RANGE 50))"""
ALL = """SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM S WINDOW(RANGE 50) GROUP BY k)
WHERE n >= ALL (SELECT COUNT(*) FROM S WINDOW(RANGE 50) GROUP BY k)"""
ANY = """SELECT k, v FROM S WINDOW(RANGE 5)
WHERE k + 1 > ANY (SELECT v FROM S WINDOW(RANGE 3 SLIDE 2))"""


@pytest.mark.parametrize("sql", [HAVING, ALL])
def test_queries_that_compare_with_one_value(sql: str) -> None:
    query = session().sql(sql)
    assert isinstance(query, ms.Query)
    assert "sorted values" in query.explain(physical=True)
    reference = ms.Session(engine="reference")
    rows = [{"t": t, "k": t * 7 % 13, "v": t % 5} for t in range(200)]
    reference.stream("S", rows, time="t")
    assert query.run().equals(reference.sql(sql).run())


def test_what_can_fail_is_compared_row_by_row() -> None:
    query = session().sql(ANY)
    assert isinstance(query, ms.Query)
    assert "sorted values" not in query.explain(physical=True)
    node = SemiJoin(
        given("A", schema_of("A", types.BIGINT), Pattern.STRICT),
        given("R", schema_of("R", types.BIGINT), Pattern.STRICT),
        condition=condition_of(types.BIGINT, "<", False),
    )
    assert isinstance(node.open(Context()), SemiJoinOperator)
