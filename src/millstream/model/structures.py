"""Frozen dataclasses as plain JSON data, and back.

A document names every class by its *kind*, an explicit string of one table, and every enum member
by its value; no name of a Python class appears in it. Nodes of a graph, such as the operators of a
plan, are listed once, inputs first, and referred to by number: a node with several consumers stays
one node.

    {"version": 1, "nodes": [{"is": "source", …}, {"is": "filter", "input": 0, …}], "value": 1}

How a field is written follows from its annotation: `int`, `str`, `bool`, enums, tuples, types,
dataclasses (their fields), unions of dataclasses (with their kind) and nodes (their number). A
field that a document lacks has its default, so that a class may get new fields that have one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import partial
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from millstream.model import types
from millstream.model.masking import Secret
from millstream.model.values import NAN

VERSION = 1  # of documents

_IS = "is"  # the key of a kind; no field has this name
_PLAIN = (bool, int, str)


class StructureError(ValueError):
    """A document that this version cannot read; the message is the reason, and begins with "it"."""


class Structures:
    """The classes of documents by kind: nodes, which derive from the class `node`, and members of
    unions. A class that is an annotation by itself needs no kind."""

    def __init__(
        self, node: type, nodes: Mapping[str, type], members: Mapping[str, type] | None = None
    ) -> None:
        self.node = node
        self.nodes = dict(nodes)
        self.members = dict(members or {})
        self._kinds = {made: kind for kind, made in (self.nodes | self.members).items()}
        assert len(self._kinds) == len(self.nodes) + len(self.members), "a class has one kind"
        self._forms: dict[Any, _Form] = {}
        self._fields: dict[type, list[tuple[Field[Any], _Form]]] = {}

    def to_data(self, value: object, annotation: Any) -> dict[str, Any]:
        """The document of a value with this annotation."""
        writing = _Writing()
        told = self.form(annotation).write(value, writing)
        return {"version": VERSION, "nodes": writing.nodes, "value": told}

    def from_data(self, data: Any, annotation: Any) -> Any:
        """The value of a document; StructureError if it cannot be read."""
        if not isinstance(data, dict) or {*data} != {"version", "nodes", "value"}:
            raise StructureError("it is not a plan")
        if data["version"] != VERSION:
            raise StructureError(
                f"its plans have format {data['version']}, this version reads format {VERSION}"
            )
        reading = _Reading()
        for told in _list(data["nodes"]):
            reading.nodes.append(self._read_kind(self.nodes, told, reading))
        return self.form(annotation).read(data["value"], reading)

    def kind(self, made: type) -> str:
        if made not in self._kinds:
            raise TypeError(f"{made.__qualname__} has no kind")
        return self._kinds[made]

    def form(self, annotation: Any) -> _Form:
        if annotation not in self._forms:
            self._forms[annotation] = self._form(annotation)
        return self._forms[annotation]

    def _form(self, annotation: Any) -> _Form:
        if annotation in _PLAIN:
            return _Form(partial(_checked, annotation), partial(_read_plain, annotation))
        if annotation is pa.DataType:
            return _Form(lambda type, _: type_data(type), lambda data, _: type_of(data))
        if annotation is object:
            return _Form(lambda value, _: value_data(value), lambda data, _: value_of(data))
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is tuple:
            return self._tuple(arguments)
        if origin in (Union, UnionType):
            return self._union(arguments)
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            return _Form(lambda member, _: member.value, lambda data, _: _member(annotation, data))
        if isinstance(annotation, type) and issubclass(annotation, self.node):
            return _Form(self._refer, partial(_referred, annotation))
        if isinstance(annotation, type) and is_dataclass(annotation):
            return _Form(self.write_fields, partial(self.read_fields, annotation))
        raise TypeError(f"{annotation} has no form as data")

    def _tuple(self, arguments: tuple[Any, ...]) -> _Form:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            each = self.form(arguments[0])
            return _Form(
                lambda value, writing: [each.write(item, writing) for item in value],
                lambda data, reading: tuple(each.read(item, reading) for item in _list(data)),
            )
        forms = [self.form(argument) for argument in arguments]

        def read(data: Any, reading: _Reading) -> object:
            if len(_list(data)) != len(forms):
                raise StructureError(f"it has {len(data)} values instead of {len(forms)}")
            return tuple(form.read(item, reading) for form, item in zip(forms, data, strict=True))

        return _Form(
            lambda value, writing: [
                form.write(item, writing) for form, item in zip(forms, value, strict=True)
            ],
            read,
        )

    def _union(self, arguments: tuple[Any, ...]) -> _Form:
        others = tuple(argument for argument in arguments if argument is not type(None))
        if len(others) < len(arguments):
            some = self.form(others[0] if len(others) == 1 else Union[others])  # noqa: UP007
            return _Form(
                lambda value, writing: None if value is None else some.write(value, writing),
                lambda data, reading: None if data is None else some.read(data, reading),
            )
        allowed = {self.kind(made): made for made in others}

        def write(value: object, writing: _Writing) -> object:
            return {_IS: self.kind(type(value))} | self.write_fields(value, writing)

        return _Form(write, lambda data, reading: self._read_kind(allowed, data, reading))

    def _refer(self, node: object, writing: _Writing) -> int:
        """The number of a node; the node is written at its first occurrence."""
        known = writing.numbers.get(id(node))
        if known is None:
            kind = self.kind(type(node))
            told = {_IS: kind} | self.write_fields(node, writing)
            known = writing.numbers[id(node)] = len(writing.nodes)
            writing.nodes.append(told)
        return known

    def _read_kind(self, allowed: Mapping[str, type], data: Any, reading: _Reading) -> object:
        if not isinstance(data, dict) or not isinstance(data.get(_IS), str):
            raise StructureError("it has a part without a kind")
        made = allowed.get(data[_IS])
        if made is None:
            raise StructureError(f'it has a part of the unknown kind "{data[_IS]}"')
        told = {name: value for name, value in data.items() if name != _IS}
        return self.read_fields(made, told, reading)

    def write_fields(self, value: Any, writing: _Writing) -> dict[str, Any]:
        own = self.fields_of(type(value))
        return {known.name: form.write(getattr(value, known.name), writing) for known, form in own}

    def read_fields(self, made: type, data: Any, reading: _Reading) -> object:
        own = self.fields_of(made)
        if not isinstance(data, dict):
            raise StructureError("it has a value instead of a part")
        unknown = {*data} - {known.name for known, _ in own}
        if unknown:
            raise StructureError(f'it has the unknown property "{min(unknown)}"')
        values = {}
        for known, form in own:
            if known.name in data:
                values[known.name] = form.read(data[known.name], reading)
            elif known.default is MISSING:
                raise StructureError(f'it lacks the property "{known.name}"')
        try:
            return made(**values)
        except AssertionError:  # a class may check its fields
            raise StructureError("it has properties that do not go together") from None

    def fields_of(self, made: type) -> list[tuple[Field[Any], _Form]]:
        if made not in self._fields:
            hints = get_type_hints(made)
            self._fields[made] = [(own, self.form(hints[own.name])) for own in fields(made)]
        return self._fields[made]


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of one annotation are written and read."""

    write: Callable[[Any, _Writing], Any]
    read: Callable[[Any, _Reading], Any]


