"""Functions for rewriting plans, used by all rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from millstream.logical.expressions import Expression, conjunction
from millstream.logical.plan import Filter, Map, Named, Plan, Schema
from millstream.optimizer.facts.reading import Key
from millstream.optimizer.facts.sharing import with_inputs


def rewritten(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The plan with `change` applied to each of its parts, inputs first; shared parts are changed
    once."""
    done: dict[int, Plan] = {}

    def node(part: Plan) -> Plan:
        if id(part) not in done:
            done[id(part)] = change(with_inputs(part, *map(node, part.inputs)))
        return done[id(part)]

    return node(plan)


def filtered(plan: Plan, parts: Iterable[Expression]) -> Plan:
    """The rows for which all parts are true."""
    predicate = conjunction(list(parts))
    return plan if predicate is None else Filter(plan, predicate)


def selected(plan: Plan, wanted: Iterable[Key]) -> Plan:
    """The plan with only these columns, in its own order."""
    keys = set(wanted)
    fields = tuple(field for field in plan.schema if field.key in keys)
    return plan if len(fields) == len(plan.schema) else Map(plan, as_they_are(fields))


def as_they_are(schema: Schema) -> tuple[Named, ...]:
    return tuple(Named(field.column, field.name, field.qualifier) for field in schema)


def renamed(plan: Plan, names: Sequence[Key]) -> Plan:
    """The plan with its columns renamed by position."""
    pairs = zip(plan.schema, names, strict=True)
    return Map(plan, tuple(Named(f.column, name, qualifier) for f, (qualifier, name) in pairs))
