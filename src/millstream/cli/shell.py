"""`millstream shell`: statements, run interactively."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.api.pulls import PullQuery
from millstream.api.query import Query
from millstream.api.views import View
from millstream.checkpoint.folders import FOLDER_MODE, new_file
from millstream.cli.explain import verbose_text
from millstream.cli.live import watch, watch_kept
from millstream.cli.liveness import is_live
from millstream.cli.output import Output
from millstream.cli.progress import progress
from millstream.cli.reading import (
    parameters_of,
    standing,
    statements_in,
    warnings_as_lines,
    warnings_told,
)
from millstream.cli.run import run_live
from millstream.cli.spark import cancelled_by_interrupt, spark_started
from millstream.cli.views import await_ending, start_views
from millstream.model.errors import MillstreamError, ParseError, QueryError
from millstream.model.modes import Emit, EngineName
from millstream.model.names import Name
from millstream.model.types import sql_name
from millstream.sql.tokens import tokenize

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from millstream.api.session import Session

_MOST_ROWS = 100
_HELP = """\
Statements end with a semicolon. Ctrl-C stops a query, Ctrl-D ends the shell.

\\d                    streams
\\d NAME               the columns of a stream
\\explain [SELECT …]   the plan of a query, or of the last one
\\watch [SELECT …]     the answer as it changes, drawn in place
\\?                    this help
\\q                    end"""


_WORDS = {"help": "\\?", "quit": "\\q", "exit": "\\q"}  # common first inputs


def shell(file: str | None, engine: EngineName, parameters: Iterable[str]) -> None:
    values = parameters_of(parameters)
    text, name = ("", "") if file is None else statements_in(file)
    session, _ = standing(text, name, engine, values)
    shell = Shell(session, values)
    with warnings_as_lines():
        start_views(session)
        try:
            for text in typed(session) if sys.stdin.isatty() else piped():
                if not shell.run(text):
                    break
        finally:
            shell.end()


def is_complete(text: str) -> bool:
    """Whether Enter runs the text: a command, nothing, or statements up to a semicolon."""
    if not text.strip() or _meant(text).startswith("\\"):
        return True
    try:
        tokens = tokenize(text)
    except ParseError:  # a quote or a comment is still open
        return False
    return not tokens or tokens[-1].word == ";"


def _meant(text: str) -> str:
    """The input, or the command that a single word stands for."""
    text = text.strip()
    return _WORDS.get(text.rstrip("; ").lower(), text)


# --- input ----------------------------------------------------------------------------------------


def typed(session: Session) -> Iterator[str]:
    """Input from a terminal; Ctrl-C clears the line, Ctrl-D ends."""
    prompt = prompt_session(session)
    while True:
        try:
            yield prompt.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def prompt_session(session: Session, **options: Any) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory

    from millstream.cli.completion import Completions

    history: History = InMemoryHistory()
    with suppress(OSError):
        folder = _state_folder()
        folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        open(folder / "history", "ab", opener=new_file).close()  # may contain secrets
        history = FileHistory(str(folder / "history"))
    return PromptSession(
        "millstream> ",
        multiline=Condition(lambda: not is_complete(get_app().current_buffer.text)),
        prompt_continuation=lambda width, line, wrapped: "... ".rjust(width),
        completer=Completions(session),
        complete_while_typing=False,
        history=history,
        **options,
    )


def _state_folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "millstream"


def piped() -> Iterator[str]:
    """Whole statements from a pipe."""
    text = ""
    for line in sys.stdin:
        text += line
        if is_complete(text):
            yield text
            text = ""
    if text:
        yield text


# --- execution ------------------------------------------------------------------------------------


class Shell:
    def __init__(self, session: Session, parameters: dict[str, object]) -> None:
        self._session = session
        self._parameters = parameters
        self._last: str | None = None  # the text of the last SELECT

    def run(self, text: str) -> bool:
        """Execute the input; False if it ends the shell."""
        text = _meant(text)
        try:
            if text.startswith("\\"):
                return self._command(text)
            self._statements(text)
        except MillstreamError as error:
            print(error, file=sys.stderr)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
        return True

    def end(self) -> None:
        for query in self._session.queries.values():
            if query.running is not None:
                query.running.stop()
        for view in self._session._state.kept.all:
            view.stop()

    def _statements(self, text: str) -> None:
        with warnings_told():
            results = self._session.run_statements(text, None, self._parameters)
        for result in results:
            if isinstance(result, pa.Table):
                self._print(result)
            elif isinstance(result, View):
                print(f"{result.name} runs; DROP VIEW {result.name} ends it", file=sys.stderr)
            elif isinstance(result, Query | PullQuery):
                self._query(result)
            elif isinstance(result, int):
                print(f"({_counted(result)} changed)")

    def _query(self, query: Query | PullQuery) -> None:
        if not isinstance(query, PullQuery):
            spark_started(self._session)
        if query.sink is not None:
            query.start()
            print(f"{query.name} runs; STOP QUERY {query.name} stops it", file=sys.stderr)
            return
        self._last = query.text
        self._asked(query, self._answer)

    def _asked(self, query: Query | PullQuery, answer: Callable[[Query | PullQuery], None]) -> None:
        """Drop the query after its answer, so that it does not keep a stream in use."""
        try:
            answer(query)
        finally:
            self._drop(query)

    def _answer(self, query: Query | PullQuery) -> None:
        if isinstance(query, PullQuery):
            await_ending(self._session, query)
        if isinstance(query, PullQuery) or not is_live(self._session, query):
            waiting = progress(lambda: f"{query.name} runs: Ctrl-C stops it")
            with waiting, cancelled_by_interrupt(self._session):
                table = query.run()
            self._print(table)
        elif query.emit is Emit.CHANGES and sys.stdout.isatty():
            watch(query)
        else:
            run_live([query], Output("table"), {query.name: None})

    def _drop(self, query: Query | PullQuery) -> None:
        if self._session.queries.get(query.name) is query:
            self._session.sql(f"DROP QUERY `{query.name}`")

    def _print(self, table: pa.Table) -> None:
        Output("table").give("", table.slice(0, _MOST_ROWS))
        more = table.num_rows - _MOST_ROWS
        rows = _counted(table.num_rows)
        print(f"({rows}{f', the first {_MOST_ROWS} of them' if more > 0 else ''})")

    # --- commands --------------------------------------------------------------------------------

    def _command(self, text: str) -> bool:
        name, _, rest = text.partition(" ")
        rest = rest.strip().rstrip(";").strip()
        match name:
            case "\\q":
                return False
            case "\\?":
                print(_HELP)
            case "\\d" if rest:
                self._describe(rest)
            case "\\d":
                self._print(self._session.sql("SHOW STREAMS"))
            case "\\explain":
                self._asked(self._select(rest), lambda query: print(verbose_text(query)))
            case "\\watch":
                self._watch(rest)
            case _:
                raise QueryError(f'there is no command "{name}"', help="\\? lists all commands")
        return True

    def _describe(self, name: str) -> None:
        stream = self._session.catalog.stream(Name(name))
        columns = {
            "column": [column.name for column in stream.columns],
            "type": [sql_name(column.type) for column in stream.columns],
        }
        self._print(pa.table(columns))

    def _select(self, text: str) -> Query | PullQuery:
        """The query of a SELECT, by default the last one."""
        text = text or self._last or ""
        if not text:
            raise QueryError("there is no query yet", help="write one: \\explain SELECT …")
        with warnings_told():
            query = self._session.run_script(text, None, self._parameters)
        if not isinstance(query, Query | PullQuery):
            raise QueryError("that is not a query", help="write a SELECT")
        return query

    def _watch(self, text: str) -> None:
        """A query over views and tables is run again and again; other queries run continuously."""
        query = self._select(text)
        if isinstance(query, PullQuery):
            watch_kept(self._session, query)
            return
        spark_started(self._session)
        if query.emit is not Emit.CHANGES:
            self._drop(query)
            query = self._select(f"{query.text.removesuffix(' EMIT FINAL')} EMIT CHANGES")
        self._asked(query, watch)


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"
