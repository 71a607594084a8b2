"""Secrets: values that queries and connectors use and that nothing shows.

`ms.secret("…")` marks a parameter. Options of connectors that are named like a secret (`password`,
`token`, …), and the password in a URL or a connection string, are secrets without a mark. Plans,
SHOW, `explain` and `repr` print `***` instead, and so do messages, whoever raised them.

>>> secret("hunter2")
secret('***')
>>> shown("postgresql://ada:lovelace@db/sales"), shown("host=db password=lovelace")
('postgresql://ada:***@db/sales', 'host=db password=***')
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"

_NAMES = re.compile(
    r"pass(word|wd|phrase)?$|pwd|secret|token|credential|(api|access|private|account)_?key",
    re.IGNORECASE,
)
_IN_TEXT = re.compile(
    r"(?P<url>(?<=://)[^\s:/@]*:)(?P<one>[^\s/@]+)(?=@)"
    r"|(?P<key>\b(?:password|passwd|pwd|sslpassword)\s*=\s*)(?P<two>'[^']*'|[^\s;&]+)",
    re.IGNORECASE,
)

# What messages must not show. Very short values are not looked for: they are part of other words.
_known: set[str] = set()
_SHORTEST = 4


class Secret(str):
    """A text that works like any other, and is not printed."""

    __slots__ = ()

    def __new__(cls, value: str) -> Secret:
        note(value)
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"secret('{MASK}')"

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (str(self),)


def secret(value: str) -> Secret:
    """Mark the value of a parameter: `session.sql(text, password=ms.secret("…"))`."""
    if not isinstance(value, str):
        raise TypeError(f"a secret is a text, not {type(value).__name__}")
    return Secret(value)


def note(value: str) -> None:
    """Never show this text in a message."""
    if len(value) >= _SHORTEST:
        _known.add(value)


def note_options(options: Iterable[tuple[str, object]]) -> None:
    """Note what is secret among the options of a connector, by name and value."""
    for name, value in options:
        if not isinstance(value, str):
            continue
        if is_secret_name(name):
            note(value)
        for match in _IN_TEXT.finditer(value):
            note((match["one"] or match["two"]).strip("'"))


def is_secret_name(name: str) -> bool:
    return _NAMES.search(name) is not None


def shown(text: str) -> str:
    """The text without the passwords in it."""
    return _IN_TEXT.sub(lambda match: (match["url"] or match["key"]) + MASK, text)


def masked(text: str) -> str:
    """The text without any secret that is known."""
    for value in sorted(_known, key=len, reverse=True) if _known else ():
        text = text.replace(value, MASK)
    return text
