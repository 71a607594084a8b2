"""Names as they are written, and how they match what is declared."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.model.errors import Span


@dataclass(frozen=True)
class Name:
    """A name as it was written: unquoted names are compared without regard to case."""

    text: str
    quoted: bool = False
    span: Span | None = field(default=None, compare=False)

    def matches(self, declared: str) -> bool:
        return self.text == declared if self.quoted else self.text.lower() == declared.lower()

    def __str__(self) -> str:
        return quote(self.text) if self.quoted else self.text


@dataclass(frozen=True)
class QualifiedName(Name):
    """A name with the name of its stream before it."""

    table: Name = Name("")

    def __str__(self) -> str:
        return f"{self.table}.{super().__str__()}"


def quote(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"
