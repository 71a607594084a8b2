"""Expressions over whole batches of rows, with the meaning of `logical.evaluate`.

    compiled = compile_expression(expression, schema, functions)
    values, failed = compiled.evaluate(columns, length)

Computed by Arrow or NumPy wherever one of them can mean the same. The rest is evaluated by the
reference, once for each distinct combination of the arguments in a batch (`by_distinct`):

- `ascii`, `chr`, `crc32`, `initcap`, `md5`, `rlike`, `sha2`, `translate`;
- functions of strings other than concatenation, `upper`, `lower`, `length`, `reverse` and `repeat`
  where an argument behind the text is not constant; `lpad` and `rpad` by more than one character;
  `upper`, `lower` and `position` in the rows whose text is not ASCII;
- `concat_ws` of arrays or with a separator that is not constant; `date_trunc` to a unit that is not;
- decimals: `%` and `div`, an interval times one, and results of more than 76 digits before rounding;
- `round` to digits that are not constant, and of doubles with 15 or more digits up to the last;
- casts of texts that are not in the usual form, from STRING to BOOLEAN and INTERVAL, from decimals of
  more than 6 digits after the point and from intervals to STRING, from doubles below 1E-3 or from 1E7
  on to STRING, from doubles and decimals to TIMESTAMP, and between arrays or structs;
- comparisons of arrays and structs.
"""

from millstream.physical.expressions.compile import Compiled, compile_expression
from millstream.physical.expressions.vector import Vector

__all__ = ["Compiled", "Vector", "compile_expression"]
