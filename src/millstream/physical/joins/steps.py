"""How a multi-way join proceeds from input to input, as derived from the plan alone.

Connected equalities are one *class*: with a.x = b.y and b.y = c.z also a.x = c.z, so each input can
be reached from any other of its class. A *step* binds one more input to those bound so far: through
the classes that it shares with them, and with the conditions that can be tested then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from millstream.logical.expressions import Column, Expression, walk
from millstream.logical.plan import Schema
from millstream.physical.operators.join import JoinKey


@dataclass(frozen=True)
class Link:
    """An equality of an expression of one input with one of another."""

    left: int
    right: int
    key: JoinKey


@dataclass(frozen=True)
class EqualityClass:
    """Expressions of several inputs that must all be equal; NULL only where all links allow it."""

    members: tuple[tuple[int, Expression], ...]
    null_matches: bool

    @property
    def type(self) -> pa.DataType:
        return self.members[0][1].type

    def of(self, port: int) -> tuple[Expression, ...]:
        """The expressions of an input in the class."""
        return tuple(expression for input, expression in self.members if input == port)


def equality_classes(links: Sequence[Link]) -> tuple[EqualityClass, ...]:
    classes: list[EqualityClass] = []
    for link in links:
        ends = ((link.left, link.key.left), (link.right, link.key.right))
        touched = [c for c in classes if any(end in c.members for end in ends)]
        members = dict.fromkeys([m for c in touched for m in c.members] + list(ends))
        null_matches = link.key.null_matches and all(c.null_matches for c in touched)
        classes = [c for c in classes if c not in touched]
        classes.append(EqualityClass(tuple(members), null_matches))
    return tuple(classes)


@dataclass(frozen=True)
class JoinStep:
    """Bind input `port`: the rows that agree with the bound ones in the `shared` classes. Then the
    codes of the classes `added` are known too, and `conditions` can be tested."""

    port: int
    shared: tuple[int, ...]
    added: tuple[int, ...]
    bound: tuple[int, ...]  # afterwards, in order of number
    conditions: tuple[Expression, ...]


def steps_of(
    order: Sequence[int],
    classes: Sequence[EqualityClass],
    conditions: Sequence[Expression],
    schemas: Sequence[Schema],
) -> Iterator[JoinStep]:
    """The steps of an order. A condition is tested as soon as all its inputs are bound."""
    known: set[int] = set()
    bound: set[int] = set()
    untested = list(conditions)
    for port in order:
        bound.add(port)
        own = {number for number, equals in enumerate(classes) if equals.of(port)}
        readable = {field.key for input in bound for field in schemas[input]}
        ready = [condition for condition in untested if _columns(condition) <= readable]
        untested = [condition for condition in untested if condition not in ready]
        yield JoinStep(
            port,
            tuple(sorted(own & known)),
            tuple(sorted(own - known)),
            tuple(sorted(bound)),
            tuple(ready),
        )
        known |= own


def _columns(expression: Expression) -> set[tuple[str, str]]:
    return {part.key for part in walk(expression) if isinstance(part, Column)}


def new_first(order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """For each input the order that begins with it and continues as given (G3 table 4)."""
    return tuple((port, *(other for other in order if other != port)) for port in range(len(order)))
