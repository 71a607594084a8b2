"""Cases: small text files with input streams, a query and the answer that a paper prints.

README.md beside this file says how they are written. A case knows nothing of engines: whoever
evaluates `case.plan(query)` over `case.inputs` to elements can be checked with `case.check`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from millstream.logical.catalog import Catalog, Stream
from millstream.logical.plan import Field, Plan, Schema
from millstream.logical.reference import Reference
from millstream.model import types
from millstream.model.elements import Element, Row, Snapshot, normal_form, row_key
from millstream.model.time import INFINITY, RAW_TIME
from millstream.sql.binder import bind_query
from millstream.sql.parser import parse
from millstream.sql.plan_text import parse_plan
from millstream.sql.statements import Select
from millstream.sql.type_syntax import from_sql

Inputs: TypeAlias = Mapping[str, list[Element]]
Engine: TypeAlias = Callable[[Plan, Inputs], Iterable[Element]]


def reference(plan: Plan, inputs: Inputs) -> list[Element]:
    """The engine that is the definition."""
    return Reference(plan, inputs).result()


# --- cases ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Query:
    """A query of a case, written as SQL or as a plan."""

    language: str  # "sql" or "plan"
    text: str

    def plan(self, catalog: Catalog) -> Plan:
        if self.language == "plan":
            return parse_plan(self.text, catalog)
        (statement,) = parse(self.text, {})
        assert isinstance(statement, Select)
        return bind_query(statement.query, catalog, {}, False).plan


@dataclass(frozen=True)
class Answer:
    """The lines of an expected table. With `listed_only` nothing is said of other instants; with
    `as_elements` the elements themselves are K's, where every operator gives intervals."""

    lines: tuple[str, ...]
    listed_only: bool = False
    as_elements: bool = False


@dataclass(frozen=True)
class Case:
    file: str
    name: str
    streams: Mapping[str, InputStream]
    queries: tuple[Query, ...]
    answer: Answer

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"

    @cached_property
    def catalog(self) -> Catalog:
        catalog = Catalog()
        for stream in self.streams.values():
            catalog.add_stream(stream.declaration)
        return catalog

    @cached_property
    def inputs(self) -> Inputs:
        return {name: stream.elements for name, stream in self.streams.items()}

    def plan(self, query: Query) -> Plan:
        return query.plan(self.catalog)

    def check(self, engine: Engine, query: Query) -> None:
        """Require the engine's answer to one of the queries to be the paper's."""
        plan = self.plan(query)
        actual = list(engine(plan, self.inputs))
        expected = read_table(self.answer.lines, plan.schema)
        if self.answer.listed_only:
            instants = read_instants(self.answer.lines, plan.schema)
            assert {t: snapshot(actual, t) for t in instants} == instants
        else:
            assert shown(actual) == shown(expected)

    def check_elements(self, engine: Engine, query: Query) -> None:
        """Require the engine to give the elements that the paper prints, each as it stands."""
        plan = self.plan(query)
        expected = read_table(self.answer.lines, plan.schema)
        assert as_they_stand(engine(plan, self.inputs)) == as_they_stand(expected)


def as_they_stand(elements: Iterable[Element]) -> list[str]:
    each = (Element(e.row, e.start, e.end) for e in elements for _ in range(e.weight))
    return list(map(str, sorted(each, key=lambda e: (e.start, e.end, row_key(e.row)))))


def shown(elements: Iterable[Element]) -> list[str]:
    """The normal form, as text that a failed assertion can be read by."""
    return list(map(str, normal_form(elements)))


def snapshot(elements: Iterable[Element], instant: int) -> Snapshot:
    bag: Snapshot = Counter()
    for element in elements:
        if element.start <= instant < element.end:
            bag[element.row] += element.weight
    return +bag


@dataclass(frozen=True)
class InputStream:
    """A stream of a case. Written by instants its rows live one instant, as those of a raw stream;
    written by elements they bring their own interval."""

    name: str
    columns: Schema
    lines: tuple[str, ...]

    @property
    def declaration(self) -> Stream:
        time = ("timestamp",) if is_by_instants(self.lines) else ("start", "end")
        return Stream(self.name, self.columns, RAW_TIME, time, bounded=True)

    @cached_property
    def elements(self) -> list[Element]:
        return sorted(read_table(self.lines, self.columns), key=lambda element: element.start)


# --- tables ---------------------------------------------------------------------------------------


