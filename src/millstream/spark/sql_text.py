"""Pieces of Spark SQL, combined with parentheses where precedence needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import NamedTuple, TypeAlias


class SqlText(NamedTuple):
    """An expression as text; `whole`: it needs no parentheses next to any operator."""

    text: str
    whole: bool = True

    @property
    def bracketed(self) -> str:
        return self.text if self.whole else f"({self.text})"


Build: TypeAlias = Callable[..., SqlText]

_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", **{chr(code): f"\\{code:03o}" for code in range(32)}}
)


def string(value: str) -> SqlText:
    return SqlText(f"'{value.translate(_ESCAPES)}'")


def quoted(name: str) -> str:
    """A quoted name, safe for any characters."""
    return "`" + name.replace("`", "``") + "`"


def cast(operand: SqlText, type: str) -> SqlText:
    return SqlText(f"CAST({operand.text} AS {type})")


def called(name: str, arguments: Iterable[SqlText]) -> SqlText:
    return SqlText(f"{name}({', '.join(argument.text for argument in arguments)})")


def function(name: str) -> Build:
    return lambda *arguments: called(name, arguments)


def operator(sign: str) -> Build:
    """Takes two or more operands, from left to right."""

    def joined(left: SqlText, right: SqlText) -> SqlText:
        return SqlText(f"{left.bracketed} {sign} {right.bracketed}", whole=False)

    return lambda *operands: reduce(joined, operands)


def prefix(sign: str) -> Build:
    return lambda operand: SqlText(f"{sign}{operand.bracketed}", whole=False)


def is_null(operand: SqlText) -> SqlText:
    return SqlText(f"{operand.bracketed} IS NULL", whole=False)


def is_in(value: SqlText, *items: SqlText) -> SqlText:
    listed = ", ".join(item.text for item in items)
    return SqlText(f"{value.bracketed} IN ({listed})", whole=False)


def case(*parts: SqlText) -> SqlText:
    """Alternating conditions and values, then the value of ELSE, if any."""
    branches = zip(parts[::2], parts[1::2], strict=False)
    text = "".join(f" WHEN {when.text} THEN {then.text}" for when, then in branches)
    otherwise = f" ELSE {parts[-1].text}" if len(parts) % 2 else ""
    return SqlText(f"CASE{text}{otherwise} END")


def like(text: SqlText, pattern: SqlText, *escape: SqlText) -> SqlText:
    with_escape = f" ESCAPE {escape[0].text}" if escape else ""
    return SqlText(f"{text.bracketed} LIKE {pattern.bracketed}{with_escape}", whole=False)


def trim(position: str, *parts: SqlText) -> SqlText:
    characters, text = parts if len(parts) == 2 else (string(" "), *parts)
    return SqlText(f"TRIM({position} {characters.text} FROM {text.text})")


def extract(field: str, time: SqlText) -> SqlText:
    return SqlText(f"EXTRACT({field} FROM {time.text})")


def dot(struct: SqlText, field: str) -> SqlText:
    return SqlText(f"{struct.bracketed}.{quoted(field)}")
