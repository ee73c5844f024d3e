"""Consent as data: what is asked for, what was answered, what came of it. Nothing here waits, runs or remembers.

Whose yes a call needs (`deciders`) and the words for a model (`outcome`) are vocabularies.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.consent.approval import ApprovalRequest, Approver, AskingSession, Secrets
    from lastword.consent.call import Call, LiveCall, LiveRun, Phase, Preset
    from lastword.consent.outcome import Kept, Kind, Outcome
    from lastword.consent.sealed_answer import ALLOWED, DENIED, Answerer, GrantTerms, People, Scope, Seal, UserAction
else:
    __getattr__ = open_door(__name__)
