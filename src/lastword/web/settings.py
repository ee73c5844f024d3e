"""How the assistant works now, for the page's settings: who answers, who approves, which tools there are."""

from __future__ import annotations

from collections.abc import Iterable

from lastword.card import one_line, views
from lastword.session import Session
from lastword.talk import ResolvedPreset


def preset_choices(presets: Iterable[ResolvedPreset]) -> tuple[views.PresetChoice, ...]:
    """The presets that can be worked under."""
    return tuple(
        views.PresetChoice(
            name=resolved.preset.name,
            auto_approve=resolved.preset.auto_approve,
            protocol=resolved.protocol,
            model=one_line(resolved.model, 80),
        )
        for resolved in presets
    )


def tool_entries(session: Session) -> tuple[views.ToolEntry, ...]:
    """The tools that the model may ask for."""
    return tuple(
        views.ToolEntry(
            tool=tool.name,
            name=one_line(tool.manifest.display_name),
            about=one_line(tool.manifest.description, 300),
            asks=tool.manifest.require_approval,
            auto_approve=tool.manifest.auto_approve is True,
            grantable=tool.manifest.auto_approve is not False,
            effect=tool.manifest.effect,
            parameters=tuple(one_line(parameter.name, 60) for parameter in tool.manifest.parameters),
            required=tuple(one_line(p.name, 60) for p in tool.manifest.parameters if p.required),
            secrets=tuple(one_line(p.name, 60) for p in tool.manifest.parameters if p.secret),
        )
        for tool in session.registry.all(with_editor=session.editor is not None)
    )
