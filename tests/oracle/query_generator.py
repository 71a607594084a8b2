"""Random queries from the whole language, over random streams.

A case is one string of bytes, a tape of choices, which hypothesis draws and shrinks. Queries are
well typed by construction: every expression is drawn for a type, from the columns that
its place can see. What the system refuses on purpose is not drawn: a window over rows that live
longer than an instant always has a granularity, and never one that does not settle.

Doubles are multiples of a small power of two, so that both sides can compute with them exactly;
what cannot be compared to the last bit (variances, medians) is only drawn as an output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from oracle.judged_streams import JudgedStream
from oracle.random_streams import BOOLEAN, COLUMNS, DECIMAL, DOUBLE, INT, STRING, Tape, streams_of

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]

COMPARISONS = ("=", "<", ">", "<=", ">=", "<>")


@dataclass(frozen=True)
class Column:
    text: str  # with its qualifier
    type: str


Scope = tuple[Column, ...]


@dataclass(frozen=True)
class Relation:
    """Something that can stand in FROM: its text, its columns without a qualifier, whether its
    rows provably live one instant, and whether a granularity is inside."""

    text: str
    columns: Scope
    one_instant: bool = False
    granular: bool = False
    single: bool = False  # one reference, not a join


# Calls by the type they have; types in angles stand for arguments.
_CALLS: dict[str, Sequence[str]] = {
    INT: (
        "(<int> + <int>)", "(<int> - <int>)", "(<int> % 3)", "ABS(<int>)", "LENGTH(<str>)",
        "(<int> DIV 2)", "GREATEST(<int>, <int>)", "CAST(<dec> AS BIGINT)",
    ),
    DOUBLE: (
        "(<dbl> + <int>)", "(<int> / 4)", "(<dbl> * 2)", "CAST(<int> AS DOUBLE)",
        "LEAST(<dbl>, <dbl>)",
    ),
    STRING: (
        "UPPER(<str>)", "(<str> || <str>)", "SUBSTRING(<str>, 1, 1)", "CAST(<int> AS STRING)",
    ),
    BOOLEAN: ("(NOT <bool>)",),
    DECIMAL: ("(<dec> + 1.5)", "(- <dec>)", "(<dec> * 2)"),
}  # fmt: skip

_AGGREGATES: dict[str, Sequence[str]] = {
    INT: (
        "COUNT(*)", "COUNT(*)", "SUM(<int>)", "COUNT(<str>)", "COUNT(DISTINCT <int>)",
        "SUM(DISTINCT <int>)", "COUNT(<dbl>, <str>)", "COUNT_IF(<bool>)",
    ),
    DOUBLE: (
        "SUM(<dbl>)", "AVG(<int>)", "AVG(<dbl>)", "SUM(DISTINCT <dbl>)", "AVG(DISTINCT <int>)",
    ),
    STRING: (),
    BOOLEAN: ("BOOL_AND(<bool>)", "BOOL_OR(<bool>)"),
    DECIMAL: ("SUM(<dec>)", "AVG(<dec>)", "SUM(DISTINCT <dec>)"),
}  # fmt: skip

_AGGREGATES_OF_ANY = (
    "MAX(<?>)", "MIN(<?>)", "FIRST(<?>)", "LAST(<?>)", "MAX_BY(<?>, <int>)", "MIN_BY(<?>, <str>)",
)  # fmt: skip


@dataclass
class QueryGenerator:
    """Makes the parts of one query, each choice by a tape."""

    tape: Tape
    common: list[tuple[str, Relation]] = field(default_factory=list)
    names: int = 0

    def pick(self, *options: T) -> T:
        return self.tape.pick(*options)

    def chance(self, tenths: int) -> bool:
        return self.tape.number(10) >= 10 - tenths

    def fresh(self, base: str) -> str:
        self.names += 1
        return f"{base}{self.names}"

    def statement(self) -> str:
        depth = self.pick(0, 1, 1, 2)
        prefix = ""
        if self.chance(2):
            inner = self.query(1, ())
            name = self.fresh("w")
            prefix = f"WITH {name} AS ({inner.text}) "
            self.common.append((name, inner))
        return prefix + self.query(depth, (), outermost=True).text

    # --- references ------------------------------------------------------------------------------

    def reference(self, depth: int) -> tuple[Relation, str]:
        """A reference with its clauses and an alias, and the alias."""
        options = ["S", "S", "R", "R", "V"]
        if depth > 0:
            options += ["query", "query", "change"]
        options += ["common"] if self.common else []
        kind = self.pick(*options)
        if kind in ("S", "R"):
            bare = Relation(kind, self._stream_columns(kind), one_instant=True)
        elif kind == "V":
            bare = Relation(kind, self._stream_columns(kind))
        elif kind == "common":
            name, inner = self.pick(*self.common)
            bare = replace(inner, text=name)
        elif kind == "query":
            inner = self.query(depth - 1, ())
            bare = replace(inner, text=f"({inner.text})")
        else:
            bare = self._changes(depth)
        return self._with_clauses(bare, source=kind in ("S", "R"))

    @staticmethod
    def _stream_columns(name: str) -> Scope:
        return tuple(Column(column, type_) for column, type_ in COLUMNS[name].items())

    def _changes(self, depth: int) -> Relation:
        function = self.pick("ISTREAM", "DSTREAM")
        if self.chance(5):
            inner = self.query(depth - 1, ())
            return Relation(f"{function}({inner.text})", inner.columns, one_instant=True)
        name = self.pick("S", "R", "V")
        window = "" if name == "V" else " " + self.window()
        return Relation(f"{function}({name}{window})", self._stream_columns(name), True)

    def _with_clauses(self, bare: Relation, source: bool) -> tuple[Relation, str]:
        clauses, one_instant, granular = "", bare.one_instant, bare.granular
        columns = [column.text for column in bare.columns]
        if bare.one_instant and self.chance(9 if source else 6):
            clauses = self.window(columns)
            one_instant = clauses in ("WINDOW(NOW)", "[NOW]")
        if not bare.granular and self.chance(1 if source else 2):
            granule = self.pick(2, 3, 4)
            if not bare.one_instant and self.chance(5):
                clauses = f"WINDOW(RANGE {granule * self.pick(1, 2, 3)}{self._slide(granule)})"
            clauses += f" GRANULARITY({granule})"
            one_instant, granular = False, True
        alias = self.fresh(self.pick("a", "b"))
        text = self.pick(f"{bare.text} {clauses} AS {alias}", f"{bare.text} AS {alias} {clauses}")
        qualified = tuple(Column(f"{alias}.{c.text}", c.type) for c in bare.columns)
        text = " ".join(text.split())
        return Relation(text, qualified, one_instant, granular, single=True), alias

    def _slide(self, granule: int) -> str:
        return f" SLIDE {granule * self.pick(1, 2, 3)}" if self.chance(3) else ""

    def window(self, columns: Sequence[str] = ()) -> str:
        n, m = self.pick(6, 8, 9, 5, 3, 2), self.pick(2, 3, 4)
        options = [
            *[f"RANGE {n}"] * 5, f"ROWS {n}", f"RANGE {n} SLIDE {m}", f"ROWS {n} SLIDE {m}",
            "RANGE UNBOUNDED", "ROWS UNBOUNDED", "NOW", "UNBOUNDED",
        ]  # fmt: skip
        by = [column for column in columns if column in ("k", "s", "b", "c")]
        if by:
            key = self.pick(*by)
            options += [f"PARTITION BY {key} ROWS {m}", f"PARTITION BY {key} ROWS {n} SLIDE {m}"]
        inside = self.pick(*options)
        return self.pick(f"WINDOW({inside})", f"[{inside}]")

    def from_clause(self, depth: int) -> tuple[Relation, Scope]:
        """FROM with up to three references, and the columns that can be used after it."""
        groups = [self.reference(depth)[0]]
        for _ in range(self.pick(0, 0, 0, 1, 1, 2)):
            if self.chance(1):
                groups.append(self.reference(depth)[0])  # a comma: what follows joins this one
            else:
                groups[-1] = self._joined(groups[-1], depth)
        whole = Relation(
            ", ".join(group.text for group in groups),
            tuple(column for group in groups for column in group.columns),
            any(group.one_instant for group in groups),
            any(group.granular for group in groups),
            len(groups) == 1 and groups[0].single,
        )
        return whole, whole.columns

    def _joined(self, left: Relation, depth: int) -> Relation:
        right, _ = self.reference(depth)
        both = left.columns + right.columns
        kind = self.pick(
            "JOIN", "LEFT JOIN", "JOIN", "RIGHT JOIN", "LEFT JOIN", "FULL JOIN", "SEMI", "ANTI",
            "CROSS",
        )  # fmt: skip
        granular = left.granular or right.granular
        lives = {
            "JOIN": left.one_instant or right.one_instant,
            "CROSS": left.one_instant or right.one_instant,
            "RIGHT JOIN": right.one_instant,
            "FULL JOIN": left.one_instant and right.one_instant,
        }.get(kind, left.one_instant)
        if kind == "CROSS":
            return Relation(f"{left.text} CROSS JOIN {right.text}", both, lives, granular)
        condition = "ON " + self._join_condition(left.columns, right.columns)
        if " " not in left.text.split(" AS ")[-1] and self.chance(2):
            condition = self._using(left.columns, right.columns) or condition
        if kind in ("SEMI", "ANTI"):
            text = f"{left.text} LEFT {kind} JOIN {right.text} {condition}"
            return Relation(text, left.columns, lives, granular)
        return Relation(f"{left.text} {kind} {right.text} {condition}", both, lives, granular)

    def _using(self, left: Scope, right: Scope) -> str:
        """USING some of the names that both sides have once, with one type."""
        columns = [[(c.text.split(".")[-1], c.type) for c in side] for side in (left, right)]
        names = [name for name, type_ in columns[0] if (name, type_) in columns[1]]
        names = [n for n in names if all([c for c, _ in side].count(n) == 1 for side in columns)]
        return f"USING ({self.pick(*names)})" if names else ""

    def _join_condition(self, left: Scope, right: Scope) -> str:
        parts = []
        for _ in range(self.pick(1, 1, 1, 2)):
            if (pairs := _comparable(left, right)) and self.chance(9):
                a, b = self.pick(*pairs)
                parts.append(f"{a} {self.pick('=', '=', '=', '<', '>=', '<>', '<=>')} {b}")
            else:
                parts.append(self.predicate(left + right, 1))
        return self.pick(" AND ", " OR ").join(parts)

    # --- queries ---------------------------------------------------------------------------------

    def query(
        self,
        depth: int,
        outer: Scope,
        types: Sequence[str] | None = None,
        outermost: bool = False,
    ) -> Relation:
        """A query; `outer` are the columns of the queries around it, `types` those it must have."""
        kinds = ["plain", "plain", "grouped", "total", "distinct", "top"]
        if not outer:
            kinds += ["changes"]
        if depth > 0:
            kinds += ["set"]
        kind = self.pick(*kinds)
        if kind == "set":
            return self._set_operation(depth - 1, outer, types)
        if kind in ("grouped", "total"):
            return self._aggregated(depth, outer, types, kind == "grouped", outermost)
        return self._plain(depth, outer, types, kind)

    def _types(self, scope: Scope, wanted: Sequence[str] | None) -> list[str]:
        """The types of the outputs: those wanted, else some that FROM has."""
        if wanted is not None:
            return list(wanted)
        return [self.pick(*(c.type for c in scope)) for _ in range(self.pick(1, 2, 3))]

    def _plain(self, depth: int, outer: Scope, wanted: Sequence[str] | None, kind: str) -> Relation:
        source, scope = self.from_clause(depth)
        where = self._where(scope, outer, depth)
        if wanted is None and source.single and self.chance(1):
            return self._star(source, where)
        types = self._types(scope, wanted)
        named = [(self.expression(t, scope, 2, outer, depth), self.fresh("c")) for t in types]
        items = ", ".join(f"{text} AS {name}" for text, name in named)
        columns = tuple(Column(name, t) for (_, name), t in zip(named, types, strict=True))
        lives = source.one_instant
        if kind == "changes":
            function = self.pick("ISTREAM", "DSTREAM", "ISTREAM", "DSTREAM", "RSTREAM")
            items, lives = f"{function}({items})", function != "RSTREAM"
        distinct = "DISTINCT " if kind == "distinct" else ""
        text = f"SELECT {distinct}{items} FROM {source.text}{where}"
        if kind == "top":
            text += self._first_rows([name for _, name in named])
        return Relation(text, columns, lives, source.granular or "GRANULARITY" in text)

    def _star(self, source: Relation, where: str) -> Relation:
        alias, names = "", []
        for column in source.columns:
            alias, name = column.text.split(".")
            names.append(Column(name, column.type))
        text = f"SELECT {self.pick('*', f'{alias}.*')} FROM {source.text}{where}"
        return replace(source, text=text, columns=tuple(names))

    def _first_rows(self, names: Sequence[str]) -> str:
        keys = [
            name + self.pick("", " DESC", " NULLS LAST", " DESC NULLS FIRST")
            for name in names[: self.pick(1, 2)]
        ]
        return f" ORDER BY {', '.join(keys)} LIMIT {self.pick(1, 2, 3)}"

    def _where(self, scope: Scope, outer: Scope, depth: int) -> str:
        if outer:  # a subquery is correlated more often than not
            correlated = self._correlation(scope, outer) if self.chance(7) else ""
            other = self.predicate(scope, 1, outer, depth) if self.chance(3) else ""
            parts = [part for part in (correlated, other) if part]
            return f" WHERE {self.pick(' AND ', ' OR ').join(parts)}" if parts else ""
        return f" WHERE {self.predicate(scope, 2, outer, depth)}" if self.chance(3) else ""

    def _correlation(self, scope: Scope, outer: Scope) -> str:
        pairs = _comparable(scope, outer)
        if not pairs:
            return ""
        a, b = self.pick(*pairs)
        return f"{a} {self.pick('=', '=', *COMPARISONS, '<=>')} {b}"

    def _set_operation(self, depth: int, outer: Scope, wanted: Sequence[str] | None) -> Relation:
        types = wanted or [self.pick(INT, DOUBLE, STRING) for _ in range(self.pick(1, 2))]
        left, right = (self._plain(depth, outer, types, "plain") for _ in range(2))
        word = self.pick("UNION", "EXCEPT", "INTERSECT")
        lives = {
            "UNION": left.one_instant and right.one_instant,
            "EXCEPT": left.one_instant,
            "INTERSECT": left.one_instant or right.one_instant,
        }[word]
        text = f"{left.text} {word}{self.pick(' ALL', '')} {right.text}"
        return Relation(text, left.columns, lives, left.granular or right.granular)

    def _aggregated(
        self,
        depth: int,
        outer: Scope,
        wanted: Sequence[str] | None,
        grouped: bool,
        outermost: bool,
    ) -> Relation:
        source, scope = self.from_clause(depth)
        where = self._where(scope, outer, depth)
        types = self._types(scope, wanted)
        keys = [self._key(scope) for _ in range(self.pick(1, 2))] if grouped else []
        items, columns = [], []
        for type_ in types:
            usable = [key.text for key in keys if key.type == type_]
            text = self.aggregate(type_, scope) if not usable or self.chance(6) else usable[0]
            if outermost and self.chance(2):
                text, type_ = self._approximate(scope), DOUBLE
            columns.append(Column(self.fresh("c"), type_))
            items.append(f"{text} AS {columns[-1].text}")
        text = f"SELECT {', '.join(items)} FROM {source.text}{where}"
        if keys:
            text += f" GROUP BY {', '.join(dict.fromkeys(key.text for key in keys))}"
        if self.chance(3 if grouped else 1):
            plain = tuple(key for key in keys if key in scope)
            text += f" HAVING {self._having(scope, plain, depth if plain else 0)}"
        lives = grouped and source.one_instant
        return Relation(text, tuple(columns), lives, source.granular or "GRANULARITY" in text)

    def _key(self, scope: Scope) -> Column:
        column = self.pick(*scope)
        if not self.chance(2):
            return column
        template = {INT: "(<?> % 3)", DOUBLE: "(<?> * 2)", STRING: "UPPER(<?>)"}
        text = template.get(column.type, "(<?> IS NULL)").replace("<?>", column.text)
        return Column(text, column.type if column.type in template else BOOLEAN)

    def _having(self, scope: Scope, keys: Scope, depth: int) -> str:
        type_ = self.pick(INT, DOUBLE)
        compared = f"{self.aggregate(type_, scope)} {self.pick(*COMPARISONS)} {self.literal(type_)}"
        if depth > 0 and self.chance(4):
            return f"{compared} {self.pick('AND', 'OR')} {self._subquery_test(keys, depth)}"
        return compared

    # --- aggregates ------------------------------------------------------------------------------

    def aggregate(self, type_: str, scope: Scope) -> str:
        template = self.pick(*_AGGREGATES[type_], *_AGGREGATES_OF_ANY)
        text = self._filled(template, type_, lambda t: self.expression(t, scope, 1))
        if self.chance(2):
            text += f" FILTER (WHERE {self.predicate(scope, 1)})"
        return text

    @staticmethod
    def _filled(template: str, type_: str, of: Callable[[str], str]) -> str:
        """The template with an expression drawn for each type in it; `?` is the type itself."""
        names = {"?": type_, "int": INT, "dbl": DOUBLE, "str": STRING, "bool": BOOLEAN}
        names["dec"] = DECIMAL
        return re.sub(r"<([a-z]+|\?)>", lambda match: of(names[match[1]]), template)

    def _approximate(self, scope: Scope) -> str:
        """An aggregate that is an output only: it is compared with a tolerance, or an array."""
        template = self.pick(
            "STDDEV_POP(<int>)", "VAR_SAMP(<int>)", "MEDIAN(<dbl>)", "STDDEV(<int>)",
            "PERCENTILE(<int>, 0.3)", "ARRAY_AGG(<int>)", "ARRAY_AGG(DISTINCT <str>)",
        )  # fmt: skip
        return self._filled(template, DOUBLE, lambda t: self.expression(t, scope, 1))

    # --- expressions -----------------------------------------------------------------------------

    def expression(
        self, type_: str, scope: Scope, size: int, outer: Scope = (), depth: int = 0
    ) -> str:
        """An expression of a type. Columns of `outer` queries and subqueries (`depth` of them
        inside each other) are drawn where the place allows them."""
        if type_ == BOOLEAN and size > 0 and self.chance(4):
            return f"({self.predicate(scope, size - 1, outer, depth)})"
        columns = [c.text for c in scope if c.type == type_]
        leaves = [*columns * 4, self.literal(type_)]
        leaves += [c.text for c in outer if c.type == type_]
        if size == 0 or not self.chance(4):
            return self.pick(*leaves)

        if depth > 0 and type_ in (INT, DOUBLE, STRING) and self.chance(3):
            return self._scalar_subquery(type_, scope + outer, depth)
        if self.chance(2):
            condition = self.predicate(scope, size - 1, outer)
            then, other = (self.expression(type_, scope, size - 1, outer) for _ in range(2))
            return f"CASE WHEN {condition} THEN {then} ELSE {other} END"
        template = self.pick(*_CALLS[type_], "COALESCE(<?>, <?>)", "NULLIF(<?>, <?>)")
        return self._filled(template, type_, lambda t: self.expression(t, scope, size - 1, outer))

    def literal(self, type_: str) -> str:
        options = {
            INT: ("1", "0", "2", "-3"),
            DOUBLE: ("1.5e0", "0e0", "-2e0"),
            STRING: ("'a'", "'b'", "''"),
            BOOLEAN: ("TRUE", "FALSE"),
            DECIMAL: ("1.25", "0.10"),
        }
        return self.pick(*options[type_])

    def predicate(self, scope: Scope, size: int, outer: Scope = (), depth: int = 0) -> str:
        fixed = {"flag": BOOLEAN, "like": STRING}
        types = {c.type for c in scope}
        ordered = [c.type for c in scope if c.type != BOOLEAN]
        kinds = ["compare", "compare", "compare", "null", "in", "between", "same"]
        kinds += [kind for kind, type_ in fixed.items() if type_ in types]
        kinds += ["and", "or", "or", "not"] if size > 0 else []
        kinds += ["subquery"] * 6 if depth > 0 else []
        kind = self.pick(*kinds)
        if kind in ("and", "or"):
            sides = [self.predicate(scope, size - 1, outer, depth) for _ in range(2)]
            return f"({f' {kind.upper()} '.join(sides)})"
        if kind == "not":
            return f"NOT ({self.predicate(scope, size - 1, outer, depth)})"
        if kind == "subquery":
            return self._subquery_test(scope + outer, depth)
        type_ = fixed.get(kind) or self.pick(*ordered, INT)
        value = self.expression(type_, scope, min(size, 1), outer)
        return value if kind == "flag" else self._tested(kind, type_, value, scope, outer)

    def _tested(self, kind: str, type_: str, value: str, scope: Scope, outer: Scope) -> str:
        other = self.expression(type_, scope, 0, outer)
        match kind:
            case "null":
                return f"{value} IS {self.pick('', 'NOT ')}NULL"
            case "in":
                listed = ", ".join(self.literal(type_) for _ in range(self.pick(1, 2)))
                return f"{value} {self.pick('', 'NOT ')}IN ({listed}, {other})"
            case "between":
                return f"{value} BETWEEN {self.literal(type_)} AND {other}"
            case "like":
                return f"{value} {self.pick('', 'NOT ')}LIKE {self.pick(repr('a%'), repr('_'))}"
            case "same":
                return f"{value} <=> {other}"
        return f"{value} {self.pick(*COMPARISONS)} {other}"

    # --- subqueries ------------------------------------------------------------------------------

    def _subquery_test(self, scope: Scope, depth: int) -> str:
        kind = self.pick("IN", "NOT IN", "EXISTS", "NOT EXISTS", "ANY", "ALL", "scalar")
        if kind in ("EXISTS", "NOT EXISTS"):
            return f"{kind} ({self.query(depth - 1, scope).text})"
        type_ = self.pick(*(c.type for c in scope))
        value = self.expression(type_, scope, 1)
        if kind == "scalar":
            type_ = self.pick(INT, DOUBLE)
            value = self.expression(type_, scope, 1)
            subquery = self._scalar_subquery(type_, scope, depth)
            return f"{value} {self.pick(*COMPARISONS)} {subquery}"
        inner = self.query(depth - 1, scope, [type_]).text
        if kind in ("IN", "NOT IN"):
            return f"{value} {kind} ({inner})"
        return f"{self.pick('', 'NOT ')}{value} {self.pick(*COMPARISONS)} {kind} ({inner})"

    def _scalar_subquery(self, type_: str, scope: Scope, depth: int) -> str:
        if self.chance(8):
            return f"({self._aggregated(depth - 1, scope, [type_], False, False).text})"
        query = self._plain(depth - 1, scope, [type_], "plain")
        return f"({query.text} ORDER BY {query.columns[0].text} LIMIT 1)"


def _comparable(left: Scope, right: Scope) -> list[tuple[str, str]]:
    """Pairs of columns of one type, those of one name more often."""
    pairs = [(a, b) for a in left for b in right if a.type == b.type]
    same = [(a, b) for a, b in pairs if a.text.split(".")[-1] == b.text.split(".")[-1]]
    return [(a.text, b.text) for a, b in [*same * 3, *pairs]]


_STREAMS_END = 40  # so many bytes of a case are for its streams


@st.composite
def cases(draw: Draw) -> tuple[list[JudgedStream], str]:
    """Streams and a query over them."""
    content = draw(st.binary(min_size=240, max_size=440))
    streams = streams_of(Tape(content[:_STREAMS_END]))
    return streams, QueryGenerator(Tape(content[_STREAMS_END:])).statement()
