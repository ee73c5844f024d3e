"""What a question card says, as data: who asks, in which words, what there is to fill in, and where the answer goes.

Everything that the tool wrote is marked here and kept apart from our own words, as on a card that asks for consent. No
label of a button comes from the tool.
"""

from __future__ import annotations

from lastword.card.faces import FOLD_CHARACTERS, FOLD_LINES, one_line
from lastword.card.text_units import units
from lastword.card.views import FormChoice, FormField, QuestionView
from lastword.display import visible
from lastword.tools import QuestionField, ToolQuestion

HEADING = "A question from a tool"
GIVE, DECLINE, CLOSE = "Send answer", "Rather not say", "Close"
"""What surfaces call the three ways out. None of them is a word of a card that asks for consent."""

KINDS = {"string": "text", "number": "number", "integer": "whole number", "boolean": "yes or no", "choice": "choice"}


def question_view(question: ToolQuestion, *, elsewhere: bool = False) -> QuestionView:
    """A question as surfaces get it; `elsewhere` when another program asks, to which no secret can be given."""
    return QuestionView(
        id=question.id,
        about=one_line(question.description, 300),
        message=visible(question.message),
        message_fold=fold_of(question.message),
        goes_to=goes_to(question.tool),
        fields=tuple(_field(field) for field in question.fields),
        can_give=not (elsewhere and any(field.secret and field.required for field in question.fields)),
    )


def goes_to(tool: str) -> str:
    """Where the answer goes, and what it is not."""
    return f"Your answer goes to {tool}, the tool that is running. It is no approval, and lets nothing else happen."


def fold_of(text: str) -> int | None:
    """Where the marked text folds, in units of sixteen bits; None when all of it is shown."""
    kept = "\n".join(text.split("\n", FOLD_LINES)[:FOLD_LINES])[:FOLD_CHARACTERS]
    return None if kept == text else units(visible(kept))


def _field(field: QuestionField) -> FormField:
    return FormField(
        name=field.name,
        label=one_line(field.title or field.name),
        about=one_line(field.description, 300),
        kind=field.kind,
        kind_words=KINDS[field.kind],
        required=field.required,
        secret=field.secret,
        choices=tuple(FormChoice(choice.value, one_line(choice.title)) for choice in field.choices),
    )
