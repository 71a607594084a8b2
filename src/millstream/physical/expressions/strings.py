"""Functions of strings.

Arrow maps the case of single characters, where `ß` has no capital, so it computes UPPER and LOWER
only for ASCII. POSITION too: Arrow counts bytes, SQL counts characters. Arrow computes other
functions if the arguments after the text are constant, as they mostly are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.functions import Signature
from millstream.model.types import BINARY, INT, STRING, is_array
from millstream.physical.expressions.arithmetic import Builder
from millstream.physical.expressions.by_distinct import Meaning, by_distinct
from millstream.physical.expressions.mixing import mixed
from millstream.physical.expressions.nested import reverse_arrays
from millstream.physical.expressions.nodes import ColumnNode, Constant, Kernel, Node
from millstream.physical.expressions.patterns import like_kernel, rlike_kernel
from millstream.physical.expressions.vector import Vector, mask_of, null_scalar, text_bytes


def _constants(arguments: Sequence[Node]) -> list[Any] | None:
    """The plain values of the arguments, if all are constant."""
    plain = [node.plain for node in arguments if isinstance(node, Constant)]
    return plain if len(plain) == len(arguments) else None


def _of_text(make: Callable[..., Callable[[Any], Any] | None]) -> Builder:
    """A function of a text and constants: `make` gets the constants."""

    def build(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
        constants = _constants(arguments[1:])
        if constants is None or isinstance(arguments[0], Constant):
            return None
        compute = make(*constants)
        return None if compute is None else lambda values, *_: Vector(compute(values))

    return build


def _unchanged(values: Any) -> Any:
    return values


def _empty(values: Any) -> Any:
    return pc.utf8_slice_codeunits(values, start=0, stop=0)


# --- ASCII ------------------------------------------------------------------------------------


def is_ascii(values: pa.Array) -> bool:
    """Whether all characters are ASCII; False may be wrong."""
    text = text_bytes(values)
    return not len(text) or bool(text.min() >= 0)


def _if_ascii(fast: Callable[[Any], Any], meaning: Meaning, result: pa.DataType) -> Kernel:
    exact = by_distinct(meaning, [ColumnNode(0, STRING)], result, strict=True)

    def quick(values: pa.Array) -> Vector:
        return Vector(fast(values))

    def kernel(values: pa.Array, *_: pa.Scalar) -> Vector:
        if is_ascii(values):
            return quick(values)
        return mixed(values, mask_of(pc.string_is_ascii(values)), quick, exact)

    return kernel


def _changing_case(fast: Callable[[Any], Any], meaning: Meaning) -> Builder:
    return lambda signature, arguments: _if_ascii(fast, meaning, STRING)


def _position(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    part, text, *start = arguments
    if not isinstance(part, Constant) or isinstance(text, Constant):
        return None
    if _constants(start) not in ([], [1]) or part.plain is None:
        return None
    wanted = part.plain
    assert isinstance(wanted, str)

    def fast(values: Any) -> Any:
        return pc.add(pc.find_substring(values, wanted), pa.scalar(1, INT))

    def meaning(value: str) -> int:
        return value.find(wanted) + 1

    kernel = _if_ascii(fast, meaning, INT)
    return lambda part, values, *_: kernel(values)


# --- parts ------------------------------------------------------------------------------------


def _substring(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    binary = signature.result == BINARY
    if binary and not hasattr(pc, "binary_slice"):
        return None
    cut = pc.binary_slice if binary else pc.utf8_slice_codeunits

    def make(position: int, length: int | None = None) -> Callable[[Any], Any]:
        start, stop = _bounds(position, length)
        return lambda values: cut(values, start=start, stop=stop)

    return _of_text(make)(signature, arguments)


def _bounds(position: int, length: int | None) -> tuple[int, int | None]:
    """As in Python slices: a negative bound counts from the end."""
    start = position - 1 if position > 0 else position
    if length is None:
        return start, None
    end = start + max(length, 0)
    return (start, None) if start < 0 <= end else (start, end)


def _left(count: int) -> Callable[[Any], Any]:
    return lambda values: pc.utf8_slice_codeunits(values, start=0, stop=max(count, 0))


def _right(count: int) -> Callable[[Any], Any]:
    if count <= 0:
        return _empty
    return lambda values: pc.utf8_slice_codeunits(values, start=-count)


def _trim(strip: Callable[..., Any]) -> Builder:
    """The characters to trim come first, if given."""

    def build(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
        *characters, text = arguments
        constants = _constants(characters)
        if constants is None or isinstance(text, Constant):
            return None
        if constants == [""]:
            return lambda characters, values: Vector(values)
        wanted = constants[0] if constants else " "
        return lambda *values: Vector(strip(values[-1], characters=wanted))

    return build


def _btrim(characters: str = " ") -> Callable[[Any], Any]:
    if not characters:
        return _unchanged
    return lambda values: pc.utf8_trim(values, characters=characters)


def _split_part(delimiter: str, part: int) -> Callable[[Any], Any] | None:
    if part == 0:
        return None
    if not delimiter:
        return _unchanged if part in (1, -1) else _empty

    def compute(values: pa.Array) -> pa.Array:
        parts = pc.split_pattern(values, delimiter)
        offsets = parts.offsets.to_numpy().astype(np.int64)
        first, end = offsets[:-1], offsets[1:]
        wanted = first + (part - 1) if part > 0 else end + part
        inside = (wanted >= first) & (wanted < end)
        found = parts.values.take(pa.array(np.where(inside, wanted, 0), mask=~inside))
        return pc.if_else(values.is_null(), null_scalar(STRING), found.fill_null(""))

    return compute


# --- changes ----------------------------------------------------------------------------------


def _replace(search: str, replacement: str = "") -> Callable[[Any], Any]:
    if not search:
        return _unchanged
    return lambda values: pc.replace_substring(values, search, replacement)


def _padded(pad: Callable[..., Any]) -> Callable[..., Callable[[Any], Any] | None]:
    """Pads or truncates to a length; the reference handles padding of several characters."""

    def make(length: int, padding: str = " ") -> Callable[[Any], Any] | None:
        if length <= 0:
            return _empty
        cut = _left(length)
        if not padding:
            return cut
        if len(padding) > 1:
            return None
        return lambda values: cut(pad(values, width=length, padding=padding))

    return make


def _repeat(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    return lambda text, count: Vector(
        pc.binary_repeat(text, pc.max_element_wise(count, 0, skip_nulls=False))
    )


def _concat(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    if len(arguments) == 1:
        return Vector
    return lambda *values: Vector(pc.binary_join_element_wise(*values, ""))


def _concat_ws(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """NULLs are skipped; each text is prefixed with the separator, and the first separator is
    removed."""
    separator, *parts = arguments
    if not isinstance(separator, Constant) or any(is_array(part.type) for part in parts):
        return None
    if separator.plain is None or all(isinstance(part, Constant) for part in parts):
        return None
    mark = separator.plain
    assert isinstance(mark, str)

    def kernel(_: pa.Scalar, *values: Any) -> Vector:
        marked = [pc.binary_join_element_wise(mark, value, "") for value in values]
        present = [pc.fill_null(value, "") for value in marked]
        joined = pc.binary_join_element_wise(*present, "")
        return Vector(pc.utf8_slice_codeunits(joined, start=len(mark)))

    return kernel


def _reverse(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    if is_array(signature.result):
        return reverse_arrays
    return lambda values: Vector(pc.utf8_reverse(values))


def _length(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    if signature.arguments[0] == BINARY:
        return lambda values: Vector(pc.binary_length(values))

    def kernel(values: pa.Array) -> Vector:
        return Vector(pc.binary_length(values) if is_ascii(values) else pc.utf8_length(values))

    return kernel


def _instr_from(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """From the start, it is POSITION with swapped arguments."""
    if len(arguments) != 2:
        return None
    turned = Signature(signature.arguments[::-1], signature.result)
    kernel = _position(turned, arguments[::-1])
    return None if kernel is None else lambda text, part: kernel(part, text)


KERNELS: dict[str, Builder] = {
    "||": _concat,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "length": _length,
    "substring": _substring,
    "left": _of_text(_left),
    "right": _of_text(_right),
    "upper": _changing_case(pc.ascii_upper, str.upper),
    "lower": _changing_case(pc.ascii_lower, str.lower),
    "trim": _trim(pc.utf8_trim),
    "ltrim": _trim(pc.utf8_ltrim),
    "rtrim": _trim(pc.utf8_rtrim),
    "btrim": _of_text(_btrim),
    "replace": _of_text(_replace),
    "startswith": _of_text(lambda part: lambda values: pc.starts_with(values, part)),
    "endswith": _of_text(lambda part: lambda values: pc.ends_with(values, part)),
    "contains": _of_text(lambda part: lambda values: pc.match_substring(values, part)),
    "like": like_kernel,
    "rlike": rlike_kernel,
    "position": _position,
    "instr_from": _instr_from,
    "split_part": _of_text(_split_part),
    "lpad": _of_text(_padded(pc.utf8_lpad)),
    "rpad": _of_text(_padded(pc.utf8_rpad)),
    "repeat": _repeat,
    "reverse": _reverse,
}
