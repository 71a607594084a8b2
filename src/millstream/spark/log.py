"""Spark's log of a streaming query, which Millstream's manifest overrides.

Spark records the range of each batch before it delivers it (`offsets/<id>`), and its completion
afterwards (`commits/<id>`); sources record where they began, and file sources which files belong to
which offset (`sources/<n>/<offset>`). Spark never syncs any of this to disk. So Millstream's
manifest keeps Spark's record of a batch, the *mark* of the batch. When a query restarts, the log is
reset to the manifest: later batches were never answered and are read again; missing or damaged
files are rewritten.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.checkpoint.files import CheckpointError
from millstream.checkpoint.folders import FOLDER_MODE


@dataclass(frozen=True)
class LoggedBatch:
    """A batch in Spark's log. `files` has the short log files at its end, by name; `digests` covers
    all files that are needed."""

    batch: int
    files: dict[str, str]
    digests: dict[str, str]

    def told(self) -> dict[str, Any]:
        """As plain values, for a checkpoint."""
        return {"batch": self.batch, "files": self.files, "digests": self.digests}

    @staticmethod
    def of(told: dict[str, Any]) -> LoggedBatch:
        return LoggedBatch(told["batch"], told["files"], told["digests"])

    @property
    def range(self) -> str:
        """The end offsets of the batch, which determine its rows."""
        return self.files[f"offsets/{self.batch}"]


class SparkLog:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mark(self, batch: int) -> LoggedBatch:
        """Spark's record of a batch that it is about to deliver."""
        names = ["metadata", *(f"offsets/{id}" for id in (batch - 1, batch) if id >= 0)]
        files = {name: (self.folder / name).read_text() for name in names}
        digests = {}
        for name in self._source_logs(files[f"offsets/{batch}"]):
            text = (self.folder / name).read_text()
            digests[name] = _digest(text)
            if not name.endswith(".compact"):
                files[name] = text
        return LoggedBatch(batch, files, digests)

    def _source_logs(self, offsets: str) -> Iterator[str]:
        """The logs of file sources, from the last compacted one; for other sources all records,
        which say where they began."""
        for source, offset in enumerate(offsets.splitlines()[2:]):
            reached = _log_offset(offset)
            if reached is None:
                notes = sorted(self.folder.glob(f"sources/{source}/[!.]*"))
                yield from (str(path.relative_to(self.folder)) for path in notes)
                continue
            for number in range(reached, -1, -1):
                name = f"sources/{source}/{number}"
                if (self.folder / f"{name}.compact").exists():
                    yield f"{name}.compact"
                    break
                if (self.folder / name).exists():
                    yield name

    def bring_to(self, mark: LoggedBatch | None) -> None:
        """Reset the log so that the batch of the mark is the last and completed."""
        self.folder.parent.mkdir(FOLDER_MODE, exist_ok=True)  # Spark's files follow the umask
        if mark is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        self._forget_after(mark)
        for name, text in mark.files.items():
            self._write(name, text)
        for id in (mark.batch - 1, mark.batch):
            if f"offsets/{id}" in mark.files:
                self._write(f"commits/{id}", self._commit(id, mark.files[f"offsets/{id}"]))
        for name, digest in mark.digests.items():
            path = self.folder / name
            if not path.exists() or _digest(path.read_text()) != digest:
                raise CheckpointError(
                    f'Spark\'s list of the files that were read, "{path}", is missing or damaged',
                    help="restore the checkpoint's folder, or start the query with a new one",
                )

    def _forget_after(self, mark: LoggedBatch) -> None:
        for path in [*self.folder.glob("offsets/*"), *self.folder.glob("commits/*")]:
            if not path.name.isdigit() or int(path.name) > mark.batch:
                path.unlink()
        reached = map(_log_offset, mark.range.splitlines()[2:])
        for source, last in enumerate(reached):
            if last is None:
                continue
            for path in self.folder.glob(f"sources/{source}/*"):
                number = path.name.removesuffix(".compact")
                if not number.isdigit() or int(number) > last:
                    path.unlink()

    def _commit(self, id: int, offsets: str) -> str:
        """The commit record of a batch, Spark's own if it exists."""
        try:
            text = (self.folder / f"commits/{id}").read_text()
            version, told = text.splitlines()[:2]
            if version == "v1" and "nextBatchWatermarkMs" in json.loads(told):
                return text
        except (OSError, ValueError):
            pass
        watermark = json.loads(offsets.splitlines()[1]).get("batchWatermarkMs", 0)
        return f'v1\n{{"nextBatchWatermarkMs":{watermark}}}'

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        path.write_text(text)


def _log_offset(offset: str) -> int | None:
    """The number in the offset of a file source."""
    try:
        told = json.loads(offset)
    except ValueError:
        return None
    found = told.get("logOffset") if isinstance(told, dict) else None
    return None if found is None else int(found)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
