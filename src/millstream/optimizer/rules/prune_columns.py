"""Unused columns are dropped before rows are stored or sent.

    op(S) = op(π(S))      where π keeps the columns that op and all above it read

A map that only selects columns costs nothing, and neither do columns that are not gathered. So
there is one such map for each operator that stores or groups rows, at the lowest position at which
it can drop all unused columns at once: below windows (K 10.9, 10.11, 10.12) and granularities,
above filters.

Conditions: an operator that can fail reads all columns, since its errors show them. DISTINCT, set
operations (except UNION ALL), ISTREAM and DSTREAM compare whole rows. Windows and top-n keep the
columns of their order and keys, aggregates their keys. A shared part keeps all columns that any of
its consumers needs. If no column is read, one remains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from millstream.logical.expression_facts import can_fail
from millstream.logical.failing import aggregate_can_fail, evaluated, rows_can_fail
from millstream.logical.plan import (
    Aggregate,
    CountWindow,
    Distinct,
    Dstream,
    Granularity,
    Istream,
    Join,
    Map,
    Named,
    PartitionedWindow,
    Plan,
    Schema,
    SetOperation,
    TimeWindow,
    TopN,
    Union,
)
from millstream.optimizer.facts.reading import Key, columns_of, keys_of
from millstream.optimizer.facts.sharing import Consumers, in_order, with_inputs
from millstream.optimizer.rewriting import selected


def prune_columns(plan: Plan, consumers: Consumers) -> Plan:
    return _Pruner(plan, consumers).node(plan)


_WHOLE_ROWS = (Distinct, SetOperation, Istream, Dstream)
_KEEP_ROWS = (Join, Aggregate, TopN, CountWindow, PartitionedWindow)


class _Pruner:
    def __init__(self, plan: Plan, consumers: Consumers) -> None:
        self._consumers = consumers
        self._needed: defaultdict[int, set[Key]] = defaultdict(set)
        self._done: dict[int, Plan] = {}
        self._needed[id(plan)] = keys_of(plan.schema)
        for node in in_order(plan):
            for child, keys in zip(node.inputs, self._read(node), strict=True):
                self._needed[id(child)] |= keys

    # --- which columns are needed

    def _read(self, node: Plan) -> list[set[Key]]:
        """The columns that a node needs from each input."""
        node = self._kept(node)
        if isinstance(node, Union):
            places = [i for i, f in enumerate(node.schema) if f.key in self._needed_of(node)]
            return [{side.schema[place].key for place in places} for side in node.inputs]
        if isinstance(node, _WHOLE_ROWS) or rows_can_fail(node):
            return [keys_of(child.schema) for child in node.inputs]
        keys = columns_of(evaluated(node))
        if not isinstance(node, Map | Aggregate):
            keys |= self._needed_of(node)
        return [_at_least_one(child.schema, keys) for child in node.inputs]

    def _needed_of(self, node: Plan) -> set[Key]:
        return _at_least_one(node.schema, self._needed[id(node)])

    def _kept(self, node: Plan) -> Plan:
        """A map or an aggregate without unused outputs that cannot fail."""
        needed = self._needed[id(node)]
        if isinstance(node, Map):
            return _with_outputs(
                node,
                [o for o in node.outputs if o.field.key in needed or can_fail(o.expression)],
            )
        if isinstance(node, Aggregate):
            aggregates = [
                named
                for named in node.aggregates
                if named.field.key in needed or aggregate_can_fail(named.expression)
            ]
            if aggregates or node.keys:
                return _with_aggregates(node, aggregates)
            return _with_aggregates(node, node.aggregates[:1])
        return node

    # --- the plan without the others

    def node(self, node: Plan) -> Plan:
        if id(node) not in self._done:
            self._done[id(node)] = self._pruned(node)
        return self._done[id(node)]

    def _pruned(self, node: Plan) -> Plan:
        inputs = [self.node(child) for child in node.inputs]
        if isinstance(node, Union):
            pairs = zip(inputs, self._read(node), strict=True)
            inputs = [selected(child, keys) for child, keys in pairs]
        elif isinstance(node, _KEEP_ROWS) and not _takes_window(node):
            read = self._read(node)
            inputs = [
                self._narrowed(old, new, keys)
                for old, new, keys in zip(node.inputs, inputs, read, strict=True)
            ]
        return with_inputs(self._kept(node), *inputs)

    def _narrowed(self, old: Plan, plan: Plan, keys: set[Key]) -> Plan:
        """The rewritten `old` with only these columns, selected as low as possible."""
        if keys_of(plan.schema) <= keys:
            return plan
        match plan:
            case TimeWindow() | Granularity() if not self._consumers.are_several(old):
                return with_inputs(plan, self._narrowed(old.inputs[0], plan.input, keys))
        return selected(plan, keys)


def _takes_window(node: Plan) -> bool:
    """Whether it aggregates a count window and reads the arriving rows directly."""
    if not isinstance(node, Aggregate):
        return False
    return isinstance(node.input, CountWindow | PartitionedWindow)


def _with_outputs(node: Map, outputs: list[Named]) -> Map:
    if len(outputs) == len(node.outputs):
        return node
    return replace(node, outputs=tuple(outputs) or (_narrowest(node.outputs),))


def _narrowest(outputs: Iterable[Named]) -> Named:
    return min(outputs, key=lambda output: _width(output.expression.type))


def _with_aggregates(node: Aggregate, aggregates: Iterable[Named]) -> Aggregate:
    kept = tuple(aggregates)
    return node if len(kept) == len(node.aggregates) else replace(node, aggregates=kept)


def _at_least_one(schema: Schema, keys: set[Key]) -> set[Key]:
    """The keys that the schema has; if there are none, its narrowest column."""
    own = keys & keys_of(schema)
    return own or {min(schema, key=lambda field: _width(field.type)).key}


def _width(type: pa.DataType) -> int:
    try:
        return int(type.bit_width)
    except ValueError:
        return 1 << 16  # of any length
