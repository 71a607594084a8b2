"""GROUP BY before a join instead of after it (K example 10.1).

    γ_K,f(S₁ ⋈_x=y S₂) = π(γ_K₁∪x,f(S₁) ⋈_x=y S₂)      where f reads S₁, K₁ are the keys of S₁

Conditions: an inner join only on equalities of columns, whose values are equal only if they are
identical (no doubles). y identifies the rows of S₂ at every instant, so that each row of S₁ has at
most one partner; and x or y is among the keys, so that a group has one row of S₂, which determines
the other keys. Keys are columns, those of S₂ are not doubles, and f cannot fail. The same applies
to the other side. Before the join, there are fewer rows to join; it is worse if the join is
selective.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.logical.expressions import Call, Column, Expression, conjuncts, operands
from millstream.logical.failing import aggregate_can_fail
from millstream.logical.functions.cast_facts import has_zeros
from millstream.logical.plan import Aggregate, Join, JoinKind, Map, Named, Plan
from millstream.logical.uniqueness import unique_columns
from millstream.optimizer.facts.reading import Key, columns_of, keys_of

Pairs = list[tuple[Column, Column]]


def aggregate_below_join(node: Plan) -> Iterator[Plan]:
    if not isinstance(node, Aggregate) or not isinstance(node.input, Join):
        return
    join = node.input
    if join.kind is not JoinKind.INNER or not node.keys or not _is_plain(node):
        return
    pairs = _equal_columns(join)
    if pairs is None:
        return
    if _fits(node, join.left, join.right, pairs):
        yield _pushed(node, join, "left", pairs)
    swapped = [(right, left) for left, right in pairs]
    if _fits(node, join.right, join.left, swapped):
        yield _pushed(node, join, "right", swapped)


def _is_plain(node: Aggregate) -> bool:
    """Whether its keys are columns, and nothing can fail."""
    failing = any(aggregate_can_fail(named.expression) for named in node.aggregates)
    return not failing and all(isinstance(key.expression, Column) for key in node.keys)


def _equal_columns(join: Join) -> Pairs | None:
    """The columns that the join compares, those of its left first; None if it has other parts."""
    left, found = keys_of(join.left.schema), []
    for part in conjuncts(join.condition):
        match part:
            case Call(function="=", arguments=(Column() as a, Column() as b)):
                one, other = (a, b) if a.key in left else (b, a)
                if one.key not in left or other.key in left or has_zeros(a.type):
                    return None
                found.append((one, other))
            case _:
                return None
    return found


def _fits(node: Aggregate, grouped: Plan, other: Plan, pairs: Pairs) -> bool:
    own = keys_of(grouped.schema)
    read = columns_of(part for named in node.aggregates for part in operands(named.expression))
    compared = {y.key for _, y in pairs}
    single = any(columns <= compared for columns in unique_columns(other))
    keys = columns_of(key.expression for key in node.keys)
    compares_keys = all(x.key in keys or y.key in keys for x, y in pairs)
    given = {f.key: f.type for f in other.schema}
    same = not any(has_zeros(given[key]) for key in keys & given.keys())
    apart = not any(named.field.key in given for named in node.aggregates)
    has_keys = bool(pairs) or bool(keys & own)  # without keys there is a row over no rows
    return read <= own and single and compares_keys and same and apart and has_keys


def _pushed(node: Aggregate, join: Join, side: str, pairs: Pairs) -> Plan:
    grouped = join.left if side == "left" else join.right
    own = keys_of(grouped.schema)
    keys: dict[Key, Column] = {x.key: x for x, _ in pairs}
    for key in node.keys:
        assert isinstance(key.expression, Column)
        if key.expression.key in own:
            keys.setdefault(key.expression.key, key.expression)
    names = tuple(Named(column, column.name, column.qualifier) for column in keys.values())
    below = Aggregate(grouped, names, node.aggregates)
    joined = replace(join, left=below) if side == "left" else replace(join, right=below)
    values: list[Expression] = [key.expression for key in node.keys]
    values += [named.field.column for named in node.aggregates]
    outputs = zip(values, node.schema, strict=True)
    return Map(joined, tuple(Named(value, f.name, f.qualifier) for value, f in outputs))
