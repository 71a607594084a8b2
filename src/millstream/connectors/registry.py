"""The connectors that every session knows, each loaded when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from millstream.logical.catalog import Stream
from millstream.runtime.sources import Reader

Connect = Callable[..., Any]


def _module(name: str) -> Connect:
    """The `connect` of a module of this package."""

    def connect(*values: Any, **options: Any) -> Any:
        return import_module(f"millstream.connectors.{name}").connect(*values, **options)

    return connect


# What `CREATE STREAM … SOURCE name(…)` calls, by the name in lower case.
BUILT_IN: Mapping[str, Connect] = {"nexmark": _module("nexmark")}

# Those that go by what their stream declares. They are told whether only that is wanted which is
# available now.
SOURCES: Mapping[str, Callable[[Stream, bool], Reader]] = {
    "parquet": _module("file_reader"),
    "csv": _module("file_reader"),
    "json": _module("file_reader"),
    "rate": _module("rate"),
    "socket": _module("socket_lines"),
}
