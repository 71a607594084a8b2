"""Maps over maps, and maps that do nothing.

    Map(Map(S, f), g) = Map(S, g∘f)        Map(S, the columns of S) = S

Conditions: g cannot fail, since its errors would show rows of the map below. Each computed output
of f is used at most once, so that nothing is computed twice. If f can fail, g only selects columns,
including all that can fail: then the same rows fail, and random values are drawn as before. A
shared map that computes something stays.
"""

from __future__ import annotations

from collections import Counter

from millstream.logical.expression_facts import can_fail
from millstream.logical.expressions import Column, Expression, Literal, walk
from millstream.logical.failing import rows_can_fail
from millstream.logical.plan import Map, Named, Plan
from millstream.optimizer.facts.reading import Key, substituted
from millstream.optimizer.facts.sharing import Consumers
from millstream.optimizer.rewriting import as_they_are, rewritten


def merge_maps(plan: Plan, consumers: Consumers) -> Plan:
    def change(node: Plan) -> Plan:
        if not isinstance(node, Map):
            return node
        if node.outputs == as_they_are(node.input.schema):
            return node.input
        below = node.input
        if isinstance(below, Map) and _can_merge(node, below, consumers):
            return Map(below.input, _composed(node, below))
        return node

    return rewritten(plan, change)


def _can_merge(above: Map, below: Map, consumers: Consumers) -> bool:
    computed = {output.field.key: output for output in below.outputs if not _is_plain(output)}
    if computed and consumers.are_several(below):
        return False
    used = _uses(above)
    if rows_can_fail(above) or any(used[key] > 1 for key in computed):
        return False
    chosen = {out.expression.key for out in above.outputs if isinstance(out.expression, Column)}
    failing = {key for key, output in computed.items() if can_fail(output.expression)}
    return failing <= chosen


def _is_plain(output: Named) -> bool:
    return isinstance(output.expression, Column | Literal)


def _uses(plan: Map) -> Counter[Key]:
    parts = (part for output in plan.outputs for part in walk(output.expression))
    return Counter(part.key for part in parts if isinstance(part, Column))


def _composed(above: Map, below: Map) -> tuple[Named, ...]:
    values: dict[Key, Expression] = {out.field.key: out.expression for out in below.outputs}
    return tuple(
        Named(substituted(out.expression, values), out.name, out.qualifier) for out in above.outputs
    )
