"""Questions that a running tool puts to a person: the form, what may be given, and what became of it.

A form is a flat JSON Schema object, as MCP's elicitation has it: texts, numbers, booleans and choices. A default in it
is not shown: nothing that a person did not fill in themselves is given in their name. What does not live here: how a
question waits (call/desk.py), is remembered (journal/tool_questions.py) and looks (card/face.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import jsonschema_rs
import msgspec

from lastword import values
from lastword.display import displayable
from lastword.errors import ArgumentsError, NotJSON, Problem, QuestionError, did_you_mean

if TYPE_CHECKING:
    from lastword.tools.manifest import Manifest

FieldKind = Literal["string", "number", "integer", "boolean", "choice"]

# A form with more fields than this is not filled in, and one with longer names is not read.
MAX_FIELDS = 30
MAX_CHOICES = 200
MAX_NAME = 100
# A text that a person could read before answering, several times over.
MAX_MESSAGE = 100_000
# What stands beside a field: its title, what it is about, and each of its choices.
MAX_WORDS = 10_000
# What a person may write into one field.
MAX_TEXT = 100_000

NOBODY = "there is nobody here to ask"

_COMMON = frozenset({"type", "title", "description", "default", "secret"})
_KEYWORDS: dict[str, frozenset[str]] = {
    "string": _COMMON | {"minLength", "maxLength", "format", "enum", "enumNames", "oneOf"},
    "number": _COMMON | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "integer": _COMMON | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": _COMMON,
}
_FORMATS = ("email", "uri", "date", "date-time")
_YES, _NO = frozenset({"yes", "true", "y"}), frozenset({"no", "false", "n"})


class Given(msgspec.Struct, frozen=True):
    """The person filled the form in."""

    values: dict[str, Any]


class Declined(msgspec.Struct, frozen=True):
    """The person does not want to say."""


class Closed(msgspec.Struct, frozen=True):
    """Nobody answered: the question was closed, the call was cancelled, or there was nobody to ask."""

    why: str = ""


QuestionAnswer = Given | Declined | Closed


class Choice(msgspec.Struct, frozen=True):
    """One of the values that a field may have."""

    value: str
    title: str


class QuestionField(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to fill in."""

    name: str
    kind: FieldKind
    title: str = ""
    description: str = ""
    required: bool = False
    secret: bool = False
    choices: tuple[Choice, ...] = ()
    rules: dict[str, Any] = {}
    """The JSON Schema that a value has to fit."""


class ToolQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a running tool wants to know, and who asks. It approves nothing."""

    id: str
    call_id: str
    session_id: str
    tool: str
    display_name: str
    description: str = ""
    """Of the tool, from its manifest."""
    icon: str | None = None
    color: str | None = None
    message: str
    fields: tuple[QuestionField, ...]

    @property
    def secrets(self) -> frozenset[str]:
        """The fields that no surface shows and no journal keeps."""
        return frozenset(field.name for field in self.fields if field.secret)


def question_of(
    id: str, call_id: str, session_id: str, manifest: Manifest, message: str, fields: tuple[QuestionField, ...]
) -> ToolQuestion:
    """The question of a call, signed with what its manifest says of the tool."""
    return ToolQuestion(
        id=id,
        call_id=call_id,
        session_id=session_id,
        tool=manifest.id,
        display_name=displayable(manifest.display_name),
        description=displayable(manifest.description),
        icon=manifest.icon,
        color=manifest.color,
        message=displayable(message),
        fields=fields,
    )


def read_message(message: Any) -> str:
    """The words of a question, if they can be shown to anybody."""
    if not isinstance(message, str) or not message.strip():
        raise QuestionError("a question needs a message: a text that says what you want to know")
    if len(message) > MAX_MESSAGE:
        raise QuestionError(f"the message of a question has {len(message):,} characters, at most {MAX_MESSAGE:,}")
    return message


def read_form(schema: Any) -> tuple[QuestionField, ...]:
    """The fields of a form. Raises a QuestionError that says everything that is wrong with it."""
    if not isinstance(schema, Mapping):
        raise QuestionError(f"the schema of a question is a {type(schema).__name__}, expected a JSON Schema object")
    try:
        plain: dict[str, Any] = values.plain(dict(schema))
    except NotJSON as problem:
        raise QuestionError(f"the schema of a question is no JSON: {problem.fact}") from None
    properties, required = plain.get("properties"), plain.get("required", [])
    if plain.get("type", "object") != "object" or type(properties) is not dict or not properties:
        hint = 'as in {"type": "object", "properties": {"name": {"type": "string"}}}'
        raise QuestionError("the schema of a question is a flat object with at least one property", hint=hint)
    if len(properties) > MAX_FIELDS:
        raise QuestionError(f"a question has {len(properties)} fields, at most {MAX_FIELDS}", hint="ask in two steps")
    if type(required) is not list or not all(type(name) is str and name in properties for name in required):
        raise QuestionError("required is a list of names of properties")
    return tuple(_field(name, own, name in required) for name, own in properties.items())


def _field(name: str, own: Any, required: bool) -> QuestionField:
    place = f"the field {name[:60]!r} of a question"
    if not name or len(name) > MAX_NAME:
        raise QuestionError(f"{place}: a name has 1 to {MAX_NAME} characters")
    kind = own.get("type") if type(own) is dict else None
    if kind not in _KEYWORDS:
        hint = "a form is flat: string, number, integer, boolean, and a string with an enum"
        raise QuestionError(f"{place}: its type is {kind!r}", hint=hint)
    if unknown := sorted(own.keys() - _KEYWORDS[kind]):
        raise QuestionError(f"{place}: a {kind} has no {unknown[0]}", hint=did_you_mean(unknown[0], _KEYWORDS[kind]))
    if not all(_is_short(own.get(key, "")) for key in ("title", "description")):
        raise QuestionError(f"{place}: title and description are texts of at most {MAX_WORDS:,} characters")
    if type(own.get("secret", False)) is not bool:
        raise QuestionError(f"{place}: secret is true or false")
    if own.get("format", _FORMATS[0]) not in _FORMATS:
        raise QuestionError(f"{place}: its format is {own['format']!r}", hint=f"one of {', '.join(_FORMATS)}")
    choices = tuple(_choices(own, place))
    told = {"title", "description", "default", "secret", "enumNames", "oneOf"}
    rules = {key: value for key, value in own.items() if key not in told}
    if choices:
        rules["enum"] = [choice.value for choice in choices]
    try:
        _validator(rules)
    except ValueError as problem:
        raise QuestionError(f"{place}: {str(problem).partition(chr(10))[0]}") from None
    return QuestionField(
        name=name,
        kind="choice" if choices else kind,
        title=displayable(own.get("title", "")),
        description=displayable(own.get("description", "")),
        required=required,
        secret=own.get("secret", False),
        choices=choices,
        rules=rules,
    )


def _choices(own: dict[str, Any], place: str) -> Iterator[Choice]:
    """What may be chosen: of an enum, with or without names, or of consts with titles."""
    given = own.get("enum")
    titles = own.get("enumNames", given)
    if "oneOf" in own:
        entries = own["oneOf"]
        if type(entries) is not list or not all(type(entry) is dict and "const" in entry for entry in entries):
            raise QuestionError(f'{place}: oneOf is a list of {{"const": …, "title": …}}')
        given, titles = [e["const"] for e in entries], [e.get("title", e["const"]) for e in entries]
    if given is None:
        return
    if type(given) is not list or type(titles) is not list or not 0 < len(given) == len(titles) <= MAX_CHOICES:
        raise QuestionError(f"{place}: a choice is between 1 to {MAX_CHOICES} texts, each with one name")
    if not all(_is_short(text) for text in (*given, *titles)):
        raise QuestionError(f"{place}: choices are texts of at most {MAX_WORDS:,} characters")
    if len(set(given)) < len(given) or len(set(titles)) < len(titles):
        raise QuestionError(f"{place}: each choice is there once, under a name of its own")
    yield from (Choice(value, displayable(title)) for value, title in zip(given, titles, strict=True))


def _is_short(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= MAX_WORDS


def check_answer(question: ToolQuestion, answer: Any) -> QuestionAnswer:
    """The answer, if it is one to this question. Raises an ArgumentsError that names every field that does not fit."""
    if not isinstance(answer, (Given, Declined, Closed)):
        raise QuestionError(f"a {type(answer).__name__} answers no question", hint="Given({…}), Declined() or Closed()")
    if not isinstance(answer, Given):
        return answer
    try:
        given: dict[str, Any] = values.plain(dict(answer.values))
    except NotJSON as problem:
        raise QuestionError(f"what was given is no JSON: {problem.fact}") from None
    fields = {field.name: field for field in question.fields}
    problems = [Problem("there is no such field", place=name[:MAX_NAME]) for name in given if name not in fields]
    for name, field in fields.items():
        if name not in given:
            if field.required:
                problems.append(Problem("this has to be filled in", place=name))
        elif found := _why_unfit(field, given[name]):
            problems.append(Problem(found, place=name))
    if problems:
        raise ArgumentsError("the answer does not fit:", problems)
    return Given({name: given[name] for name in fields if name in given})


def answer_from_texts(question: ToolQuestion, texts: Mapping[str, str]) -> Given:
    """What a person typed, in the types of the fields. An empty text gives nothing."""
    given: dict[str, Any] = {}
    problems: list[Problem] = []
    fields = {field.name: field for field in question.fields}
    for name, text in texts.items():
        if name not in fields:
            problems.append(Problem("there is no such field", place=name[:MAX_NAME]))
        elif text:
            try:
                given[name] = read_text(fields[name], text)
            except Problem as problem:
                problems.append(problem)
    if problems:
        raise ArgumentsError("the answer does not fit:", problems)
    answer = check_answer(question, Given(given))
    assert isinstance(answer, Given)
    return answer


def read_text(field: QuestionField, text: str) -> Any:
    """One value as it was typed. Raises a Problem in words."""
    value: Any = text
    if field.kind == "boolean":
        word = text.strip().casefold()
        if word not in _YES | _NO:
            raise Problem("this is answered with yes or no", place=field.name)
        value = word in _YES
    elif field.kind in ("number", "integer"):
        try:
            value = values.parse(text.strip())
        except NotJSON:
            raise Problem("this is no number", place=field.name, hint="write it like 12 or 3.5") from None
    if found := _why_unfit(field, value):
        raise Problem(found, place=field.name)
    return value


def _why_unfit(field: QuestionField, value: Any) -> str | None:
    if field.kind == "choice":
        return None if value in field.rules["enum"] else "this is none of the choices"
    kind = values.type_name[type(value)]
    wanted = "number" if field.kind == "integer" else field.kind
    if kind != wanted or (field.kind == "integer" and value != int(value)):
        return f"this is no {'whole number' if field.kind == 'integer' else field.kind}"
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"this is longer than {MAX_TEXT:,} characters"
    problem = next(iter(_validator(field.rules).iter_errors(value)), None)
    # A value that does not fit is not repeated: it may be a secret.
    keyword = problem.schema_path[-1] if problem is not None and problem.schema_path else ""
    return None if problem is None else _UNFIT.get(str(keyword), "this does not fit")


_UNFIT = {
    "minLength": "this is too short",
    "maxLength": "this is too long",
    "minimum": "this is too small",
    "exclusiveMinimum": "this is too small",
    "maximum": "this is too large",
    "exclusiveMaximum": "this is too large",
    "format": "this is not written as it has to be",
}


def _validator(rules: dict[str, Any]) -> Any:
    return jsonschema_rs.validator_for(rules, validate_formats=True)
