"""How long the rows of a query live: what a window over it needs to know."""

from __future__ import annotations

from math import gcd

from sqlglot import exp

from millstream.sql.statements import clauses_of
from oracle.duckdb_dialect import is_aggregate
from oracle.judged_streams import JudgedStream
from oracle.judged_windows import duration, time_window
from oracle.query_trees import (
    Catalog,
    Tables,
    is_comma,
    key_of,
    only_filters,
    own_nodes,
    peek_with,
    queries_of_clauses,
    resolve,
    stream_function,
)


class Lifetimes:
    """What a window over a query needs to know of it (K table 12.1 and §20)."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def one_instant(self, tree: exp.Expression, tables: Tables) -> bool:
        """Whether every row provably lives one instant."""
        tables = peek_with(tree, tables)
        match tree:
            case exp.Subquery():
                return self.one_instant(tree.this, tables)
            case exp.SetOperation():
                sides = [self.one_instant(s, tables) for s in (tree.this, tree.expression)]
                if isinstance(tree, exp.Union):
                    return all(sides)
                return sides[0] if isinstance(tree, exp.Except) else any(sides)
        function = stream_function(tree)
        if function in ("ISTREAM", "DSTREAM"):
            return True
        if function == "RSTREAM" and self.granule(tree, tables) == 1:
            return True
        if any(map(is_aggregate, own_nodes(tree))) and tree.args.get("group") is None:
            return False
        return self._from_lives_one_instant(tree, tables)

    def _from_lives_one_instant(self, tree: exp.Expression, tables: Tables) -> bool:
        groups = [self._reference_lives(tree.args[key_of(tree, "from")].this, tables)]
        for join in tree.args.get("joins") or []:
            right = self._reference_lives(join.this, tables)
            side = str(join.args.get("side") or "").upper()
            if is_comma(join):
                groups.append(right)
            elif side == "RIGHT":
                groups[-1] = right
            elif side == "FULL":
                groups[-1] = groups[-1] and right
            elif side != "LEFT" and not only_filters(join):
                groups[-1] = groups[-1] or right
        return any(groups)

    def _reference_lives(self, node: exp.Expression, tables: Tables) -> bool:
        clauses = clauses_of(node)
        window = clauses.window
        if clauses.granularity is not None:
            return False
        if window is not None and (window.frame == "ROWS" or time_window(window) != (1, 1)):
            return False
        _, body, inner, _ = resolve(self.catalog, node, tables)
        if isinstance(body, JudgedStream):
            return body.has_instants
        return self.one_instant(body, inner)

    def granule(self, tree: exp.Expression, tables: Tables) -> int:
        """The answer changes at multiples of this only."""
        tables = peek_with(tree, tables)
        if isinstance(tree, exp.Subquery):
            return self.granule(tree.this, tables)
        if isinstance(tree, exp.SetOperation):
            return gcd(self.granule(tree.this, tables), self.granule(tree.expression, tables))
        if stream_function(tree) in ("ISTREAM", "DSTREAM"):
            return 1
        nodes = [tree.args[key_of(tree, "from")].this]
        nodes += [join.this for join in tree.args.get("joins") or []]
        inside = [self.granule(q, tables) for q in queries_of_clauses(tree)]
        return gcd(*(self._reference_granule(node, tables) for node in nodes), *inside)

    def _reference_granule(self, node: exp.Expression, tables: Tables) -> int:
        clauses = clauses_of(node)
        if clauses.granularity is not None:
            return duration(clauses.granularity.finest)
        _, body, inner, _ = resolve(self.catalog, node, tables)
        if isinstance(body, JudgedStream) or (clauses.window and clauses.window.frame == "ROWS"):
            return 1
        return self.granule(body, inner)
