"""LIKE and RLIKE with a constant pattern.

A LIKE becomes a comparison, a search, or a regular expression of Arrow (RE2). An RLIKE is always an
RE2 expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.functions import EvaluationError, Signature
from millstream.logical.functions.regular_expressions import LINE_END, translate
from millstream.physical.expressions.nodes import Constant, Kernel, Node
from millstream.physical.expressions.vector import Vector, mask_of

_ANY, _ONE = object(), object()  # % and _


def like_kernel(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """A pattern with a dangling escape fails for every row; the reference reports it."""
    text, *rest = arguments
    constants = [node.plain for node in rest if isinstance(node, Constant)]
    if isinstance(text, Constant) or len(constants) < len(rest):
        return None
    pattern, escape = constants if len(constants) == 2 else (constants[0], "\\")
    assert isinstance(pattern, str)
    assert isinstance(escape, str)
    pieces = _pieces(pattern, escape) if len(escape) == 1 else None
    if pieces is None:
        return None
    match = _matching(pieces)
    return lambda values, *_: Vector(match(values))


def _pieces(pattern: str, escape: str) -> list[Any] | None:
    """Literals and wildcards; None if an escape is dangling."""
    pieces: list[Any] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if character not in ("%", "_", escape) or not character:
                return None
        elif character in "%_":
            pieces.append(_ANY if character == "%" else _ONE)
            continue
        if pieces and isinstance(pieces[-1], str):
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


def _matching(pieces: list[Any]) -> Callable[[Any], Any]:
    match pieces:
        case []:
            return lambda values: pc.equal(values, "")
        case [str(text)]:
            return lambda values: pc.equal(values, text)
        case [str(text), wildcard] if wildcard is _ANY:
            return lambda values: pc.starts_with(values, text)
        case [wildcard, str(text)] if wildcard is _ANY:
            return lambda values: pc.ends_with(values, text)
        case [first, str(text), last] if first is _ANY and last is _ANY:
            return lambda values: pc.match_substring(values, text)
    expression = rf"(?s)\A{''.join(map(_regular, pieces))}\z"
    return lambda values: pc.match_substring_regex(values, expression)


def _regular(piece: Any) -> str:
    if isinstance(piece, str):
        return "".join(rf"\x{{{ord(character):x}}}" for character in piece)
    return ".*" if piece is _ANY else "."


# --- RLIKE ------------------------------------------------------------------------------------


def rlike_kernel(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    text, node = arguments
    if isinstance(text, Constant) or not isinstance(node, Constant):
        return None
    assert isinstance(node.plain, str)
    try:
        pattern = translate(node.plain)
    except EvaluationError:  # fails for every row: left to the reference
        return None

    def kernel(values: pa.Array, _: pa.Scalar) -> Vector:
        found = pc.match_substring_regex(values, pattern.anywhere)
        if pattern.before_line_end is None:
            return Vector(found)
        more = mask_of(pc.match_substring_regex(values, LINE_END))
        if not more.any():
            return Vector(found)
        shorter = pc.replace_substring_regex(values, LINE_END, "")
        again = pc.match_substring_regex(shorter, pattern.before_line_end)
        return Vector(pc.or_(found, pc.and_(again, pa.array(more))))

    return kernel
