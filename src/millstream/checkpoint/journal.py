"""What a source notes in the checkpoint of a query, so that after a crash it can go on."""

from __future__ import annotations

import pickle
from typing import Any
from urllib.parse import quote

from millstream.checkpoint.files import CheckpointError, Files
from millstream.checkpoint.records import sealed, unsealed

FOLDER = "journal"


class Journal:
    """The notes of one stream, in order; each says of which row it tells what follows."""

    def __init__(self, files: Files, stream: str) -> None:
        self._files = files
        self._folder = f"{FOLDER}/{quote(stream, safe='')}"
        self._count = 0

    def notes(self) -> list[tuple[int, Any]]:
        """Each with the number of its row: once, before anything is added."""
        found = []
        for number, name in enumerate(self._files.names(self._folder)):
            if name != self._name(number):
                raise CheckpointError(
                    f'the file "{self._name(number)}" of the checkpoint is gone',
                    help="restore the checkpoint's folder, or start the query with a new one",
                )
            found.append(pickle.loads(unsealed(name, self._files.read(name))))
        self._count = len(found)
        return found

    def add(self, row: int, note: Any) -> None:
        """It is there to stay when this returns."""
        self._files.publish(self._name(self._count), sealed(pickle.dumps((row, note))))
        self._count += 1

    def _name(self, number: int) -> str:
        return f"{self._folder}/{number:010d}"
