"""What the model's server can do besides answering: how much it sees at once, and the form it can be held to.

It is asked once, by what it says of its models. Who does not say so is taken to be able to do neither.

Only forms that leave plain text open are used. `response_format` with a JSON Schema does not: a model that is held to
it cannot greet. A server that knows no grammar gets none, and the answer says that it was not held to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

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


def _size(said: Mapping[str, Any]) -> int | None:
    return next((said[key] for key in _SIZES if type(said.get(key)) is int and said[key] > 0), None)
