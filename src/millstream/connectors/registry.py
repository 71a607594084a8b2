"""The connectors that every session knows, each loaded when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from millstream.catalog import Stream
from millstream.connectors.source import Source

Connect = Callable[..., Any]


def _module(name: str) -> Connect:
    """The `connect` of a module of this package."""

    def connect(*values: Any, **options: Any) -> Any:
        return import_module(f"millstream.connectors.{name}").connect(*values, **options)

    return connect


def _class(module: str, name: str) -> Callable[[Stream], Source]:
    """A class of a module of this package."""

    def of(stream: Stream) -> Source:
        found: Source = getattr(import_module(f"millstream.connectors.{module}"), name)(stream)
        return found

    return of


# What `CREATE STREAM … SOURCE name(…)` calls, by the name in lower case.
BUILT_IN: Mapping[str, Connect] = {"nexmark": _module("nexmark")}

# Those that go by what their stream declares.
SOURCES: Mapping[str, Callable[[Stream], Source]] = {
    "parquet": _class("files", "Files"),
    "csv": _class("files", "Files"),
    "json": _class("files", "Files"),
    "rate": _class("rate", "Rate"),
    "socket": _class("socket_lines", "Socket"),
}
