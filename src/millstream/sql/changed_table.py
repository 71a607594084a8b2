"""Which table an INSERT, UPDATE, DELETE or MERGE changes."""

from __future__ import annotations

from sqlglot import exp

from millstream.logical.catalog import Catalog, DerivedStream, Stream, Table
from millstream.model.errors import BindError, Span, did_you_mean, one_of
from millstream.sql.scope import name_of, refuse_others
from millstream.sql.statements import ChangeTable


def changed_table(statement: ChangeTable, catalog: Catalog) -> tuple[Table, Span | None]:
    """The table that a statement changes, one of the session's own, and where it is named."""
    tree = statement.body.tree
    word = type(tree).__name__.upper()
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    if not isinstance(target, exp.Table) or not isinstance(target.this, exp.Identifier):
        raise BindError(f"{word} takes the name of a table", statement.body.span)
    refuse_others(target, ("this", "alias"), word)
    name = name_of(target.this)
    entry = catalog.find_stream(name)
    if entry is None:
        tables = [each.name for each in catalog.streams if each.kind == "table"]
        help = one_of(name.text, tables, "table") or "no table is registered: write CREATE TABLE"
        if isinstance(tree, exp.Insert) and not did_you_mean(name.text, tables):
            help = f"write {name.text}(…) if it is a sink"
        raise BindError(f'table "{name.text}" does not exist', name.span, help)
    if isinstance(entry, Table) and entry.connector is None:
        return entry, name.span
    message, help = _refusal(entry, word)
    raise BindError(message, name.span, help)


def _refusal(entry: Stream | DerivedStream, word: str) -> tuple[str, str]:
    if isinstance(entry, Table):
        connector = entry.connector
        return f'table "{entry.name}" is external, in {connector}', "change it there"
    if entry.kind == "table":
        return f'table "{entry.name}" follows a stream', "it changes as rows of the stream arrive"
    help = "rows come from its source" if isinstance(entry, Stream) else "its query computes it"
    return f'"{entry.name}" is a {entry.kind}, and {word} changes tables', help
