"""The processes of a Spark program and their resource use, by kind.

On a shared machine, the processor time of a batch is more meaningful than wall time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KINDS = ("driver", "jvm", "workers", "keepers")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    id: int
    parent: int
    command: list[str]
    seconds: float
    memory: int  # bytes

    @property
    def executor(self) -> int:
        """The process that a keeper serves, given as its last argument."""
        return int(self.command[-1])

    @property
    def is_keeper(self) -> bool:
        return "millstream.spark.keeper_process" in self.command


def _all() -> Iterator[Process]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().decode().split("\0")[:-1]
        except OSError:  # it has ended
            continue
        ticks = sum(map(int, fields[11:15]))  # its own, and those of ended children
        memory = int(fields[21]) * _PAGE
        yield Process(int(folder.name), int(fields[1]), command, ticks / _TICKS, memory)


def own_processes() -> dict[str, list[Process]]:
    """This process and all that it started, including keepers."""
    everyone = list(_all())
    own = {os.getpid()}
    while more := {p.id for p in everyone if p.parent in own} - own:
        own |= more
    found: dict[str, list[Process]] = {kind: [] for kind in KINDS}
    for process in everyone:
        if process.is_keeper and process.executor in own:
            found["keepers"].append(process)
        elif process.id in own:
            found[_kind(process)].append(process)
    return found


def _kind(process: Process) -> str:
    if process.id == os.getpid():
        return "driver"
    return "jvm" if process.command and process.command[0].endswith("java") else "workers"


def processor_seconds() -> Counter[str]:
    return Counter({kind: sum(p.seconds for p in ps) for kind, ps in own_processes().items()})


def memory() -> Counter[str]:
    return Counter({kind: sum(p.memory for p in ps) for kind, ps in own_processes().items()})
