"""Consent as data: what is asked for, what was answered, what came of it. Nothing here waits, runs or remembers."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.consent.answer import (
        ALLOWED,
        CLOSED,
        DENIED,
        MAX_SETTLED,
        SCOPE_WORDS,
        SECOND,
        Answerer,
        GrantTerms,
        People,
        Scope,
        Seal,
        Standing,
        UserAction,
        answerer_of,
        holding_words,
        named,
        person,
        read_answerer,
        until_words,
    )
    from lastword.consent.approval import (
        ALLOW,
        CANCEL,
        DENY,
        MASK,
        NO_SESSION,
        ApprovalRequest,
        Approver,
        AskingSession,
        Author,
        hide,
        is_large,
        keep_secrets,
        mask,
        unhidden,
    )
    from lastword.consent.call import (
        ACTING,
        AUTO,
        NOBODY,
        PERSON,
        WAIVED,
        Auto,
        Call,
        Decider,
        Forbidden,
        Granted,
        LiveCall,
        LiveRun,
        Nobody,
        Person,
        Phase,
        Preset,
        Ruled,
        Stoppable,
        Waived,
    )
    from lastword.consent.outcome import (
        IN_A_WORD,
        STOPPED,
        Approval,
        Kept,
        Kind,
        Outcome,
        clean_alt,
        clean_name,
        denied,
        denied_before,
        handed_over_outcome,
        in_words,
        size_in_words,
    )
else:
    __getattr__ = open_door(__name__)
