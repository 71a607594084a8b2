"""Compiles a bound expression to nodes that evaluate whole batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from millstream.logical import functions
from millstream.logical.evaluate import Evaluator, UserFunction, evaluator, is_deterministic
from millstream.logical.expression_facts import ExpressionFacts
from millstream.logical.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OuterColumn,
    walk,
)
from millstream.logical.functions import Signature
from millstream.logical.plan import Schema
from millstream.model.elements import Row
from millstream.model.long_texts import is_text, joined_texts
from millstream.model.types import BOOLEAN, DOUBLE, STRING
from millstream.physical.expressions.by_distinct import (
    FAILURES,
    by_distinct,
    exact_cast,
    unrepresentable,
)
from millstream.physical.expressions.casts import cast_kernel
from millstream.physical.expressions.choice import Case, Connective, FirstNotNull
from millstream.physical.expressions.drawn import Draws, drawing
from millstream.physical.expressions.formulas import (
    MOST_PARTS,
    Formula,
    case_formula,
    cast_formula,
    coalesce_formula,
    connective_formula,
    formula_of,
    is_computable,
    parts,
)
from millstream.physical.expressions.kernels import kernel_of
from millstream.physical.expressions.nodes import (
    AlwaysNull,
    Applied,
    Attempt,
    ColumnNode,
    Constant,
    Direct,
    Drawn,
    Failing,
    Frame,
    Node,
    SharedNode,
)
from millstream.physical.expressions.programs import Program
from millstream.physical.expressions.user_functions import UserCall
from millstream.physical.expressions.vector import Mask, Vector, mask_of


def compile_expression(
    expression: Expression,
    schema: Schema,
    functions: Mapping[str, UserFunction],
    draws: Draws | None = None,
) -> Compiled:
    """The expression over rows of the schema, reusable for any number of batches. Nondeterministic
    functions draw from `draws`."""
    root = _Compiler(expression, schema, functions, draws or Draws()).node(expression)
    return Compiled(expression, schema, functions, root)


class Compiled:
    """An expression that evaluates whole batches."""

    __slots__ = ("_expression", "_functions", "_reference", "_root", "_schema", "inputs", "type")

    def __init__(
        self,
        expression: Expression,
        schema: Schema,
        functions: Mapping[str, UserFunction],
        root: Node,
    ) -> None:
        self.type: pa.DataType = expression.type
        self.inputs: tuple[int, ...] = tuple(sorted(root.inputs))
        self._expression = expression
        self._schema = schema
        self._functions = functions
        self._root = root
        self._reference: Evaluator | None = None

    @property
    def formula(self) -> Formula | None:
        """The formula that computes it where nothing can fail, if there is one."""
        return self._root.formula if isinstance(self._root, Direct) else None

    def evaluate(self, columns: Sequence[pa.Array], length: int) -> Vector:
        """The values for a batch; only the columns at `inputs` are read. Texts may be wide."""
        try:
            found = self._root.rows(Frame(columns, length))
            if not isinstance(found.values, pa.ChunkedArray):
                return found
        except (pa.ArrowInvalid, pa.ArrowCapacityError):
            if length <= 1:
                raise
        # The texts of some step exceed 2 GiB, the limit of an Arrow array: compute it in parts.
        parts = [self.evaluate(*half) for half in self._halves(columns, length)]
        return Vector(_joined([part.values for part in parts]), _joined_masks(parts))

    def mask(self, columns: Sequence[pa.Array], length: int) -> tuple[Mask, Mask | None]:
        """For a condition: where it is TRUE, and the rows that failed."""
        try:
            return self._root.mask(Frame(columns, length))
        except (pa.ArrowInvalid, pa.ArrowCapacityError):
            if length <= 1:
                raise
        found = self.evaluate(columns, length)
        return mask_of(found.values), found.failed

    def _halves(
        self, columns: Sequence[pa.Array], length: int
    ) -> Iterator[tuple[list[pa.Array], int]]:
        middle = length // 2
        for first, stop in ((0, middle), (middle, length)):
            yield (
                [
                    columns[place].slice(first, stop - first) if place in self.inputs else None
                    for place in range(len(columns))
                ],
                stop - first,
            )

    def message(self, row: Row) -> str:
        """Why a row failed, as the reference reports it."""
        if self._reference is None:
            self._reference = evaluator(self._expression, self._schema, self._functions)
        try:
            self._reference(row)
        except FAILURES as error:
            return str(error)
        return unrepresentable(self.type)


def _joined(arrays: list[pa.Array]) -> pa.Array:
    return joined_texts(arrays) if is_text(arrays[0].type) else pa.concat_arrays(arrays)


def _joined_masks(parts: Sequence[Vector]) -> Mask | None:
    if all(part.failed is None for part in parts):
        return None
    masks = [np.zeros(len(p.values), np.bool_) if p.failed is None else p.failed for p in parts]
    return np.concatenate(masks)


class Together:
    """Evaluates the expressions that have formulas together, in one or a few passes."""

    def __init__(self, each: Iterable[Compiled]) -> None:
        groups: list[dict[Compiled, Formula]] = []
        room = 0
        for compiled in each:
            if compiled.formula is not None:
                size = len(parts(compiled.formula))
                if size > room:
                    groups.append({})
                    room = MOST_PARTS
                groups[-1][compiled] = compiled.formula
                room -= size
        self._groups = [(list(g), Program(list(g.values()))) for g in groups if len(g) > 1]

    def evaluate(self, columns: Sequence[pa.Array], length: int) -> dict[Compiled, pa.Array]:
        """The values of all expressions of a group, or of none. Single expressions and those that
        may fail are left out."""
        known: dict[Compiled, pa.Array] = {}
        for each, program in self._groups:
            values = program.values(columns, length)
            if values is not None:
                known.update(zip(each, values, strict=True))
        return known


class _Compiler:
    def __init__(
        self,
        expression: Expression,
        schema: Schema,
        user: Mapping[str, UserFunction],
        draws: Draws,
    ) -> None:
        self._schema = schema
        self._draws = draws
        self._positions = {field.key: position for position, field in enumerate(schema)}
        self._user = user
        # By their text: as values, Literal(0.0) and Literal(-0.0) are equal.
        self._occurrences = Counter(repr(part) for part in walk(expression))
        self._shared: dict[str, Node] = {}

    def node(self, expression: Expression) -> Node:
        """The node of a part; all occurrences of a computation share one node."""
        text = repr(expression)
        if text in self._shared:
            return self._shared[text]
        node = self._made(expression)
        computed = not isinstance(node, ColumnNode | Constant)
        if computed and self._occurrences[text] > 1 and is_deterministic(expression):
            node = self._shared[text] = SharedNode(node)
        return node

    def _made(self, expression: Expression) -> Node:
        match expression:
            case Column(key=key, type=type):
                return ColumnNode(self._positions[key], type)
            case Literal(value=value, type=type):
                return Constant(value, type)
            case Cast() | Call() if ExpressionFacts(expression).is_constant:
                return self._folded(expression)
            case Cast(operand=operand, type=target, attempt=attempt):
                return self._cast(self.node(operand), target, attempt)
            case Call(function=name) if name in self._user:
                arguments = [self.node(argument) for argument in expression.arguments]
                return UserCall(self._user[name], arguments, expression.type)
            case Call():
                return self._call(expression)
            case AggregateCall() | OuterColumn():
                raise AssertionError(f"{expression} has no value on a row")

    def _folded(self, expression: Expression) -> Node:
        try:
            value = evaluator(expression, self._schema, self._user)(())
            return Constant(value, expression.type)
        except (*FAILURES, pa.ArrowException):
            return Failing(expression.type)

    def _cast(self, operand: Node, target: pa.DataType, attempt: bool) -> Node:
        source = operand.type
        if isinstance(operand, Constant):
            return self._folded(Cast(_literal(operand), target, attempt))
        exact = exact_cast(source, target, attempt=attempt)
        kernel = cast_kernel(source, target)
        guarded = kernel is None or source == STRING
        if attempt:
            return Attempt(operand, target, kernel or exact, exact, guarded=guarded)
        cast = Applied([operand], target, kernel or exact, exact, strict=True, guarded=guarded)
        return _direct(cast, cast_formula(operand.formula, target))

    # --- calls -----------------------------------------------------------------------------------

    def _call(self, call: Call) -> Node:
        function = functions.lookup(call.function)
        assert function is not None, f"the binder knows {call.function}"
        if function.lazy:
            return self._lazy(function, call)
        signature = Signature(tuple(a.type for a in call.arguments), call.type)
        if not function.deterministic:
            return Drawn(drawing(function, signature, self._draws.generator(call)), call.type)
        arguments = [self.node(argument) for argument in call.arguments]
        constants = [node for node in arguments if isinstance(node, Constant)]
        if len(constants) == len(arguments):
            return self._folded(Call(call.function, tuple(map(_literal, constants)), call.type))
        if function.strict and any(node.plain is None for node in constants):
            return AlwaysNull(arguments, call.type, function.evaluation_order(signature))
        return self._applied(function, signature, arguments)

    def _applied(
        self, function: functions.Function, signature: Signature, arguments: list[Node]
    ) -> Node:
        def meaning(*values: object) -> object:
            if function.lazy:
                return function.evaluate(signature, *(partial(_itself, value) for value in values))
            return function.evaluate(signature, *values)

        exact = by_distinct(meaning, arguments, signature.result, strict=function.strict)
        kernel = kernel_of(function.name, signature, arguments)
        applied = Applied(
            arguments,
            signature.result,
            kernel or exact,
            exact,
            strict=function.strict,
            guarded=kernel is None,
            order=function.evaluation_order(signature),
        )
        formulas = [argument.formula for argument in arguments]
        return _direct(applied, formula_of(function.name, signature, formulas))

    def _lazy(self, function: functions.Function, call: Call) -> Node:
        arguments = call.arguments
        match function.name:
            case "and" | "or":
                return self._connective(arguments, function.name == "or")
            case "in":
                return self._membership(function, call)
            case "coalesce":
                nodes = [self.node(argument) for argument in arguments]
                formula = coalesce_formula([node.formula for node in nodes])
                return _direct(FirstNotNull(nodes, call.type), formula)
            case "nvl2":
                value, present, absent = arguments
                absence = Call("is null", (value,), BOOLEAN)
                return self._case((absence, absent, present), call.type)
            case "nanvl":
                value, other = arguments
                self._occurrences[repr(value)] += 1  # it is evaluated twice
                double = value if value.type == DOUBLE else Cast(value, DOUBLE)
                return self._case((Call("isnan", (double,), BOOLEAN), other, value), call.type)
            case _:
                return self._case(arguments, call.type)

    def _membership(self, function: functions.Function, call: Call) -> Node:
        """A list of constants is a set. With items that may fail it is an OR of comparisons, which
        stops at the first equal item."""
        value, *items = call.arguments
        nodes = [self.node(item) for item in items]
        constants = [_literal(node) for node in nodes if isinstance(node, Constant)]
        if len(constants) == len(nodes):
            operand = self.node(value)
            if isinstance(operand, Constant):
                return self._folded(Call("in", (_literal(operand), *constants), call.type))
            signature = Signature(tuple(a.type for a in call.arguments), call.type)
            return self._applied(function, signature, [operand, *nodes])
        self._occurrences[repr(value)] += len(items)
        equals = [Call("=", (value, item), BOOLEAN) for item in items]
        return self._connective(equals, decisive=True)

    def _connective(self, arguments: Sequence[Expression], decisive: bool) -> Node:
        """Drops constants that do not decide, and everything after one that does."""
        nodes: list[Node] = []
        for argument in arguments:
            node = self.node(argument)
            if not isinstance(node, Constant) or node.plain is not (not decisive):
                nodes.append(node)
            if isinstance(node, Constant) and node.plain is decisive:
                break
        if not nodes:
            return Constant(not decisive, BOOLEAN)
        if len(nodes) == 1:
            return nodes[0]
        formula = connective_formula([node.formula for node in nodes], decisive)
        return _direct(Connective(nodes, decisive), formula)

    def _case(self, arguments: Sequence[Expression], type: pa.DataType) -> Node:
        """Alternating conditions and values, then the value of ELSE, if any."""
        nodes = [self.node(argument) for argument in arguments]
        otherwise = nodes.pop() if len(nodes) % 2 else Constant(None, type)
        conditions: list[Node] = []
        values: list[Node] = []
        for condition, value in zip(nodes[::2], nodes[1::2], strict=True):
            if isinstance(condition, Constant):
                if condition.plain is True:
                    otherwise = value
                    break
                continue
            conditions.append(condition)
            values.append(value)
        if not conditions:
            return otherwise
        values.append(otherwise)
        formula = case_formula([c.formula for c in conditions], [v.formula for v in values])
        return _direct(Case(conditions, values, type), formula)


def _itself(value: object) -> object:
    return value


def _literal(constant: Constant) -> Literal:
    return Literal(constant.plain, constant.type)


def _direct(node: Node, formula: Formula | None) -> Node:
    return Direct(node, formula) if formula is not None and is_computable(formula) else node
