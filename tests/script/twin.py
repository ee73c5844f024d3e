"""A second evaluator, as naive as can be, to hold the machine against.

It walks the tree by recursion, copies its scopes, and knows nothing of slots, steps or budgets. It is written from the
specification alone and shares nothing with the machine but the parser.
"""

import json
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NoReturn

from lastword.script.nodes import (
    Access,
    Break,
    Calc,
    CallNode,
    Chain,
    Do,
    For,
    Function,
    If,
    Let,
    ListOf,
    Literal,
    Member,
    Name,
    ObjectOf,
    Script,
    Set,
    Unary,
)
from lastword.script.nodes import Stop as StopNode
from lastword.script.tokens import find_token

SAFE = 2**53
FAILED = {"fail": "boom", "add": "add takes two numbers"}
"""What the tools of the tests say when they fail."""


class Stop(Exception):
    def __init__(self, kind: str, at: int) -> None:
        self.kind = kind
        self.at = at


class Leave(Exception):
    """BREAK."""


class Done(Exception):
    """STOP."""


def fail(kind: str, at: int) -> NoReturn:
    raise Stop(kind, at)


class Twin:
    """Runs a script once; `answer` is what a tool gives, or raises Stop through `fail`."""

    def __init__(self, script: Script, tools: dict[str, Callable[..., Any]], variables: dict[str, Any]) -> None:
        self.script = script
        self.tools = tools
        self.scopes: list[dict[str, Any]] = [dict(variables)]
        self.output: list[str] = []
        self.calls: list[tuple[str, Any]] = []
        self.clock = 1_700_000_000_000
        self.error: tuple[str, int, int] | None = None
        try:
            self.block(script.body)
        except Done:
            del self.scopes[1:]
        except Stop as stop:
            offset, _ = find_token(script.source, stop.at)
            line = script.source.count("\n", 0, offset) + 1
            self.error = (stop.kind, line, offset - script.source.rfind("\n", 0, offset))
        self.variables = self.scopes[0]

    def block(self, statements: Any) -> None:
        for s in statements:
            match s:
                case Let():
                    self.scopes[-1][s.name] = self.value(s.value)
                case Set():
                    value = self.value(s.value)
                    for scope in reversed(self.scopes):
                        if s.name in scope:
                            scope[s.name] = value
                            break
                    else:
                        fail("UndefinedVariable", s.at)
                case Do():
                    self.value(s.value)
                case If():
                    for part in s.parts:
                        condition = self.value(part.condition)
                        if condition is not True and condition is not False:
                            fail("InvalidCondition", part.condition.at)
                        if condition:
                            self.block(part.then)
                            break
                    else:
                        self.block(s.otherwise or ())
                case Break():
                    raise Leave
                case StopNode():
                    self.output.append(shown(self.value(s.value)))
                    raise Done
                case For():
                    items = self.value(s.items)
                    if type(items) is not list:
                        fail("InvalidIterable", s.items.at)
                    try:
                        for item in items:
                            self.scopes.append({s.name: item})
                            self.block(s.body)
                            self.scopes.pop()
                    except Leave:
                        self.scopes.pop()

    def value(self, n: Any) -> Any:
        match n:
            case Literal():
                return n.value
            case Name():
                for scope in reversed(self.scopes):
                    if n.name in scope:
                        return scope[n.name]
                fail("UndefinedVariable", n.at)
            case ListOf():
                return [self.value(item) for item in n.items]
            case ObjectOf():
                return {key: self.value(value) for key, value in zip(n.keys, n.values, strict=True)}
            case Unary():
                value = self.value(n.operand)
                if n.operator == "NOT":
                    if type(value) is not bool:
                        fail("TypeMismatch", n.at)
                    return not value
                if not number(value):
                    fail("TypeMismatch", n.at)
                return arithmetic("-" if n.operator == "-" else "+", 0, value, n.at)
            case Chain():
                return self.chain(n)
            case Access():
                value = self.value(n.target)
                for step in n.steps:
                    if isinstance(step, Member):
                        value = member(value, step.name, step.at)
                    else:
                        value = element(value, self.value(step.index), step.at)
                return value
            case Function():
                return self.function(n)
            case CallNode():
                if n.tool not in self.tools:
                    fail("ToolNotFound", n.at)
                arguments = {key: self.value(value) for key, value in zip(n.keys, n.values, strict=True)}
                arguments = json.loads(json.dumps(arguments))
                self.calls.append((n.tool, json.loads(json.dumps(arguments))))
                if not n.tries:
                    return self.tools[n.tool](lambda kind: fail(kind, n.at), arguments)
                try:
                    value = self.tools[n.tool](lambda kind: fail(kind, n.at), arguments)
                except Stop as stop:
                    kind = {"ToolExecution": "raised", "ToolArgument": "invalid_arguments"}[stop.kind]
                    return {"success": False, "message": FAILED[n.tool], "value": None, "kind": kind}
                return {"success": True, "message": "done", "value": value, "kind": "succeeded"}
            case Calc():
                values = {k: self.value(v) for k, v in zip(n.variables.keys, n.variables.values, strict=True)}
                for key, node in zip(n.variables.keys, n.variables.values, strict=True):
                    if not number(values[key]):
                        fail("TypeMismatch", node.at)
                outside, self.scopes = self.scopes, [values]
                try:
                    return self.value(n.formula)
                except Stop as stop:
                    fail(stop.kind, n.formula_at)
                finally:
                    self.scopes = outside
        raise AssertionError(n)

    def chain(self, n: Chain) -> Any:
        left = self.value(n.operands[0])
        for operator, node, at in zip(n.operators, n.operands[1:], n.operator_ats, strict=True):
            if operator in ("AND", "OR"):
                if type(left) is not bool:
                    fail("TypeMismatch", at)
                if left is (operator == "OR"):
                    return left
                left = self.value(node)
                if type(left) is not bool:
                    fail("TypeMismatch", at)
                continue
            right = self.value(node)
            if operator in ("==", "!="):
                left = same(left, right) is (operator == "==")
            elif operator in ("<", "<=", ">", ">="):
                if not (number(left) and number(right)):
                    fail("TypeMismatch", at)
                left = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
            else:
                if not (number(left) and number(right)):
                    fail("TypeMismatch", at)
                left = arithmetic(operator, left, right, at)
        return left

    def function(self, n: Function) -> Any:
        least, most = {
            "NOW": (0, 0), "PRINT": (1, 1), "FORMAT": (2, 2), "LENGTH": (1, 1), "KEYS": (1, 1), "CONTAINS": (2, 2),
            "APPEND": (2, 2), "RANGE": (1, 3), "ROUND": (1, 2), "SUM": (1, 1), "MIN": (1, 99), "MAX": (1, 99),
            "SORT": (1, 2), "JOIN": (2, 2), "SPLIT": (2, 2), "NUMBER": (1, 1), "STRING": (1, 1),
            "PUT": (3, 3), "GET": (3, 3), "UPPER": (1, 1), "LOWER": (1, 1), "TRIM": (1, 1), "REPLACE": (3, 3),
            "SLICE": (2, 3), "PARSE_JSON": (1, 1),
        }.get(n.name, (None, None))  # fmt: skip
        if least is None or most is None:
            fail("UnknownFunction", n.at)
        if not least <= len(n.arguments) <= most:
            fail("WrongArity", n.at)
        a = [self.value(argument) for argument in n.arguments]

        def want(*checks: bool) -> None:
            if not all(checks):
                fail("TypeMismatch", n.at)

        match n.name:
            case "NOW":
                self.clock += 1
                return self.clock
            case "PRINT":
                self.output.append(shown(a[0]))
                return None
            case "FORMAT":
                want(type(a[0]) is str, type(a[1]) is dict)

                def replace(match: re.Match[str]) -> str:
                    if match[0] in ("{{", "}}"):
                        return match[0][0]
                    if match[1] not in a[1]:
                        fail("FormatKey", n.at)
                    return shown(a[1][match[1]])

                return re.sub(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}", replace, a[0])
            case "LENGTH":
                want(type(a[0]) in (list, str, dict))
                return len(a[0])
            case "KEYS":
                want(type(a[0]) is dict)
                return list(a[0])
            case "CONTAINS":
                want(type(a[0]) in (list, str, dict))
                if type(a[0]) is list:
                    return any(same(item, a[1]) for item in a[0])
                want(type(a[1]) is str)
                return a[1] in a[0]
            case "APPEND":
                want(type(a[0]) is list)
                return a[0] + [a[1]]
            case "RANGE":
                want(*(number(x) and float(x).is_integer() for x in a))
                if any(abs(x) > SAFE for x in a):
                    fail("NumberRange", n.at)
                a = [int(x) for x in a]
                if len(a) == 3 and a[2] == 0:
                    fail("NumberRange", n.at)
                return list(range(*a))
            case "ROUND":
                want(number(a[0]))
                want(*(number(x) and float(x).is_integer() for x in a[1:]))
                if len(a) == 2 and not 0 <= a[1] <= 15:
                    fail("NumberRange", n.at)
                if abs(a[0]) >= SAFE or type(a[0]) is int:
                    return a[0]
                digits = Decimal(1).scaleb(-int(a[1])) if len(a) == 2 else Decimal(1)
                return float(Decimal(repr(float(a[0]))).quantize(digits, ROUND_HALF_UP))
            case "SUM":
                want(type(a[0]) is list and all(number(x) for x in a[0]))
                total: Any = 0
                for x in a[0]:
                    total = arithmetic("+", total, x, n.at)
                return total
            case "MIN" | "MAX":
                values = a[0] if len(a) == 1 else a
                want(type(values) is list and len(values) > 0 and all(number(x) for x in values))
                return (min if n.name == "MIN" else max)(values)
            case "SORT":
                want(type(a[0]) is list)
                keys = a[0]
                if len(a) == 2:
                    want(type(a[1]) is str)
                    want(all(type(x) is dict and a[1] in x for x in a[0]))
                    keys = [x[a[1]] for x in a[0]]
                want(all(number(x) for x in keys) or all(type(x) is str for x in keys))
                pairs = sorted(zip(keys, range(len(keys)), strict=True))
                return [a[0][i] for _, i in pairs]
            case "JOIN":
                want(type(a[0]) is list, type(a[1]) is str)
                return a[1].join(shown(x) for x in a[0])
            case "SPLIT":
                want(type(a[0]) is str, type(a[1]) is str)
                return a[0].split(a[1]) if a[1] else list(a[0])
            case "NUMBER":
                if number(a[0]):
                    return a[0]
                want(
                    type(a[0]) is str and re.fullmatch(r"\s*[-+]?\d+(\.\d+)?([eE][-+]?\d+)?\s*", a[0], re.A) is not None
                )
                if math.isinf(float(a[0])):
                    fail("NumberRange", n.at)
                return float(a[0])
            case "PUT":
                want(type(a[0]) is dict, type(a[1]) is str)
                return {**a[0], a[1]: a[2]}
            case "GET":
                want(a[0] is None or type(a[0]) in (dict, list))
                if type(a[0]) is dict:
                    want(type(a[1]) is str)
                    return a[0][a[1]] if a[1] in a[0] else a[2]
                if a[0] is None:
                    return a[2]
                want(number(a[1]) and float(a[1]).is_integer())
                if abs(a[1]) > SAFE:
                    fail("NumberRange", n.at)
                return a[0][int(a[1])] if a[1] in range(len(a[0])) else a[2]
            case "UPPER" | "LOWER" | "TRIM":
                want(type(a[0]) is str)
                if n.name == "TRIM":
                    return re.sub(r"\A\s+|\s+\Z", "", a[0])
                return "".join(map(str.upper, a[0])) if n.name == "UPPER" else a[0].lower()
            case "REPLACE":
                want(*(type(x) is str for x in a), a[1] != "")
                return a[2].join(a[0].split(a[1]))
            case "SLICE":
                want(type(a[0]) in (str, list))
                want(*(number(x) and float(x).is_integer() for x in a[1:]))
                if any(abs(x) > SAFE for x in a[1:]):
                    fail("NumberRange", n.at)
                if any(x < 0 for x in a[1:]):
                    fail("IndexOutOfBounds", n.at)
                end = a[2] if len(a) == 3 else len(a[0])
                taken = [x for i, x in enumerate(a[0]) if a[1] <= i < end]
                return "".join(taken) if type(a[0]) is str else taken
            case "PARSE_JSON":
                want(type(a[0]) is str)
                try:
                    return json.loads(a[0])
                except ValueError:
                    fail("TypeMismatch", n.at)
            case _:
                return shown(a[0])


