"""Completion in the shell: keywords, streams, their columns, functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from millstream.logical import aggregates, functions
from millstream.logical.catalog import DerivedStream, Stream
from millstream.model.errors import MillstreamError
from millstream.model.names import Name

if TYPE_CHECKING:
    from millstream.api.session import Session

COMMANDS = ("\\d", "\\explain", "\\watch", "\\?", "\\q")
KEYWORDS = """
AFTER ALL AND ANY AS ASC AT BETWEEN BY CASE CAST CHANGES CONSTANT CREATE CROSS DELAY DELETE DESC
DISTINCT DROP DSTREAM EFFECTIVE ELSE EMIT END EVERY EXCEPT EXISTS FILTER FINAL FROM FULL GRANULARITY
GROUP HAVING HISTORY IDLE IN INNER INSERT INTERSECT INTO IS ISTREAM JOIN KEY LATEST LEFT LIKE LIMIT
MATCHED MATERIALIZED MERGE MINUTES NATURAL NON NOT NOW NULL OF ON OR ORDER ORDERED OUTER PARTITION
PRIMARY QUERIES QUERY RANGE RETAIN RETROACTIVE RIGHT ROWS RSTREAM SECONDS SELECT SET SHOW SLIDE
SOURCE STOP STREAM STREAMS TABLE TABLES THEN TIMESTAMP UNBOUNDED UNION UNIT UPDATE USING VALID
VALUES VIEW VIEWS WHEN WHERE WINDOW WITH
""".split()  # noqa: SIM905 - as prose it is easier to read


class Completions(Completer):
    """Reads the session each time, so a new stream is included."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        line = document.text_before_cursor
        if line.startswith("\\") and " " not in line:
            return [Completion(word, -len(line)) for word in COMMANDS if word.startswith(line)]
        word = document.get_word_before_cursor()
        if not word.strip():
            return []
        qualifier = _qualifier(line[: len(line) - len(word)])
        return [
            Completion(offered, -len(word), display_meta=kind)
            for offered, kind in self._words(qualifier)
            if offered.lower().startswith(word.lower())
        ]

    def _words(self, qualifier: str | None) -> list[tuple[str, str]]:
        """The candidates with their kinds; after `Stream.` only its columns."""
        streams = list(self._session.catalog.streams)
        if qualifier is not None:
            known = self._stream(qualifier)
            return _columns([known] if known is not None else streams)
        called = {*functions.names(), *aggregates.names(), *self._session.catalog.functions}
        return [
            *((stream.name, stream.kind) for stream in streams),
            *_columns(streams),
            *((name.upper(), "function") for name in sorted(called) if name.isidentifier()),
            *((word, "keyword") for word in KEYWORDS),
        ]

    def _stream(self, name: str) -> Stream | DerivedStream | None:
        try:
            return self._session.catalog.stream(Name(name))
        except MillstreamError:
            return None


def _columns(streams: Iterable[Stream | DerivedStream]) -> list[tuple[str, str]]:
    found = {column.name: stream.name for stream in streams for column in stream.columns}
    return [(column, f"column of {stream}") for column, stream in sorted(found.items())]


def _qualifier(before: str) -> str | None:
    """The name in `name.`, if that is how the text ends."""
    if not before.endswith("."):
        return None
    name = before[:-1]
    start = len(name)
    while start and (name[start - 1].isalnum() or name[start - 1] == "_"):
        start -= 1
    return name[start:] or None
