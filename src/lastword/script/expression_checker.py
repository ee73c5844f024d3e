"""The kind of every name and expression, as far as it is certain, and what cannot be.

Each look at an expression gives the kind of its value and reports what would fail if it were reached. Statements are
checker.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Any

import msgspec

from lastword.script import hints, nodes
from lastword.script.builtins import BUILTINS, DOUBLED, MAX_GAPS, PLACEHOLDER
from lastword.script.signatures import (
    ANY,
    KINDS,
    OPERATORS,
    Kind,
    Shape,
    Signature,
    Signatures,
    in_words,
    plain_kind,
)
from lastword.script.tokens import (
    KEYWORDS,
    DivisionByZero,
    IndexOutOfBounds,
    MemberAccess,
    PlacedError,
    ToolArgument,
    ToolNotFound,
    TypeMismatch,
    UndefinedVariable,
)

# A text that is no script at all has a finding on every line. Nobody reads more than this.
MAX_FINDINGS = 100
# Python binds a method of an imported name anew at each call, so these are bound here.
_builtin = BUILTINS.get
_holes = PLACEHOLDER.finditer
_kind = KINDS.get
_DIVISIONS = {"/": "division", "%": "modulo"}
# What a TRY CALL gives: the value is null where there is none.
_TRIED = Shape({"success": "boolean", "message": "string", "value": ANY, "kind": "string"})


class Known(msgspec.Struct, eq=False):
    """What is known of the names at the top, or in one iteration of a FOR."""

    kinds: dict[str, Kind] = {}
    sure: set[str] = set()
    news: list[tuple[str, Kind, bool]] = []
    """What was known before each change, so that a branch can be taken back."""
    lets: dict[str, int] = {}
    """Where each name is first given a value here."""
    missed: set[str] = set()
    """Names that were read here before this scope had them, and so were read from outside."""
    hidden: dict[str, int] = {}
    """Names of this scope for which a loop inside made a variable of its own, and where."""

    def define(self, name: str, kind: Kind, at: int) -> None:
        """A LET: from here on the name surely has this kind."""
        self.news.append((name, self.kinds.get(name, ANY), name in self.sure))
        self.kinds[name] = kind
        self.sure.add(name)
        self.lets.setdefault(name, at)
        if self.hidden:
            self.hidden.pop(name, None)

    def learn(self, name: str, kind: Kind, sure: bool) -> None:
        """From here on the name has this kind, surely or only if the branch ran."""
        self.news.append((name, self.kinds.get(name, ANY), name in self.sure))
        self.kinds[name] = kind
        if sure:
            self.sure.add(name)
        else:
            self.sure.discard(name)

    def take_back(self, since: int) -> dict[str, tuple[Kind, bool]]:
        """Forget what was learnt since then, and say what it was: the branch may not have run."""
        learnt: dict[str, tuple[Kind, bool]] = {}
        for name, kind, sure in reversed(self.news[since:]):
            learnt.setdefault(name, (self.kinds[name], name in self.sure))
            self.kinds[name] = kind
            (self.sure.add if sure else self.sure.discard)(name)
        del self.news[since:]
        return learnt


class Inference:
    """What is known of the names at one place of a script, and what was found wrong up to there."""

    __slots__ = ("deep", "errors", "kinds", "looks", "scope", "scopes", "signatures", "unclear", "warnings")

    def __init__(self, signatures: Signatures | None, variables: Iterable[str], *, deep: bool) -> None:
        self.signatures = signatures
        self.deep = deep
        self.looks = _REMEMBERED if deep else _LOOKS
        """How to look at an expression inside another, by its type."""
        self.errors: list[PlacedError] = []
        self.warnings: list[PlacedError] = []
        """The first that were found: MAX_FINDINGS of each, and not every one of a text that is full of them."""
        self.unclear: set[str] = set()
        """Names of which nothing is known, not even whether they have a value."""
        self.scope = Known()
        """The innermost scope."""
        self.scopes = [self.scope]
        self.kinds: dict[int, Kind] = {}
        """In a deep script, the kinds of expressions already looked at, by identity."""
        for name in variables:
            self.scope.define(name, ANY, 0)

    # Names.

    def assign(self, node: nodes.Set, kind: Kind) -> None:
        if node.name in self.unclear:
            return
        self.resolve(node.name, node.at, changes=True)
        for scope in reversed(self.scopes):
            if node.name in scope.kinds:
                # Inside a loop the variable outside keeps changing; at its own level this is the last word.
                scope.learn(node.name, kind if scope is self.scope else ANY, node.name in scope.sure)
                scope.hidden.pop(node.name, None)
            if node.name in scope.sure:
                return

    def is_known(self, name: str) -> bool:
        return name in self.unclear or any(name in scope.kinds for scope in self.scopes)

    def resolve(self, name: str, at: int, *, changes: bool = False) -> Kind:
        """The kind of a variable, and a finding where it has, or may have, no value."""
        if name in self.unclear:
            return ANY
        possible = False
        for scope in reversed(self.scopes):
            if name in scope.kinds:
                if not changes and name in scope.hidden:
                    self.report(hints.hides(name, scope.hidden.pop(name)))
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
            hint = hints.hint_for_word(name) or self.nearest_name(name) or f"give it a value first: LET {name} = …"
        return UndefinedVariable(f"{name} has no value", at, hint=hint)

    def nearest_name(self, name: str) -> str | None:
        if self.full:
            return None
        return hints.nearest(name, {known for scope in self.scopes for known in scope.kinds})

    def nearest(self, name: str, known: Collection[str]) -> str | None:
        """The nearest of some names, while somebody will read of it."""
        return None if self.full else hints.nearest(name, known)

    @property
    def full(self) -> bool:
        """Whether another error would not be shown, so that no time need be spent on its words."""
        return len(self.errors) >= MAX_FINDINGS

    def report(self, finding: PlacedError) -> None:
        found = self.errors if finding.severity == "error" else self.warnings
        if len(found) < MAX_FINDINGS:
            found.append(finding)

    # Expressions: each look gives the kind of a value and reports what cannot be.

    def kind(self, node: nodes.Expression, suspends: int) -> Kind:
        """The kind of an expression of a statement."""
        if suspends and (suspends > 1 or type(node) is not nodes.CallNode):
            for warning in hints.skipped_calls(node):
                self.report(warning)
        if self.deep:
            # Children first, so that no look goes deeper than one level.
            self.kinds.clear()
            for part in reversed(list(nodes.inside(node))):
                self.kinds[id(part)] = _LOOKS[type(part)](self, part)
            return self.kinds[id(node)]
        return _LOOKS[type(node)](self, node)

    def look(self, node: nodes.Expression) -> Kind:
        """The kind of an expression inside another."""
        return self.looks[type(node)](self, node)

    def _remembered(self, node: nodes.Expression) -> Kind:
        return self.kinds[id(node)]

    def _literal(self, node: nodes.Literal) -> Kind:
        return node.kind

    def _name(self, node: nodes.Name) -> Kind:
        name, scope = node.name, self.scope
        if name in scope.sure and name not in scope.hidden and name not in self.unclear:
            return scope.kinds[name]
        return self.resolve(name, node.at)

    def _list(self, node: nodes.ListOf) -> Kind:
        looks = self.looks
        for item in node.items:
            looks[type(item)](self, item)
        return "list"

    def _object(self, node: nodes.ObjectOf) -> Kind:
        looks, keys = self.looks, node.keys
        fields: dict[str, Kind] = {}
        for number, value in enumerate(node.values):
            if type(value) is nodes.Literal:
                fields[keys[number]] = value.kind
            else:
                fields[keys[number]] = looks[type(value)](self, value)
        return Shape(fields)

    def _unary(self, node: nodes.Unary) -> Kind:
        kind = self.look(node.operand)
        wanted = "boolean" if node.operator == "NOT" else "number"
        if kind != wanted and kind != ANY:
            self.report(TypeMismatch(f"{node.operator} takes a {wanted}, not {in_words(kind)}", node.at))
        return wanted

    def _chain(self, node: nodes.Chain) -> Kind:
        looks, operands = self.looks, node.operands
        left = looks[type(operands[0])](self, operands[0])
        for number, operator in enumerate(node.operators):
            operand = operands[number + 1]
            if type(operand) is nodes.Literal:
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
                            hint=hints.operand_hint(operator, side, in_words(kind)),
                        )
                    )
                if operator in _DIVISIONS and type(operand) is nodes.Literal and operand.value == 0:
                    self.report(DivisionByZero(f"{_DIVISIONS[operator]} by zero", node.operator_ats[number]))
            left = gives
        return left

    def _access(self, node: nodes.Access) -> Kind:
        target = node.target
        kind = self.looks[type(target)](self, target)
        for step in node.steps:
            kind = self._member(kind, step) if isinstance(step, nodes.Member) else self._element(kind, step)
        return kind

    def _member(self, kind: Kind, step: nodes.Member) -> Kind:
        if isinstance(kind, Shape):
            if step.name in kind.fields:
                return kind.fields[step.name]
            hint = None if self.full else hints.near_key(step.name, kind.fields)
            self.report(MemberAccess(f"the object has no key {step.name}", step.at, hint=hint))
        elif step.name == "length" and kind in ("list", "string"):
            return "number"
        elif kind not in (ANY, "object"):
            self.report(MemberAccess(f"{in_words(kind)} has no key {step.name}", step.at))
        return ANY

    def _element(self, kind: Kind, step: nodes.Index) -> Kind:
        index = self.look(step.index)
        literal = step.index.value if type(step.index) is nodes.Literal else None
        if kind == "list":
            if index not in ("number", ANY):
                self.report(TypeMismatch(f"an index is a whole number, not {in_words(index)}", step.at))
            elif type(literal) is float:
                self.report(TypeMismatch(f"an index is a whole number, not {literal}", step.at))
            elif (
                type(step.index) is nodes.Unary
                and type(step.index.operand) is nodes.Literal
                and step.index.operand.value != 0
            ):
                self.report(IndexOutOfBounds("no element is at a negative index", step.at, hint="count from the front"))
        elif plain_kind(kind) == "object":
            if index not in ("string", ANY):
                self.report(TypeMismatch(f"a key is a string, not {in_words(index)}", step.at))
            elif isinstance(kind, Shape) and type(literal) is str:
                return self._member(kind, nodes.Member(step.at, literal))
        elif kind != ANY:
            self.report(TypeMismatch(f"{in_words(kind)} has no elements", step.at))
        return ANY

    def _function(self, node: nodes.Function) -> Kind:
        looks, arguments = self.looks, node.arguments
        builtin = _builtin(node.name)
        if builtin is None or not builtin.least <= len(arguments) <= builtin.most:
            for argument in arguments:
                looks[type(argument)](self, argument)
            if self.full:
                return ANY
            problem = hints.wrong_function(node, BUILTINS)
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
        if node.name == "FORMAT" or node.name == "PRINT":
            if (warning := hints.seldom_meant(node)) is not None:
                self.report(warning)
            if node.name == "FORMAT":
                self._template(arguments[0], kind)
        return builtin.gives

    def _template(self, template: nodes.Expression, values: Kind) -> None:
        if type(template) is nodes.Literal and type(template.value) is str and isinstance(values, Shape):
            for hole in islice(_holes(template.value), MAX_GAPS):
                if hole[0] not in DOUBLED and hole[0][1:-1] not in values.fields:
                    if not self.full:
                        self.report(hints.missing_key(hole[0][1:-1], values.fields, template.at))
                    return

    def _calc(self, node: nodes.Calc) -> Kind:
        for key, value in zip(node.variables.keys, node.variables.values, strict=True):
            kind = self.look(value)
            if kind != "number" and kind != ANY:
                self.report(TypeMismatch(f"CALC takes numbers, and {key} is {in_words(kind)}", value.at))
        given = set(node.variables.keys)
        for part in nodes.inside(node.formula):
            if type(part) is nodes.Name and part.name not in given:
                self.report(
                    UndefinedVariable(
                        f"the formula names {part.name}, and vars has no such key",
                        node.formula_at,
                        hint=self.nearest(part.name, node.variables.keys) or f"add {part.name} to vars",
                    )
                )
        return "number"

    def _call(self, node: nodes.CallNode) -> Kind:
        signature = self.signatures.get(node.tool) if self.signatures is not None else None
        if signature is None:
            for value in node.values:
                self.look(value)
            if self.signatures is not None:
                hint = self.nearest(node.tool, self.signatures)
                if hint is None and node.tool in BUILTINS:
                    hint = f"{node.tool} is a function: {BUILTINS[node.tool].usage}"
                self.report(ToolNotFound(f"unknown tool {node.tool}", node.at, hint=hint or self._known_tools()))
            return _TRIED if node.tries else ANY
        looks, keys, parameters = self.looks, node.keys, signature.by_name
        left_out = len(parameters)
        for number, value in enumerate(node.values):
            if type(value) is nodes.Literal:
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
        return _TRIED if node.tries else _kind(signature.returns, ANY)

    def _known_tools(self) -> str:
        if not self.signatures:
            return "there are no tools"
        return f"the tools are {', '.join(list(self.signatures)[:10])}{', …' if len(self.signatures) > 10 else ''}"

    def _unknown_argument(self, node: nodes.CallNode, number: int, signature: Signature) -> None:
        key = node.keys[number]
        hint = self.nearest(key, signature.by_name) or signature.takes
        self.report(ToolArgument(f"{node.tool} has no argument {key}", node.key_ats[number], hint=hint))

    def _wrong_argument(self, node: nodes.CallNode, number: int, wanted: str, kind: Kind) -> None:
        fact = f"{node.keys[number]} of {node.tool} is {in_words(wanted)}, not {in_words(kind)}"
        value = node.values[number]
        self.report(ToolArgument(fact, value.at, hint=hints.other_literal(value, wanted)))

    def _missing_arguments(self, node: nodes.CallNode, signature: Signature) -> None:
        given = set(node.keys)
        for parameter in signature.parameters:
            if parameter.required and parameter.name not in given:
                fact = f"{node.tool} needs the argument {parameter.name}"
                self.report(ToolArgument(fact, node.at, hint=signature.takes))


_LOOKS: dict[type, Callable[[Inference, Any], Kind]] = {
    nodes.Literal: Inference._literal,
    nodes.Name: Inference._name,
    nodes.ListOf: Inference._list,
    nodes.ObjectOf: Inference._object,
    nodes.Unary: Inference._unary,
    nodes.Chain: Inference._chain,
    nodes.Access: Inference._access,
    nodes.Function: Inference._function,
    nodes.CallNode: Inference._call,
    nodes.Calc: Inference._calc,
}
# In a deep script, whatever is inside an expression was looked at before it.
_REMEMBERED: dict[type, Callable[[Inference, Any], Kind]] = dict.fromkeys(_LOOKS, Inference._remembered)