def number(x: Any) -> bool:
    return type(x) in (int, float)


def arithmetic(operator: str, a: Any, b: Any, at: int) -> float:
    for x in (a, b):
        if type(x) is int and abs(x) > SAFE:
            fail("NumberRange", at)
    a, b = float(a), float(b)
    if operator in "/%" and b == 0:
        fail("DivisionByZero", at)
    result = {
        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b, "%": lambda: math.fmod(a, b),
    }[operator]()  # fmt: skip
    if not math.isfinite(result):
        fail("NumberRange", at)
    return float(result)


def same(a: Any, b: Any) -> bool:
    if type(a) is bool or type(b) is bool:
        return a is b
    if number(a) and number(b):
        return bool(a == b)
    if type(a) is not type(b):
        return False
    if type(a) is list:
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if type(a) is dict:
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return bool(a == b)


def member(value: Any, name: str, at: int) -> Any:
    if type(value) is dict and name in value:
        return value[name]
    if type(value) in (list, str) and name == "length":
        return len(value)
    fail("MemberAccess", at)


def element(value: Any, index: Any, at: int) -> Any:
    if type(value) is list:
        if not number(index) or not float(index).is_integer():
            fail("TypeMismatch", at)
        if not 0 <= index < len(value):
            fail("IndexOutOfBounds", at)
        return value[int(index)]
    if type(value) is dict:
        if type(index) is not str:
            fail("TypeMismatch", at)
        if index not in value:
            fail("MemberAccess", at)
        return value[index]
    fail("TypeMismatch", at)


def shown(x: Any) -> str:
    if type(x) is str:
        return x
    if type(x) is list:
        return "[" + ", ".join(shown(item) for item in x) + "]"
    if type(x) is dict:
        return "{" + ", ".join(f"{k}: {shown(v)}" for k, v in x.items()) + "}"
    if x is None or type(x) is bool:
        return json.dumps(x)
    if type(x) is int:
        return str(x)
    # ECMAScript: shortest digits, positional between 1e-7 and 1e21.
    sign, digits, exponent = Decimal(repr(x)).normalize().as_tuple()
    assert isinstance(exponent, int)
    if x == 0:
        return "0"
    text = "".join(map(str, digits))
    point = len(text) + exponent
    if 0 < point <= 21:
        body = text.ljust(point, "0") if len(text) <= point else f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        body = f"0.{'0' * -point}{text}"
    else:
        body = f"{text[0]}{'.' + text[1:] if len(text) > 1 else ''}e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return ("-" if sign else "") + body
