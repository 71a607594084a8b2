"""Random scalar expressions as SQL text.

An expression is drawn as a tree of templates. Each template says the kind of its result and of the
operands in its holes; a hole is now and then filled with an expression of another kind, so that
implicit casts are tried too.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from scalar_values import DECIMALS, NUMBERS, PLAIN, TYPES, text_of

# --- literals ---------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x00": "\\0"}
    return "'" + "".join(escapes.get(character, character) for character in text) + "'"


_DECIMAL_LITERALS = [
    *("0.0", "1.5", "-0.01", "2.25000", "12345678901234567890.5", ".5", "3BD", "9" * 38),
    "0.000000000000000000000000000000000001",
]
_LITERALS = {
    "b": ["TRUE", "FALSE"],
    "i": ["0", "1", "2", "-1", "3", "10", "7", "100", "2147483647", "-2147483648"],
    "l": ["0L", "1L", "-7L", "-9223372036854775808L", "9223372036854775807"],
    "d": ["0e0", "1e0", "2.5e0", "-1e-3", "1e300", "3D", "1e18", "0.5D"],
    **dict.fromkeys(DECIMALS, _DECIMAL_LITERALS),
    "y": ["X''", "X'00FF'", "X'616263'"],
    "e": ["DATE '2020-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'"],
    "t": [
        *("TIMESTAMP '2020-02-29 12:34:56.789'", "TIMESTAMP '0001-01-01 00:00:00'"),
        "TIMESTAMP '1969-12-31 23:59:59.999999'",
    ],
    "v": [
        *("INTERVAL '1' DAY", "INTERVAL '5' HOUR", "INTERVAL '-3' MINUTE", "INTERVAL 2 DAYS"),
        *("INTERVAL '0.5' SECOND", "INTERVAL '90' SECOND"),
    ],
    "n": ["ARRAY(1, 2, 3)", "ARRAY(0)", "ARRAY(1, NULL)"],
    "o": ["ARRAY('a', 'b')", "ARRAY('')"],
}


def _literal(random: random.Random, kind: str) -> str:
    if kind == "s":
        return _quoted(text_of(random))
    return random.choice(_LITERALS.get(kind, [f"{kind}1", f"{kind}2"]))


# --- templates --------------------------------------------------------------------------------

# By the kind of the result. In a hole stands a kind; N is any number, A any plain kind, and equal
# letters after a hash the same kind: {A#1} = {A#1}.
_BINARY_BOOLEAN = ["=", "<>", "<", "<=", ">", ">=", "<=>"]
_UNITS = ["YEAR", "QUARTER", "MONTH", "MM", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"]
_UNITS += ["MILLISECOND", "MICROSECOND"]
_TARGETS = {
    "b": "BOOLEAN", "i": "INT", "l": "BIGINT", "r": "FLOAT", "d": "DOUBLE", "s": "STRING",
    "y": "BINARY", "e": "DATE", "t": "TIMESTAMP", "v": "INTERVAL DAY TO SECOND",
    "m": "DECIMAL(10, 2)", "q": "DECIMAL(5, 4)", "w": "DECIMAL(38, 10)", "z": "DECIMAL(38, 0)",
    "u": "DECIMAL(20, 18)", "n": "ARRAY<INT>", "o": "ARRAY<STRING>",
}  # fmt: skip
_CASTABLE = {
    "b": NUMBERS + "s", "i": NUMBERS + "sbt", "l": NUMBERS + "sbt", "r": NUMBERS + "sbt",
    "d": NUMBERS + "sbt", "s": PLAIN + "no", "y": "s", "e": "st", "t": "se" + NUMBERS, "v": "s",
    **dict.fromkeys(DECIMALS, NUMBERS + "sbt"), "n": "o", "o": "n",
}  # fmt: skip

_OF_DECIMALS = [
    *(f"({{D}} {op} {{D}})" for op in "+-*/%"), *(f"({{D}} {op} {{i}})" for op in "+-*/%"),
    *(f"({{l}} {op} {{D}})" for op in "+-*/%"), "(-{D})", "ABS({D})", "(+{D})",
    "ROUND({D}, {k})", "ROUND({D})", "CEIL({D})", "FLOOR({D})", "EXTRACT(SECOND FROM {t})",
    "GREATEST({D}, {D})", "COALESCE({D}, {D})", "({D} * 10)", "({D} + 1)", "(100 - {D})",
    "({D} / 3)", "MOD({D}, {D})",
]  # fmt: skip

TEMPLATES: dict[str, list[str]] = {
    "b": [
        *(f"({{A#1}} {op} {{A#1}})" for op in _BINARY_BOOLEAN),
        *(f"({{N}} {op} {{N}})" for op in _BINARY_BOOLEAN),
        "({n} = {n})", "({p} < {p})",
        "({b} AND {b})", "({b} OR {b})", "(NOT {b})", "({A} IS NULL)", "({A} IS NOT NULL)",
        "({A#1} IN ({A#1}, {A#1}))", "({A#1} NOT IN ({A#1}, NULL))", "({N} IN ({N}, {N}, {N}))",
        "({A#1} BETWEEN {A#1} AND {A#1})", "({A#1} IS DISTINCT FROM {A#1})", "({b} IS TRUE)",
        "({s} LIKE {s})", "({s} LIKE 'a%')", "({s} LIKE '%\\\\%_')", "({s} LIKE '%b%c' ESCAPE '/')",
        "({s} ILIKE '%A%')", "({s} NOT LIKE {s})", "ISNAN({d})", "ISNAN({r})",
        "STARTSWITH({s}, {s})",
        "ENDSWITH({s}, {s})", "CONTAINS({s}, {s})", "ARRAY_CONTAINS({n}, {i})",
        "ARRAY_CONTAINS({o}, {s})", "({s} RLIKE '^[a-c]+$')", "({s} RLIKE '\\\\d+|\\\\s')",
        "({s} RLIKE '.b*$')",
        "({s} RLIKE '[^\\\\s%]$')",
        "({s} RLIKE '\\\\A(a|b)*\\\\Z')",
        "({s} RLIKE '(?i)[A-F]{1,2}')",
        "({s} RLIKE '\\\\p{Lu}|\\\\W')",
        "({s} RLIKE '(?s)a.')",
        "regexp_like({s}, '(?i)A\\\\w?')", "ISNULL({A})", "ISNOTNULL({A})",
    ],
    "i": [
        *(f"({{i}} {op} {{i}})" for op in "+-*%"), "(-{i})", "(+{i})", "ABS({i})", "SIZE({n})",
        "SIZE({o})", "LENGTH({s})", "LENGTH({y})", "CHAR_LENGTH({s})", "ASCII({s})",
        "POSITION({s} IN {s})", "LOCATE({s}, {s}, {i})", "LOCATE({s}, {s})", "INSTR({s}, {s})",
        "INSTR({s}, {s}, {i})", "MOD({i}, {i})", "ROUND({i}, {k})", "ROUND({i})",
        *(f"{part}({{e}})" for part in ("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFYEAR", "WEEKDAY")),
        *(f"{part}({{t}})" for part in ("DAYOFWEEK", "WEEKOFYEAR", "HOUR", "MINUTE", "SECOND")),
        "EXTRACT(DOW FROM {e})", "EXTRACT(HOUR FROM {t})", "DATE_PART('YEAR', {t})",
        "DATEDIFF({e}, {e})", "ELEMENT_AT({n}, {k})", "{n}[{k}]", "TRY_ELEMENT_AT({n}, {k})",
        "{p}.a", "NULLIF({i}, {i})", "SIGN({i})", "EXTRACT(WEEK FROM {e})",
    ],
    "l": [
        *(f"({{l}} {op} {{l}})" for op in "+-*%"), "({N} DIV {N})", "({l} DIV {i})", "(-{l})",
        "ABS({l})", "CEIL({N})", "FLOOR({N})", "UNIX_SECONDS({t})", "UNIX_MILLIS({t})",
        "UNIX_MICROS({t})", "CRC32({y})", "CRC32({s})", "ROUND({l}, {k})", "({v} DIV {v})",
        "({l} * {i})", "({i} + {l})",
    ],
    "r": ["({r} + {r})", "({r} - {r})", "({r} * {r})", "({r} % {r})", "(-{r})", "ABS({r})",
          "NANVL({r}, {r})", "ROUND({r}, {k})"],
    "d": [
        *(f"({{d}} {op} {{N}})" for op in "+-*/%"), "({N} / {N})", "({i} / {i})", "({d} / {d})",
        "(-{d})", "(+{s})", "ABS({d})", "NANVL({d}, {d})", "ROUND({d}, {k})", "SQRT({d})",
        "SIGN({d})", "(-{s})", "ABS({s})", "({s} + {N})", "({s} * {s})", "ROUND({d})",
        "({r} / {N})",
    ],
    **dict.fromkeys(DECIMALS, _OF_DECIMALS),
    "s": [
        "({s} || {A})", "CONCAT({s}, {A}, {s})", "CONCAT_WS({s}, {s}, {s})",
        "CONCAT_WS(',', {A}, {o})",
        "SUBSTRING({s}, {k})", "SUBSTRING({s}, {k}, {k})", "SUBSTR({s} FROM {k})", "LEFT({s}, {k})",
        "RIGHT({s}, {k})", "TRIM({s})", "LTRIM({s})", "RTRIM({s})", "TRIM(BOTH {s} FROM {s})",
        "TRIM(LEADING 'a' FROM {s})", "TRIM(TRAILING {s} FROM {s})", "BTRIM({s})",
        "BTRIM({s}, {s})",
        "REPLACE({s}, {s})", "REPLACE({s}, {s}, {s})", "TRANSLATE({s}, {s}, {s})", "REVERSE({s})",
        "SPLIT_PART({s}, {s}, {k})", "LPAD({s}, {c}, {s})", "RPAD({s}, {c}, {s})", "LPAD({s}, {c})",
        "RPAD({s}, 9)", "REPEAT({s}, {c})", "CHR({i})", "CHR({l})", "MD5({y})", "MD5({s})",
        "SHA2({s}, 256)", "SHA2({y}, {k})", "UPPER({s})", "LOWER({s})", "INITCAP({s})", "{p}.b",
        "ELEMENT_AT({o}, {k})", "{o}[{k}]", "TRY_ELEMENT_AT({o}, {k})", "({s} || {s})",
    ],
    "y": ["SUBSTRING({y}, {k}, {k})", "COALESCE({y}, {y})"],
    "e": ["({e} + {k})", "({e} - {k})", "DATE_ADD({e}, {k})", "DATE_SUB({e}, {k})", "TO_DATE({t})",
          "({e} + INTERVAL '3' DAY)", "({e} - INTERVAL 1 DAY)", "TO_DATE({s})",
          *(f"TRUNC({{e}}, '{unit}')" for unit in ("YEAR", "MON", "WEEK", "QUARTER", "DD"))],
    "t": [
        "({t} + {v})", "({t} - {v})", "({e} + {v})", "({v} + {t})", "({e} + INTERVAL '3' HOUR)",
        *(f"DATE_TRUNC('{unit}', {{t}})" for unit in _UNITS), "TIMESTAMP_SECONDS({N})",
        "TIMESTAMP_MILLIS({l})", "TIMESTAMP_MICROS({l})", "TIMESTAMP_SECONDS({i})",
    ],
    "v": ["({t} - {t})", "({e} - {e})", "({t} - {e})", "({v} + {v})", "({v} - {v})", "({v} * {N})",
          "({v} / {N})", "(-{v})", "ABS({v})", "({N} * {v})", "(+{v})"],
    "n": ["ARRAY({i}, {i})", "REVERSE({n})", "ARRAY({i})"],
    "o": ["ARRAY({s}, {s})", "REVERSE({o})", "ARRAY({A#1}, {A#1})"],
    "p": ["COALESCE({p}, {p})"],
    "k": ["({i} % 5)", "({k} + 1)", "SIZE({n})", "LENGTH({s})"],
}  # fmt: skip

# Of any kind: the result is of the kind of the operands.
ANY_KIND = [
    "CASE WHEN {b} THEN {X} ELSE {X} END", "CASE WHEN {b} THEN {X} END", "IF({b}, {X}, {X})",
    "COALESCE({X}, {X})", "NULLIF({X}, {X})", "NVL2({A}, {X}, {X})", "NVL({X}, {X})",
    "CASE {A#1} WHEN {A#1} THEN {X} ELSE {X} END",
]  # fmt: skip
ORDERED = ["GREATEST({X}, {X})", "LEAST({X}, {X}, {X})"]

# Their last digits, or the texts that they give, depend on the library or the version of Java.
ROUGH = [
    *(
        "EXP({d})",
        "LN({d})",
        "LOG({d}, {d})",
        "LOG2({d})",
        "LOG10({d})",
        "POWER({d}, {d})",
        "SIN({d})",
    ),
    *("SIN({d})", "COS({d})", "TAN({d})", "ASIN({d})", "ACOS({d})", "ATAN({d})", "ATAN2({d}, {d})"),
    *("DEGREES({d})", "RADIANS({d})", "PI()", "LOG({d})"),
]

_HOLE = re.compile(r"\{([A-Za-z])(#\d)?\}")


@dataclass(frozen=True)
class Tree:
    """An expression: its text, with the operands in their places."""

    kind: str
    parts: tuple[str | Tree, ...]

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def operands(self) -> list[Tree]:
        return [part for part in self.parts if isinstance(part, Tree)]

    def smaller(self) -> Iterator[Tree]:
        """Expressions like this one but simpler, simplest first."""
        yield from self.operands
        for place, part in enumerate(self.parts):
            if isinstance(part, Tree):
                if part.operands and part.kind in TYPES:
                    for number in "12":
                        yield self._with(place, Tree(part.kind, (f"{part.kind}{number}",)))
                for other in part.smaller():
                    yield self._with(place, other)

    def _with(self, place: int, part: Tree) -> Tree:
        return Tree(self.kind, (*self.parts[:place], part, *self.parts[place + 1 :]))


def tree(random: random.Random, kind: str, depth: int) -> Tree:
    """A random expression, most probably of a kind."""
    if kind == "c":  # a small constant: there is no memory for texts of any length
        return Tree(kind, (str(random.choice([0, 1, 2, 3, -1, 5, 20])),))
    if random.random() < 0.04:
        kind = random.choice(list(PLAIN))
    if depth == 0 or random.random() < 0.12:
        return _leaf(random, kind)
    if kind in _TARGETS and random.random() < 0.15:
        return _cast(random, kind, depth)
    choices = TEMPLATES[kind]
    if kind in TYPES and random.random() < 0.15:
        choices = ANY_KIND + (ORDERED if kind in PLAIN else [])
    return filled(random, kind, random.choice(choices), depth - 1)


def _leaf(random: random.Random, kind: str) -> Tree:
    if kind == "k":
        return Tree(kind, (str(random.choice([0, 1, 2, 3, -1, -2, 5, 20, -20, 38])),))
    chance = random.random()
    if chance < 0.02:
        return Tree(kind, ("NULL",))
    text = _literal(random, kind) if chance < 0.3 else f"{kind}{random.choice('12')}"
    return Tree(kind, (text,))


def _cast(random: random.Random, kind: str, depth: int) -> Tree:
    source = random.choice(_CASTABLE[kind])
    word = random.choice(["CAST", "CAST", "TRY_CAST"])
    target = _TARGETS[kind]
    if kind in DECIMALS and random.random() < 0.5:
        precision = random.randrange(1, 39)
        target = f"DECIMAL({precision}, {random.randrange(precision + 1)})"
    return Tree(kind, (f"{word}(", tree(random, source, depth - 1), f" AS {target})"))


def filled(random: random.Random, kind: str, template: str, depth: int) -> Tree:
    """The template with an expression in each hole."""
    same: dict[str, str] = {}
    parts: list[str | Tree] = []
    position = 0
    for hole in _HOLE.finditer(template):
        parts.append(template[position : hole.start()])
        position = hole.end()
        wanted = _kind_of(random, hole[1], kind)
        if hole[2]:
            wanted = same.setdefault(hole[2], wanted)
        parts.append(tree(random, wanted, depth))
    return Tree(kind, (*parts, template[position:]))


def _kind_of(random: random.Random, letter: str, kind: str) -> str:
    groups = {"A": PLAIN, "N": NUMBERS, "D": DECIMALS, "X": kind}
    return random.choice(groups.get(letter, letter))


def expressions(random: random.Random, count: int) -> list[Tree]:
    """Random expressions, in which every template has its turn as the outermost."""
    everything = [(kind, t) for kind, listed in TEMPLATES.items() for t in listed]
    everything += [(random.choice(PLAIN), t) for t in ANY_KIND + ORDERED]
    everything += [("d", t) for t in ROUGH]
    found: list[Tree] = []
    while len(found) < count:
        depth = random.choice([0, 0, 1, 1, 2, 3])
        if random.random() < 0.5:
            found.append(filled(random, *random.choice(everything), depth))
        else:
            found.append(tree(random, random.choice(list(TYPES)), depth + 1))
    return found
