"""What can be configured: the tables of `lastword.toml` as data. Reading them is in loader.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from lastword.errors import ConfigError
from lastword.server import ServerLimits

DEFAULT_PORT = 8811


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[server]`: where the API listens, and the model behind it."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    upstream: str | None = None
    model: str | None = None
    persona: Path | None = None
    reasoning: bool = False
    """Whether the model thinks aloud before it answers. Those that are known for it need not be named."""
    store: str | None = None
    key_file: Path | None = None
    hosts: list[str] = []
    origins: list[str] = []
    retention_days: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """Conversations in which nothing was said for so long are deleted. None keeps them."""
    limits: ServerLimits = ServerLimits()


class PresetLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[preset.NAME.limits]`: the bounds of a satellite's loop."""

    steps: int | None = None
    seconds: float | None = None
    tokens: int | None = None


class PresetConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[preset.NAME]`: how a satellite works under that name."""

    model: str | None = None
    persona: Path | None = None
    auto_approve: bool = False
    protocol: Literal["json", "script", "native"] | None = None
    images: Literal["auto", "never"] = "auto"
    """Whether the model is given the images of results: until its server refuses one, or never."""
    constrain: Literal["auto", "never"] = "auto"
    """Whether a model that can be held to the form of a request is."""
    limits: PresetLimits = PresetLimits()


class EditorConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[editor]`: which files of a project are private, besides those that always are."""

    private: list[str] = []


class McpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[mcp.NAME]`: a server whose tools may be used, once somebody trusted it. A command, or an address."""

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    """Beside the few variables that every server gets. `${NAME}` stands for a secret."""
    folder: Path | None = None
    """Where the command runs. Without it: the folder of the file."""
    url: str | None = None
    headers: dict[str, str] = {}
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 300.0
    """For one call. The time a person needs is not counted."""


class PeopleConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[people]`: who sits here, and who may answer whose cards besides their own. For teams that share a store."""

    me: str = ""
    answer: dict[str, list[str]] = {}
    """By the one who answers; `*` stands for everybody's."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, and where each value of `[server]` came from."""

    server: ServerConfig = ServerConfig()
    preset: dict[str, PresetConfig] = {}
    editor: EditorConfig = EditorConfig()
    people: PeopleConfig = PeopleConfig()
    mcp: dict[str, McpConfig] = {}
    """Whatever the file names. Nothing in it counts before each was trusted."""
    upstream_key: str | None = None
    file: Path | None = None
    sources: dict[str, str] = {}
    laid_aside: tuple[str, ...] = ()
    """What the file says and does not count, because nobody has accepted it, or because a tool started this."""

    def persona_text(self) -> str | None:
        """What the persona's file says."""
        return None if self.server.persona is None else read_text(self.server.persona, "persona")


def read_text(path: Path, what: str) -> str:
    """A file that the configuration names."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"the {what} cannot be read: {problem.strerror}", place=str(path)) from None
    except UnicodeDecodeError as problem:
        raise ConfigError(f"the {what} is not UTF-8 at byte {problem.start}", place=str(path)) from None
