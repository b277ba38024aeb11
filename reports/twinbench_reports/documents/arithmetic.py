"""Recomputes a figure of a document: "50 / 6 = 8.333", numbers and + - * / // ** only."""

from __future__ import annotations

import ast
import operator

from twinbench_reports.errors import ReportError

AGREES = 5e-3  # relative: the stated value has three or more digits
_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow, ast.USub: operator.neg, }
_LARGEST_POWER = 64


def recompute(text: str) -> float:
    """The value of the left side; a ReportError where it is not the one on the right."""
    left, equals, right = text.rpartition("=")
    try:
        value, stated = _value(ast.parse(left.strip(), mode="eval").body), float(right)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError) as error:
        raise ReportError(f"{text!r} is no arithmetic: {error}", remedy="write 'numbers and + - * / // ** = value'") \
            from None
    if not equals or not abs(value - stated) <= AGREES * abs(stated):
        raise ReportError(f"{text!r} does not hold: the left side is {value:.6g}", remedy="correct either side")
    return value


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow) and not abs(right) <= _LARGEST_POWER:
            raise ValueError("a power that large")
        return _OPERATORS[type(node.op)](left, right)
    raise ValueError("something that is no number and no operator")
