"""What the page and the terminal show of how the assistant works: its model, its presets and its tools."""

from __future__ import annotations

import msgspec

from lastword.tools import Effect


class ToolEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model may ask for."""

    tool: str
    name: str
    about: str
    asks: bool
    auto_approve: bool
    grantable: bool
    """Whether a grant or a rule may answer for it, be it for exact arguments only."""
    effect: Effect | None
    parameters: tuple[str, ...]
    required: tuple[str, ...]
    secrets: tuple[str, ...]


class PresetChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A preset to work under."""

    name: str
    auto_approve: bool = False
    protocol: str = ""
    model: str = ""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the assistant works now."""

    model: str = ""
    rehearsal: bool = False
    preset: str = ""
    presets: tuple[PresetChoice, ...] = ()
    tools: tuple[ToolEntry, ...] = ()
    can_choose_model: bool = False
    """Whether a model can be chosen here: not where the configuration names one."""
    has_servers: bool = False  # Whether MCP servers can be looked at and added here.
    next_model: str = ""
    """The one that was chosen, and answers as soon as what runs is over."""

    @property
    def chosen(self) -> PresetChoice:
        """The preset that is worked under."""
        return next((p for p in self.presets if p.name == self.preset), PresetChoice(name=self.preset))
