"""Which rows each kind of operator must see together; one of an unknown kind sees all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pytest

from millstream.fragments.cutting import fragments_of
from millstream.fragments.requirements import ALL_TOGETHER, requirement, spread
from millstream.logical.expressions import AggregateCall, Call, Literal
from millstream.logical.plan import Field, Named, SortKey
from millstream.model.types import BIGINT, BOOLEAN, INT
from millstream.optimizer.cost.estimate import FORMULAS
from millstream.optimizer.cost.work import BATCHES
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.operators.aggregate import Aggregate
from millstream.physical.operators.changes import Changes
from millstream.physical.operators.coalesce import Coalesce
from millstream.physical.operators.count_window import CountWindow
from millstream.physical.operators.cut import Cut
from millstream.physical.operators.deltas import Deltas
from millstream.physical.operators.distinct import Distinct
from millstream.physical.operators.filter import Filter
from millstream.physical.operators.granularity import Granularity
from millstream.physical.operators.join import Join, JoinKey
from millstream.physical.operators.lookup_join import LookupJoin
from millstream.physical.operators.map import Map
from millstream.physical.operators.multi_join import MultiJoin
from millstream.physical.operators.outer_join import OuterJoin
from millstream.physical.operators.pointwise import Form, Pointwise, PointwiseFunction
from millstream.physical.operators.semi_join import SemiJoin
from millstream.physical.operators.source import Source
from millstream.physical.operators.split import Split
from millstream.physical.operators.time_window import TimeWindow
from millstream.physical.operators.top_n import TopN
from millstream.physical.operators.union import Union
from millstream.physical.plan_data import OPERATOR_KINDS

FIELDS = tuple(Field(name, INT, "L", nullable=False) for name in "kv")
OTHERS = tuple(replace(field, qualifier="R") for field in FIELDS)
LEFT, RIGHT = Source("L", FIELDS, ordered=True), Source("R", OTHERS, ordered=True)
K, V = (field.column for field in FIELDS)
KEYS = (JoinKey(K, OTHERS[0].column),)
BOTH = FIELDS + OTHERS
COUNT = Named(AggregateCall("count", (), BIGINT), "n")

ALL, KEY, ROW = "all rows", "rows with equal keys", "equal rows"

# A node of each kind, and which rows it must see together.
OPERATORS: dict[str, tuple[PhysicalPlan, str]] = {
    "aggregate": (Aggregate(LEFT, (Named(K, "k"),), (COUNT,)), KEY),
    "changes": (Changes(LEFT), ROW),
    "coalesce": (Coalesce(LEFT, 5), ROW),
    "count window": (CountWindow(LEFT, 5, (V,), (K,)), KEY),
    "cut": (Cut(LEFT, 5), ROW),
    "deltas": (Deltas(LEFT), ROW),
    "distinct": (Distinct(LEFT), ROW),
    "filter": (Filter(LEFT, Call(">", (K, V), BOOLEAN)), ALL),
    "granularity": (Granularity(LEFT, 5), ALL),
    "join": (Join(LEFT, RIGHT, KEYS), KEY),
    "lookup join": (LookupJoin(LEFT, RIGHT, BOTH, KEYS), KEY),
    "map": (Map(LEFT, (Named(K, "k"),)), ALL),
    "multi-way join": (MultiJoin((LEFT, RIGHT)), ALL),
    "outer join": (OuterJoin(LEFT, RIGHT, (True, False), BOTH, KEYS), KEY),
    "pointwise": (Pointwise((LEFT, RIGHT), PointwiseFunction.DIFFERENCE, FIELDS), ROW),
    "semi-join": (SemiJoin(LEFT, RIGHT, KEYS), KEY),
    "source": (LEFT, ALL),
    "split": (Split(LEFT, 5), ROW),
    "time window": (TimeWindow(LEFT, 5), ALL),
    "top-n": (TopN(LEFT, 3, (SortKey(V),), (K,)), KEY),
    "union": (Union(LEFT, RIGHT, FIELDS), ROW),
}


@dataclass(frozen=True)
class Strange(PhysicalPlan):
    """An operator of an unknown kind."""

    input: PhysicalPlan

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.STRICT

    def open(self, context: Context) -> Operator:
        raise NotImplementedError


def test_every_kind_has_its_facts() -> None:
    assert {kind: type(node) for kind, (node, _) in OPERATORS.items()} == OPERATOR_KINDS
    assert {made.__name__ for made in FORMULAS} == BATCHES.keys()


@pytest.mark.parametrize("kind", OPERATORS)
def test_which_rows_are_together(kind: str) -> None:
    node, together = OPERATORS[kind]
    assert requirement(node).count == {ALL: 0, KEY: 1, ROW: 2}[together]
    spreads = kind in ("join", "lookup join", "outer join", "semi-join")
    assert (spread(node, small=1) is not None) == spreads


@pytest.mark.parametrize("kind", [kind for kind, (_, rows) in OPERATORS.items() if rows == KEY])
def test_keys_that_can_fail_do_not_place_rows(kind: str) -> None:
    """Nor those that differ each time."""
    node = OPERATORS[kind][0]
    for key in (Call("/", (K, V), INT), Call("rand", (), INT), Call("of_the_user", (K,), INT)):
        own: dict[str, object] = {"keys": (key,)}
        if isinstance(node, Aggregate):
            own = {"keys": (Named(key, "k"),)}
        elif len(node.inputs) == 2:
            own = {"keys": (JoinKey(key, Literal(1, INT)),)}
        assert requirement(replace(node, **own)) == ALL_TOGETHER  # type: ignore[type-var]


@pytest.mark.parametrize("kind", ["aggregate", "count window", "pointwise", "semi-join"])
def test_changes_over_intervals_are_together(kind: str) -> None:
    """An operator that waits for ends has other frontiers in each shard."""
    node = OPERATORS[kind][0]
    for form, final, together in (
        (Form.SIGNED, False, False),
        (Form.INTERVALS, True, False),
        (Form.INTERVALS, False, True),
    ):
        below = replace(node, form=form, final=final)  # type: ignore[type-var]
        assert (requirement(Changes(Filter(below, K))) == ALL_TOGETHER) is together


def test_an_operator_that_nothing_knows_sees_all_rows() -> None:
    strange = Strange(LEFT)
    assert requirement(strange) == ALL_TOGETHER
    assert spread(strange, small=0) is None
    assert requirement(Changes(strange)) == ALL_TOGETHER
    keyed = Aggregate(LEFT, (Named(K, "k"),), (COUNT,))
    *_, last = fragments_of(Strange(keyed))
    assert not last.keyed
