"""What a preset's name stands for: model, persona, auto-approval, protocol, bounds.

What does not live here: the two keys of auto-approval (consent/call.py) and reading `lastword.toml` (config).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from lastword.config import PresetConfig, PresetLimits, read_text
from lastword.consent import Preset
from lastword.errors import ConfigError, did_you_mean
from lastword.talk.satellite import CONFIGURED, Constrain, Satellite
from lastword.talk.turn import Bounds

if TYPE_CHECKING:
    from lastword.talk.feedback import Images
    from lastword.talk.replies import Protocol

DEFAULT = "default"


class ResolvedPreset(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a preset decides."""

    preset: Preset
    protocol: Protocol
    model: str
    persona: str | None
    images: Images = "auto"
    bounds: Bounds
    constrain: Constrain = "auto"

    def apply(self, satellite: Satellite) -> None:
        """Let the satellite work under this preset from now on."""
        satellite.session.preset = self.preset
        satellite.protocol, satellite.model, satellite.persona = self.protocol, self.model, self.persona
        satellite.bounds, satellite.constrain = self.bounds, self.constrain
        satellite.pictures.images = self.images


def resolve_presets(presets: Mapping[str, PresetConfig], protocol: Protocol) -> dict[str, ResolvedPreset]:
    """The presets that a configuration names, and the default one. `protocol` is for presets that name none."""
    configured = {DEFAULT: PresetConfig(), **presets}
    return {name: _resolve(name, preset, protocol) for name, preset in configured.items()}


def find_preset(presets: Mapping[str, ResolvedPreset], name: str | None) -> str:
    """The name of the preset to begin with, or an error with the nearest one."""
    if name is None:
        return DEFAULT
    if name not in presets:
        hint = did_you_mean(name, presets) or f"the presets are: {', '.join(presets)}"
        raise ConfigError(f"there is no preset {name}", place="--preset", hint=hint)
    return name


def _resolve(name: str, preset: PresetConfig, protocol: Protocol) -> ResolvedPreset:
    return ResolvedPreset(
        preset=Preset(preset.auto_approve, name),
        protocol=preset.protocol or protocol,
        model=preset.model or CONFIGURED,
        persona=None if preset.persona is None else read_text(preset.persona, "persona"),
        images=preset.images,
        bounds=_bounds(name, preset.limits),
        constrain=preset.constrain,
    )


def _bounds(preset: str, limits: PresetLimits) -> Bounds:
    given = {name: value for name in PresetLimits.__struct_fields__ if (value := getattr(limits, name)) is not None}
    for name, value in given.items():
        if value <= 0:
            raise ConfigError(f"preset.{preset}.limits.{name} has to be more than zero")
    return Bounds(**given)
