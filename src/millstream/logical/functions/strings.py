"""Functions of strings. Positions count characters from 1; binary data is counted in bytes."""

from __future__ import annotations

import hashlib
import re
import uuid
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from millstream.logical.functions.facts import (
    LENGTH,
    MAYBE_NULL,
    PLAIN,
    STEADY,
    Argument,
    FunctionFacts,
)
from millstream.logical.functions.function import (
    EvaluationError,
    Function,
    Signature,
    SignatureError,
    Types,
    all_of_them,
    check_argument,
    check_count,
    fixed,
    from_right,
    function,
)
from millstream.logical.functions.ranges import Range
from millstream.logical.functions.regular_expressions import rlike, translate
from millstream.model import types
from millstream.model.long_texts import MOST_BYTES
from millstream.model.types import BIGINT, BINARY, BOOLEAN, INT, STRING

# --- patterns ---------------------------------------------------------------------------------


def _like(text: str, pattern: str, escape: str = "\\") -> bool:
    """The pieces between the % are found one after the other, each as early as possible; the first
    one at the start, and the last one at the end."""
    first, *others = _like_pieces(pattern, escape)
    if not others:
        return len(text) == len(first) and _fits(text, first, 0)
    *inner, last = others
    end = len(text) - len(last)
    if len(first) > end or not _fits(text, first, 0) or not _fits(text, last, end):
        return False
    position = len(first)
    for piece in inner:
        place = _next_place(text, piece, position, end)
        if place is None:
            return False
        position = place + len(piece)
    return True


Piece = tuple[str | None, ...]  # characters, and None for a _


@lru_cache(maxsize=1024)
def _like_pieces(pattern: str, escape: str) -> tuple[Piece, ...]:
    """The pieces between the % of a pattern."""
    if len(escape) != 1:
        raise EvaluationError(f'the escape of LIKE must be one character, not "{escape}"')
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("%", "_", escape) or not following:
                raise EvaluationError(f'the escape in the pattern "{pattern}" escapes nothing')
            pieces[-1].append(following)
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if character == "_" else character)
    return tuple(map(tuple, pieces))


def _fits(text: str, piece: Piece, start: int) -> bool:
    return start >= 0 and all(
        wanted is None or wanted == found
        for wanted, found in zip(piece, text[start : start + len(piece)], strict=True)
    )


def _next_place(text: str, piece: Piece, start: int, end: int) -> int | None:
    """The first position of the piece between two positions."""
    if None not in piece:
        place = text.find("".join(c for c in piece if c is not None), start, end)
        return None if place < 0 else place
    found = _searched(piece).search(text, start, end)
    return None if found is None else found.start()


@lru_cache(maxsize=1024)
def _searched(piece: Piece) -> re.Pattern[str]:
    """A regular expression without repetitions, so it cannot backtrack."""
    return re.compile("".join("." if c is None else re.escape(c) for c in piece), re.DOTALL)


def _rlike_type(signature: Signature, text: object, pattern: object) -> pa.DataType:
    """A constant pattern is checked before any row."""
    if isinstance(pattern, str):
        try:
            translate(pattern)
        except EvaluationError as error:
            raise SignatureError(str(error)) from None
    return signature.result


# --- parts ------------------------------------------------------------------------------------


