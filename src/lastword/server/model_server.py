"""What is known of any model's server: what it can do, when it was sent too much, how its models are called.

It is asked once, by what it says of its models. Who does not say so is taken to be able to do no more
than answer.
Only forms that leave plain text open are used. `response_format` with a JSON Schema does not: a model that is held to
it cannot greet. A server that knows no grammar gets none, and the answer says that it was not held to one.

What does not live here: how it is reached (upstream.py), and what of a conversation fits into its context (history.py).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from lastword.display import visible
from lastword.errors import did_you_mean
from lastword.server.api_types import Refusal

if TYPE_CHECKING:
    from lastword.server.completion import Completion


class Upstream(Protocol):
    """What the server needs of a model. The messages of a question may be encoded already (`msgspec.Raw`)."""

    async def complete(self, body: dict[str, Any]) -> Completion:
        """One whole answer."""

    def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """An answer in OpenAI's chunks. Nothing was received when the first `anext` raises."""

    async def models(self) -> list[str]:
        """The names that a request may use."""

    async def abilities(self) -> Abilities:
        """What it can do besides answering. Asked once; whoever cannot be asked can do nothing."""

    async def close(self) -> None:
        """Let go of connections."""


Dialect = Literal["llama.cpp", "vllm", "none"]
TEMPERATURE = 0.2
"""For replies that follow a grammar, where the client names none: a form is no place for fancy."""

# What servers call the tokens that a model sees at once, where they list their models.
_SIZES = ("n_ctx", "max_model_len", "context_length", "context_window", "max_context_length")
# Names of models that think before they answer. Their thoughts would not fit into a grammar.
_REASONING = ("deepseek-r1", "qwq", "qwen3", "magistral", "gpt-oss", "thinking", "reason")


class Abilities(msgspec.Struct, frozen=True):
    """What is known of a model's server."""

    dialect: Dialect = "none"
    context_tokens: int | None = None


def read_abilities(models: Any, props: Any) -> Abilities:
    """From its list of models, and from llama.cpp's own page; either may be missing or anything."""
    entries = models.get("data") if isinstance(models, Mapping) else None
    first = entries[0] if isinstance(entries, list) and entries and isinstance(entries[0], Mapping) else {}
    meta = first.get("meta")
    size = (_size(meta) if isinstance(meta, Mapping) else None) or _size(first)
    owner = first.get("owned_by")
    dialect: Dialect = "vllm" if owner == "vllm" else "llama.cpp" if owner == "llamacpp" else "none"
    settings = props.get("default_generation_settings") if isinstance(props, Mapping) else None
    if isinstance(settings, Mapping):
        dialect, size = "llama.cpp", _size(settings) or size
    return Abilities(dialect, size)


def _size(said: Mapping[str, Any]) -> int | None:
    return next((said[key] for key in _SIZES if type(said.get(key)) is int and said[key] > 0), None)


def hold(body: dict[str, Any], grammar: str | None, dialect: Dialect) -> bool:
    """Put a grammar into a request, in the words of the model's server; whether there was a way."""
    if grammar is None or reasons(str(body.get("model", ""))):
        return False
    if dialect == "llama.cpp":
        body["grammar"] = grammar
    elif dialect == "vllm":
        body["structured_outputs"] = {"grammar": grammar}
    else:
        return False
    body.setdefault("temperature", TEMPERATURE)
    return True


def let_go(body: dict[str, Any]) -> bool:
    """Take the grammar out again; whether there was one."""
    held = [body.pop(key, None) for key in ("grammar", "structured_outputs")]
    return any(entry is not None for entry in held)


def reasons(model: str) -> bool:
    """Whether a model is known to think aloud."""
    name = model.lower()
    return any(part in name for part in _REASONING)


CODE = "context_length_exceeded"
"""What OpenAI's clients know this refusal by."""
# A server that names a size below this means something else by it.
LEAST_SAID = 64
_KINDS = ("exceed_context_size_error", CODE)
_WORDS = re.compile(r"context (?:length|size|window)|maximum context|too many tokens|prompt is too long", re.IGNORECASE)
_SIZE = re.compile(
    r"(?:maximum context length is|available context size \(|context (?:length|size|window) (?:of|is)|>)\s*(\d{3,9})",
    re.IGNORECASE,
)
_SENT = re.compile(r"(?:resulted in|request \(|requested|prompt is too long:)\s*(\d{3,9})", re.IGNORECASE)


class ContextExceeded(Refusal):
    """The model's server was sent more than its model sees. With the numbers that it told, if it did."""

    def __init__(self, code: str, fact: str, size: int | None, sent: int | None) -> None:
        hint = "say it in fewer words, or give the model's server a larger context"
        super().__init__(400, code, fact, hint=hint, is_upstream=True)
        self.size = size
        self.sent = sent


def exceeded(error: Mapping[str, Any], said: str) -> ContextExceeded | None:
    """Whether an error of a model's server is about length. Its own code stays, where it is a word."""
    code, kind = error.get("code"), error.get("type")
    if code not in _KINDS and kind not in _KINDS and not _WORDS.search(said):
        return None
    size, sent = error.get("n_ctx"), error.get("n_prompt_tokens")
    if type(size) is not int and (found := _SIZE.search(said)):
        size = int(found[1])
    if type(sent) is not int and (found := _SENT.search(said)):
        sent = int(found[1])
    # A size that no model has is a slip of whoever said it. Taken at its word, nothing would ever be shown again.
    if type(size) is not int or size < LEAST_SAID:
        size = None
    named = code if isinstance(code, str) and code else CODE
    fact = f"{Refusal.TOO_LONG}{f': {said}' if said else ''}"
    return ContextExceeded(named, fact, size, sent if type(sent) is int else None)


# Of the names, what a sentence shows.
MAX_SHOWN = 6
MAX_NAME = 80
# A server may list any number; the nearest is looked for among so many.
MAX_LOOKED_AT = 1_000

# Ollama lists `llama3.2:latest`, and answers to `llama3.2`.
LATEST = ":latest"


class ModelNames(msgspec.Struct, frozen=True):
    """The names of models, as their server lists them.

    One that is not listed is no mistake for certain: some servers answer to names that they do not list, and some list
    nothing. So it is said, and nobody is refused for it.
    """

    listed: Sequence[str]

    def why_unlisted(self, name: str | None) -> str | None:
        """What there is to say of a name that the server does not list; None when it does, or lists nothing."""
        listed = self.listed
        if name is None or not listed or name in listed or f"{name}{LATEST}" in listed:
            return None
        near = did_you_mean(self.shown(name), [self.shown(model) for model in listed[:MAX_LOOKED_AT]])
        said = f"the model's server does not list {self.shown(name)}"
        return f"{said}; {near}" if near else f"{said}; it lists {self}"

    def __str__(self) -> str:
        """The first of them, and how many more there are."""
        more = f" and {len(self.listed) - MAX_SHOWN} more" if len(self.listed) > MAX_SHOWN else ""
        return ", ".join(map(self.shown, self.listed[:MAX_SHOWN])) + more

    @staticmethod
    def shown(name: str) -> str:
        """A name as a server wrote it, for a line on a screen: nothing in it is obeyed, and it does not fill that."""
        seen = visible(name).replace("\n", "⏎")
        return seen if len(seen) <= MAX_NAME else f"{seen[:MAX_NAME]}…"
