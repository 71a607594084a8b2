"""RLIKE: Java's regular expressions, as far as they can be matched in linear time.

Spark's patterns are those of `java.util.regex`, which backtracks and may take exponential time.
Here a pattern is translated for RE2, which takes linear time. Features that RE2 lacks
(backreferences, lookaround, possessive repetition) are refused, and so are features that differ in
RE2 and have no translation.

The translation handles the differences: the point excludes all of Java's line terminators, `\\s`
includes the vertical tab, and case is that of ASCII letters only. `$` also matches before a final
line terminator, which RE2 cannot express: it is translated as the end of the text, and the text is
searched a second time without the line terminator (`Translated.before_line_end`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.functions.function import EvaluationError

_MOST = 0x10FFFF
LINE_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])\z"
_NEVER = rf"[^\x{{0}}-\x{{{_MOST:x}}}]"

Ranges = list[tuple[int, int]]


@dataclass(frozen=True)
class Translated:
    """A pattern for RE2, and if it has a `$`, another for texts without their final line end."""

    anywhere: str
    before_line_end: str | None


def rlike(text: str, pattern: str) -> bool:
    """Whether the pattern is found somewhere in the text."""
    translated = translate(pattern)
    if _found(text, translated.anywhere):
        return True
    if translated.before_line_end is None:
        return False
    shorter = pc.replace_substring_regex(pa.scalar(text), LINE_END, "").as_py()
    return shorter != text and _found(shorter, translated.before_line_end)


def _found(text: str, expression: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(text), expression).as_py())


@lru_cache(maxsize=1024)
def translate(pattern: str) -> Translated:
    """The pattern for RE2; an EvaluationError says what is not supported."""
    translation = _Translation(pattern)
    whole = translation.run()
    # In a text that is cut before its line end, the end of the whole text never matches.
    shorter = whole.replace(_END, r"\z").replace(_VERY_END, _NEVER) if _END in whole else None
    result = whole.replace(_END, r"\z").replace(_VERY_END, r"\z")
    try:
        pc.match_substring_regex(pa.scalar(""), result)
    except pa.ArrowInvalid as error:
        reason = str(error).split(": ")[-1]
        raise EvaluationError(
            f'"{pattern}" is not supported as a regular expression: {reason}'
        ) from None
    return Translated(result, shorter)


_END, _VERY_END = "\ue000\ue000", "\ue001\ue001"  # placeholders for $ and \z until both are known

_SPACES: Ranges = [(9, 13), (32, 32)]
_HORIZONTAL: Ranges = [
    *((9, 9), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x180E, 0x180E), (0x2000, 0x200A)),
    *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)),
]
_VERTICAL: Ranges = [(10, 13), (0x85, 0x85), (0x2028, 0x2029)]
_LINE_ENDS: Ranges = [(10, 10), (13, 13), (0x85, 0x85), (0x2028, 0x2029)]
_DIGITS: Ranges = [(48, 57)]
_UPPER, _LOWER = (65, 90), (97, 122)
_WORD: Ranges = [*_DIGITS, _UPPER, (95, 95), _LOWER]
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACES, "h": _HORIZONTAL, "v": _VERTICAL}

_PUNCTUATION: Ranges = [(33, 47), (58, 64), (91, 96), (123, 126)]
_POSIX: dict[str, Ranges] = {
    "Lower": [_LOWER],
    "Upper": [_UPPER],
    "ASCII": [(0, 127)],
    "Alpha": [_UPPER, _LOWER],
    "Digit": _DIGITS,
    "Alnum": [*_DIGITS, _UPPER, _LOWER],
    "Punct": _PUNCTUATION,
    "Graph": [(33, 126)],
    "Print": [(32, 126)],
    "Blank": [(9, 9), (32, 32)],
    "Cntrl": [(0, 31), (127, 127)],
    "XDigit": [*_DIGITS, (65, 70), (97, 102)],
    "Space": _SPACES,
}
# Categories of characters of one or two letters, which RE2 also has.
_KINDS = {"L": "lmotu", "M": "cen", "N": "dlo", "P": "cdseifo", "S": "mcko", "Z": "slp"}
_CATEGORIES = {*_KINDS, *(letter + kind for letter, kinds in _KINDS.items() for kind in kinds)}
_CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}


@dataclass
class _Group:
    """The state inside one pair of brackets."""

    ignore_case: bool
    dot_all: bool
    ends: bool = False  # an alternative before this one ends with $


@dataclass
class _Translation:
    pattern: str
    position: int = 0
    ended: bool = False  # just after a $, or a group that ends with one
    repeatable: bool = False  # after something that may be repeated
    output: list[str] = field(default_factory=list)

    def run(self) -> str:
        self.groups = [_Group(False, False)]
        while self.position < len(self.pattern):
            self._step(self._take())
        if len(self.groups) > 1:
            raise self._wrong('a "(" is not closed')
        return "".join(self.output)

    # --- reading ---------------------------------------------------------------------------------

    def _take(self) -> str:
        character = self.pattern[self.position : self.position + 1]
        self.position += 1
        if not character:
            raise self._wrong("it ends too early")
        return character

    def _accept(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.position)
        self.position += len(text) if found else 0
        return found

    def _wrong(self, reason: str) -> EvaluationError:
        return EvaluationError(f'"{self.pattern}" is not a regular expression: {reason}')

    def _refused(self, what: str) -> EvaluationError:
        return EvaluationError(
            f'{what} are not supported in the regular expression "{self.pattern}"'
        )

    # --- writing ---------------------------------------------------------------------------------

    def _write(self, text: str, *, repeatable: bool = True) -> None:
        if self.ended:
            raise EvaluationError(
                f'"$" is supported only at the end of the regular expression "{self.pattern}"'
            )
        self.output.append(text)
        self.repeatable = repeatable

    def _literal(self, code: int) -> None:
        self._write(_class([(code, code)], ignore_case=self.groups[-1].ignore_case))

    # --- parts -----------------------------------------------------------------------------------

    def _step(self, character: str) -> None:
        match character:
            case "\\":
                self._escape()
            case "[":
                self._write(self._set())
            case ".":
                everything = self.groups[-1].dot_all
                self._write("(?s:.)" if everything else _class(_LINE_ENDS, negated=True))
            case "^":
                self._write(r"\A")
            case "$":
                if not self.ended:
                    self._write(_END, repeatable=False)
                self.ended = True
            case "(":
                self._open()
            case ")":
                self._close()
            case "|":
                self.groups[-1].ends |= self.ended
                self.ended = False
                self.output.append("|")
                self.repeatable = False
            case "*" | "+" | "?" | "{":
                self._repeat(character)
            case _:
                self._literal(ord(character))

    def _open(self) -> None:
        outer = self.groups[-1]
        group = _Group(outer.ignore_case, outer.dot_all)
        opening = "(?:"
        if self._accept("?"):
            if self._accept("<") and self.pattern[self.position : self.position + 1] not in "=!":
                end = self.pattern.find(">", self.position)
                if end < 0 or not self.pattern[self.position : end].isalnum():
                    raise self._wrong("a name of a group is not closed")
                self.position = end + 1
            elif self.pattern[self.position - 1] == "<" or self._accept("=") or self._accept("!"):
                raise self._refused("lookahead and lookbehind")
            elif self._accept(">"):
                raise self._refused("atomic groups")
            elif not self._accept(":") and self._flags(group):
                outer.ignore_case, outer.dot_all = group.ignore_case, group.dot_all
                return
        self._write(opening, repeatable=False)
        self.groups.append(group)

    def _flags(self, group: _Group) -> bool:
        """Read the flags of a group; return whether they apply to the rest of the outer group."""
        on = True
        while True:
            character = self._take()
            match character:
                case "-":
                    on = False
                case "i":
                    group.ignore_case = on
                case "s":
                    group.dot_all = on
                case ")":
                    return True
                case ":":
                    return False
                case _:
                    raise self._refused(f'groups with "?{character}"')

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise self._wrong('a ")" closes nothing')
        group = self.groups.pop()
        self.output.append(")")
        self.ended = self.ended or group.ends
        self.repeatable = True

    def _repeat(self, character: str) -> None:
        if not self.repeatable:
            raise self._wrong(f'"{character}" repeats nothing')
        times = character
        if character == "{":
            end = self.pattern.find("}", self.position)
            inner = self.pattern[self.position : end] if end >= 0 else ""
            least, comma, most = inner.partition(",")
            if not _is_count(least) or (most and not _is_count(most)):
                raise self._wrong('a "{" is not a repetition')
            if most and int(least) > int(most):
                raise self._wrong(f"{{{inner}}} is not a repetition")
            if max(int(least), int(most or 0)) > 1000:
                raise self._refused("repetitions of more than 1000 times")
            self.position = end + 1
            times = f"{{{least}{comma}{most}}}"
        if self._accept("+"):
            raise self._refused("possessive repetitions")
        self._accept("?")  # lazy: does not change whether there is a match
        self._write(times, repeatable=False)

    def _escape(self) -> None:
        character = self._take()
        if character in "123456789k":
            raise self._refused("backreferences")
        if character == "Q":
            end = self.pattern.find(r"\E", self.position)
            text = self.pattern[self.position : end if end >= 0 else None]
            self.position = end + 2 if end >= 0 else len(self.pattern)
            for quoted in text:
                self._literal(ord(quoted))
        elif character in "bB":
            self._write(rf"\{character}")
        elif character == "A":
            self._write(r"\A")
        elif character == "z":
            self._write(_VERY_END)
        elif character == "Z":
            self._step("$")
        elif character in "GRXN":
            raise self._refused(rf'escapes such as "\{character}"')
        else:
            ranges = self._escaped_class(character)
            if isinstance(ranges, str):
                self._write(ranges)
            elif ranges is not None:
                self._write(_class(ranges))
            else:
                self._literal(self._escaped_code(character))

    def _escaped_class(self, character: str) -> Ranges | str | None:
        """The characters of an escape, if there are several; a category in RE2's syntax."""
        if character in "pP":
            return self._property(negated=character == "P")
        if character.lower() not in _CLASSES:
            return None
        ranges = _CLASSES[character.lower()]
        return ranges if character.islower() else _others(ranges)

    def _property(self, *, negated: bool) -> Ranges | str:
        name = self._take()
        if name == "{":
            end = self.pattern.find("}", self.position)
            if end < 0:
                raise self._wrong(r'a "\p{" is not closed')
            name = self.pattern[self.position : end]
            self.position = end + 1
        cased = name in ("Lower", "Upper", "Lu", "Ll", "Lt")
        if cased and self.groups[-1].ignore_case:
            raise self._refused(rf'classes such as "\p{{{name}}}" where case is ignored')
        if name in _POSIX:
            return _others(_POSIX[name]) if negated else _POSIX[name]
        if name in _CATEGORIES:
            return rf"\{'P' if negated else 'p'}{{{name}}}"
        raise self._refused(rf'classes such as "\p{{{name}}}"')

    def _escaped_code(self, character: str) -> int:
        """The single character of an escape."""
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character == "x" and self._accept("{"):
            end = self.pattern.find("}", self.position)
            digits = self.pattern[self.position : end] if end >= 0 else ""
            self.position = end + 1
            return self._number(digits, 16)
        if character in "xu":
            return self._number(
                "".join(self._take() for _ in range(2 if character == "x" else 4)), 16
            )
        if character == "0":
            digits = ""
            while len(digits) < 3 and self.pattern[self.position : self.position + 1] in _OCTAL:
                if len(digits) == 2 and digits[0] > "3":
                    break
                digits += self._take()
            return self._number(digits, 8)
        if character == "c":
            return ord(self._take()) ^ 64
        if character.isascii() and character.isalpha():
            raise self._wrong(rf'"\{character}" is not a known escape')
        return ord(character)

    def _number(self, digits: str, base: int) -> int:
        try:
            code = int(digits, base)
        except ValueError:
            code = -1
        if not 0 <= code <= _MOST or not digits.isalnum():
            raise self._wrong(f'"{digits}" is not a character')
        return code

    # --- sets of characters ----------------------------------------------------------------------

    def _set(self) -> str:
        """`[…]`, after its bracket."""
        negated = self._accept("^")
        ranges: Ranges = []
        categories: list[str] = []
        first = True
        while first or not self._accept("]"):
            first = False
            item = self._item()
            if isinstance(item, str):
                categories.append(item)
            elif isinstance(item, list):
                ranges += item
            else:
                ranges.append((item, self._range_end(item)))
        ignore_case = self.groups[-1].ignore_case
        return _class(ranges, negated=negated, ignore_case=ignore_case, more="".join(categories))

    def _item(self) -> int | Ranges | str:
        character = self._take()
        if character == "[" or (character == "&" and self._accept("&")):
            raise self._refused("sets of characters within sets")
        if character != "\\":
            return ord(character)
        escaped = self._take()
        if escaped in "QbBAzZGRXN":
            raise self._refused(rf'escapes such as "\{escaped}" in sets of characters')
        if escaped in "123456789":
            raise self._wrong(rf'"\{escaped}" is not a known escape in a set of characters')
        found = self._escaped_class(escaped)
        return self._escaped_code(escaped) if found is None else found

    def _range_end(self, first: int) -> int:
        rest = self.pattern[self.position : self.position + 2]
        if len(rest) < 2 or rest[0] != "-" or rest[1] in "][":
            return first
        self._take()
        last = self._item()
        if not isinstance(last, int) or last < first:
            raise self._wrong("a range of characters has no end, or ends before it begins")
        return last


_OCTAL = tuple("01234567")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _others(ranges: Ranges) -> Ranges:
    """All other characters."""
    found: Ranges = []
    start = 0
    for first, last in sorted(ranges):
        if start < first:
            found.append((start, first - 1))
        start = max(start, last + 1)
    return [*found, (start, _MOST)] if start <= _MOST else found


def _class(
    ranges: Ranges, *, negated: bool = False, ignore_case: bool = False, more: str = ""
) -> str:
    """Characters as a set in RE2's syntax; optionally ASCII letters in both cases."""
    if ignore_case:
        ranges = [*ranges, *_other_case(ranges, _UPPER, 32), *_other_case(ranges, _LOWER, -32)]
    parts = "".join(
        rf"\x{{{first:x}}}" if first == last else rf"\x{{{first:x}}}-\x{{{last:x}}}"
        for first, last in ranges
    )
    return f"[{'^' if negated else ''}{parts}{more}]"


def _other_case(ranges: Ranges, letters: tuple[int, int], distance: int) -> Ranges:
    found = [(max(first, letters[0]), min(last, letters[1])) for first, last in ranges]
    return [(first + distance, last + distance) for first, last in found if first <= last]
