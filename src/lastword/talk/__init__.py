"""The loop between a conversation and a session, and whom it talks to."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.talk.apiclient import Api, ApiError, ConnectionLost, HttpWire, InProcessWire, Wire
    from lastword.talk.constraint import tool_request_grammar, tool_request_schema
    from lastword.talk.model_choice import KeptModel, ModelChoice
    from lastword.talk.rehearsal import Rehearsal
    from lastword.talk.satellite import Satellite
    from lastword.talk.tour import Tour
    from lastword.talk.trial import try_model
    from lastword.talk.turn import Ended, Heard, ResolvedPreset, Said, Thought
else:
    __getattr__ = open_door(__name__)
