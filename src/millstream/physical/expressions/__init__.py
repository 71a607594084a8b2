"""Expressions over whole batches of rows, with the meaning of `logical.evaluate`."""

from millstream.physical.expressions.compile import Compiled, compile_expression
from millstream.physical.expressions.vector import Vector

__all__ = ["Compiled", "Vector", "compile_expression"]
