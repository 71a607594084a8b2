"""Files that record each operation, and what is left after a crash at any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fragments.fragment_agreement import MemoryFiles


@dataclass
class Recorder(MemoryFiles):
    """Files that remember every write."""

    content: dict[str, bytes] = field(default_factory=dict)
    writes: list[tuple[str, str, bytes]] = field(default_factory=list)

    def write(self, name: str, parts: Sequence[bytes]) -> None:
        super().write(name, parts)
        self.writes.append(("write", name, self.content[name]))

    def publish(self, name: str, data: bytes) -> None:
        super().publish(name, data)
        if not (self.writes and self.writes[-1][1] == name):
            self.writes.append(("whole", name, data))

    def replace(self, name: str, data: bytes) -> None:
        super().replace(name, data)
        self.writes.append(("whole", name, data))

    def remove(self, name: str) -> None:
        super().remove(name)
        self.writes.append(("remove", name, b""))


def left_by_crash(writes: Sequence[tuple[str, str, bytes]], torn: bool) -> MemoryFiles:
    """What is there after these writes; the last one may have got half way."""
    files = MemoryFiles()
    for number, (kind, name, data) in enumerate(writes):
        last = number == len(writes) - 1
        if kind == "remove":
            files.content.pop(name, None)
        elif not (last and torn):
            files.content[name] = data
        elif kind == "write":
            files.content[name] = data[: len(data) // 2]
    return files
