"""The loop between a conversation and a session, and whom it talks to."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.talk.apiclient import (
        Api,
        ApiError,
        ConnectionLost,
        HttpWire,
        InProcessWire,
        Wire,
        alive,
        decode,
        read_all,
        read_stream,
        refusal_of,
    )
    from lastword.talk.constraint import tool_request_grammar, tool_request_schema
    from lastword.talk.feedback import PROGRAM
    from lastword.talk.model_choice import (
        KeptModel,
        ModelChoice,
        choose_model,
        keep_model,
        read_kept_model,
        usual_protocol,
    )
    from lastword.talk.presets import ResolvedPreset, find_preset, resolve_presets
    from lastword.talk.rehearsal import NAME, NOTE
    from lastword.talk.satellite import TOOLS_USED, Satellite
    from lastword.talk.tour import add_tour, note_tool, remove_tour
    from lastword.talk.trial import try_model
    from lastword.talk.turn import (
        WENT_BACK,
        Ended,
        Forgotten,
        Heard,
        Outgrown,
        Repairing,
        Retrying,
        Said,
        Thought,
        used_in_words,
    )
else:
    __getattr__ = open_door(__name__)
