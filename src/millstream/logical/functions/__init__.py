"""Scalar functions and operators, with the meaning of Spark's ANSI mode."""

from millstream.logical.functions.casts import cast, to_string, try_cast
from millstream.logical.functions.function import (
    EvaluationError,
    Function,
    NoCommonTypeError,
    Signature,
    SignatureError,
)
from millstream.logical.functions.registry import lookup, names
from millstream.model.types import implicitly_castable

__all__ = [
    "EvaluationError",
    "Function",
    "NoCommonTypeError",
    "Signature",
    "SignatureError",
    "cast",
    "implicitly_castable",
    "lookup",
    "names",
    "to_string",
    "try_cast",
]
