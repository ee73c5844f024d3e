"""The form that a running tool puts before a person, as the page and the terminal get it.

Texts are marked before they get here. What does not live here: how it is made of a question (question.py).
"""

from __future__ import annotations

import msgspec

from lastword.tools import FieldKind


class FormChoice(msgspec.Struct, frozen=True):
    """One of the values to choose from."""

    value: str
    label: str


class FormField(msgspec.Struct, frozen=True, kw_only=True):
    """Something to fill in. It begins empty, whatever it is."""

    name: str
    label: str
    about: str
    kind: FieldKind
    kind_words: str
    required: bool
    secret: bool
    choices: tuple[FormChoice, ...]


class QuestionView(msgspec.Struct, frozen=True, kw_only=True):
    """A running tool wants to know something. It asks for no consent, and gets none."""

    id: str
    about: str
    """What the tool does, as its manifest says."""
    message: str
    message_fold: int | None
    """Where `message` folds, as an argument does."""
    goes_to: str
    fields: tuple[FormField, ...]
    can_give: bool
    """Whether an answer can be given here: a secret does not travel to another program."""
