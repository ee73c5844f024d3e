"""Consent as data: what is asked for, what was answered, what came of it. Nothing here waits, runs or remembers."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.consent.answerer import Answerer as Answerer
    from lastword.consent.answerer import Standing as Standing
    from lastword.consent.answerer import answerer_of as answerer_of
    from lastword.consent.answerer import named as named
    from lastword.consent.answerer import person as person
    from lastword.consent.answerer import read_answerer as read_answerer
    from lastword.consent.approval import ALLOW as ALLOW
    from lastword.consent.approval import ALLOWED as ALLOWED
    from lastword.consent.approval import CANCEL as CANCEL
    from lastword.consent.approval import CLOSED as CLOSED
    from lastword.consent.approval import DENIED as DENIED
    from lastword.consent.approval import DENY as DENY
    from lastword.consent.approval import MASK as MASK
    from lastword.consent.approval import SECOND as SECOND
    from lastword.consent.approval import ApprovalRequest as ApprovalRequest
    from lastword.consent.approval import Approver as Approver
    from lastword.consent.approval import Author as Author
    from lastword.consent.approval import Preset as Preset
    from lastword.consent.approval import Seal as Seal
    from lastword.consent.approval import UserAction as UserAction
    from lastword.consent.approval import as_counted as as_counted
    from lastword.consent.approval import hide as hide
    from lastword.consent.approval import is_large as is_large
    from lastword.consent.approval import keep_secrets as keep_secrets
    from lastword.consent.approval import mask as mask
    from lastword.consent.approval import seal as seal
    from lastword.consent.approval import unhidden as unhidden
    from lastword.consent.approval import why_void as why_void
    from lastword.consent.call import ACTING as ACTING
    from lastword.consent.call import PERSON as PERSON
    from lastword.consent.call import Call as Call
    from lastword.consent.call import LiveCall as LiveCall
    from lastword.consent.call import LiveRun as LiveRun
    from lastword.consent.call import Phase as Phase
    from lastword.consent.call import Stoppable as Stoppable
    from lastword.consent.decider import AUTO as AUTO
    from lastword.consent.decider import NOBODY as NOBODY
    from lastword.consent.decider import WAIVED as WAIVED
    from lastword.consent.decider import Auto as Auto
    from lastword.consent.decider import Decider as Decider
    from lastword.consent.decider import Forbidden as Forbidden
    from lastword.consent.decider import Granted as Granted
    from lastword.consent.decider import Nobody as Nobody
    from lastword.consent.decider import Person as Person
    from lastword.consent.decider import Ruled as Ruled
    from lastword.consent.decider import Waived as Waived
    from lastword.consent.grant import MAX_SETTLED as MAX_SETTLED
    from lastword.consent.grant import SCOPE_WORDS as SCOPE_WORDS
    from lastword.consent.grant import GrantTerms as GrantTerms
    from lastword.consent.grant import Scope as Scope
    from lastword.consent.grant import holding_words as holding_words
    from lastword.consent.grant import until_words as until_words
    from lastword.consent.kept import Kept as Kept
    from lastword.consent.kept import clean_alt as clean_alt
    from lastword.consent.kept import clean_name as clean_name
    from lastword.consent.kept import in_words as in_words
    from lastword.consent.kept import size_in_words as size_in_words
    from lastword.consent.outcome import IN_A_WORD as IN_A_WORD
    from lastword.consent.outcome import STOPPED as STOPPED
    from lastword.consent.outcome import Approval as Approval
    from lastword.consent.outcome import Kind as Kind
    from lastword.consent.outcome import Outcome as Outcome
    from lastword.consent.outcome import denied as denied
    from lastword.consent.outcome import denied_before as denied_before
    from lastword.consent.outcome import handed_over_outcome as handed_over_outcome
    from lastword.consent.people import People as People
    from lastword.consent.people import sign as sign
    from lastword.consent.whence import NOWHERE as NOWHERE
    from lastword.consent.whence import Whence as Whence
else:
    __getattr__ = open_door(
        __name__,
        answerer="Answerer Standing answerer_of named person read_answerer",
        approval="ALLOW ALLOWED ApprovalRequest Approver Author CANCEL CLOSED DENIED DENY MASK Preset SECOND Seal "
        "UserAction as_counted hide is_large keep_secrets mask seal unhidden why_void",
        call="ACTING Call LiveCall LiveRun PERSON Phase Stoppable",
        decider="AUTO Auto Decider Forbidden Granted NOBODY Nobody Person Ruled WAIVED Waived",
        grant="GrantTerms MAX_SETTLED SCOPE_WORDS Scope holding_words until_words",
        kept="Kept clean_alt clean_name in_words size_in_words",
        outcome="Approval IN_A_WORD Kind Outcome STOPPED denied denied_before handed_over_outcome",
        people="People sign",
        whence="NOWHERE Whence",
    )
