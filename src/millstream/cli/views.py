"""Views and pull queries for the commands."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.api.continuous import ContinuousQuery
from millstream.api.pulls import PullQuery
from millstream.api.views import View
from millstream.cli.liveness import ends, is_live
from millstream.cli.progress import progress

if TYPE_CHECKING:
    from millstream.api.session import Session


def queries_of(session: Session, results: Iterable[Any]) -> list[ContinuousQuery | PullQuery]:
    """The queries of a script, including those of its views and pull queries."""
    found: list[ContinuousQuery | PullQuery] = []
    for result in results:
        if isinstance(result, View) and result.name in session.views:
            found.append(result.query)
        elif isinstance(result, PullQuery) or result in session.queries.values():
            found.append(result)
    return found


def start_views(session: Session, checkpoint: str | None = None) -> list[View]:
    """Start all views and the histories of streams; those without a folder of their own get one in
    the checkpoint."""
    session._state.kept.starts = True
    for view in session._state.kept.all:
        view.start(None if checkpoint is None else str(Path(checkpoint) / view.name))
    return session._state.kept.all


def any_live(session: Session) -> bool:
    """Whether the query of some view is endless."""
    return any(is_live(session, view.query) for view in session._state.kept.all)


def await_ending(session: Session, query: PullQuery) -> None:
    """Wait for the views that a query reads, if they end: all their streams are read from files and
    the like."""
    names = {read.name for read in query.pull.reads.values()}
    views = [view for view in session._state.kept.all if view.name in names]
    await_views(view for view in views if ends(session, view.query))


def await_views(views: Iterable[View]) -> None:
    """Wait for the end of their streams."""
    for view in views:
        with progress(partial(_told, view)):
            view.wait()


def _told(view: View) -> str:
    return f"view {view.name}: to {view.frontier}"
