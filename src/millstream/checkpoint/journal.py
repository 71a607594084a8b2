"""What a source notes in the checkpoint of a query, so that after a crash it can go on."""

from __future__ import annotations

from typing import Any

from millstream.checkpoint.files import CheckpointError, Files
from millstream.checkpoint.folders import file_name
from millstream.checkpoint.records import read_record, sealed_record

FOLDER = "journal"
MOST_FILES = 1000  # beyond so many they become one, when they are read


class Journal:
    """The notes of one stream, in order; each says before which row it was made.

    A file has notes that follow each other and the number of the first of them, and is named by the
    number of the last. A later one counts for what it has of an earlier one.
    """

    def __init__(self, files: Files, stream: str) -> None:
        self._files = files
        self._stream = stream
        self._folder = f"{FOLDER}/{file_name(stream)}"
        self._count = 0

    def notes(self) -> list[tuple[int, Any]]:
        """Each with the number of its row: once, before anything is added."""
        names = self._files.names(self._folder)
        found: list[tuple[int, Any]] = []
        for name in names:
            first, notes = read_record(name, self._files.read(name))
            if first > len(found):
                raise CheckpointError(
                    f'a file of the checkpoint is gone from "{self._folder}", before "{name}"',
                    help="restore the checkpoint's folder, or start the query with a new one",
                )
            found[first:] = notes
        self._count = len(found)
        if len(names) > MOST_FILES:
            self._files.replace(names[-1], sealed_record((0, found)))
            for name in reversed(names[:-1]):  # so that those that are left begin with the first
                self._files.remove(name)
        return found

    def add(self, row: int, note: Any) -> None:
        """It is there to stay when this returns. A note is made of plain values."""
        try:
            data = sealed_record((self._count, [(row, note)]))
        except TypeError as error:
            raise CheckpointError(
                f'what the source of stream "{self._stream}" notes is not plain: {error}',
                help="let its notes be numbers, texts, bytes, and lists, tuples and dicts of these",
            ) from error
        self._files.publish(f"{self._folder}/{self._count:010d}", data)
        self._count += 1
