"""Expressions over long columns, as formulas compute them."""

from __future__ import annotations

from millstream.logical.expressions import Expression, Literal
from millstream.model.types import (
    BIGINT,
)
from physical.expression_samples import call


def of(name: str, *arguments: Expression) -> Expression:
    expression = call(name, *arguments)
    assert expression is not None
    return expression


def long(value: int) -> Literal:
    return Literal(value, BIGINT)
