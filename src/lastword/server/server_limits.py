"""The limits of the server, by name. Every one of them can be set in `[server.limits]` of lastword.toml."""

from __future__ import annotations

import msgspec


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the server accepts, from clients and from the model's server."""

    body_bytes: int = 4 * 1024 * 1024
    """A request's body. A long conversation in full is a tenth of this."""
    body_seconds: float = 20.0
    """From the headers to the last byte of the body. A body that drips holds a connection and nothing else."""
    header_bytes: int = 32 * 1024
    """All headers of a request together. Browsers and proxies stay below a third."""
    header_seconds: float = 10.0
    """From the first byte of a request to the end of its headers, and from the connection to that first byte."""
    connections: int = 1024
    """Open connections. Beyond them, one that asks for nothing is closed; when all are in use, a client is told to
    come back, rather than everybody being slow."""
    connections_per_address: int = 512
    """The same for one address: half of the house is nobody's alone. A proxy in front is one address."""
    messages: int = 2000
    """Messages in one request."""
    prompt_characters: int = 32_768
    """A satellite's own prompt. Enough for a long list of tools; the persona is the operator's."""
    streams_per_token: int = 64
    """Turns of one token that run at the same time, streamed or not."""
    requests_per_minute: int = 1200
    """Per token, with a burst of a tenth of it at once."""
    history_turns: int = 200
    """Turns of a conversation that the model is shown."""
    history_tokens: int = 64_000
    """The same by size, estimated at four bytes a token."""
    reply_bytes: int = 4 * 1024 * 1024
    """A model's reply. Whatever is longer is a fault of the model's server, and is not stored."""
    connect_seconds: float = 5.0
    """Reaching the model's server."""
    first_byte_seconds: float = 180.0
    """Until the model's server begins to answer. Large models on small machines think for minutes."""
    idle_seconds: float = 60.0
    """Between two pieces of an answer that has begun."""
    reply_seconds: float = 3600.0
    """From the first byte of an answer to its last. One that drips is never idle, and would hold its conversation for
    ever. A slow machine writes some thousands of words in this time."""
    retries: int = 2
    """Further attempts when the model's server is busy, failing or unreachable, before its first byte."""
    retry_seconds: float = 0.5
    """The wait before the first further attempt; each later one waits twice as long."""
    retry_after_seconds: float = 5.0
    """The longest wait that the model's server may ask for. Beyond it the client is told, and waits by itself."""
    stop_seconds: float = 10.0
    """What a running turn gets to finish in when the server is told to stop. After it the client is told."""
