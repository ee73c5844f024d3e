"""The loop between a conversation and a session, and whom it talks to."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.talk.apiclient import Api as Api
    from lastword.talk.apiclient import ApiError as ApiError
    from lastword.talk.apiclient import ConnectionLost as ConnectionLost
    from lastword.talk.apiclient import Wire as Wire
    from lastword.talk.apiclient import decode as decode
    from lastword.talk.apiclient import read_all as read_all
    from lastword.talk.apiclient import read_stream as read_stream
    from lastword.talk.apiclient import refusal_of as refusal_of
    from lastword.talk.constraint import tool_request_grammar as tool_request_grammar
    from lastword.talk.constraint import tool_request_schema as tool_request_schema
    from lastword.talk.feedback import PROGRAM as PROGRAM
    from lastword.talk.httpwire import HttpWire as HttpWire
    from lastword.talk.inprocess import InProcessWire as InProcessWire
    from lastword.talk.inprocess import alive as alive
    from lastword.talk.model_choice import KeptModel as KeptModel
    from lastword.talk.model_choice import ModelChoice as ModelChoice
    from lastword.talk.model_choice import choose_model as choose_model
    from lastword.talk.model_choice import keep_model as keep_model
    from lastword.talk.model_choice import read_kept_model as read_kept_model
    from lastword.talk.model_choice import usual_protocol as usual_protocol
    from lastword.talk.presets import ResolvedPreset as ResolvedPreset
    from lastword.talk.presets import find_preset as find_preset
    from lastword.talk.presets import resolve_presets as resolve_presets
    from lastword.talk.rehearsal import NAME as NAME
    from lastword.talk.rehearsal import NOTE as NOTE
    from lastword.talk.repetition import WENT_BACK as WENT_BACK
    from lastword.talk.satellite import TOOLS_USED as TOOLS_USED
    from lastword.talk.satellite import Satellite as Satellite
    from lastword.talk.tour import add_tour as add_tour
    from lastword.talk.tour import note_tool as note_tool
    from lastword.talk.tour import remove_tour as remove_tour
    from lastword.talk.trial import try_model as try_model
    from lastword.talk.turn import Ended as Ended
    from lastword.talk.turn import Forgotten as Forgotten
    from lastword.talk.turn import Heard as Heard
    from lastword.talk.turn import Outgrown as Outgrown
    from lastword.talk.turn import Repairing as Repairing
    from lastword.talk.turn import Retrying as Retrying
    from lastword.talk.turn import Said as Said
    from lastword.talk.turn import Thought as Thought
    from lastword.talk.turn import used_in_words as used_in_words
else:
    __getattr__ = open_door(__name__)
