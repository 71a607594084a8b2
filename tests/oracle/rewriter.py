"""A parsed query as a template of DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.sql import clauses as syntax
from millstream.sql.statements import clauses_of
from oracle.duckdb_dialect import (
    AggregateContext,
    aggregate_text,
    duckdb_text,
    is_aggregate,
    raw,
    uses_order,
)
from oracle.judged_streams import JudgedStream
from oracle.judged_windows import (
    ARRIVAL,
    Leaf,
    Moment,
    QueryWindowLeaf,
    StreamLeaf,
    Template,
    duration,
    floored,
)
from oracle.lifetimes import Lifetimes
from oracle.query_trees import (
    Tables,
    is_comma,
    items_of,
    key_of,
    only_filters,
    outermost_queries,
    own_nodes,
    peek_with,
    resolve,
    stream_function,
    take_with,
    unwrapped,
)

if TYPE_CHECKING:
    from oracle.judge import JudgedQuery


class Rewriter:
    """Rewrites one query into a template; parts with an instant of their own become leaves."""

    def __init__(self, judged: JudgedQuery) -> None:
        self.judged = judged
        self.judge = judged.judge
        self.leaves: list[tuple[Leaf, Moment]] = []
        self.scopes: list[str] = []  # the FROM clauses around the place that is being rewritten

    def template(self, tree: exp.Expression, tables: Tables, arrival: bool) -> Template:
        rewritten = self.query(tree.copy(), lambda t: t, tables, arrival)
        return Template(duckdb_text(rewritten), self.leaves)

    def query(
        self, tree: exp.Expression, moment: Moment, tables: Tables, arrival: bool = False
    ) -> exp.Expression:
        """The query as it is answered at a moment. With `arrival` it carries the hidden place of
        its rows in the source's order as a last column."""
        tables = take_with(tree, tables)
        match tree:
            case exp.Subquery():
                tree.set("this", self.query(tree.this, moment, tables, arrival))
            case exp.SetOperation():
                for side in ("this", "expression"):
                    tree.set(side, self.query(tree.args[side], moment, tables))
            case exp.Select():
                return self._select(tree, moment, tables, arrival)
            case _:
                raise AssertionError(tree)
        self._complete_order(tree)
        return tree

    # --- SELECT ----------------------------------------------------------------------------------

    def _select(
        self, tree: exp.Select, moment: Moment, tables: Tables, arrival: bool
    ) -> exp.Expression:
        function = stream_function(tree)
        if function is not None:
            call = tree.expressions[0]
            tree.set("expressions", [item.copy() for item in call.expressions])
            return self._changed(function, tree, moment, tables)
        ordered = any(uses_order(node) for node in own_nodes(tree))
        carried = (ordered or arrival) and self._carries(tree, tables, within=ordered)
        self._from(tree, moment, tables, carried)
        self.scopes.append(self._from_text(tree))
        self._subqueries(tree, moment, tables)
        self._stars(tree)
        self._aggregates(tree, carried)
        self.scopes.pop()
        if arrival:
            assert carried
            tree.append("expressions", exp.column(ARRIVAL))
        self._complete_order(tree)
        return tree

    def _changed(
        self, function: str, tree: exp.Expression, moment: Moment, tables: Tables
    ) -> exp.Expression:
        """ISTREAM or DSTREAM of a query; RSTREAM is the query itself."""
        now = self.query(tree.copy(), moment, tables)
        if function == "RSTREAM":
            return now
        before = self.query(tree.copy(), lambda t: moment(t) - 1, tables)
        sides = (now, before) if function == "ISTREAM" else (before, now)
        left, right = (f"SELECT * FROM ({duckdb_text(side)})" for side in sides)
        return raw(f"({left} EXCEPT ALL {right})")

    def _from(self, tree: exp.Select, moment: Moment, tables: Tables, carried: bool) -> None:
        source = tree.args[key_of(tree, "from")]
        source.set("this", self._item(source.this, moment, tables, carried))
        for join in tree.args.get("joins") or []:
            self._join(join, moment, tables)

    def _join(self, join: exp.Expression, moment: Moment, tables: Tables) -> None:
        join.set("this", self._item(join.this, moment, tables, carried=False))
        if only_filters(join):
            join.set("side", None)
        if is_comma(join):
            join.set("kind", None)

    def _item(
        self, node: exp.Expression, moment: Moment, tables: Tables, carried: bool
    ) -> exp.Expression:
        joins = node.args.get("joins") or []
        for join in joins:
            self._join(join, moment, tables)
        if isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query):
            node.set("this", self._item(node.this, moment, tables, carried))
            return node
        return self._reference(node, moment, tables, carried, joins)

    def _reference(
        self,
        node: exp.Expression,
        moment: Moment,
        tables: Tables,
        carried: bool,
        joins: Sequence[exp.Expression] = (),
    ) -> exp.Expression:
        clauses = clauses_of(node)
        alias = node.args.get("alias")
        name, body, inner, columns = resolve(self.judge, node, tables)
        if isinstance(body, JudgedStream):
            self.judged.sources[body.name] = body
        window = clauses.window
        if window is not None and isinstance(window.size, syntax.Now) and window.slide is None:
            window = None
        if clauses.granularity is not None:
            g = duration(clauses.granularity.finest)
            moment = floored(moment, g)
        if isinstance(body, JudgedStream) and (window is None or body.has_instants):
            table = self._leaf(StreamLeaf(self.judge, body, window, carried), moment)
        elif window is None:
            assert isinstance(body, exp.Expression)
            query = self.query(body.copy(), moment, inner, carried)
            table = exp.Subquery(this=unwrapped(query))
        else:
            table = self._query_window(body, inner, clauses, window, moment, carried)
        if alias is None and (name or columns):
            alias = exp.TableAlias(this=exp.to_identifier(name))
        if alias is not None and columns and not alias.args.get("columns"):
            alias = exp.TableAlias(this=alias.this, columns=[c.copy() for c in columns])
        table.set("alias", alias)
        table.set("joins", list(joins))
        return table

    def _query_window(
        self,
        body: exp.Expression | JudgedStream,
        inner: Tables,
        clauses: syntax.Clauses,
        window: syntax.Window,
        moment: Moment,
        carried: bool,
    ) -> exp.Expression:
        nature = Lifetimes(self.judge)
        if isinstance(body, JudgedStream):
            leaf = StreamLeaf(self.judge, body, None, arrival=True)
            query = Template("SELECT * FROM __leaf_0__", [(leaf, lambda t: t)])
            one_instant, granule = False, 1
        else:
            rewriter = Rewriter(self.judged)
            wanted = carried or window.frame == "ROWS"
            wanted = wanted and rewriter._carries(body, inner)
            query = rewriter.template(body, inner, wanted)
            one_instant, granule = nature.one_instant(body, inner), nature.granule(body, inner)
        if one_instant:
            granule = 1
        elif granule == 1:
            assert clauses.granularity is not None
            granule = duration(clauses.granularity.finest)
        leaf_ = QueryWindowLeaf(self.judged, query, window, granule, carried)
        return self._leaf(leaf_, moment)

    def _leaf(self, leaf: Leaf, moment: Moment) -> exp.Expression:
        self.leaves.append((leaf, moment))
        return exp.Table(this=exp.to_identifier(f"__leaf_{len(self.leaves) - 1}__"))

    # --- order -----------------------------------------------------------------------------------

    def _carries(self, tree: exp.Expression, tables: Tables, within: bool = False) -> bool:
        """Whether the rows of a query keep the place in the order of the one stream they come
        from; `within`, whether those of its FROM do."""
        if isinstance(tree, exp.Subquery):
            return self._carries(tree.this, tables)
        if not isinstance(tree, exp.Select) or stream_function(tree) is not None:
            return False
        tables = peek_with(tree, tables)
        aggregated = tree.args.get("group") is not None or any(map(is_aggregate, own_nodes(tree)))
        changed = aggregated or tree.args.get("distinct") or tree.args.get("limit")
        others = [j for j in tree.args.get("joins") or [] if not only_filters(j)]
        if (changed and not within) or others:
            return False
        node = tree.args[key_of(tree, "from")].this
        if node.args.get("joins") or isinstance(node.this, exp.Anonymous):
            return False
        if isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query):
            return False
        _, body, inner, _ = resolve(self.judge, node, tables)
        return isinstance(body, JudgedStream) or self._carries(body, inner)

    def _order_columns(self, tree: exp.Select, carried: bool) -> list[str]:
        """What tells rows apart in FIRST: the place in the stream, else the columns of FROM."""
        if carried:
            return [ARRIVAL]
        found: list[str] = []
        source = tree.args[key_of(tree, "from")].this
        for node in items_of(source, tree.args.get("joins") or []):
            alias = node.args.get("alias")
            prefix = f"{duckdb_text(alias.this)}." if alias is not None else ""
            bare = node.copy()
            bare.set("joins", None)
            columns = self.judge.columns(self._filled(f"SELECT * FROM {duckdb_text(bare)}"))
            found += [f'{prefix}"{name}"' for name, _ in columns]
        return found

    def _complete_order(self, tree: exp.Expression) -> None:
        """ORDER BY … LIMIT: ties fall to the output columns, left to right."""
        order = tree.args.get("order")
        if order is None or tree.args.get("limit") is None:
            return
        for number in range(1, self._width(tree) + 1):
            place = exp.Literal.number(number)
            order.append("expressions", exp.Ordered(this=place, desc=False, nulls_first=True))

    def _width(self, tree: exp.Expression) -> int:
        """How many columns a query has."""
        while not isinstance(tree, exp.Select):
            tree = tree.this
        if not any(item.is_star for item in tree.expressions):
            return len(tree.expressions)
        stars = tree.copy()
        stars.set("order", None)
        stars.set("limit", None)
        stars.set("where", None)
        return len(self.judge.columns(self._filled(duckdb_text(stars))))

    def _filled(self, sql: str) -> str:
        """The text at some instant: types and names are the same at all of them."""
        return Template(sql, self.leaves).sql(self.judged.beginning)

    # --- the rest of a SELECT --------------------------------------------------------------------

    def _from_text(self, tree: exp.Select) -> str:
        only = exp.Select(expressions=[exp.Star()])
        key = key_of(tree, "from")
        only.set(key, tree.args[key].copy())
        only.set("joins", [join.copy() for join in tree.args.get("joins") or []])
        return duckdb_text(only).removeprefix("SELECT * FROM ")

    def _type_of(self, text: str) -> str:
        sql = f"SELECT {text} AS x FROM {self.scopes[-1]}"
        for scope in reversed(self.scopes[:-1]):
            sql = f"SELECT (SELECT ANY_VALUE(x) FROM ({sql}) AS q) AS x FROM {scope}"
        return self.judge.columns(self._filled(sql))[0][1]

    def _subqueries(self, tree: exp.Select, moment: Moment, tables: Tables) -> None:
        """The queries in expressions, each at the same moment."""
        for key, value in list(tree.args.items()):
            if key.rstrip("_") == "from":
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, exp.Expression):
                    continue
                inside = [child.args.get("on")] if isinstance(child, exp.Join) else [child]
                for part in filter(None, inside):
                    for query in list(outermost_queries(part)):
                        replacement = self.query(query.copy(), moment, tables)
                        query.replace(replacement)

    def _aggregates(self, tree: exp.Select, carried: bool) -> None:
        context = AggregateContext(self._type_of, lambda: self._order_columns(tree, carried))
        for node in list(own_nodes(tree)):
            if not is_aggregate(node):
                continue
            around = node.parent if isinstance(node.parent, exp.Filter) else None
            condition = around.expression.this if around is not None else None
            text = aggregate_text(node, condition, context)
            if text is not None:
                (around or node).replace(raw(text))

    def _stars(self, tree: exp.Select) -> None:
        """`*` over USING and NATURAL has the merged columns first."""
        if not any(isinstance(item, exp.Star) for item in tree.expressions):
            return
        merged: list[str] = []
        columns = self._columns_of(tree.args[key_of(tree, "from")].this)
        for join in tree.args.get("joins") or []:
            added = self._columns_of(join.this)
            common = [name.name for name in join.args.get("using") or []]
            if str(join.args.get("method") or "").upper() == "NATURAL":
                lowered = {name.lower() for name in added}
                common = [name for name in columns if name.lower() in lowered]
            if only_filters(join):
                continue
            shared = {name.lower() for name in common}
            merged = common + [m for m in merged if m.lower() not in shared]
            rest = [name for name in columns + added if name.lower() not in shared]
            columns = common + rest
        if not merged:
            return
        listed = ", ".join(f'"{name}"' for name in merged)
        items = [
            raw(f"{listed}, * EXCLUDE ({listed})") if isinstance(item, exp.Star) else item
            for item in tree.expressions
        ]
        tree.set("expressions", items)

    def _columns_of(self, node: exp.Expression) -> list[str]:
        sql = self._filled(f"SELECT * FROM {duckdb_text(node)}")
        return [name for name, _ in self.judge.columns(sql)]
