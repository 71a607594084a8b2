"""Filters move as close to the sources as possible.

    σ_p∧q(S) = σ_q(σ_p(S))                        σ_p(μ_f(S)) = μ_f(σ_p∘f(S))
    σ_p(ω_time(S)) = ω_time(σ_p(S))   (K 10.8)    σ_p(Γ_g(S)) = Γ_g(σ_p(S))
    σ_p(S₁ ∪ S₂) = σ_p(S₁) ∪ σ_p(S₂)  (K 10.5; so for the other set operations)
    σ_p(S₁ ⋈ S₂) = σ_p(S₁) ⋈ S₂       where p reads S₁ only; else p joins the join's condition
    σ_p(δ(S)) = δ(σ_p(S)), σ_p(istream(S)) = istream(σ_p(S))
    σ_TRUE(S) = S
    σ_p(γ_k(S)) = γ_k(σ_p(S)), and so for partitioned windows and top-n, where p reads k only

Parts of a join's condition that read one side also move there, unless the join preserves all rows
of that side.

Conditions: p cannot fail, and nothing that it moves past can, since rows that p drops would no
longer fail (`movable` defines this for AND). If equal rows become one, p must be the same for all
equal values. Filters do not move past an aggregate without keys, which has a row even over no rows,
nor past count windows, which count all rows. Shared computed parts stay one.
It is worse if p is expensive and the operator that it moves past drops many rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.logical.analysis import lives_one_instant
from millstream.logical.expression_facts import tells_equals_apart
from millstream.logical.expressions import TRUE, Column, Expression, Literal, conjunction, conjuncts
from millstream.logical.failing import aggregate_can_fail, rows_can_fail
from millstream.logical.plan import (
    Aggregate,
    Distinct,
    Dstream,
    Filter,
    Granularity,
    Istream,
    Join,
    JoinKind,
    Map,
    PartitionedWindow,
    Plan,
    Rstream,
    Schema,
    SetOperation,
    TimeWindow,
    TopN,
    is_unbounded,
)
from millstream.optimizer.facts.reading import Key, columns_of, keys_of, movable, substituted
from millstream.optimizer.facts.sharing import Consumers, with_inputs
from millstream.optimizer.rewriting import filtered

Parts = list[Expression]


def push_filters(plan: Plan, consumers: Consumers) -> Plan:
    return _Pusher(consumers).pushed(plan, [])


class _Pusher:
    def __init__(self, consumers: Consumers) -> None:
        self._consumers = consumers
        self._done: dict[int, Plan] = {}

    def pushed(self, plan: Plan, parts: Parts) -> Plan:
        """The rows of the plan for which the parts are true."""
        parts = _decided(parts)
        if not parts:
            if id(plan) not in self._done:
                self._done[id(plan)] = self._passed(plan, [])
            return self._done[id(plan)]
        if self._consumers.share_work(plan):
            return filtered(self.pushed(plan, []), parts)
        return self._passed(plan, parts)

    def _passed(self, plan: Plan, parts: Parts) -> Plan:
        match plan:
            case Filter():
                return self._filter(plan, parts)
            case Join():
                return self._join(plan, parts)
            case SetOperation():
                return self._set_operation(plan, parts)
        below, above = _through(plan, parts)
        inputs = [self.pushed(child, below) for child in plan.inputs]
        return filtered(with_inputs(plan, *inputs), above)

    def _filter(self, plan: Filter, parts: Parts) -> Plan:
        own, rest = movable(plan.predicate)
        if not rest:
            return self.pushed(plan.input, own + parts)
        return filtered(filtered(self.pushed(plan.input, own), rest), parts)

    def _set_operation(self, plan: SetOperation, parts: Parts) -> Plan:
        below, above = _split(parts, not_if=tells_equals_apart)
        names = {f.key: g.column for f, g in zip(plan.schema, plan.right.schema, strict=True)}
        left = self.pushed(plan.left, below)
        right = self.pushed(plan.right, [substituted(part, names) for part in below])
        return filtered(with_inputs(plan, left, right), above)

    def _join(self, plan: Join, parts: Parts) -> Plan:
        if rows_can_fail(plan):
            sides = (self.pushed(side, []) for side in plan.inputs)
            return filtered(with_inputs(plan, *sides), parts)
        own = conjuncts(plan.condition)
        left = _reading(parts, plan.left.schema) if plan.kind in _KEEPS_LEFT else []
        right = _reading(parts, plan.right.schema) if plan.kind in _KEEPS_RIGHT else []
        above = [part for part in parts if part not in left + right]
        if plan.kind is JoinKind.INNER:
            own, above = own + above, []
        own_left = _reading(own, plan.left.schema) if plan.kind in _NEEDS_LEFT else []
        own_right = _reading(own, plan.right.schema) if plan.kind in _NEEDS_RIGHT else []
        joined = replace(
            plan,
            left=self.pushed(plan.left, own_left + left),
            right=self.pushed(plan.right, own_right + right),
            condition=conjunction([p for p in own if p not in [*own_left, *own_right, TRUE]]),
        )
        return filtered(joined, above)


# Joins whose every result row contains a row of that side: a filter on that side can move below.
_KEEPS_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
_KEEPS_RIGHT = (JoinKind.INNER, JoinKind.RIGHT)
# Joins that do not preserve all rows of that side: parts of their condition can move below.
_NEEDS_LEFT = (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI)
_NEEDS_RIGHT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


def _decided(parts: Parts) -> Parts:
    """The parts without those that are TRUE; only FALSE if one is never TRUE."""
    literals = [part.value for part in parts if isinstance(part, Literal)]
    if any(value is not True for value in literals):
        return [Literal(False, TRUE.type)]
    return [part for part in parts if not isinstance(part, Literal)] if literals else parts


def _reading(parts: Parts, schema: Schema) -> Parts:
    """The parts that read columns of the schema only."""
    keys = keys_of(schema)
    return [part for part in parts if columns_of([part]) <= keys]


def _through(plan: Plan, parts: Parts) -> tuple[Parts, Parts]:
    """The parts that can be tested on the rows of the input, and those that cannot."""
    if rows_can_fail(plan):
        return [], parts
    match plan:
        case Map():
            values = {output.field.key: output.expression for output in plan.outputs}
            return [substituted(part, values) for part in parts], []
        case TimeWindow() if not is_unbounded(plan) or lives_one_instant(plan.input):
            return parts, []
        case Granularity() | Rstream():
            return parts, []
        case Distinct() | Istream() | Dstream():
            return _split(parts, not_if=tells_equals_apart)
        case Aggregate() if plan.keys:
            return _through_groups(plan, parts)
        case PartitionedWindow() | TopN():
            keys = columns_of(key for key in plan.keys if isinstance(key, Column))
            return _of_keys(parts, keys) if keys else ([], parts)
    return [], parts


def _through_groups(plan: Aggregate, parts: Parts) -> tuple[Parts, Parts]:
    if any(aggregate_can_fail(named.expression) for named in plan.aggregates):
        return [], parts
    values = {key.field.key: key.expression for key in plan.keys}
    below, above = _of_keys(parts, set(values))
    return [substituted(part, values) for part in below], above


def _of_keys(parts: Parts, keys: set[Key]) -> tuple[Parts, Parts]:
    """The parts that are the same for all rows of a group."""
    return _split(
        parts, not_if=lambda part: tells_equals_apart(part) or not columns_of([part]) <= keys
    )


def _split(parts: Parts, not_if: Callable[[Expression], bool]) -> tuple[Parts, Parts]:
    stay = [part for part in parts if not_if(part)]
    return [part for part in parts if part not in stay], stay
