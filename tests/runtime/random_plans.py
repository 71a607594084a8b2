"""Random plans: all operators of the algebra on top of each other, also where SQL does not put
them.

Every plan has the columns k, whose type is one for the whole case, and v, a BIGINT; so any operator
can stand on any other. A case is drawn from a tape: zeros make the simplest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from millstream.logical.expressions import AggregateCall, Call, Column, Expression, Literal
from millstream.logical.plan import (
    Aggregate,
    CountWindow,
    Difference,
    Distinct,
    Dstream,
    Field,
    Filter,
    Granularity,
    Intersection,
    Istream,
    Join,
    JoinKind,
    Lifetime,
    Map,
    MaxUnion,
    Named,
    PartitionedWindow,
    Plan,
    Rstream,
    SortKey,
    Source,
    StrictDifference,
    TimeWindow,
    TopN,
    Union,
    rename,
)
from millstream.model import types
from millstream.model.elements import Element
from millstream.model.time import INFINITY, RAW_TIME
from millstream.model.values import NAN
from oracle.random_streams import Tape

BIGINT, BOOLEAN = types.BIGINT, types.BOOLEAN
PAIR = pa.struct([("a", types.INT), ("b", types.STRING)])

KEYS: dict[pa.DataType, Sequence[Any]] = {
    BIGINT: (1, 2, 2, 3, -(2**62), None),
    types.STRING: ("a", "b", "b", "", "ab", None),
    types.DOUBLE: (0.0, -0.0, 1.5, NAN, NAN, None),
    types.decimal_type(20, 2): (Decimal("1.00"), Decimal("2.50"), Decimal("-1.00"), None),
    BOOLEAN: (True, False, None),
    pa.list_(types.INT): ((), (1,), (1, 2), (None,), None),
    PAIR: ((1, "x"), (1, "y"), (None, "x"), (None, None), None),
}
VALUES = (1, 2, 3, 0, 5, -4, None)
TIMES = (0, 0, 1, 1, 2, 3, 4, 5, 5, 8, 9, 13, 17, 25)
LENGTHS = (1, 2, 3, 5, 9, INFINITY)


# --- streams --------------------------------------------------------------------------------------


def elements_of(tape: Tape, key: pa.DataType, lifetime: Lifetime) -> list[Element]:
    """Each element follows from one number; in order of start."""
    origin, count = tape.pick(0, 1, -4), tape.pick(6, 0, 1, 3, 9, 12)
    elements = [_element(Random(tape.number(256)), key, lifetime, origin) for _ in range(count)]
    return sorted(elements, key=lambda element: element.start)


def _element(random: Random, key: pa.DataType, lifetime: Lifetime, origin: int) -> Element:
    start = origin + random.choice(TIMES)
    length = 1 if lifetime is Lifetime.INSTANT else random.choice(LENGTHS)
    row = (random.choice(KEYS[key]), random.choice(VALUES))
    end = INFINITY if length == INFINITY else start + length
    return Element(row, start, end, random.choice((1, 1, 1, 1, 2, 3)))


def source(stream: str, key: pa.DataType, arrival: bool = False) -> Source:
    """S and R have rows that live one instant, I and J rows that bring their interval."""
    lifetime = Lifetime.INSTANT if stream in "SR" else Lifetime.INTERVAL
    columns = (Field("k", key), Field("v", BIGINT))
    return Source(stream, stream, columns, RAW_TIME, lifetime, arrival=arrival)


# --- plans ----------------------------------------------------------------------------------------


@dataclass
class PlanGenerator:
    tape: Tape
    key: pa.DataType
    names: int = 0

    def plan(self, depth: int) -> Plan:
        if depth <= 0:
            return self.leaf()
        make = self.tape.pick(
            self.leaf, self.window, self.window, self.count_window, self.join, self.join,
            self.aggregate, self.aggregate, self.set_operation, self.distinct, self.map,
            self.filter, self.granularity, self.change, self.top, self.total, self.joins,
        )  # fmt: skip
        return make() if make == self.leaf else make(depth - 1)

    def leaf(self) -> Plan:
        stream = source(self.tape.pick("S", "R", "I", "J"), self.key)
        if stream.lifetime is Lifetime.INTERVAL or self.tape.pick(True, True, True, False):
            size = self.tape.pick(5, 3, 10, INFINITY)
            return stream if stream.lifetime is Lifetime.INTERVAL else TimeWindow(stream, size)
        return stream

    # --- operators with one input ----------------------------------------------------------------

    def window(self, depth: int) -> Plan:
        granule = self.tape.pick(1, 2, 5)
        sizes = (3 * granule, granule, 6 * granule, INFINITY)
        size, slide = self.tape.pick(*sizes), self.tape.pick(1, 1, 2, 3) * granule
        return TimeWindow(self.plan(depth), size, slide, granule)

    def count_window(self, depth: int) -> Plan:
        below = self.plan(depth)
        rows, slide = self.tape.pick(2, 1, 3, INFINITY), self.tape.pick(1, 1, 2, 3)
        granule = self.tape.pick(1, 2, 5)
        order = tuple(field.column for field in below.schema)
        if self.tape.pick(False, True):
            return PartitionedWindow(below, (self.k(below),), rows, order, slide, granule)
        return CountWindow(below, rows, order, slide, granule)

    def aggregate(self, depth: int) -> Plan:
        below = self.plan(depth)
        grouped = Aggregate(below, (Named(self.k(below), "k"),), (Named(self.call(below), "v"),))
        return self.renamed(grouped)

    def total(self, depth: int) -> Plan:
        """Without keys: one row at every instant."""
        below = self.plan(depth)
        largest = AggregateCall("max", (self.k(below),), self.key)
        return self.renamed(
            Aggregate(below, (), (Named(largest, "k"), Named(self.call(below), "v")))
        )

    def call(self, below: Plan) -> AggregateCall:
        v = self.v(below)
        order = tuple(field.column for field in below.schema)
        first = AggregateCall("first", (v,), BIGINT, order=order)
        wanted = Call(">", (v, Literal(1, BIGINT)), BOOLEAN)
        return self.tape.pick(
            AggregateCall("count", (), BIGINT),
            AggregateCall("sum", (v,), BIGINT),
            AggregateCall("max", (v,), BIGINT),
            AggregateCall("min", (v,), BIGINT, filter=wanted),
            AggregateCall("count", (v,), BIGINT, distinct=True),
            first,
            replace(first, function="last"),
        )

    def distinct(self, depth: int) -> Plan:
        return Distinct(self.plan(depth))

    def map(self, depth: int) -> Plan:
        below = self.plan(depth)
        k, v = self.k(below), self.v(below)
        two = Literal(2, BIGINT)
        value = self.tape.pick(
            v, Call("%", (v, two), BIGINT), two, Call("div", (Literal(6, BIGINT), v), BIGINT)
        )
        key = self.tape.pick(k, Literal(KEYS[self.key][0], self.key))
        return Map(below, (Named(key, "k", self.fresh()), Named(value, "v", f"q{self.names}")))

    def filter(self, depth: int) -> Plan:
        below = self.plan(depth)
        v, two = self.v(below), Literal(2, BIGINT)
        condition = self.tape.pick(
            Call(">=", (v, two), BOOLEAN),
            Call("is null", (self.k(below),), BOOLEAN),
            Call("=", (Call("div", (two, v), BIGINT), two), BOOLEAN),
        )
        return Filter(below, condition)

    def granularity(self, depth: int) -> Plan:
        return Granularity(self.plan(depth), self.tape.pick(2, 3, 5))

    def change(self, depth: int) -> Plan:
        return self.tape.pick(Istream, Dstream, Rstream)(self.plan(depth))

    def top(self, depth: int) -> Plan:
        below = self.plan(depth)
        descending, nulls_first = self.tape.pick(False, True), self.tape.pick(False, True)
        order = (
            SortKey(self.v(below), descending, nulls_first),
            SortKey(self.k(below), self.tape.pick(False, True), nulls_first),
        )
        keys = self.tape.pick((), (self.k(below),))
        return TopN(below, self.tape.pick(2, 1, 3), order, keys)

    # --- operators with two ----------------------------------------------------------------------

    def set_operation(self, depth: int) -> Plan:
        node = self.tape.pick(Difference, Union, Intersection, MaxUnion, StrictDifference)
        left, right = self.sides(depth)
        return node(left, rename(right, [field.key for field in left.schema]))

    def join(self, depth: int) -> Plan:
        left, right = map(self.renamed, self.sides(depth))
        kind = self.tape.pick(*JoinKind)
        joined = Join(left, right, kind, self.condition(left, right))
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            return joined
        columns = [field.column for field in joined.schema]
        k, v = self.tape.pick((0, 3), (2, 1), (0, 1), (2, 3))
        name = self.fresh()
        return Map(joined, (Named(columns[k], "k", name), Named(columns[v], "v", name)))

    def joins(self, depth: int) -> Plan:
        """A tree of inner joins."""
        first, second = map(self.renamed, self.sides(depth))
        third, fourth = map(self.renamed, self.sides(0))
        left = Join(first, second, condition=self.condition(first, second))
        right = third
        if self.tape.pick(False, True):
            right = Join(third, fourth, condition=self.condition(third, fourth))
        joined = Join(left, right, condition=self.condition(second, third))
        columns = [field.column for field in joined.schema]
        name = self.fresh()
        return Map(joined, (Named(columns[0], "k", name), Named(columns[5], "v", name)))

    def condition(self, left: Plan, right: Plan) -> Expression | None:
        """Equality alone, with something else, or neither."""
        keys = (self.k(left), self.k(right))
        smaller = Call("<", (self.v(left), self.v(right)), BOOLEAN)
        quotient = Call("div", (self.v(left), self.v(right)), BIGINT)
        fails = Call(">", (quotient, Literal(0, BIGINT)), BOOLEAN)
        equal, same = Call("=", keys, BOOLEAN), Call("<=>", keys, BOOLEAN)
        return self.tape.pick(
            equal,
            same,
            smaller,
            Call("and", (equal, smaller), BOOLEAN),
            Call("and", (Call("=", (self.v(left), self.v(right)), BOOLEAN), same), BOOLEAN),
            fails,
            Call("and", (equal, fails), BOOLEAN),
            None,
        )

    def sides(self, depth: int) -> tuple[Plan, Plan]:
        left = self.plan(depth)
        return left, self.tape.pick(self.leaf, lambda: self.plan(depth), lambda: left)()

    # --- columns ---------------------------------------------------------------------------------

    def renamed(self, plan: Plan) -> Plan:
        name = self.fresh()
        return rename(plan, [(name, "k"), (name, "v")])

    def fresh(self) -> str:
        self.names += 1
        return f"q{self.names}"

    @staticmethod
    def k(plan: Plan) -> Column:
        return plan.schema[0].column

    @staticmethod
    def v(plan: Plan) -> Column:
        return plan.schema[1].column


def case_of(tape: Tape, depth: int = 3) -> tuple[Plan, dict[str, list[Element]]]:
    """A plan, and the elements of the streams that it reads."""
    key = tape.pick(*KEYS)
    inputs = {stream: elements_of(tape, key, source(stream, key).lifetime) for stream in "SRIJ"}
    plan = PlanGenerator(tape, key).plan(tape.pick(1, 2, depth))
    read = {node.stream for node in plan.walk() if isinstance(node, Source)}
    return plan, {stream: inputs[stream] for stream in sorted(read)}
