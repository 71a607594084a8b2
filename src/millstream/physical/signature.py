"""The identity of operators.

A signature names a node of a physical plan by what it computes: its kind, its own values and the
signatures of its inputs. Columns enter by their position, so that equal parts of two queries have
one signature whatever their aliases, and functions of the user's by the digest of their code. It is
the same in every process and in every release: it is made from the plan as data (`plan_data`), and
values that are the default of their field are left out, so that operators may get new fields.

A call that draws (`rand`, `uuid`) enters by its place in the plan: two calls that look the same
draw different values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any

import pyarrow as pa

from millstream.logical import functions
from millstream.logical.evaluate import UserAggregate, UserFunction
from millstream.logical.expressions import AggregateCall, Call, Column, Literal
from millstream.logical.plan import Field, Named
from millstream.logical.plan_data import EXPRESSION_KINDS
from millstream.model.structures import type_data, value_data
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.source import Source
from millstream.physical.plan_data import kind_of

DIGITS = 32
SHOWN = 8  # digits that tell the operators of one plan apart, for people

EXPRESSION_TYPES = frozenset(EXPRESSION_KINDS.values())

_HINTS = {"small"}  # how a node may be carried out, not what it gives


class Signatures:
    """The signatures of the nodes of one plan, each made once."""

    def __init__(
        self,
        functions: Mapping[str, UserFunction] | None = None,
        aggregates: Mapping[str, UserAggregate] | None = None,
    ) -> None:
        self._user: dict[str, UserFunction | UserAggregate] = {**(functions or {})}
        self._user |= aggregates or {}
        self._known: dict[int, tuple[PhysicalPlan, str]] = {}  # the node, so that its id stays its
        self._draws: list[Call] = []

    def __getitem__(self, node: PhysicalPlan) -> str:
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = node, self._made(node)
        return known[1]

    @staticmethod
    def given(plan: PhysicalPlan, listed: Sequence[str]) -> Signatures:
        """Those that are known already, in the order of `nodes_of`."""
        signatures = Signatures()
        for node, signature in zip(nodes_of(plan), listed, strict=True):
            signatures._known[id(node)] = node, signature
        return signatures

    def _made(self, node: PhysicalPlan) -> str:
        inputs = [self[child] for child in node.inputs]
        told = json.dumps([kind_of(node), inputs, self._own(node)], separators=(",", ":"))
        return hashlib.sha256(told.encode()).hexdigest()[:DIGITS]

    def _own(self, node: PhysicalPlan) -> dict[str, Any]:
        """The values of a node but for its inputs."""
        places: dict[tuple[str, str], list[int]] = {}
        for place, field in enumerate(field for child in node.inputs for field in child.schema):
            places.setdefault(field.key, []).append(place)
        told = self._fields(node, places)
        if isinstance(node, Source):  # the columns of a stream are known by their names
            told["columns"] = [[field.name, type_data(field.type)] for field in node.columns]
        return told

    def _fields(self, value: Any, places: Mapping[tuple[str, str], list[int]]) -> dict[str, Any]:
        told = {}
        for own in fields(value):
            held = getattr(value, own.name)
            if own.name in _HINTS or (own.default is not MISSING and held == own.default):
                continue
            if isinstance(held, PhysicalPlan) or _are_plans(held):
                continue
            told[own.name] = self._told(held, places)
        return told

    def _told(self, value: Any, places: Mapping[tuple[str, str], list[int]]) -> Any:
        match value:
            case Column():
                found = places.get(value.key, [])
                return {"column": found if len(found) == 1 else [*value.key, *found]}
            case Field():
                return type_data(value.type)
            case Named():
                return self._told(value.expression, places)
            case Literal():
                return {"literal": value_data(value.value), "type": type_data(value.type)}
            case Call() if _draws(value):
                return {"draw": value.function, "number": self._number(value)}
            case Call() | AggregateCall():
                told = {"is": kind_of(value)} | self._fields(value, places)
                user = self._user.get(value.function)
                return told if user is None else told | {"function": user.digest}
            case Enum():
                return value.value
            case tuple():
                return [self._told(part, places) for part in value]
            case pa.DataType():
                return type_data(value)
            case None | bool() | int() | str():
                return value
        kind = {} if type(value) not in EXPRESSION_TYPES else {"is": kind_of(value)}
        return kind | self._fields(value, places)

    def _number(self, call: Call) -> int:
        """Its place among the calls of the plan that draw."""
        for number, other in enumerate(self._draws):
            if other is call:
                return number
        self._draws.append(call)
        return len(self._draws) - 1


def nodes_of(plan: PhysicalPlan) -> Iterator[PhysicalPlan]:
    """The nodes of a plan, inputs before their consumers, each once."""
    seen: set[int] = set()

    def walk(node: PhysicalPlan) -> Iterator[PhysicalPlan]:
        if id(node) not in seen:
            seen.add(id(node))
            for child in node.inputs:
                yield from walk(child)
            yield node

    return walk(plan)


def _are_plans(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], PhysicalPlan)


def _draws(call: Call) -> bool:
    function = functions.lookup(call.function)
    return function is not None and not function.deterministic


def short(signature: str) -> str:
    """For people."""
    return signature[:SHOWN]