@dataclass
class _Writing:
    nodes: list[dict[str, Any]] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)  # of nodes, by their identity


@dataclass
class _Reading:
    nodes: list[object] = field(default_factory=list)


def _checked(expected: type, value: object, _: _Writing) -> object:
    if type(value) is not expected:
        raise TypeError(f"{value!r} is not of the type {expected.__name__}")
    return value


def _read_plain(expected: type, data: Any, _: _Reading) -> object:
    if type(data) is not expected:
        raise StructureError(f"it has {data!r} instead of a value of type {expected.__name__}")
    return data


def _list(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise StructureError("it has a value instead of a list")
    return data


def _member(members: type[Enum], data: Any) -> Enum:
    try:
        return members(data)
    except ValueError:
        raise StructureError(f"it has the unknown value {data!r}") from None


def _referred(base: type, data: Any, reading: _Reading) -> object:
    if type(data) is not int or not 0 <= data < len(reading.nodes):
        raise StructureError(f"it refers to a part {data!r} that does not come before")
    node = reading.nodes[data]
    if not isinstance(node, base):
        raise StructureError(f"it refers to part {data}, which is of another kind")
    return node


# --- types ----------------------------------------------------------------------------------------

_SIMPLE = {
    "void": types.NULL,
    "boolean": types.BOOLEAN,
    "int": types.INT,
    "bigint": types.BIGINT,
    "real": types.REAL,
    "double": types.DOUBLE,
    "string": types.STRING,
    "binary": types.BINARY,
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
    "interval": types.INTERVAL,
}
_SIMPLE_NAMES = {type: name for name, type in _SIMPLE.items()}


def type_data(type: pa.DataType) -> Any:
    """A type as data: a name, or an object for a parametric type.

    >>> type_data(pa.list_(types.decimal_type(10, 2)))
    {'array': {'decimal': [10, 2]}}
    """
    if type in _SIMPLE_NAMES:
        return _SIMPLE_NAMES[type]
    if types.is_decimal(type):
        return {"decimal": [type.precision, type.scale]}
    if types.is_array(type):
        return {"array": type_data(type.value_type)}
    if types.is_struct(type):
        return {"struct": [[part.name, type_data(part.type)] for part in type]}
    raise TypeError(f"{type} is not a type of columns")


def type_of(data: Any) -> pa.DataType:
    match data:
        case str() if data in _SIMPLE:
            return _SIMPLE[data]
        case {"decimal": [int(precision), int(scale)]} if 0 <= scale <= precision <= 38:
            return types.decimal_type(precision, scale)
        case {"array": element}:
            return pa.list_(type_of(element))
        case {"struct": [*parts]}:
            return pa.struct([_struct_field(part) for part in parts])
    raise StructureError(f"it has the unknown type {data!r}")


def _struct_field(data: Any) -> pa.Field:
    match data:
        case [str(name), type]:
            return pa.field(name, type_of(type))
    raise StructureError(f"it has the unknown type {data!r}")


# --- values ---------------------------------------------------------------------------------------


def value_data(value: object) -> Any:
    """A plain value (see `values`) as data. What JSON lacks is an object of one entry.

    >>> value_data((1, "a", Decimal("1.50"), b"\\xff"))
    [1, 'a', {'decimal': '1.50'}, {'binary': 'ff'}]
    """
    if value is None or type(value) in (bool, int, str):
        return value
    match value:
        case Secret():
            return {"secret": str(value)}
        case float():
            return value if math.isfinite(value) else {"double": str(value)}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"binary": value.hex()}
        case tuple():
            return [value_data(part) for part in value]
    raise TypeError(f"{value!r} is not a plain value")


def value_of(data: Any) -> Any:
    match data:
        case None | bool() | int() | float() | str():
            return data
        case [*parts]:
            return tuple(value_of(part) for part in parts)
        case {"secret": str(text)}:
            return Secret(text)
        case {"double": "nan"}:
            return NAN
        case {"double": "inf" | "-inf" as text}:
            return float(text)
        case {"decimal": str(text)} if _is_decimal(text):
            return Decimal(text)
        case {"binary": str(text)} if _is_hexadecimal(text):
            return bytes.fromhex(text)
    raise StructureError(f"it has the unknown value {data!r}")


def _is_decimal(text: str) -> bool:
    try:
        return Decimal(text).is_finite()
    except InvalidOperation:
        return False


def _is_hexadecimal(text: str) -> bool:
    try:
        bytes.fromhex(text)
    except ValueError:
        return False
    return True
