"""The manifest of a batch: everything needed to resume after it. Writing it is the commit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.checkpoint.files import Files
from millstream.checkpoint.records import Ref, sealed, unsealed
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER

FOLDER = "manifests"


@dataclass(frozen=True)
class ShardState:
    """Where the state of a shard is stored: a snapshot, and the log of its inputs since then."""

    snapshot: Ref | None = None
    logs: tuple[Ref, ...] = ()

    @property
    def version(self) -> Ref | None:
        """The record written last, which identifies the state."""
        return self.logs[-1] if self.logs else self.snapshot

    @property
    def logged(self) -> int:
        return sum(log.length for log in self.logs)

    def refs(self) -> Iterator[Ref]:
        if self.snapshot is not None:
            yield self.snapshot
        yield from self.logs

    def told(self) -> list[Any]:
        """As plain values."""
        return [_optional(self.snapshot), [log.told() for log in self.logs]]

    @staticmethod
    def of(told: Sequence[Any]) -> ShardState:
        snapshot, logs = told
        return ShardState(
            None if snapshot is None else Ref(*snapshot), tuple(Ref(*log) for log in logs)
        )


@dataclass(frozen=True)
class Manifest:
    """The state after batch `batch`: the start of time and the progress of the answer, the state of
    each shard by fragment and number, the driver's state, and the answers of the batch until they
    are published."""

    batch: int
    beginning: int = INFINITY
    frontier: int = NEVER
    shards: Mapping[tuple[int, int], ShardState] = field(default_factory=dict)
    driver: Ref | None = None
    answers: tuple[Ref, ...] = ()

    def refs(self) -> Iterator[Ref]:
        for state in self.shards.values():
            yield from state.refs()
        if self.driver is not None:
            yield self.driver
        yield from self.answers

    def write(self, files: Files) -> None:
        """The commit point."""
        files.publish(_name(self.batch), sealed(json.dumps(self._json()).encode()))

    def _json(self) -> dict[str, object]:
        return {
            "batch": self.batch,
            "beginning": self.beginning,
            "frontier": self.frontier,
            "shards": [[*key, *state.told()] for key, state in self.shards.items()],
            "driver": _optional(self.driver),
            "answers": [answer.told() for answer in self.answers],
        }


def _name(batch: int) -> str:
    return f"{FOLDER}/{batch:010d}"


def _optional(ref: Ref | None) -> list[Any] | None:
    return None if ref is None else ref.told()


def read_manifest(files: Files, name: str) -> Manifest:
    told = json.loads(unsealed(name, files.read(name)))
    return Manifest(
        told["batch"],
        told["beginning"],
        told["frontier"],
        {(fragment, shard): ShardState.of(state) for fragment, shard, *state in told["shards"]},
        None if told["driver"] is None else Ref(*told["driver"]),
        tuple(Ref(*answer) for answer in told["answers"]),
    )


def last_manifest(files: Files) -> Manifest | None:
    """The newest manifest. If it is damaged, the effects of its batch are not known, so that is an
    error: an older manifest must not replace it."""
    names = files.names(FOLDER)
    return read_manifest(files, names[-1]) if names else None


def collect_garbage(files: Files, kept: list[Manifest], folders: tuple[str, ...]) -> None:
    """Remove the files that no kept manifest needs, up to the batch of the newest."""
    newest = max(manifest.batch for manifest in kept)
    needed = {ref.name for manifest in kept for ref in manifest.refs()}
    needed |= {_name(manifest.batch) for manifest in kept}
    for folder in (*folders, FOLDER):
        for name in files.names(folder):
            if name not in needed and batch_of(name) <= newest:
                files.remove(name)


def batch_of(name: str) -> int:
    """The batch in which a file was written; its name begins with it."""
    return int(name.rpartition("/")[2].partition("-")[0])
