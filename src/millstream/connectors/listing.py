"""Finds the files of a path: a file, a folder or a pattern such as `data/2026-*/*.csv`.

As in Spark, names that begin with "." or "_" are skipped, and only subfolders of the form
`column=value` are entered: the column has that value in all their rows.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class DataFile:
    """A file as found; `constants` are the columns named by its folders."""

    path: str
    size: int
    modified: int  # in nanoseconds
    constants: tuple[tuple[str, str | None], ...] = ()

    def told(self) -> list[Any]:
        """As plain values, for a checkpoint."""
        return [self.path, self.size, self.modified, self.constants]


def is_pattern(path: str) -> bool:
    return glob.has_magic(path) and not Path(path).exists()


def listed_files(path: str) -> list[DataFile]:
    """In order of modification time, then name."""
    roots = glob.glob(path, recursive=True) if is_pattern(path) else [path]
    found = {file.path: file for root in roots for file in _files(Path(root))}
    return sorted(found.values(), key=lambda file: (file.modified, file.path))


def unchanged(file: DataFile) -> bool:
    """Whether a file is still as found."""
    return [*_file(Path(file.path), file.constants)] == [file]


def _files(root: Path) -> Iterator[DataFile]:
    if root.is_dir():
        yield from _in_folder(root, ())
    elif not _is_hidden(root.name):
        yield from _file(root, ())


def _in_folder(folder: Path, constants: tuple[tuple[str, str | None], ...]) -> Iterator[DataFile]:
    for entry in os.scandir(folder):
        if _is_hidden(entry.name):
            continue
        if not entry.is_dir():
            yield from _file(Path(entry.path), constants)
        elif "=" in entry.name:
            column, _, value = entry.name.partition("=")
            known = None if value == _NO_VALUE else unquote(value)
            yield from _in_folder(Path(entry.path), (*constants, (unquote(column), known)))


def _is_hidden(name: str) -> bool:
    """Whether a file is not meant to be read, for example because it is being written."""
    return name.startswith((".", "_")) or name.endswith("._COPYING_")


def _file(path: Path, constants: tuple[tuple[str, str | None], ...]) -> Iterator[DataFile]:
    try:
        found = path.stat()
    except FileNotFoundError:  # removed in the meantime
        return
    yield DataFile(str(path), found.st_size, found.st_mtime_ns, constants)
