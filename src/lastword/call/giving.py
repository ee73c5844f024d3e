"""Giving a grant at the door: the terms that came with a yes are looked at once more, and written down with it.

A surface offers only what can be granted (rules/granting.py). What comes back is believed no more than any other
input: terms that do not hold are left out, and the yes to the one call stands.
"""

from __future__ import annotations

import logging

import msgspec

from lastword.call.desk import Desk
from lastword.call.setting import Setting
from lastword.consent import ALLOWED, Answerer, ApprovalRequest, GrantTerms, UserAction
from lastword.rules import grant_of, granted_entry, why_not_given
from lastword.store import Entry
from lastword.tools import Tool

log = logging.getLogger("lastword")


class Giving:
    """The grants that are given in one session."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def granted(
        self, tool: Tool, request: ApprovalRequest, action: UserAction, by: Answerer
    ) -> tuple[UserAction, tuple[Entry, ...]]:
        """The answer as it counts, and the record of the grant that came with it."""
        terms = action.grant
        if terms is None:
            return action, ()
        why = why_not_given(tool.manifest, request, terms, by, action)
        if why is not None:
            log.error("call %s: nothing was granted with its answer: %s", request.call_id, why)
            return msgspec.structs.replace(action, grant=None), ()
        setting, journal = self._setting, self._setting.journal
        grant = grant_of(request, terms, by, journal.process_name(), setting.user_digest, journal.clock())
        setting.gave.add(grant.id)
        return action, (granted_entry(journal, grant),)

    def settle(self, terms: GrantTerms | None, desk: Desk) -> None:
        """Answer the waiting cards that the person was shown beside the grant. Whether it covers each is decided when
        each would start."""
        if terms is None:
            return
        self._setting.gave.add(terms.id)  # Also one that another program gave: it ends with this session all the same.
        for call_id in terms.settles:
            desk.answer(call_id, ALLOWED, Answerer("grant", terms.id))
