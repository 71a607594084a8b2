"""Names as written, and how they match declarations."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.model.errors import BindError, Span

# The keywords of SQL and its dialects.
KEYWORDS = frozenset(
    """
ALL ALTER ANALYZE AND ANTI ANY APPLY ARRAY AS ASC ASOF AUTOINCREMENT AUTO_INCREMENT BEGIN BETWEEN
BIGDECIMAL BIGINT BIGNUM BIGNUMERIC BINARY BIT BLOB BOOL BOOLEAN BPCHAR BYTE BYTEA CACHE CALL CASE
CHAR CHARACTER CLOB COLLATE COLUMN COMMENT COMMIT CONSTRAINT COPY CREATE CROSS CUBE
CURRENT_CATALOG CURRENT_DATE CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DATABASE
DATE DATEMULTIRANGE DATERANGE DATETIME DEC DECFLOAT DECIMAL DECIMAL128 DECIMAL256 DECIMAL32
DECIMAL64 DECLARE DEFAULT DELETE DESC DESCRIBE DISTINCT DIV DOUBLE DROP ELSE END ENUM ESCAPE
EXCEPT EXECUTE EXISTS EXPLAIN FALSE FETCH FILE FILTER FIRST FIXED FLOAT FLOAT4 FLOAT8 FOR FORMAT
FROM FULL FUNCTION GEOGRAPHY GEOMETRY GLOB GRANT HAVING HUGEINT ILIKE IN INDEX INET INNER INSERT
INT INT1 INT128 INT16 INT2 INT256 INT32 INT4 INT4MULTIRANGE INT4RANGE INT64 INT8 INT8MULTIRANGE
INT8RANGE INTEGER INTERSECT INTERVAL INTO IS ISNULL JOIN JSON JSONB KEEP KILL LATERAL LEFT LIKE
LIMIT LIST LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LONGVARCHAR MAP MEDIUMBLOB
MEDIUMINT MEDIUMTEXT MERGE MINUS NAMESPACE NATURAL NCHAR NEXT NOT NOTNULL NULL NULLABLE NUMBER
NUMERIC NUMMULTIRANGE NUMRANGE NVARCHAR NVARCHAR2 OBJECT OFFSET ON OPERATOR OPTIMIZE OR ORDINALITY
OUT OUTER OVER OVERLAPS OVERWRITE PARTITION PARTITIONED_BY PERCENT PIVOT PRAGMA PREPARE PROCEDURE
QUALIFY RANGE REAL RECURSIVE REF REFERENCES REFRESH REGEXP RENAME REPLACE RETURNING REVOKE RIGHT
RLIKE ROLLBACK ROLLUP ROW ROWS SCHEMA SELECT SEMI SEQUENCE SERDEPROPERTIES SESSION SESSION_USER
SET SETTINGS SHORT SHOW SMALLINT SOME STR STRAIGHT_JOIN STRING STRUCT TABLE TABLESAMPLE TEMP
TEMPORARY TEXT THEN TIME TIMESTAMP TIMESTAMPLTZ TIMESTAMPNTZ TIMESTAMPTZ TIMESTAMP_LTZ
TIMESTAMP_NTZ TIMETZ TIME_NS TINYBLOB TINYINT TINYTEXT TRIGGER TRUE TRUNCATE TSMULTIRANGE TSRANGE
TSTZMULTIRANGE TSTZRANGE UHUGEINT UINT UINT128 UINT256 UNCACHE UNION UNIQUE UNKNOWN UNNEST UNPIVOT
UPDATE USE USING UUID VACUUM VALUES VARBINARY VARCHAR VARCHAR2 VARIANT VECTOR VIEW VOLATILE WHEN
WHERE WINDOW WITH XOR
""".split()  # noqa: SIM905 - a list of strings would be ten times as long
)


@dataclass(frozen=True)
class Name:
    """A name as written; unquoted names are compared ignoring case."""

    text: str
    quoted: bool = False
    span: Span | None = field(default=None, compare=False)

    def matches(self, declared: str) -> bool:
        return self.text == declared if self.quoted else self.text.lower() == declared.lower()

    def __str__(self) -> str:
        return quote(self.text) if self.quoted else self.text


@dataclass(frozen=True)
class QualifiedName(Name):
    """A name with an optional qualifier, the name of its stream."""

    table: Name = Name("")

    def __str__(self) -> str:
        return f"{self.table}.{super().__str__()}"


def quote(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def check_name(name: Name) -> None:
    """Refuse a name that a column cannot have: `$` marks hidden columns, and plan text has one line
    per node."""
    if not name.text:
        raise BindError("a column needs a name", name.span)
    if name.text.startswith("$"):
        raise BindError('the name of a column cannot begin with "$"', name.span)
    if "\n" in name.text or "\r" in name.text:
        raise BindError("a name cannot contain a line break", name.span)
