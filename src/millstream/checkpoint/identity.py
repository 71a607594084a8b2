"""What a checkpoint belongs to: a query over streams of certain columns, with certain functions.

State made by one query means nothing to another, so whatever has changed is told before anything is
read.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.files import CheckpointError, Files
from millstream.checkpoint.fingerprint import fingerprint
from millstream.checkpoint.records import sealed, unsealed
from millstream.logical.evaluate import UserAggregate, UserFunction
from millstream.logical.expressions import AggregateCall, Call
from millstream.logical.plan import Plan, Source, expressions
from millstream.logical.text import plan_text
from millstream.model.types import sql_name

FORMAT = 4  # of all files of a checkpoint
_NAME, _PLAN, _TOKEN = "query", "plan", "token"


@dataclass(frozen=True)
class Identity:
    """Each part as text, so that messages can say which one has changed."""

    query: str
    streams: Mapping[str, str]
    functions: Mapping[str, str]


def identity(
    plan: Plan,
    emit: str,
    functions: Mapping[str, UserFunction],
    aggregates: Mapping[str, UserAggregate],
) -> Identity:
    sources = {node.stream: node for node in plan.walk() if isinstance(node, Source)}
    streams = {name: _columns(source) for name, source in sorted(sources.items())}
    used = sorted(_called(plan) & {*functions, *aggregates})
    return Identity(
        f"{plan_text(plan)}\nEMIT {emit}",
        streams,
        {name: _digest(functions.get(name) or aggregates[name]) for name in used},
    )


def _columns(source: Source) -> str:
    columns = ", ".join(f"{field.name} {sql_name(field.type)}" for field in source.columns)
    return f"({columns}) {source.time.describe()}"


def _called(plan: Plan) -> set[str]:
    return {
        part.function
        for node in plan.walk()
        for part in expressions(node)
        if isinstance(part, Call | AggregateCall)
    }


def _digest(function: UserFunction | UserAggregate) -> str:
    """Of the code and all that it uses: a function is another one when it may do something else."""
    return fingerprint(tuple(vars(function).values()))


def claim(files: Files, own: Identity, plan: bytes) -> bytes:
    """Make a new checkpoint that of this query, or check that it is; gives the physical plan that
    it began with, as bytes, which goes on whatever would be chosen today."""
    files.tidy()
    if files.names("manifests") or _exists(files, _NAME):
        _check(json.loads(unsealed(_NAME, _read(files, _NAME))), own)
        return unsealed(_PLAN, _read(files, _PLAN))
    files.replace(_PLAN, sealed(plan))
    told = {"format": FORMAT, **vars(own)}
    files.publish(_NAME, sealed(json.dumps(told).encode()))
    return plan


def token(files: Files) -> str:
    """Tells a checkpoint from all others; drawn when it is first asked for."""
    if not _exists(files, _TOKEN):
        files.publish(_TOKEN, sealed(secrets.token_hex(8).encode()))
    return unsealed(_TOKEN, files.read(_TOKEN)).decode()


def _exists(files: Files, name: str) -> bool:
    try:
        files.read(name, 0, 1)
    except FileNotFoundError:
        return False
    return True


def _read(files: Files, name: str) -> bytes:
    try:
        return files.read(name)
    except FileNotFoundError:
        raise CheckpointError(
            f'the file "{name}" of the checkpoint is gone',
            help="restore the checkpoint's folder, or start the query with a new one",
        ) from None


def _check(told: Mapping[str, Any], own: Identity) -> None:
    if told["format"] != FORMAT:
        raise CheckpointError(
            f"the checkpoint has format {told['format']}, this version reads format {FORMAT}",
            help="use the version that wrote it, or start the query with a new checkpoint",
        )
    changed = list(_changes(told, own))
    if changed:
        raise CheckpointError(
            f"the checkpoint belongs to another query: {'; '.join(changed)}",
            help="start what it belongs to, or give this query a checkpoint of its own",
        )


def _changes(told: Mapping[str, Any], own: Identity) -> Iterable[str]:
    for name in sorted({*told["streams"]} | {*own.streams}):
        before, now = told["streams"].get(name), own.streams.get(name)
        if before != now:
            yield f'stream "{name}" was {before or "not read"} and is {now or "not read"}'
    for name in sorted({*told["functions"]} | {*own.functions}):
        if told["functions"].get(name) != own.functions.get(name):
            yield f'the function "{name}" has changed, or something that it uses'
    if told["query"] != own.query:
        yield "its plan has changed"
