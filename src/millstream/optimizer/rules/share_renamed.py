"""Parts of a plan that differ only in names become one part, renamed.

    S₁, and elsewhere S₂ = ρ(S₁)   become   S₁ and ρ(S₁), with the same S₁

Such parts arise if a stream is used under two names: a window of `Bid AS a` and the same of `Bid AS
b`. The first one stays, and the part is computed once; renaming is a map that costs nothing.

Conditions: the parts have the same functions of the same columns, by position, over equal inputs.
Two calls of a random function are not equal. Sources, and filters and maps of them, are not worth
sharing; nor are maps at the top.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from millstream.logical.evaluate import is_deterministic
from millstream.logical.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    operands,
)
from millstream.logical.plan import Filter, Map, Named, Plan, SortKey, Source, expressions
from millstream.optimizer.facts.reading import Key
from millstream.optimizer.facts.sharing import Consumers, with_inputs
from millstream.optimizer.rewriting import renamed


def share_renamed(plan: Plan, consumers: Consumers) -> Plan:
    return _Sharer().node(plan)


class _Sharer:
    def __init__(self) -> None:
        self._shapes: dict[object, int] = {}
        self._shape_of: dict[int, int] = {}
        self._first: dict[int, Plan] = {}  # by shape
        self._done: dict[int, Plan] = {}

    def node(self, plan: Plan) -> Plan:
        if id(plan) not in self._done:
            first = self._first.setdefault(self._shape(plan), plan)
            if first is plan or not _is_worth_sharing(plan):
                self._done[id(plan)] = with_inputs(plan, *map(self.node, plan.inputs))
            else:
                names = [field.key for field in plan.schema]
                self._done[id(plan)] = renamed(self._done[id(first)], names)
        return self._done[id(plan)]

    def _shape(self, plan: Plan) -> int:
        """A number that is equal for plans that differ only in names."""
        if id(plan) not in self._shape_of:
            inputs = tuple(map(self._shape, plan.inputs))
            shape: object = type(plan), inputs, _own_shape(plan)
            if not all(map(is_deterministic, expressions(plan))):
                shape = id(plan)
            self._shape_of[id(plan)] = self._shapes.setdefault(shape, len(self._shapes))
        return self._shape_of[id(plan)]


def _is_worth_sharing(plan: Plan) -> bool:
    """A map is not worth sharing: its input is, and the renaming is again a map."""
    return not isinstance(plan, Map) and not all(
        isinstance(node, Source | Filter | Map) for node in plan.walk()
    )


def _own_shape(plan: Plan) -> object:
    if isinstance(plan, Source):
        return replace(plan, alias="")
    schema = [field for child in plan.inputs for field in child.schema]
    places = {field.key: place for place, field in enumerate(schema)}
    names = (field.name for field in fields(plan))  # type: ignore[arg-type]
    return tuple(
        _value_shape(getattr(plan, name), places) for name in names if name not in plan.input_names
    )


def _value_shape(value: object, places: Mapping[Key, int]) -> object:
    match value:
        case tuple():
            return tuple(_value_shape(item, places) for item in value)
        case Named():
            return _expression_shape(value.expression, places)
        case SortKey():
            order = value.descending, value.nulls_first
            return _expression_shape(value.expression, places), order
        case Column() | Literal() | Cast() | Call() | AggregateCall():
            return _expression_shape(value, places)
    return value


def _expression_shape(expression: Expression, places: Mapping[Key, int]) -> object:
    parts = tuple(_expression_shape(operand, places) for operand in operands(expression))
    match expression:
        case Column():
            own: object = places[expression.key]
        case Literal():
            own = repr(expression.value)  # 0.0 and -0.0 are not the same
        case Cast():
            own = expression.attempt
        case Call():
            own = expression.function
        case AggregateCall():
            own = (
                expression.function,
                expression.distinct,
                expression.filter is None,
                len(expression.order),
            )
        case _:
            raise AssertionError(expression)
    return type(expression), own, expression.type, parts
