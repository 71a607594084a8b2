"""A document as its blocks.

A block begins with its language and, where it is a file, its name (`csv bids.csv`). A block
without a language is the output of the block above it; what is neither a program nor an output is
`text`. A block below a line `*Not run by the tests: …*` is for people alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FOLDERS = (ROOT / "docs", ROOT / "docs" / "language")
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "examples" / "README.md",
    *sorted(path for folder in FOLDERS for path in folder.glob("*.md")),
]

_BLOCK = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"^\*Not run by the tests: (.+?)\*\s*\Z", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    line: int
    language: str
    file: str | None  # the file that it is, if it is one
    text: str
    before: str  # what is told since the block before
    not_run: str | None  # why the tests do not run it
    output: Block | None = None  # what it prints

    @property
    def where(self) -> str:
        return f"line {self.line}"


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def blocks_of(document: Path) -> list[Block]:
    """The blocks in order; outputs belong to theirs."""
    text = document.read_text(encoding="utf-8")
    found: list[Block] = []
    end = 0
    for match in _BLOCK.finditer(text):
        block = _block(text, match, text[end : match.start()])
        end = match.end()
        if block.language or block.file:
            found.append(block)
        else:
            assert found, f"{block.where}: nothing prints this"
            assert not block.before.strip(), f"{block.where}: an output follows what prints it"
            assert found[-1].output is None, f"{block.where}: a second output"
            found[-1].output = block
    return found


def _block(text: str, match: re.Match[str], before: str) -> Block:
    reason = _NOT_RUN.search(before)
    line = text.count("\n", 0, match.start()) + 2
    language, file, inside = match.groups()
    return Block(line, language, file, inside, before, reason and reason[1])


def write_anew(document: Path, texts: dict[int, str]) -> None:
    """Put other texts into the blocks that begin at these lines."""
    lines = document.read_text(encoding="utf-8").splitlines(keepends=True)
    for line in sorted(texts, reverse=True):
        end = next(n for n in range(line - 1, len(lines)) if lines[n].rstrip() == "```")
        lines[line - 1 : end] = texts[line]
    document.write_text("".join(lines), encoding="utf-8")