def _substring(text: Any, position: int, length: int | None = None) -> Any:
    """Position 0 is the first; a negative position counts from the end, and may lie before it."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = len(text) if length is None else start + max(length, 0)
    return text[max(start, 0) : max(end, 0)]


def _left(text: str, count: int) -> str:
    return text[: max(count, 0)]


def _right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""


def _trim(strip: Callable[[str, str], str]) -> Callable[..., str]:
    """The characters to trim come first, as in Spark; the default is the space."""

    def evaluate(first: str, text: str | None = None) -> str:
        return strip(first, " ") if text is None else strip(text, first) if first else text

    return evaluate


def _btrim(text: str, characters: str = " ") -> str:
    return text.strip(characters) if characters else text


def _split_part(text: str, delimiter: str, part: int) -> str:
    if part == 0:
        raise EvaluationError("the part number of split_part must not be 0")
    parts = text.split(delimiter) if delimiter else [text]
    index = part - 1 if part > 0 else len(parts) + part
    return parts[index] if 0 <= index < len(parts) else ""


def _position(part: str | None, text: str | None, start: int | None = 1) -> int | None:
    """0 if it is not found, or if the start is NULL."""
    if start is None:
        return 0
    if part is None or text is None:
        return None
    if start < 1:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def _start_first(signature: Signature) -> Sequence[int]:
    return (2, 0, 1) if len(signature.arguments) == 3 else (0, 1)


def _instr(text: str, part: str, start: int = 1, occurrence: int = 1) -> int:
    """The position of an occurrence, searching forwards from the start; if the start is negative,
    backwards from that position before the end. 0 if there is none."""
    if occurrence < 1:
        raise EvaluationError(f"the occurrence of instr must be at least 1, not {occurrence}")
    if not part:
        return 1
    if start == 0:
        return 0
    if start > 0:
        place = start - 2
        for _ in range(occurrence):
            place = text.find(part, place + 1)
            if place < 0:
                return 0
        return place + 1
    end = len(text) + start + len(part)  # of an occurrence that begins at the start
    for _ in range(occurrence):
        place = text.rfind(part, 0, max(end, 0))
        if place < 0:
            return 0
        end = place + len(part) - 1
    return place + 1


# --- changes ----------------------------------------------------------------------------------


def _replace(text: str, search: str, replacement: str = "") -> str:
    return text.replace(search, replacement) if search else text


def _check_length(length: int) -> None:
    """A row must not take all memory: no array holds a longer text."""
    if length > MOST_BYTES:
        raise EvaluationError(
            f"the text would have {length:,} characters; the maximum is {MOST_BYTES:,}"
        )


def _repeat(text: str, count: int) -> str:
    _check_length(len(text) * count)
    return text * count


def _padding(text: str, length: int, pad: str) -> str:
    missing = max(length, 0) - len(text)
    return (pad * (missing // len(pad) + 1))[:missing] if missing > 0 and pad else ""


def _lpad(text: str, length: int, pad: str = " ") -> str:
    return _padding(text, length, pad) + _left(text, length)


def _rpad(text: str, length: int, pad: str = " ") -> str:
    return _left(text, length) + _padding(text, length, pad)


def _initcap(text: str) -> str:
    return " ".join(word[:1].title() + word[1:].lower() for word in text.split(" "))


def _translate(text: str, search: str, replacement: str) -> str:
    """Characters without a counterpart are removed; of a repeated one, the first counts."""
    table: dict[int, str | None] = {}
    for index, character in enumerate(search):
        table.setdefault(ord(character), replacement[index : index + 1] or None)
    return text.translate(table)


def _chr(code: int) -> str:
    return "" if code < 0 else chr(code & 0xFF)


def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


def _concat_ws(separator: str | None, *parts: Any) -> str | None:
    """NULLs are skipped; arrays contribute their elements."""
    if separator is None:
        return None
    flat = (e for part in parts for e in (part if isinstance(part, tuple) else (part,)))
    return separator.join(element for element in flat if element is not None)


def _sha2(data: bytes, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return hashlib.new(name, data).hexdigest() if name else None


# --- types ------------------------------------------------------------------------------------


def _text_or_binary(given: Types) -> pa.DataType:
    return BINARY if given[0] == BINARY else STRING


def _length_signature(given: Types) -> Signature:
    check_count("length", given, 1, 1)
    wanted = _text_or_binary(given)
    check_argument("length", 1, given[0], wanted)
    return Signature((wanted,), INT)


def _substring_signature(given: Types) -> Signature:
    check_count("substring", given, 2, 3)
    arguments = (_text_or_binary(given), INT, INT)[: len(given)]
    for number, (type, wanted) in enumerate(zip(given, arguments, strict=True), 1):
        check_argument("substring", number, type, wanted)
    return Signature(arguments, arguments[0])


def _concat_signature(name: str) -> Callable[[Types], Signature]:
    def resolve(given: Types) -> Signature:
        check_count(name, given, 2 if name == "||" else 1)
        for number, type in enumerate(given, 1):
            check_argument(name, number, type, STRING)
        return Signature((STRING,) * len(given), STRING)

    return resolve


def _concat_ws_signature(given: Types) -> Signature:
    check_count("concat_ws", given, 1)
    check_argument("concat_ws", 1, given[0], STRING)
    return Signature((STRING, *map(_joined_type, range(2, len(given) + 1), given[1:])), STRING)


def _joined_type(number: int, type: pa.DataType) -> pa.DataType:
    if types.is_array(type):
        check_argument("concat_ws", number, type.value_type, STRING)
        return pa.list_(STRING)
    check_argument("concat_ws", number, type, STRING)
    return STRING


def _concat(signature: Signature, *parts: str) -> str:
    return "".join(parts)


# --- facts ------------------------------------------------------------------------------------


def _accepting(meaning: Callable[..., Any]) -> FunctionFacts:
    """Whether it can fail depends only on the arguments after the text, if they are constants."""

    def total(result: pa.DataType, text: Argument, *others: Argument) -> bool:
        values = [other.value for other in others]
        if any(value is ... or value is None for value in values):
            return False
        try:
            meaning("", *values)
        except EvaluationError:
            return False
        return True

    return FunctionFacts(total, null_if=any, steady=True)


_INSTR = FunctionFacts(lambda result, *arguments: len(arguments) < 4, null_if=any, steady=True)

# --- the table --------------------------------------------------------------------------------

_TRIMS = {
    "trim": _trim(str.strip),
    "ltrim": _trim(str.lstrip),
    "rtrim": _trim(str.rstrip),
}

FUNCTIONS = [
    Function("||", _concat_signature("||"), _concat, order=all_of_them, facts=PLAIN),
    Function("concat", _concat_signature("concat"), _concat, order=all_of_them, facts=PLAIN),
    Function(
        "concat_ws", _concat_ws_signature, lambda _, *v: _concat_ws(*v), strict=False, facts=PLAIN
    ),
    Function("length", _length_signature, lambda _, value: len(value), facts=LENGTH),
    Function(
        "substring", _substring_signature, lambda _, *values: _substring(*values), facts=PLAIN
    ),
    function("like", BOOLEAN, [STRING, STRING, STRING], _like, optional=1, facts=_accepting(_like)),
    Function(
        "rlike",
        fixed("rlike", BOOLEAN, [STRING, STRING]),
        lambda _, text, pattern: rlike(text, pattern),
        narrowed=_rlike_type,
        facts=_accepting(rlike),
    ),
    function("upper", STRING, [STRING], str.upper, facts=PLAIN),
    function("lower", STRING, [STRING], str.lower, facts=PLAIN),
    function("left", STRING, [STRING, INT], _left, facts=PLAIN),
    function("right", STRING, [STRING, INT], _right, facts=PLAIN),
    *(
        function(name, STRING, [STRING] * 2, meaning, optional=1, order=from_right, facts=PLAIN)
        for name, meaning in _TRIMS.items()
    ),
    function("btrim", STRING, [STRING, STRING], _btrim, optional=1, facts=PLAIN),
    function("replace", STRING, [STRING, STRING, STRING], _replace, optional=1, facts=PLAIN),
    function("startswith", BOOLEAN, [STRING, STRING], str.startswith, facts=PLAIN),
    function("endswith", BOOLEAN, [STRING, STRING], str.endswith, facts=PLAIN),
    function("contains", BOOLEAN, [STRING, STRING], str.__contains__, facts=PLAIN),
    function(
        *("position", INT, [STRING, STRING, INT], _position),
        optional=1,
        strict=False,
        order=_start_first,
        facts=LENGTH,
    ),
    function("instr_from", INT, [STRING, STRING, INT, INT], _instr, optional=2, facts=_INSTR),
    function("lpad", STRING, [STRING, INT, STRING], _lpad, optional=1, facts=STEADY),
    function("rpad", STRING, [STRING, INT, STRING], _rpad, optional=1, facts=STEADY),
    function("repeat", STRING, [STRING, INT], _repeat, facts=STEADY),
    function("initcap", STRING, [STRING], _initcap, facts=PLAIN),
    function("translate", STRING, [STRING, STRING, STRING], _translate, facts=PLAIN),
    function(
        "split_part", STRING, [STRING, STRING, INT], _split_part, facts=_accepting(_split_part)
    ),
    function("ascii", INT, [STRING], _ascii, facts=PLAIN),
    function("chr", STRING, [BIGINT], _chr, facts=PLAIN),
    function("md5", STRING, [BINARY], lambda data: hashlib.md5(data).hexdigest(), facts=PLAIN),
    function("sha2", STRING, [BINARY, INT], _sha2, facts=MAYBE_NULL),
    function(
        "crc32", BIGINT, [BINARY], zlib.crc32, facts=replace(PLAIN, range=Range(0, 2**32 - 1))
    ),
    function("uuid", STRING, [], lambda: str(uuid.uuid4()), deterministic=False),
]
