"""Consent as data: what is asked for, what was answered, what came of it. Nothing here waits, runs or remembers."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.consent.answer import ALLOWED as ALLOWED
    from lastword.consent.answer import CLOSED as CLOSED
    from lastword.consent.answer import DENIED as DENIED
    from lastword.consent.answer import MAX_SETTLED as MAX_SETTLED
    from lastword.consent.answer import SCOPE_WORDS as SCOPE_WORDS
    from lastword.consent.answer import SECOND as SECOND
    from lastword.consent.answer import Answerer as Answerer
    from lastword.consent.answer import GrantTerms as GrantTerms
    from lastword.consent.answer import People as People
    from lastword.consent.answer import Scope as Scope
    from lastword.consent.answer import Seal as Seal
    from lastword.consent.answer import Standing as Standing
    from lastword.consent.answer import UserAction as UserAction
    from lastword.consent.answer import answerer_of as answerer_of
    from lastword.consent.answer import holding_words as holding_words
    from lastword.consent.answer import named as named
    from lastword.consent.answer import person as person
    from lastword.consent.answer import read_answerer as read_answerer
    from lastword.consent.answer import sign as sign
    from lastword.consent.answer import until_words as until_words
    from lastword.consent.approval import ALLOW as ALLOW
    from lastword.consent.approval import CANCEL as CANCEL
    from lastword.consent.approval import DENY as DENY
    from lastword.consent.approval import MASK as MASK
    from lastword.consent.approval import NO_SESSION as NO_SESSION
    from lastword.consent.approval import ApprovalRequest as ApprovalRequest
    from lastword.consent.approval import Approver as Approver
    from lastword.consent.approval import AskingSession as AskingSession
    from lastword.consent.approval import Author as Author
    from lastword.consent.approval import as_counted as as_counted
    from lastword.consent.approval import hide as hide
    from lastword.consent.approval import is_large as is_large
    from lastword.consent.approval import keep_secrets as keep_secrets
    from lastword.consent.approval import mask as mask
    from lastword.consent.approval import seal as seal
    from lastword.consent.approval import unhidden as unhidden
    from lastword.consent.approval import why_void as why_void
    from lastword.consent.call import ACTING as ACTING
    from lastword.consent.call import AUTO as AUTO
    from lastword.consent.call import NOBODY as NOBODY
    from lastword.consent.call import PERSON as PERSON
    from lastword.consent.call import WAIVED as WAIVED
    from lastword.consent.call import Auto as Auto
    from lastword.consent.call import Call as Call
    from lastword.consent.call import Decider as Decider
    from lastword.consent.call import Forbidden as Forbidden
    from lastword.consent.call import Granted as Granted
    from lastword.consent.call import LiveCall as LiveCall
    from lastword.consent.call import LiveRun as LiveRun
    from lastword.consent.call import Nobody as Nobody
    from lastword.consent.call import Person as Person
    from lastword.consent.call import Phase as Phase
    from lastword.consent.call import Preset as Preset
    from lastword.consent.call import Ruled as Ruled
    from lastword.consent.call import Stoppable as Stoppable
    from lastword.consent.call import Waived as Waived
    from lastword.consent.outcome import IN_A_WORD as IN_A_WORD
    from lastword.consent.outcome import STOPPED as STOPPED
    from lastword.consent.outcome import Approval as Approval
    from lastword.consent.outcome import Kept as Kept
    from lastword.consent.outcome import Kind as Kind
    from lastword.consent.outcome import Outcome as Outcome
    from lastword.consent.outcome import clean_alt as clean_alt
    from lastword.consent.outcome import clean_name as clean_name
    from lastword.consent.outcome import denied as denied
    from lastword.consent.outcome import denied_before as denied_before
    from lastword.consent.outcome import handed_over_outcome as handed_over_outcome
    from lastword.consent.outcome import in_words as in_words
    from lastword.consent.outcome import size_in_words as size_in_words
else:
    __getattr__ = open_door(__name__)
