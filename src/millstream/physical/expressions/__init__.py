"""Expressions over whole batches of rows, with the meaning of `logical.evaluate`.

    compiled = compile_expression(expression, schema, functions)
    values, failed = compiled.evaluate(columns, length)

Machine code computes numbers (`formulas`, `operations`, `loops`, `programs`) as long as nothing can
fail. Otherwise Arrow or NumPy compute where they have the same semantics. The reference evaluates
the rest, once per distinct combination of arguments in a batch (`by_distinct`):

- `ascii`, `chr`, `crc32`, `initcap`, `md5`, `sha2`, `translate`; `rlike` unless its pattern means
  the same everywhere;
- string functions other than concatenation, `upper`, `lower`, `length`, `reverse` and `repeat`
where an argument after the text is not constant; `lpad` and `rpad` by more than one character;
  `upper`, `lower` and `position` in the rows whose text is not ASCII;
- `concat_ws` of arrays or with a separator that is not constant; `date_trunc` to such a unit;
- decimals: `%` and `div` of more than 18 digits, an interval times one, and results of more than
  76 digits before rounding;
- `round` to digits that are not constant, and of doubles with 15 digits or more up to the last;
- casts of strings not in the usual form; from STRING to BOOLEAN and INTERVAL; to STRING from
  intervals, from decimals with more than 6 digits after the point, and from doubles below 1E-3 or
  from 1E7 on; from decimals to TIMESTAMP; of arrays and structs;
- comparisons of arrays and structs.
"""

from millstream.physical.expressions.compile import Compiled, Together, compile_expression
from millstream.physical.expressions.drawn import Draws
from millstream.physical.expressions.programs import Selection
from millstream.physical.expressions.vector import Vector

__all__ = ["Compiled", "Draws", "Selection", "Together", "Vector", "compile_expression"]
