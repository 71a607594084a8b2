"""Words that cannot be names unless they are quoted.

A word is reserved if it has another meaning in some place. It is refused where a name is declared,
rather than where the name is first used in such a place.
"""

from __future__ import annotations

from millstream.model.errors import ParseError
from millstream.model.names import Name

_WORDS = """
ALL ALTER AND ANY AS BETWEEN CASE CREATE CROSS CURRENT_DATE CURRENT_TIMESTAMP CURRENT_USER
DESCRIBE DISTINCT DROP EFFECTIVE ELSE EMIT EXCEPT FALSE FETCH FOR FORMAT FROM FUNCTION GLOB GRANT
HAVING ILIKE INNER INSERT INTERSECT INTO JOIN LATERAL LIKE LIMIT MINUS NOT NOTNULL NULL ON OR
OUTER PARTITIONED_BY QUALIFY REGEXP RETURNING REVOKE RLIKE ROLLBACK SELECT SERDEPROPERTIES
SESSION_USER SHED STREAM TABLE TABLESAMPLE THEN TRUE UNCACHE UNION UNNEST USING VALUES WHEN WHERE
WITH XOR
"""
RESERVED = frozenset(_WORDS.split())

# Words that have a meaning in expressions; only as column names are they ambiguous.
_IN_EXPRESSIONS = frozenset(
    ["CONSTRAINT", "CUBE", "INTERVAL", "LOCK", "OFFSET", "ROLLUP", "SET", "UNIQUE", "WINDOW"]
)
# Words that have a meaning in FROM and after INSERT INTO, but not in expressions.
_IN_FROM = frozenset(["DESCRIBE", "FORMAT", "FUNCTION", "STREAM", "TABLE", "UNNEST"])

RESERVED_COLUMNS = (RESERVED - _IN_FROM) | _IN_EXPRESSIONS


def check_declared(name: Name, what: str) -> Name:
    """Refuse an unquoted word as the name of `what`: a stream, a table, a view or a column."""
    if not name.quoted and name.text.upper() == "AS":
        raise ParseError(f'expected the name of a {what}, found "{name.text}"', name.span)
    words = RESERVED_COLUMNS if what == "column" else RESERVED
    if not name.quoted and name.text.upper() in words:
        raise ParseError(
            f'"{name.text}" is a reserved word and cannot be the name of a {what}',
            name.span,
            f"quote it, here and wherever you use it: {Name(name.text, quoted=True)}",
        )
    return name
