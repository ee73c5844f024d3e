"""What is wrong with a script, known before anything runs.

The checker reads a script from top to bottom once, with the kind of every variable as far as it is certain, and
reports everything it finds. An error is code that cannot work if it is reached: an unknown tool, a name without
a value, a type that no operator takes. A warning is code that may not mean what it says. Each finding carries the class
that it would have at run time.

Where the checker is not sure, it says nothing: a script without findings can still fail on the values it meets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from typing import Any

from lastword.script.builtins import BUILTINS, DOUBLED, PLACEHOLDER, missing_key
from lastword.script.errors import (
    DivisionByZero,
    IndexOutOfBounds,
    InvalidCondition,
    InvalidIterable,
    MemberAccess,
    PlacedError,
    ScriptWarning,
    ToolArgument,
    ToolNotFound,
    TypeMismatch,
    UndefinedVariable,
    locate_all,
)
from lastword.script.expressions import wrong_function
from lastword.script.kinds import ANY, OPERATORS, Kind, Known, Shape, in_words, plain_kind
from lastword.script.lexer import KEYWORDS
from lastword.script.nodes import (
    Access,
    Calc,
    Call,
    Chain,
    Do,
    Expression,
    For,
    Function,
    If,
    Index,
    Let,
    ListOf,
    Literal,
    Member,
    Name,
    ObjectOf,
    Script,
    Set,
    Statement,
    Unary,
    children,
    inside,
)
from lastword.script.operators import near_key, nearest, operand_hint
from lastword.script.parser import parse
from lastword.script.program import MAX_CLOSURE_DEPTH
from lastword.script.signatures import KINDS, Signature, Signatures
from lastword.script.work import Block, walk

# A text that is no script at all has a finding on every line. Nobody reads more than this.
MAX_FINDINGS = 100
# Python binds a method of an imported name anew at each call, so these are bound here.
_builtin = BUILTINS.get
_holes = PLACEHOLDER.findall
_kind = KINDS.get
_DIVISIONS = {"/": "division", "%": "modulo"}


def check(
    script: str | Script, signatures: Signatures | None = None, variables: Iterable[str] = ()
) -> list[PlacedError]:
    """Everything that is wrong with a script, in the order of its text; `severity` tells errors from warnings.

    Without signatures nothing is said about tools. A text that does not parse has that one error.
    """
    if isinstance(script, str):
        try:
            script = parse(script)
        except PlacedError as error:
            return [error]
    checker = _Checker(script, signatures, variables)
    walk(script.body, checker.take)
    if not checker.found:
        return []
    # Errors first when there are too many, so that no number of warnings hides one.
    found = sorted(checker.found, key=lambda finding: finding.severity)[:MAX_FINDINGS]
    found.sort(key=lambda finding: finding.at)
    locate_all(found, script.source, script.name, "check")
    return found


class _Checker:
    __slots__ = ("deep", "found", "in_text", "kinds", "looks", "scope", "scopes", "signatures")

    def __init__(self, script: Script, signatures: Signatures | None, variables: Iterable[str]) -> None:
        self.signatures = signatures
        self.deep = script.depth > MAX_CLOSURE_DEPTH
        self.looks = _REMEMBERED if self.deep else _LOOKS
        """How to look at an expression inside another, by its type."""
        self.found: list[PlacedError] = []
        self.scope = Known()
        """The innermost scope."""
        self.scopes = [self.scope]
        self.kinds: dict[int, Kind] = {}
        """In a deep script, the kinds of expressions already looked at, by identity."""
        self.in_text = False
        """Whether the statements being read look like a sentence instead of a script."""
        for name in variables:
            self.scope.define(name, ANY, 0)

    # Statements.

    def take(self, statements: Iterator[Statement], block: Block) -> Iterator[Block] | None:
        """Look at the statements up to the next IF or FOR."""
        for statement in statements:
            if type(statement) is Let:
                self.scope.define(statement.name, self.kind(statement.value, statement.suspends), statement.at)
            elif type(statement) is Do:
                if type(statement.value) is Name and not self.is_known(statement.value.name):
                    # Not numbered all along, since few statements are bare words.
                    number = len(block) - length_hint(statements) - 1
                    beside = block[max(0, number - 1) : number] + block[number + 1 : number + 2]
                    if self.is_text(statement.value, beside):
                        continue
                self.in_text = False
                self.kind(statement.value, statement.suspends)
            elif type(statement) is Set:
                self.assign(statement, self.kind(statement.value, statement.suspends))
            elif type(statement) is If:
                return self.choice(statement)
            elif type(statement) is For:
                return self.loop(statement)
        return None

    def is_text(self, word: Name, beside: Block) -> bool:
        """Whether a bare word is part of a sentence: two in a row are one, and get one finding together."""
        if not any(type(other) is Do and type(other.value) is Name for other in beside):
            return False
        if not self.in_text and not {word.name.upper(), word.name.lower()} & KEYWORDS:
            self.in_text = True
            self.report(
                UndefinedVariable(
                    f"{word.name} is not part of a script",
                    word.at,
                    hint="give the script alone, without text around it; explain in // comments",
                )
            )
        return self.in_text

    def choice(self, node: If) -> Iterator[Block]:
        kind = self.kind(node.condition, node.suspends)
        if kind != "boolean" and kind != ANY:
            self.report(
                InvalidCondition(
                    f"a condition is true or false, not {in_words(kind)}",
                    node.condition.at,
                    hint="compare: x == 1, x != null",
                )
            )
        scope = self.scope
        since = len(scope.news)
        yield node.then
        after_then = scope.take_back(since)
        after_else: dict[str, tuple[Kind, bool]] = {}
        if node.otherwise is not None:
            yield node.otherwise
            after_else = scope.take_back(since)
        for name in after_then | after_else:
            before = scope.kinds[name], name in scope.sure
            (kind, sure), (other, also_sure) = after_then.get(name, before), after_else.get(name, before)
            scope.learn(name, kind if kind == other else ANY, sure and also_sure)

    def loop(self, node: For) -> Iterator[Block]:
        kind = self.kind(node.items, node.suspends)
        if kind != "list" and kind != ANY:
            hint = "loop over KEYS(object)" if plain_kind(kind) == "object" else None
            self.report(InvalidIterable(f"FOR takes a list, not {in_words(kind)}", node.items.at, hint=hint))
        # Whatever the body sets may be of another kind when the next iteration reads it.
        for name in _names_set(node.body):
            for scope in self.scopes:
                if name in scope.kinds:
                    scope.learn(name, ANY, name in scope.sure)
        inner, outside = Known(), self.scope
        self.scopes.append(inner)
        self.scope = inner
        inner.define(node.name, ANY, node.name_at)
        del inner.lets[node.name]
        yield node.body
        self.scopes.pop()
        self.scope = outside
        for name, at in inner.lets.items():
            outer = next((scope for scope in reversed(self.scopes) if name in scope.kinds), None)
            if outer is None:
                continue
            if name in inner.missed:
                self.report(_hides(name, at))
            else:
                outer.hidden.setdefault(name, at)

    # Names.

    def assign(self, node: Set, kind: Kind) -> None:
        self.resolve(node.name, node.at, changes=True)
        for scope in reversed(self.scopes):
            if node.name in scope.kinds:
                # Inside a loop the variable outside keeps changing; at its own level this is the last word.
                scope.learn(node.name, kind if scope is self.scope else ANY, node.name in scope.sure)
                scope.hidden.pop(node.name, None)
            if node.name in scope.sure:
                return

    def is_known(self, name: str) -> bool:
        return any(name in scope.kinds for scope in self.scopes)

    def resolve(self, name: str, at: int, *, changes: bool = False) -> Kind:
        """The kind of a variable, and a finding where it has, or may have, no value."""
        possible = False
        for scope in reversed(self.scopes):
            if name in scope.kinds:
                if not changes and name in scope.hidden:
                    self.report(_hides(name, scope.hidden.pop(name)))
                if name in scope.sure:
                    return ANY if possible else scope.kinds[name]
                possible = True
            if not changes:
                scope.missed.add(name)
        if possible:
            self.report(
                UndefinedVariable(
                    f"{name} may have no value here: its LET stands in a branch",
                    at,
                    hint=f"give it a value before the IF: LET {name} = null",
                    severity="warning",
                )
            )
        elif changes:
            self.report(
                UndefinedVariable(
                    f"{name} has no value to change", at, hint=self.nearest_name(name) or "LET makes a variable"
                )
            )
        else:
            self.report(self.undefined(name, at))
        return ANY

    def undefined(self, name: str, at: int) -> UndefinedVariable:
        if name.lower() in KEYWORDS:
            hint: str | None = f"it is written in lower case: {name.lower()}"
        elif name.upper() in KEYWORDS:
            hint = f"keywords are upper case: {name.upper()}"
        elif name in BUILTINS:
            hint = f"{name} is a function: {BUILTINS[name].usage}"
        elif self.signatures and name in self.signatures:
            hint = f"tools are called with CALL {name} {{ … }}"
        else:
            hint = self.nearest_name(name) or f"give it a value first: LET {name} = …"
        return UndefinedVariable(f"{name} has no value", at, hint=hint)

    def nearest_name(self, name: str) -> str | None:
        if len(self.found) > MAX_FINDINGS:
            return None
        return nearest(name, {known for scope in self.scopes for known in scope.kinds})

    def report(self, finding: PlacedError) -> None:
        self.found.append(finding)

    # Expressions: each look gives the kind of a value and reports what cannot be.

    def kind(self, node: Expression, suspends: int) -> Kind:
        """The kind of an expression of a statement."""
        if suspends and (suspends > 1 or type(node) is not Call):
            self.warn_of_skipped_calls(node)
        if self.deep:
            # Children first, so that no look goes deeper than one level.
            self.kinds.clear()
            for part in reversed(list(inside(node))):
                self.kinds[id(part)] = _LOOKS[type(part)](self, part)
            return self.kinds[id(node)]
        return _LOOKS[type(node)](self, node)

    def look(self, node: Expression) -> Kind:
        """The kind of an expression inside another."""
        return self.looks[type(node)](self, node)

    def _remembered(self, node: Expression) -> Kind:
        return self.kinds[id(node)]

    def warn_of_skipped_calls(self, node: Expression) -> None:
        """Find CALLs in the later operands of AND and OR."""
        waiting: list[tuple[Expression, str | None]] = [(node, None)]
        while waiting:
            part, operator = waiting.pop()
            if type(part) is Call and operator is not None:
                self.report(
                    ScriptWarning(
                        f"this CALL is skipped when what stands before {operator} decides",
                        part.at,
                        hint="if it should always run, CALL it first: LET result = CALL …",
                    )
                )
            if type(part) is Chain and part.operators[0] in ("AND", "OR"):
                waiting.append((part.operands[0], operator))
                waiting.extend((operand, part.operators[0]) for operand in part.operands[1:])
            else:
                waiting.extend((child, operator) for child in children(part))

    def _literal(self, node: Literal) -> Kind:
        return node.kind

    def _name(self, node: Name) -> Kind:
        name, scope = node.name, self.scope
        if name in scope.sure and name not in scope.hidden:
            return scope.kinds[name]
        return self.resolve(name, node.at)

    def _list(self, node: ListOf) -> Kind:
        looks = self.looks
        for item in node.items:
            looks[type(item)](self, item)
        return "list"

    def _object(self, node: ObjectOf) -> Kind:
        looks, keys = self.looks, node.keys
        fields: dict[str, Kind] = {}
        for number, value in enumerate(node.values):
            if type(value) is Literal:
                fields[keys[number]] = value.kind
            else:
                fields[keys[number]] = looks[type(value)](self, value)
        return Shape(fields)

    def _unary(self, node: Unary) -> Kind:
        kind = self.look(node.operand)
        wanted = "boolean" if node.operator == "NOT" else "number"
        if kind != wanted and kind != ANY:
            self.report(TypeMismatch(f"{node.operator} takes a {wanted}, not {in_words(kind)}", node.at))
        return wanted

    def _chain(self, node: Chain) -> Kind:
        looks, operands = self.looks, node.operands
        left = looks[type(operands[0])](self, operands[0])
        for number, operator in enumerate(node.operators):
            operand = operands[number + 1]
            if type(operand) is Literal:
                right: Kind = operand.kind
            else:
                right = looks[type(operand)](self, operand)
            wanted, gives = OPERATORS[operator]
            if wanted is not None:
                if (left != wanted and left != ANY) or (right != wanted and right != ANY):
                    side, kind = ("left", left) if left != wanted and left != ANY else ("right", right)
                    self.report(
                        TypeMismatch(
                            f"{operator} takes two {wanted}s; the {side} side is {in_words(kind)}",
                            node.operator_ats[number],
                            hint=operand_hint(operator, side, in_words(kind)),
                        )
                    )
                if operator in _DIVISIONS and type(operand) is Literal and operand.value == 0:
                    self.report(DivisionByZero(f"{_DIVISIONS[operator]} by zero", node.operator_ats[number]))
            left = gives
        return left

    def _access(self, node: Access) -> Kind:
        target = node.target
        kind = self.looks[type(target)](self, target)
        for step in node.steps:
            kind = self._member(kind, step) if isinstance(step, Member) else self._element(kind, step)
        return kind

    def _member(self, kind: Kind, step: Member) -> Kind:
        if isinstance(kind, Shape):
            if step.name in kind.fields:
                return kind.fields[step.name]
            hint = near_key(step.name, kind.fields)
            self.report(MemberAccess(f"the object has no key {step.name}", step.at, hint=hint))
        elif step.name == "length" and kind in ("list", "string"):
            return "number"
        elif kind not in (ANY, "object"):
            self.report(MemberAccess(f"{in_words(kind)} has no key {step.name}", step.at))
        return ANY

    def _element(self, kind: Kind, step: Index) -> Kind:
        index = self.look(step.index)
        literal = step.index.value if type(step.index) is Literal else None
        if kind == "list":
            if index not in ("number", ANY):
                self.report(TypeMismatch(f"an index is a whole number, not {in_words(index)}", step.at))
            elif type(literal) is float:
                self.report(TypeMismatch(f"an index is a whole number, not {literal}", step.at))
            elif type(step.index) is Unary and type(step.index.operand) is Literal and step.index.operand.value != 0:
                self.report(IndexOutOfBounds("no element is at a negative index", step.at, hint="count from the front"))
        elif plain_kind(kind) == "object":
            if index not in ("string", ANY):
                self.report(TypeMismatch(f"a key is a string, not {in_words(index)}", step.at))
            elif isinstance(kind, Shape) and type(literal) is str:
                return self._member(kind, Member(step.at, literal))
        elif kind != ANY:
            self.report(TypeMismatch(f"{in_words(kind)} has no elements", step.at))
        return ANY

    def _function(self, node: Function) -> Kind:
        looks, arguments = self.looks, node.arguments
        builtin = _builtin(node.name)
        if builtin is None or not builtin.least <= len(arguments) <= builtin.most:
            for argument in arguments:
                looks[type(argument)](self, argument)
            problem = wrong_function(node, builtin)
            if self.signatures and node.name in self.signatures:
                problem.hint = f"{node.name} is a tool: CALL {node.name} {{ … }}"
            self.report(problem)
            return ANY
        kind: Kind = ANY
        # The last of what it takes is for all arguments that follow.
        takes, following = ANY, iter(builtin.takes)
        for argument in arguments:
            kind = looks[type(argument)](self, argument)
            takes = next(following, takes)
            if takes == "*" or kind == ANY:
                continue
            plain = kind if type(kind) is str else "object"
            if plain != takes and plain not in takes.split("|"):
                wanted = " or ".join(in_words(one) for one in takes.split("|"))
                self.report(TypeMismatch(f"{node.name} takes {wanted}, not {in_words(kind)}", argument.at))
        if node.name == "FORMAT":
            self._template(arguments[0], kind)
        return builtin.gives

    def _template(self, template: Expression, values: Kind) -> None:
        if type(template) is Literal and type(template.value) is str and isinstance(values, Shape):
            for hole in _holes(template.value):
                if hole not in DOUBLED and hole[1:-1] not in values.fields:
                    self.report(missing_key(hole[1:-1], values.fields, template.at))
                    return

    def _calc(self, node: Calc) -> Kind:
        for key, value in zip(node.variables.keys, node.variables.values, strict=True):
            kind = self.look(value)
            if kind != "number" and kind != ANY:
                self.report(TypeMismatch(f"CALC takes numbers, and {key} is {in_words(kind)}", value.at))
        for part in inside(node.formula):
            if type(part) is Name and part.name not in node.variables.keys:
                self.report(
                    UndefinedVariable(
                        f"the formula names {part.name}, and vars has no such key",
                        node.formula_at,
                        hint=nearest(part.name, node.variables.keys) or f"add {part.name} to vars",
                    )
                )
        return "number"

    def _call(self, node: Call) -> Kind:
        signature = self.signatures.get(node.tool) if self.signatures is not None else None
        if signature is None:
            for value in node.values:
                self.look(value)
            if self.signatures is not None:
                hint = nearest(node.tool, self.signatures)
                if hint is None and node.tool in BUILTINS:
                    hint = f"{node.tool} is a function: {BUILTINS[node.tool].usage}"
                self.report(ToolNotFound(f"unknown tool {node.tool}", node.at, hint=hint or self._known_tools()))
            return ANY
        looks, keys, parameters = self.looks, node.keys, signature.by_name
        left_out = len(parameters)
        for number, value in enumerate(node.values):
            if type(value) is Literal:
                kind: Kind = value.kind
            else:
                kind = looks[type(value)](self, value)
            parameter = parameters.get(keys[number])
            if parameter is None:
                if not signature.additional:
                    self._unknown_argument(node, number, signature)
                continue
            left_out -= 1
            if kind != ANY:
                wanted = _kind(parameter.type, ANY)
                fits = kind == wanted or wanted == ANY or plain_kind(kind) == wanted
                if not fits and (parameter.required or kind != "null"):
                    self._wrong_argument(node, number, wanted, kind)
        if left_out:
            self._missing_arguments(node, signature)
        return _kind(signature.returns, ANY)

    def _known_tools(self) -> str:
        if not self.signatures:
            return "there are no tools"
        return f"the tools are {', '.join(list(self.signatures)[:10])}{', …' if len(self.signatures) > 10 else ''}"

    def _unknown_argument(self, node: Call, number: int, signature: Signature) -> None:
        key = node.keys[number]
        hint = nearest(key, signature.by_name) or _takes(signature)
        self.report(ToolArgument(f"{node.tool} has no argument {key}", node.key_ats[number], hint=hint))

    def _wrong_argument(self, node: Call, number: int, wanted: str, kind: Kind) -> None:
        fact = f"{node.keys[number]} of {node.tool} is {in_words(wanted)}, not {in_words(kind)}"
        value = node.values[number]
        self.report(ToolArgument(fact, value.at, hint=_other_literal(value, wanted)))

    def _missing_arguments(self, node: Call, signature: Signature) -> None:
        for parameter in signature.parameters:
            if parameter.required and parameter.name not in node.keys:
                fact = f"{node.tool} needs the argument {parameter.name}"
                self.report(ToolArgument(fact, node.at, hint=_takes(signature)))


_LOOKS: dict[type, Callable[[_Checker, Any], Kind]] = {
    Literal: _Checker._literal,
    Name: _Checker._name,
    ListOf: _Checker._list,
    ObjectOf: _Checker._object,
    Unary: _Checker._unary,
    Chain: _Checker._chain,
    Access: _Checker._access,
    Function: _Checker._function,
    Call: _Checker._call,
    Calc: _Checker._calc,
}
# In a deep script, whatever is inside an expression was looked at before it.
_REMEMBERED: dict[type, Callable[[_Checker, Any], Kind]] = dict.fromkeys(_LOOKS, _Checker._remembered)


def _hides(name: str, at: int) -> ScriptWarning:
    return ScriptWarning(
        f"this LET makes a new {name} in every round; the {name} outside the loop never changes",
        at,
        hint=f"write SET {name} = … to change the one outside, or use another name",
    )


def _takes(signature: Signature) -> str:
    names = [parameter.name + ("" if parameter.required else "?") for parameter in signature.parameters]
    return f"it takes {{ {', '.join(names)} }}" if names else "it takes no arguments: {}"


def _other_literal(value: Expression, wanted: str) -> str | None:
    """How somebody would write the literal they meant."""
    if type(value) is Literal and type(value.value) is str and wanted == "number":
        return "write the number without quotes" if value.value.replace(".", "", 1).isdigit() else None
    if type(value) is Literal and value.value is not None and wanted == "string":
        return "write it in double quotes"
    if wanted == "list":
        return "write a list: [value]"
    return None


def _names_set(statements: tuple[Statement, ...]) -> set[str]:
    """The variables that a block, or a block inside it, sets."""
    names: set[str] = set()
    waiting = [statements]
    while waiting:
        for statement in waiting.pop():
            if isinstance(statement, Set):
                names.add(statement.name)
            elif isinstance(statement, For):
                waiting.append(statement.body)
            elif isinstance(statement, If):
                waiting += [statement.then, statement.otherwise or ()]
    return names
