"""`millstream run`: all statements of a file, to the end of their streams or until Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.api.pulls import PullQuery
from millstream.api.query import Query
from millstream.checkpoint.folders import file_name
from millstream.cli.liveness import is_live
from millstream.cli.mailbox import Mailbox
from millstream.cli.output import Output, default_format
from millstream.cli.progress import progress
from millstream.cli.reading import bound, warnings_as_lines
from millstream.cli.spark import cancelled_by_interrupt, spark_started
from millstream.cli.views import any_live, await_views, start_views
from millstream.logical.instants import chronon
from millstream.model.instants import shown
from millstream.model.modes import EngineName
from millstream.runtime.outputs import unusable

if TYPE_CHECKING:
    from millstream.api.continuous import ContinuousQuery
    from millstream.api.session import Session
    from millstream.api.views import View
    from millstream.connectors.contracts import Sink
    from millstream.model.instants import Instant
    from millstream.runtime.running import Running


def run(
    file: str,
    engine: EngineName,
    format: str | None,
    until: str | None,
    checkpoint: str | None,
    parameters: Iterable[str],
) -> int:
    """Bind the whole file first, so that a mistake in its last statement is reported before the
    first query runs. Pull queries run last, when everything else has ended. The exit code is 1 if
    some rows could not be used."""
    session, results = bound(file, engine, parameters)
    with warnings_as_lines():
        _run(session, results, file, format, until, checkpoint)
    queries: list[Query | PullQuery] = list(session.queries.values())
    queries += [result for result in results if isinstance(result, PullQuery)]
    started = [q.running for q in queries if q.running is not None]
    started += [running for view in session._state.kept.all for running in view.running]
    failed = any(query.errors for query in queries)
    return int(failed or any(running.progress.errors for running in started))


def _run(
    session: Session,
    results: Sequence[Any],
    file: str,
    format: str | None,
    until: str | None,
    checkpoint: str | None,
) -> None:
    output = Output(format or default_format())
    queries = [query for query in session.queries.values() if isinstance(query, Query)]
    if queries or session.views:
        spark_started(session)
    live = checkpoint is not None or any_live(session)
    live = live or any(is_live(session, query) for query in queries)
    for query in queries:
        session._origins.check(query.plan)
    views = start_views(session, checkpoint)
    ends = {query.name: _end(query, until) for query in [*queries, *(v.query for v in views)]}
    with ExitStack() as stack:
        sinks = {} if live else _opened_sinks(queries, stack)
        for number, result in enumerate(results, 1):
            if isinstance(result, pa.Table):
                output.give(f"statement {number}", result)
            elif isinstance(result, Query) and result in queries and not live:
                sink = sinks.get(result.name)
                run_bounded(session, result, output, ends[result.name], sink=sink)
    if live:
        run_live(queries, output, ends, checkpoint, views)
    await_views(views)
    for number, result in enumerate(results, 1):
        if isinstance(result, PullQuery):
            run_bounded(session, result, output, named=f"statement {number}")
    if not views and not any(
        isinstance(result, pa.Table | Query | PullQuery) for result in results
    ):
        print(f'warning: "{file}" has no query: nothing was run', file=sys.stderr)


def _opened_sinks(queries: Iterable[Query], stack: ExitStack) -> dict[str, Sink]:
    """Open the sinks of all INSERT INTO before the first query runs, so that a sink that cannot be
    written is reported before anything is."""
    sinks = {}
    for query in queries:
        if query.sink is not None:
            sinks[query.name] = query._opened_sink()
            stack.callback(sinks[query.name].close)
    return sinks


def _end(query: ContinuousQuery, until: str | None) -> Instant | None:
    if until is None:
        return None
    domain = query.plan.domain
    is_number = until.lstrip("-").isdecimal() and not pa.types.is_timestamp(domain.type)
    return shown(chronon(int(until) if is_number else until, domain), domain)


# --- streams that end -----------------------------------------------------------------------------


def run_bounded(
    session: Session,
    query: Query | PullQuery,
    output: Output,
    end: Instant | None = None,
    named: str | None = None,
    sink: Sink | None = None,
) -> None:
    """Run a query to its end; write the answer in normal form and in order, or to its sink, which
    may be open."""
    with progress(lambda: f"{query.name} runs"), cancelled_by_interrupt(session):
        if sink is None or isinstance(query, PullQuery):
            table = query.run()
        else:
            table = query._deliver(lambda: sink)
    if query.sink is None:
        output.give(named or query.name, cropped(table, end))


def cropped(table: pa.Table, end: Instant | None) -> pa.Table:
    """Limit the answer to the instants before the end."""
    if end is None:
        return table
    if "valid_from" not in table.column_names:
        return table.filter(pc.less(table["at"], end))
    table = table.filter(pc.less(table["valid_from"], end))
    place = table.schema.get_field_index("valid_to")
    last = pa.scalar(end, table.schema.field(place).type)
    return table.set_column(place, "valid_to", pc.min_element_wise(table["valid_to"], last))


# --- endless streams ------------------------------------------------------------------------------


def run_live(
    queries: Sequence[Query | PullQuery],
    output: Output,
    ends: dict[str, Instant | None],
    checkpoint: str | None = None,
    views: Iterable[View] = (),
) -> None:
    """Run all at once, with the views, until they have ended or Ctrl-C ends them."""
    mailbox = Mailbox()
    with ExitStack() as stack:
        running = [each for view in views for each in view.running]
        for each in running:
            stack.callback(each.stop)
        for query in queries:
            sink = mailbox.sink(query.name) if query.sink is None else None
            folder = None if checkpoint is None else str(Path(checkpoint) / file_name(query.name))
            running.append(query.start(sink, checkpoint=folder))
            stack.callback(running[-1].stop)
        stack.callback(mailbox.close)  # first: if all goes well, nothing is left to take
        if not sys.stdout.isatty():
            stack.enter_context(progress(lambda: " · ".join(map(_state, running))))
        interrupted = stack.enter_context(first_interrupt())

        def look() -> None:
            for one in running:
                if interrupted.is_set() or _is_past(one.frontier, ends[one.name]):
                    one.stop(0)

        for name, table in mailbox.until_ended(running, look):
            output.give(name, cropped(table, ends[name]))
    for ended in running:
        tell_troubles(ended)


@contextmanager
def first_interrupt() -> Iterator[threading.Event]:
    """Set by the first Ctrl-C, so that no row is cut off; the second Ctrl-C interrupts."""
    interrupted = threading.Event()

    def note(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        interrupted.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _is_past(frontier: Any, end: Any) -> bool:
    """Whether every instant before the end is final."""
    return frontier is not None and end is not None and bool(frontier >= end)


def _state(running: Running) -> str:
    told = running.progress
    return f"{running.name}: {told.rows_in:,} rows in, {told.rows_out:,} out, to {told.frontier}"


def tell_troubles(running: Running) -> None:
    """Report rows that are in no answer, unless all of them were reported."""
    told = running.progress
    if told.errors > running._rounds.errors.warned:
        last = running.errors[-1]
        message = unusable(running.name, told.errors, f"{last.message} {last.place}")
        print(f"warning: {message}", file=sys.stderr)
    if told.late:
        print(f'warning: query "{running.name}": {told.late:,} rows came too late', file=sys.stderr)
