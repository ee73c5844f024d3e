"""The arguments of a call as a person types them: `name=value` in the type the tool wants, and what they change on a
card. For `lastword call`, and for every surface on which a card is edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from lastword import values
from lastword.card.text import literal, one_line, readable
from lastword.consent import ApprovalRequest, Secrets, UserAction
from lastword.errors import ArgumentsError, NotJSON, Problem, did_you_mean
from lastword.tools import Manifest, Parameter, QuestionAnswer, Tool, ToolQuestion, questions

_EXAMPLES = {
    "number": "3",
    "boolean": "true",
    "null": "null",
    "array": '["a", "b"]',
    "object": '{"a": 1}',
}


def read_arguments(manifest: Manifest, pairs: Iterable[str], given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The arguments of a call: those given as JSON, then `name=value` pairs. Every problem at once."""
    read = dict(given or {})
    problems: list[Problem] = []
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            hint = f"write {name}=VALUE" if _type_of(manifest, name) else "an argument is NAME=VALUE"
            problems.append(Problem(f"{pair[:60]} is not an argument", hint=hint))
            continue
        try:
            read[name] = read_value(manifest, name, text)
        except Problem as problem:
            problems.append(problem)
    if problems:
        raise ArgumentsError(f"the arguments of {manifest.id} could not be read:", problems)
    return read


def read_value(manifest: Manifest, name: str, text: str) -> Any:
    """One value: a string is taken as it stands, everything else is JSON."""
    kind = _type_of(manifest, name)
    if kind is None:
        if not manifest.additional_parameters:
            known = [p.name for p in manifest.parameters]
            listed = f"the arguments are: {', '.join(known)}" if known else f"{manifest.id} takes no arguments"
            raise Problem(f"unknown argument {name[:60]}", hint=did_you_mean(name, known) or listed)
        kind = "any"
    if kind == "string":
        return text
    try:
        return values.parse(text)
    except NotJSON as problem:
        if kind == "any":
            return text  # what is not JSON can only be meant as text
        example, article = _EXAMPLES[kind], "an" if kind[0] in "ao" else "a"
        raise Problem(
            f"the argument {name} must be {article} {kind}, found {text[:60]} ({problem.fact})",
            hint=f"write it as JSON, for instance {name}={example if kind == 'number' else repr(example)}",
        ) from None


def answer_of(question: ToolQuestion, action: str, texts: Mapping[str, str]) -> QuestionAnswer:
    """What a person did with a question of a running tool: gave an answer, declined, or closed it."""
    if action == "give":
        return questions.answer_from_texts(question, texts)
    return questions.Declined() if action == "decline" else questions.Closed()


class Draft:
    """The arguments of a card as a person has changed them so far: their types survive, and nothing invalid gets in.

    Every change is valid as a whole, or refused in words.
    """

    def __init__(self, request: ApprovalRequest) -> None:
        self._request = request
        self._tool = Tool(request.manifest, "assistant", None)
        self._arguments = request.arguments
        self._typed: dict[str, str] = {}

    @staticmethod
    def request_told(facts: dict[str, Any], manifest: dict[str, Any]) -> ApprovalRequest:
        """The request of a card that a server tells of: it has digests in place of secrets, which are of another type.

        msgspec.ValidationError where that does not fit.
        """
        known = msgspec.convert(manifest, Manifest)
        parameters = tuple(
            Parameter(p.name, "any", p.description, p.required, None, secret=True) if p.secret else p
            for p in known.parameters
        )
        return ApprovalRequest.from_facts(facts, replace(known, parameters=parameters))

    @property
    def is_changed(self) -> bool:
        return not values.equal(self._arguments, self._request.arguments)

    @property
    def edits(self) -> dict[str, str]:
        """The changes as they were typed, by name: for the server, which reads them in the type that the tool wants."""
        return dict(self._typed) if self.is_changed else {}

    @property
    def names(self) -> list[str]:
        """Everything that can be changed."""
        declared = [parameter.name for parameter in self._request.manifest.parameters]
        return declared + [name for name in self._arguments if name not in declared]

    def is_secret(self, name: str) -> bool:
        return name in self._request.manifest.secrets

    def text_of(self, name: str) -> str:
        """The value to begin editing with, as it would be typed. Nothing for a secret."""
        if self.is_secret(name) or name not in self._arguments:
            return ""
        value = self._arguments[name]
        return value if self._is_text(name) else values.canonical(value).decode()

    def change(self, name: str, text: str) -> None:
        """Give an argument a new value, in the type it must have. Raises a `Problem` in words and changes nothing."""
        if name not in self.names and not self._request.manifest.additional_parameters:
            listed = f"the arguments are: {', '.join(self.names)}"
            raise Problem(f"there is no argument {one_line(name, 60)}", hint=did_you_mean(name, self.names) or listed)
        value = text if self._is_text(name) else read_value(self._request.manifest, name, text)
        arguments = self._arguments | {name: value}
        try:
            self._arguments = values.decode(self._tool.validate(arguments))
        except ArgumentsError as problem:
            raise Problem(
                "; ".join(p.fact for p in problem.problems), hint=f"{one_line(name, 60)} stays as it was"
            ) from None
        self._typed[name] = text

    def tell_change(self, name: str, text: str) -> list[str]:
        """The same for a screen: what is different then, or why that cannot be."""
        try:
            self.change(name, text)
        except Problem as problem:
            return [str(problem)]
        return [*self.changes()]

    def changes(self) -> Iterator[str]:
        """What is different now, one line for each argument."""
        before = self._request.arguments
        for name, value in self._arguments.items():
            if name in before and values.equal(before[name], value):
                continue
            old = self._shown(name, before[name]) if name in before else "(not given)"
            yield f"{one_line(name)}: {old} → {self._shown(name, value)}"

    def allow(self) -> UserAction:
        """Yes, with the changes if there are any."""
        if not self.is_changed:
            return self._request.allow()
        return UserAction(True, False, arguments=values.plain(self._arguments), answers=self._request.digest)

    def _shown(self, name: str, value: Any) -> str:
        if self.is_secret(name):
            return Secrets.MASK
        # A list is shown as it was typed: somebody agrees to this line.
        return one_line(readable(value) if isinstance(value, str) else literal(value))

    def _is_text(self, name: str) -> bool:
        """A text stays a text: `42` typed over a string is the string 42."""
        kind = next((p.type for p in self._request.manifest.parameters if p.name == name), "any")
        return kind == "string" or (kind == "any" and isinstance(self._arguments.get(name), str))


def _type_of(manifest: Manifest, name: str) -> str | None:
    return next((p.type for p in manifest.parameters if p.name == name), None)
