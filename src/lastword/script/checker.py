"""What is wrong with a script, known before anything runs.

The checker reads a script from top to bottom once, with the kind of every variable as far as it is certain, and
reports everything it finds. An error is code that cannot work if it is reached: an unknown tool, a name without
a value, a type that no operator takes. A warning is code that may not mean what it says. Each finding carries the class
that it would have at run time.

Where the checker is not sure, it says nothing: a script without findings can still fail on the values it meets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import length_hint

from lastword.script import nodes
from lastword.script.expression_checker import MAX_FINDINGS, Inference, Known
from lastword.script.hints import division, hides, hint_for_word, improve, warn_of_divisions
from lastword.script.parser import parse
from lastword.script.signatures import ANY, Kind, Signatures, in_words, plain_kind
from lastword.script.tokens import (
    KEYWORDS,
    InvalidCondition,
    InvalidIterable,
    PlacedError,
    ScriptWarning,
    UndefinedVariable,
    locate_all,
)

# Nobody nests so deep. What is further inside is looked at too, but its variables count as anything from there on: to
# follow them at every level would take the square of the text's length.
MAX_FOLLOWED = 20


def check(
    script: str | nodes.Script, signatures: Signatures | None = None, variables: Iterable[str] = ()
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
    nodes.walk(script.body, checker.take)
    source = script.source
    divisions = list(islice(warn_of_divisions(source), MAX_FINDINGS)) if "//" in source else []
    if not (checker.errors or checker.warnings or divisions):
        return []
    # Errors first when there are too many, so that no number of warnings hides one.
    found = (checker.errors + checker.warnings)[:MAX_FINDINGS]
    locate_all(found, source, script.name, "check")
    lines = source.split("\n")
    for finding in found:
        improve(finding, lines)
    found += [division(*place, source, script.name) for place in divisions[: MAX_FINDINGS - len(found)]]
    found.sort(key=lambda finding: (finding.line, finding.column))
    return found


def read(
    text: str, name: str | None, signatures: Signatures | None, variables: Iterable[str] = ()
) -> tuple[nodes.Script, list[PlacedError]]:
    """A script that is to run, and what is wrong with it; without signatures, nothing is looked for."""
    script = parse(text, name=name)
    return script, [] if signatures is None else check(script, signatures, variables)


class _Checker(Inference):
    """Reads the statements of a script in their order."""

    __slots__ = ("depth", "in_text")

    def __init__(self, script: nodes.Script, signatures: Signatures | None, variables: Iterable[str]) -> None:
        Inference.__init__(self, signatures, variables, deep=script.is_deep)
        self.depth = 0
        """How many IFs and FORs are around the statement being read."""
        self.in_text = False
        """Whether the statements being read look like a sentence instead of a script."""

    def take(self, statements: Iterator[nodes.Statement], block: nodes.Block) -> Iterator[nodes.Block] | None:
        """Look at the statements up to the next IF or FOR."""
        for statement in statements:
            if type(statement) is nodes.Let:
                kind = self.kind(statement.value, statement.suspends)
                if statement.name not in self.unclear:
                    self.scope.define(statement.name, kind, statement.at)
            elif type(statement) is nodes.Do:
                if type(statement.value) is nodes.Name and not self.is_known(statement.value.name):
                    # Not numbered all along, since few statements are bare words.
                    number = len(block) - length_hint(statements) - 1
                    beside = block[max(0, number - 1) : number] + block[number + 1 : number + 2]
                    if self.is_text(statement.value, beside):
                        continue
                self.in_text = False
                self.kind(statement.value, statement.suspends)
            elif type(statement) is nodes.Set:
                self.assign(statement, self.kind(statement.value, statement.suspends))
            elif type(statement) is nodes.If:
                return self.vaguely(statement) if self.depth >= MAX_FOLLOWED else self.choice(statement)
            elif type(statement) is nodes.For:
                return self.vaguely(statement) if self.depth >= MAX_FOLLOWED else self.loop(statement)
            elif type(statement) is nodes.Stop or type(statement) is nodes.Break:
                if type(statement) is nodes.Stop:
                    self.kind(statement.value, statement.suspends)
                if left := length_hint(statements):
                    word = type(statement).__name__.upper()
                    hint = f"move it before {word}, or remove it"
                    at = block[len(block) - left].at
                    self.report(ScriptWarning(f"nothing comes here: {word} stands before it", at, hint=hint))
        return None

    def is_text(self, word: nodes.Name, beside: nodes.Block) -> bool:
        """Whether a bare word is part of a sentence: two in a row are one, and get one finding together."""
        if not any(type(other) is nodes.Do and type(other.value) is nodes.Name for other in beside):
            return False
        if hint_for_word(word.name) is not None:
            return False  # A word of another language is no sentence.
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

    def vaguely(self, node: nodes.If | nodes.For) -> Iterator[nodes.Block]:
        """Go through an IF or FOR so deep inside others that what it does to variables is not followed."""
        if self.depth == MAX_FOLLOWED:
            self.unclear |= _names_given(node)
        self.depth += 1
        if isinstance(node, nodes.If):
            self.condition(node)
            yield node.then
            for other in node.others:
                self.condition(other)
                yield other.then
            yield node.otherwise or ()
        else:
            self.items(node)
            yield node.body
        self.depth -= 1

    def condition(self, node: nodes.If | nodes.ElseIf) -> None:
        kind = self.kind(node.condition, node.suspends)
        if kind != "boolean" and kind != ANY:
            self.report(
                InvalidCondition(
                    f"a condition is true or false, not {in_words(kind)}",
                    node.condition.at,
                    hint="compare: x == 1, x != null",
                )
            )

    def items(self, node: nodes.For) -> None:
        kind = self.kind(node.items, node.suspends)
        if kind != "list" and kind != ANY:
            hint = "loop over KEYS(object)" if plain_kind(kind) == "object" else None
            self.report(InvalidIterable(f"FOR takes a list, not {in_words(kind)}", node.items.at, hint=hint))

    def choice(self, node: nodes.If) -> Iterator[nodes.Block]:
        self.condition(node)
        scope = self.scope
        since = len(scope.news)
        self.depth += 1
        # What each name is after the branches that change it, of those from which the script goes on.
        after: dict[str, list[tuple[Kind, bool]]] = {}
        going_on = 0
        for part in node.parts:
            if part is not node:
                self.condition(part)
            yield part.then
            going_on += self.leave_branch(part.then, since, after)
        if node.otherwise is None:
            going_on += 1
        else:
            yield node.otherwise
            going_on += self.leave_branch(node.otherwise, since, after)
        self.depth -= 1
        for name, found in after.items():
            if len(found) < going_on:
                found.append((scope.kinds[name], name in scope.sure))
            kind = found[0][0]
            same = all(other == kind for other, _ in found)
            scope.learn(name, kind if same else ANY, all(sure for _, sure in found))

    def leave_branch(self, block: nodes.Block, since: int, after: dict[str, list[tuple[Kind, bool]]]) -> bool:
        """Take back what a branch has changed; says whether the script goes on behind it."""
        learnt = self.scope.take_back(since)
        if nodes.comes_to_an_end(block):
            return False
        for name, known in learnt.items():
            after.setdefault(name, []).append(known)
        return True

    def loop(self, node: nodes.For) -> Iterator[nodes.Block]:
        self.items(node)
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
        self.depth += 1
        yield node.body
        self.depth -= 1
        self.scopes.pop()
        self.scope = outside
        for name, at in inner.lets.items():
            outer = next((scope for scope in reversed(self.scopes) if name in scope.kinds), None)
            if outer is None:
                continue
            if name in inner.missed:
                self.report(hides(name, at))
            else:
                outer.hidden.setdefault(name, at)


def _inner_statements(statements: nodes.Block) -> Iterator[nodes.Statement]:
    """The statements of a block and of the blocks inside it, in no order."""
    waiting = [statements]
    while waiting:
        block = waiting.pop()
        yield from block
        for statement in block:
            if isinstance(statement, nodes.For):
                waiting.append(statement.body)
            elif isinstance(statement, nodes.If):
                waiting += statement.blocks


def _names_set(statements: nodes.Block) -> set[str]:
    """The variables that a block, or a block inside it, sets."""
    return {statement.name for statement in _inner_statements(statements) if isinstance(statement, nodes.Set)}


def _names_given(node: nodes.If | nodes.For) -> set[str]:
    """The variables that a statement, or one inside it, makes or sets."""
    return {
        statement.name
        for statement in _inner_statements((node,))
        if isinstance(statement, nodes.Let | nodes.Set | nodes.For)
    }
