"""What the prose of a document names: calls, commands, files and statements in inline code."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from docs.document import DOCUMENTS, ROOT, blocks_of

#: What is read: the documents that are played, and those that have no programs.
READ = [*DOCUMENTS, ROOT / "ARCHITECTURE.md", ROOT / "benchmarks" / "README.md"]

_CALL = re.compile(r"[A-Za-z_]+(\(|\.[a-z_]+\b)")
_COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )?(millstream [a-z]|python -m |make [a-z])")
_FILE = re.compile(r"[\w./*-]+\.(py|md|sql|toml|svg)|(tools|tests|docs|src|benchmarks|papers)/\S*")
_STATEMENT = re.compile(r"(CREATE|DROP|SHOW|STOP|INSERT INTO|UPDATE|DELETE FROM|MERGE)\b")


@cache
def inline_code(document: Path) -> list[str]:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(document.read_text(encoding="utf-8"))
    parts = [part for token in tokens for part in token.children or []]
    return list(dict.fromkeys(part.content for part in parts if part.type == "code_inline"))


@cache
def commands(document: Path) -> list[str]:
    """Commands in prose, in blocks for a terminal, and in indented text."""
    found = [code for code in inline_code(document) if _COMMAND.match(code)]
    for block in blocks_of(document):
        lines = block.text.splitlines()
        if block.language == "sh":
            found += [line.partition("#")[0].strip() for line in lines]
        elif block.language == "console":
            found += [line[2:] for line in lines if line.startswith("$ ")]
    for line in document.read_text(encoding="utf-8").splitlines():
        if line.startswith("    ") and _COMMAND.match(line.strip()):
            found.append(re.split(r"\s{2,}", line.strip())[0])
    return [command for command in found if _COMMAND.match(command)]


def files(document: Path) -> list[str]:
    """Names of files of the project; those that a document shows or writes itself are not."""
    own = {block.file for block in blocks_of(document)}
    own |= {"session.sql", "workload.sql"}  # methods
    return [code for code in inline_code(document) if _FILE.fullmatch(code) and code not in own]


def statements(document: Path) -> list[str]:
    return [code for code in inline_code(document) if _STATEMENT.match(code)]


# --- calls ----------------------------------------------------------------------------------------


def calls(document: Path, roots: Mapping[str, Any]) -> Iterator[tuple[str, ast.expr]]:
    """Expressions such as `query.start(sink, checkpoint=…)` whose first name is one of these."""
    for code in inline_code(document):
        if not _CALL.match(code) or code.endswith(".py"):
            continue
        text = re.sub(r",\s*…\)", ")", code)  # more of the same
        text = re.sub(r"=(?=[,)])", "=...", text).replace("…", "...")
        try:
            expression = ast.parse(text, mode="eval").body
        except SyntaxError:
            continue
        if _root(expression) in roots:
            yield code, expression


def _root(expression: ast.expr) -> str:
    while not isinstance(expression, ast.Name):
        match expression:
            case ast.Attribute(value=inner) | ast.Call(func=inner) | ast.Subscript(value=inner):
                expression = inner
            case _:
                return ""
    return expression.id


def resolved(expression: ast.expr, roots: Mapping[str, Any]) -> Any:
    """What an expression names; a call is not made, but it must take the options that it has."""
    match expression:
        case ast.Name(id=name):
            return roots[name]
        case ast.Attribute(value=inner, attr=name):
            return getattr(resolved(inner, roots), name)
        case ast.Subscript(value=inner):
            found = resolved(inner, roots)
            return next(iter(found.values() if isinstance(found, Mapping) else found))
        case ast.Call(func=function, keywords=keywords):
            called = resolved(function, roots)
            parameters = inspect.signature(called).parameters
            if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
                unknown = {str(each.arg) for each in keywords} - set(parameters)
                assert not unknown, f"{called.__name__} takes no {unknown}"
            return None
    raise AssertionError(ast.dump(expression))


# --- the map of the code --------------------------------------------------------------------------


def mapped() -> Iterator[tuple[str, Path | None]]:
    """The files and folders that the map of ARCHITECTURE.md names, with where they are. In a line,
    names without a folder are beside the first one."""
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("| `"):
            continue
        beside: Path | None = None
        for name in re.findall(r"`([^`]+)`", line.split("|")[1]):
            bases = [ROOT, ROOT / "src" / "millstream"]
            bases = bases if beside is None else [beside, *bases]
            found = next((base / name for base in bases if (base / name).exists()), None)
            yield name, found
            if found is not None and (beside is None or "/" in name.rstrip("/")):
                beside = found.parent
