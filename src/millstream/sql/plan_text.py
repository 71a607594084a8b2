"""From plan text to a plan. It can express every operator of the algebra, including those that
SQL lacks (MaxUnion, StrictDifference)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from millstream.logical.catalog import Catalog, Stream
from millstream.logical.expressions import AggregateCall, Column, Expression
from millstream.logical.plan import (
    NODE_TYPES,
    Aggregate,
    CountWindow,
    Filter,
    Granularity,
    Join,
    JoinKind,
    Map,
    Named,
    PartitionedWindow,
    Plan,
    Rstream,
    Schema,
    SetOperation,
    SortKey,
    Source,
    TimeWindow,
    TopN,
)
from millstream.logical.text import column_text, expression_text
from millstream.model.durations import chronons, parse_duration
from millstream.model.errors import (
    BindError,
    MillstreamError,
    ParseError,
    Span,
    did_you_mean,
    located,
)
from millstream.model.names import Name
from millstream.model.time import ANY_TIME, INFINITY, TimeDomain
from millstream.model.types import sql_name
from millstream.sql.aggregation import bind_aggregate, is_aggregate
from millstream.sql.relations import with_time
from millstream.sql.scalar import ScalarBinder
from millstream.sql.scope import Scope
from millstream.sql.tokens import tokenize


@dataclass
class _Line:
    """One node: its name, its properties as text, and the lines below it."""

    name: str
    properties: dict[str, str]
    span: Span
    children: list[_Line] = field(default_factory=list)


def parse_plan(text: str, catalog: Catalog) -> Plan:
    """The plan that `plan_text` printed, over the streams of the catalog."""
    with located(text, "<plan>"):
        roots: list[_Line] = []
        path: list[tuple[int, _Line]] = []
        for indent, line in _read_lines(text):
            while path and path[-1][0] >= indent:
                path.pop()
            (path[-1][1].children if path else roots).append(line)
            path.append((indent, line))
        if len(roots) != 1:
            raise ParseError("a plan has one root: the first line; indent all others below it")
        try:
            return with_time(_Builder(catalog).build(roots[0]))
        except RecursionError:
            raise ParseError("the plan is nested too deeply") from None


def _read_lines(text: str) -> Iterator[tuple[int, _Line]]:
    offset = 0
    for raw in text.split("\n"):
        content = raw.strip()
        if content:
            indent = len(raw) - len(raw.lstrip(" "))
            span = Span(offset + indent, offset + indent + len(content))
            name, _, rest = content.partition(" ")
            properties: dict[str, str] = {}
            for key, value in _read_properties(rest, span):
                if key in properties:
                    raise ParseError(f'key "{key}" is given twice', span)
                properties[key] = value
            yield indent, _Line(name, properties, span)
        offset += len(raw) + 1


def _read_properties(text: str, span: Span) -> Iterator[tuple[str, str]]:
    """`key=value` pairs; a value extends to the next ` key=` outside brackets and strings."""
    starts = [i for i in _top_level(text) if _key_at(text, i) is not None]
    if text.strip() and (not starts or starts[0] != 0):
        raise ParseError("expected key=value after the name of the operator", span)
    for start, end in pairwise([*starts, len(text)]):
        key = _key_at(text, start)
        assert key is not None
        yield key, text[start + len(key) + 1 : end].strip()


def _key_at(text: str, index: int) -> str | None:
    """The key that begins at a position: a lower-case word directly followed by `=`."""
    if index and text[index - 1] != " ":
        return None
    end = index
    while end < len(text) and text[end].islower():
        end += 1
    return text[index:end] if end > index and text[end : end + 1] == "=" else None


def _top_level(text: str) -> Iterator[int]:
    """The positions of `text` outside brackets, strings and quoted names."""
    depth = 0
    quote = ""
    escaped = False
    for index, character in enumerate(text):
        if quote:
            if escaped:
                escaped = False
            elif character == "\\" and quote == "'":
                escaped = True
            elif character == quote:
                quote = ""
            continue
        if character in "'`":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif depth == 0:
            yield index


def _items(text: str) -> list[str]:
    """The items of `[a, b]`."""
    inner = text.strip().removeprefix("[").removesuffix("]")
    commas = [index for index in _top_level(inner) if inner[index] == ","]
    bounds = [-1, *commas, len(inner)]
    items = [inner[a + 1 : b].strip() for a, b in pairwise(bounds)]
    return [item for item in items if item]


class _PlanScope(Scope):
    """Names in plan text are exact: the qualifier and the name of a field of the input."""

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self.fields = {f.key: f.column for f in schema}

    def resolve(self, name: Name, table: Name | None) -> Expression:
        key = (table.text if table is not None else "", name.text)
        if key not in self.fields:
            names = [f"{q}.{n}" if q else n for q, n in self.fields]
            text = f"{key[0]}.{key[1]}" if key[0] else key[1]
            raise BindError(f'no input has a column "{text}"', None, did_you_mean(text, names))
        return self.fields[key]


class _PlanBinder(ScalarBinder):
    def nondeterministic(self, node: exp.Expression, name: str) -> None:
        """Allowed: a plan has such functions only where the SQL binder has allowed them."""


class _Builder:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def build(self, line: _Line) -> Plan:
        node = NODE_TYPES.get(line.name)
        if node is None:
            raise ParseError(
                f'"{line.name}" is not an operator', line.span, did_you_mean(line.name, NODE_TYPES)
            )
        inputs = [self.build(child) for child in line.children]
        wanted = len(node.input_names)
        if len(inputs) != wanted:
            noun = "input" if wanted == 1 else "inputs"
            raise ParseError(f"{line.name} has {wanted} {noun}, not {len(inputs)}", line.span)
        try:
            own = _Properties(line, self.catalog, inputs)
            own.check_keys(_KEYS.get(node, ()))
            plan = self._node(node, own, inputs)
            _check(plan)
            return plan
        except MillstreamError as error:
            diagnostic = error.diagnostic
            if diagnostic.span is not None:
                raise
            raise ParseError(diagnostic.message, line.span, diagnostic.help) from None

    def _node(self, node: type[Plan], own: _Properties, inputs: list[Plan]) -> Plan:
        if node is Source:
            return self._source(own)
        first = inputs[0]
        if node is Filter:
            return Filter(first, own.predicate("where"))
        if node is Map:
            return Map(first, own.named("columns"))
        if node is Join:
            condition = own.predicate("on") if own.has("on") else None
            return Join(first, inputs[1], own.join_kind(), condition)
        if node is Aggregate:
            keys = own.named("by", keep_qualifier=True) if own.has("by") else ()
            return Aggregate(first, keys, own.aggregates("compute"))
        if node is TopN:
            keys_of = own.expressions("by") if own.has("by") else ()
            return TopN(first, own.number("limit"), own.order(), keys_of)
        if node is TimeWindow:
            granule = own.granule(1)
            return TimeWindow(
                first,
                own.multiple("range", granule),
                own.multiple("slide", granule, granule),
                granule,
                own.optional("min", own.duration),
            )
        if node is CountWindow or node is PartitionedWindow:
            count = (
                own.number("rows"),
                own.expressions("order"),
                own.number("slide", 1),
                own.granule(1),
                own.optional("min", own.number),
            )
            if node is CountWindow:
                return CountWindow(first, *count)
            return PartitionedWindow(first, own.expressions("by"), *count)
        if node is Granularity:
            coarsest = own.optional("coarsest", own.duration)
            return Granularity(first, own.granule(), coarsest)
        if node is Rstream:
            return Rstream(first, own.granule(1))
        return node(*inputs)

    def _source(self, own: _Properties) -> Source:
        name = own.name("stream")
        stream = self.catalog.stream(Name(name, quoted=True))
        if not isinstance(stream, Stream):
            raise ParseError(f'"{name}" is a derived stream; a plan reads source streams')
        alias = own.name("as") if own.has("as") else name
        arrival = own.text("arrival", "no") if own.has("arrival") else "no"
        if own.has("arrival") and arrival != "yes":
            raise ParseError(f"arrival={arrival}: write arrival=yes or leave it out")
        return replace(stream.source(alias), arrival=own.has("arrival"))


class _Properties:
    """The properties of one line, read as what the node needs."""

    def __init__(self, line: _Line, catalog: Catalog, inputs: list[Plan]) -> None:
        self.line = line
        self.catalog = catalog
        self.schema: Schema = tuple(f for plan in inputs for f in plan.schema)
        self.inputs = inputs
        scope = _PlanScope(self.schema)
        self.binder = _PlanBinder(catalog, scope, {}, "a plan")

    @property
    def domain(self) -> TimeDomain:
        return self.inputs[0].domain

    def has(self, key: str) -> bool:
        return key in self.line.properties

    def text(self, key: str, default: str | None = None) -> str:
        value = self.line.properties.get(key, default)
        if value is None:
            raise ParseError(f"{self.line.name} needs {key}=…", self.line.span)
        return value

    def optional(self, key: str, read: Callable[[str], int]) -> int | None:
        return read(key) if self.has(key) else None

    def name(self, key: str) -> str:
        qualifier, name = _read_name(self.text(key))
        if qualifier:
            raise ParseError(f"{key}={self.text(key)} is not a single name")
        return name

    def number(self, key: str, default: int | None = None) -> int:
        text = self.text(key, None if default is None else str(default))
        if text == "UNBOUNDED":
            return INFINITY
        if not text.isdecimal() or len(text) > 18:
            raise ParseError(f"{key}={text} is not a number")
        if int(text) < 1:
            raise ParseError(f"{key}={text}: a number of rows must be 1 or more")
        return int(text)

    def duration(self, key: str, default: int | None = None) -> int:
        if not self.has(key) and default is not None:
            return default
        text = self.text(key)
        if text == "UNBOUNDED":
            return INFINITY
        return chronons(parse_duration(text, self.line.span), self.domain, key)

    def granule(self, default: int | None = None) -> int:
        granule = self.duration("granule", default)
        if granule == INFINITY:
            raise ParseError("granule=UNBOUNDED: a granule has an end")
        return granule

    def multiple(self, key: str, granule: int, default: int | None = None) -> int:
        """A duration that is UNBOUNDED or has whole granules."""
        length = self.duration(key, default)
        if length != INFINITY and length % granule:
            raise ParseError(f"{key}={self.text(key)} is not a multiple of the granule")
        return length

    def check_keys(self, known: tuple[str, ...]) -> None:
        for key in self.line.properties:
            if key not in known:
                raise ParseError(
                    f'{self.line.name} has no key "{key}"', None, did_you_mean(key, known)
                )

    def join_kind(self) -> JoinKind:
        text = self.text("kind")
        kinds = [kind.value for kind in JoinKind]
        if text not in kinds:
            listed = ", ".join(kinds[:-1])
            raise ParseError(
                f'"{text}" is not a kind of join', None, f"kinds are {listed} and {kinds[-1]}"
            )
        return JoinKind(text)

    def predicate(self, key: str) -> Expression:
        expression = self.binder.bind(self._parsed(self.text(key)))
        if not pa.types.is_boolean(expression.type):
            given = sql_name(expression.type)
            raise ParseError(f"{key}={self.text(key)} must be BOOLEAN, not {given}")
        return expression

    def expressions(self, key: str) -> tuple[Expression, ...]:
        items = _items(self.text(key))
        return tuple(self.binder.bind(self._parsed(item)) for item in items)

    def named(self, key: str, keep_qualifier: bool = False) -> tuple[Named, ...]:
        items = _items(self.text(key))
        return tuple(self._named(item, keep_qualifier) for item in items)

    def aggregates(self, key: str) -> tuple[Named, ...]:
        named = self.named(key)
        for item in named:
            if not isinstance(item.expression, AggregateCall):
                raise ParseError(f"{expression_text(item.expression)} is not an aggregate")
        return named

    def _named(self, text: str, keep_qualifier: bool) -> Named:
        text, alias = _split_off(text, " AS ")
        text, order = _split_off(text, " ORDERED BY ")
        node = self._parsed(text)
        expression: Expression
        if is_aggregate(node, self.catalog):
            keys = tuple(
                self.binder.bind(self._parsed(item))
                for item in _items((order or "").strip().removeprefix("(").removesuffix(")"))
            )
            expression = bind_aggregate(node, self.binder, keys)
        else:
            expression = self.binder.bind(node)
        if alias is None:
            if not isinstance(expression, Column):
                raise ParseError(f"{text} needs a name: {text} AS name", self.line.span)
            return Named(expression, expression.name, expression.qualifier * keep_qualifier)
        qualifier, name = _read_name(alias)
        return Named(expression, name, qualifier)

    def order(self) -> tuple[SortKey, ...]:
        keys: list[SortKey] = []
        if not _items(self.text("order")):
            raise ParseError("order=[] orders nothing")
        for item in _items(self.text("order")):
            text, first = _cut(item, " NULLS FIRST")
            text, last = _cut(text, " NULLS LAST")
            text, descending = _cut(text, " DESC")
            text, _ = _cut(text, " ASC")
            nulls_first = first or (not last and not descending)
            keys.append(SortKey(self.binder.bind(self._parsed(text)), descending, nulls_first))
        return tuple(keys)

    def _parsed(self, text: str) -> Any:
        try:
            return _unplaced(sqlglot.parse_one(text, dialect="spark"))
        except SqlglotError:
            raise ParseError(f"cannot read the expression: {text}", self.line.span) from None


# The keys that each operator may have.
_KEYS: dict[type[Plan], tuple[str, ...]] = {
    Source: ("stream", "as", "arrival"),
    Filter: ("where",),
    Map: ("columns",),
    Join: ("kind", "on"),
    Aggregate: ("by", "compute"),
    TopN: ("by", "limit", "order"),
    TimeWindow: ("range", "slide", "granule", "min"),
    CountWindow: ("rows", "order", "slide", "granule", "min"),
    PartitionedWindow: ("by", "rows", "order", "slide", "granule", "min"),
    Granularity: ("granule", "coarsest"),
    Rstream: ("granule",),
}


def _check(plan: Plan) -> None:
    """Check what the SQL binder guarantees, but a hand-written plan may violate."""
    name = type(plan).__name__
    match plan:
        case Granularity(granule=granule, coarsest=int(coarsest)) if coarsest < granule:
            raise ParseError("coarsest is finer than granule")
        case TimeWindow(size=size, minimum=int(minimum)) if minimum > size:
            raise ParseError("min is more than range")
        case CountWindow(rows=rows, minimum=int(minimum)) if minimum > rows:
            raise ParseError("min is more than rows")
        case PartitionedWindow(rows=rows, minimum=int(minimum)) if minimum > rows:
            raise ParseError("min is more than rows")
        case Map(outputs=()):
            raise ParseError("Map has no columns")
    if len({child.domain for child in plan.inputs} - {ANY_TIME}) > 1:
        raise ParseError(f"the inputs of {name} have different times")
    if isinstance(plan, SetOperation):
        left, right = ([field.type for field in side.schema] for side in plan.inputs)
        if left != right:
            raise ParseError(f"the inputs of {name} have different columns")
    if isinstance(plan, Map):
        for output in plan.outputs:
            if isinstance(output.expression, AggregateCall):
                text = expression_text(output.expression)
                raise ParseError(f"{text} is allowed only in an Aggregate")
    seen: set[tuple[str, str]] = set()
    for field_ in plan.pairs if isinstance(plan, Join) else plan.schema:
        if field_.key in seen:
            text = column_text(field_.qualifier, field_.name)
            raise ParseError(f'{name} has two columns "{text}"')
        seen.add(field_.key)


def _unplaced(node: exp.Expression) -> exp.Expression:
    """Positions inside one expression of a line are not positions in the plan text."""
    for part in node.walk():
        part.meta.pop("start", None)
    return node


def _split_off(text: str, word: str) -> tuple[str, str | None]:
    """The text before and after the last `word` outside brackets."""
    places = [i for i in _top_level(text) if text.startswith(word, i)]
    if not places:
        return text, None
    return text[: places[-1]], text[places[-1] + len(word) :]


def _cut(text: str, suffix: str) -> tuple[str, bool]:
    return (text[: -len(suffix)], True) if text.endswith(suffix) else (text, False)


def _read_name(text: str) -> tuple[str, str]:
    """(qualifier, name) of `a.b`, or of `b` with no qualifier."""
    tokens = tokenize(text)
    names = [token.text for token in tokens if token.is_name]
    if len(tokens) == 1 and len(names) == 1:
        return "", names[0]
    if len(tokens) == 3 and len(names) == 2 and tokens[1].word == ".":
        return names[0], names[1]
    raise ParseError(f'"{text}" is not a name')
