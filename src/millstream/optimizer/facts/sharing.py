"""Shared parts of a plan.

`Nodes` makes equal parts the same object, so that rewrites can compare by identity: a plan has
changed if and only if it is another object. `Consumers` counts the consumers of each part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

from millstream.logical.evaluate import is_deterministic
from millstream.logical.plan import Plan, Source, expressions


class Nodes:
    """Plans whose equal parts are one object. Two calls of a random function are not equal."""

    def __init__(self) -> None:
        self._known: dict[object, Plan] = {}
        self._one: dict[int, Plan] = {}
        self._kept: list[Plan] = []  # keeps the objects alive, so that no id above is reused

    def plan(self, plan: Plan) -> Plan:
        if id(plan) not in self._one:
            self._kept.append(plan)
            one = self._unified(plan)
            self._one[id(plan)] = self._one[id(one)] = one
        return self._one[id(plan)]

    def _unified(self, plan: Plan) -> Plan:
        plan = with_inputs(plan, *map(self.plan, plan.inputs))
        if not all(map(is_deterministic, expressions(plan))):
            return plan
        return self._known.setdefault((type(plan), own_values(plan), *map(id, plan.inputs)), plan)


def own_values(plan: Plan) -> tuple[object, ...]:
    """The fields of a node except its inputs."""
    names = (field.name for field in fields(plan))  # type: ignore[arg-type]
    return tuple(getattr(plan, name) for name in names if name not in plan.input_names)


def with_inputs(plan: Plan, *inputs: Plan) -> Plan:
    """The node over these inputs: itself if they are its own."""
    same = all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
    return plan if same else plan.with_inputs(*inputs)


class Consumers:
    """How often each part of a plan is read."""

    def __init__(self, plan: Plan) -> None:
        self._counts: Counter[int] = Counter()
        for node in in_order(plan):
            self._counts.update(map(id, node.inputs))

    def are_several(self, node: Plan) -> bool:
        return self._counts[id(node)] > 1

    def share_work(self, node: Plan) -> bool:
        """Whether a computed part has several consumers: then it is computed once, and must stay
        one part."""
        return not isinstance(node, Source) and self.are_several(node)


def in_order(plan: Plan) -> list[Plan]:
    """All parts, each once, consumers before what they read."""
    seen: set[int] = set()

    def upwards(node: Plan) -> Iterator[Plan]:
        if id(node) not in seen:
            seen.add(id(node))
            for child in node.inputs:
                yield from upwards(child)
            yield node

    return [*upwards(plan)][::-1]
