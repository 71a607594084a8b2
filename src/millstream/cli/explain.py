"""`millstream explain`: the plan of every query of a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream.cli.reading import UsageError, bound
from millstream.cli.views import queries_of
from millstream.model.modes import EngineName

if TYPE_CHECKING:
    from millstream.api.continuous import ContinuousQuery
    from millstream.api.pulls import PullQuery


def explain(
    file: str,
    engine: EngineName,
    verbose: bool,
    costs: bool,
    json: bool,
    dot: bool,
    physical: bool,
    parameters: Iterable[str],
) -> None:
    if json and dot:
        raise UsageError("--json and --dot are mutually exclusive")
    if verbose and (json or dot):
        raise UsageError("--verbose is text: leave --json and --dot out")
    session, results = bound(file, engine, parameters)
    told = []
    for query in queries_of(session, results):
        if dot:
            from millstream.cli.dot import dot_graph

            told.append(dot_graph(query, physical))
        elif verbose:
            told.append(verbose_text(query, costs))
        else:
            told.append(query.explain("json" if json else "text", costs, physical=physical))
    if told:
        print("\n\n".join(told))


def verbose_text(query: ContinuousQuery | PullQuery, costs: bool = False) -> str:
    """Everything known about a query before it runs."""
    from millstream.model.types import sql_name

    columns = ", ".join(f"{field.name} {sql_name(field.type)}" for field in query.schema)
    head = [f"query {query.name}", query.text, f"columns ({columns})", f"emit {query.emit}"]
    return "\n".join(head) + "\n\n" + query.explain(costs=costs, physical=True, verbose=True)