def is_by_instants(lines: tuple[str, ...]) -> bool:
    return _cells(lines[0])[0] == "T"


def read_table(lines: tuple[str, ...], schema: Schema) -> list[Element]:
    """The elements of a table of either form."""
    if is_by_instants(lines):
        return list(_read_multisets(lines[1:], schema))
    return [_read_element(_cells(line), schema) for line in lines[1:]]


def read_instants(lines: tuple[str, ...], schema: Schema) -> dict[int, Snapshot]:
    """The snapshot at each instant that the table lists."""
    elements = read_table(lines, schema)
    instants = [first for line in lines[1:] for first, _ in [_span(_cells(line)[0])]]
    return {instant: snapshot(elements, instant) for instant in instants}


def _read_element(cells: list[str], schema: Schema) -> Element:
    *values, start, end, weight = cells
    return Element(_row(values, schema), _instant(start), _instant(end), int(weight))


def _read_multisets(lines: Iterable[str], schema: Schema) -> Iterator[Element]:
    """`1 | <a, a>` is valid at 1; `6 to ∞ | <b>` from 6 on, at every instant. The rows of an
    instant stay in the order of their first mention: it is the order of their arrival."""
    for line in lines:
        when, multiset = _cells(line)
        start, end = _span(when)
        inner = multiset.removeprefix("<").removesuffix(">")
        rows = [_row(item.split("∘"), schema) for item in inner.split(",") if item.strip()]
        for row, weight in Counter(rows).items():
            yield Element(row, start, end, weight)


def _span(text: str) -> tuple[int, int]:
    """`6` is [6, 7); `6 to 9` is [6, 10)."""
    first, separator, last = text.partition(" to ")
    start = _instant(first)
    end = _instant(last) if separator else start
    return start, min(end + 1, INFINITY)


def _instant(text: str) -> int:
    return INFINITY if text.strip() == "∞" else int(text)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def _row(texts: list[str], schema: Schema) -> Row:
    pairs = zip(texts, schema, strict=True)
    return tuple(_value(text.strip(), field.type) for text, field in pairs)


def _value(text: str, type: pa.DataType) -> object:
    if text == "NULL":
        return None
    if types.is_integral(type):
        return int(text)
    return float(text) if types.is_floating(type) else text


# --- files ----------------------------------------------------------------------------------------


@dataclass
class _Block:
    """A line and the lines indented below it, as `heading` and `lines`."""

    heading: str
    lines: list[str] = field(default_factory=list)

    @property
    def body(self) -> str:
        return dedent("\n".join(self.lines))


def read_cases(file: Path) -> list[Case]:
    """All cases of a file; a stream is there for the cases that follow it."""
    streams: dict[str, InputStream] = {}
    cases = []
    for block in _blocks(file.read_text(encoding="utf-8")):
        kind, _, rest = block.heading.partition(" ")
        if kind == "stream":
            stream = _read_stream(rest, block)
            streams[stream.name] = stream
        elif kind == "case":
            cases.append(_read_case(file.name, rest, block, dict(streams)))
        else:
            raise ValueError(f"{file.name}: expected stream or case, found: {block.heading}")
    return cases


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line.startswith(" "):
            blocks[-1].lines.append(line)
        else:
            blocks.append(_Block(line.strip()))
    return blocks


def _read_stream(heading: str, block: _Block) -> InputStream:
    """`name (column TYPE, …)`"""
    name, _, rest = heading.partition(" (")
    columns = []
    for part in rest.removesuffix(")").split(","):
        column, type_name = part.split()
        columns.append(Field(column, from_sql(exp.DataType.build(type_name, "spark"))))
    return InputStream(name, tuple(columns), tuple(block.body.splitlines()))


def _read_case(file: str, name: str, block: _Block, streams: dict[str, InputStream]) -> Case:
    parts = _blocks(block.body)
    queries = tuple(Query(p.heading, p.body) for p in parts if p.heading in ("plan", "sql"))
    (expected,) = (p for p in parts if p.heading in _EXPECT)
    if len(queries) + 1 != len(parts) or not queries:
        raise ValueError(f"{file}: {name}: a case has plan, sql and one expect")
    answer = Answer(tuple(expected.body.splitlines()), **_EXPECT[expected.heading])
    return Case(file, name, streams, queries, answer)


_EXPECT = {
    "expect": {},
    "expect at the instants listed": {"listed_only": True},
    "expect elements": {"as_elements": True},
}
