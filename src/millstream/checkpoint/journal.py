"""Notes that a source keeps in the checkpoint of a query, to resume after a crash."""

from __future__ import annotations

from typing import Any

from millstream.checkpoint.files import CheckpointError, Files
from millstream.checkpoint.folders import file_name
from millstream.checkpoint.records import read_record, sealed_record

FOLDER = "journal"
MOST_FILES = 1000  # more files than this are merged when they are read


class Journal:
    """The notes of one stream, in order, each with the number of the row it precedes.

    A file has consecutive notes and the number of the first one, and is named by the number of the
    last. Where two files overlap, the later one counts.
    """

    def __init__(self, files: Files, stream: str) -> None:
        self._files = files
        self._stream = stream
        self._folder = f"{FOLDER}/{file_name(stream)}"
        self._count = 0

    def notes(self) -> list[tuple[int, Any]]:
        """Each with the number of its row. Called once, before anything is added."""
        names = self._files.names(self._folder)
        found: list[tuple[int, Any]] = []
        for name in names:
            first, notes = read_record(name, self._files.read(name))
            if first > len(found):
                raise CheckpointError(
                    f'a file of the checkpoint is missing in "{self._folder}", before "{name}"',
                    help="restore the checkpoint's folder, or start the query with a new one",
                )
            found[first:] = notes
        self._count = len(found)
        if len(names) > MOST_FILES:
            self._files.replace(names[-1], sealed_record((0, found)))
            for name in reversed(names[:-1]):  # the remaining files still start with the first
                self._files.remove(name)
        return found

    def add(self, row: int, note: Any) -> None:
        """Add a note of plain values; it is durable when this returns."""
        try:
            data = sealed_record((self._count, [(row, note)]))
        except TypeError as error:
            raise CheckpointError(
                f'the source of stream "{self._stream}" keeps a note that is not plain: {error}',
                help="use numbers, strings, bytes, and lists, tuples and dicts of these",
            ) from error
        self._files.publish(f"{self._folder}/{self._count:010d}", data)
        self._count += 1
