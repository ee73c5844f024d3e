"""Standing yeses at the door: who decides when grants are looked at too, and spending what they and rules have.

Rules and keys are decided without waiting (rules/deciding.py). Grants and limits stand in the journal, so whoever asks
for them waits for it. A standing yes that has nothing left is a question, which says so.
"""

from __future__ import annotations

from functools import partial

import msgspec

from lastword import values
from lastword.call.setting import Setting
from lastword.consent.call import Call
from lastword.consent.decider import Auto, Forbidden, Granted, Nobody, Person, Ruled, Waived
from lastword.journal.records import NotAsked
from lastword.rules.counting import STREAM, Account, moment, next_use, utc_day
from lastword.rules.deciding import Decision, explain
from lastword.rules.grants import GRANTED, GrantWho, living
from lastword.rules.policy import folder_for
from lastword.tools.tool import Tool

# So often is a start tried again that another program was faster with. After that somebody is asked.
MAX_TRIES = 50


class StandingYes:
    """What stands for a person, for the calls of one session."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._journal = setting.journal

    async def decide(self, tool: Tool, call: Call) -> Decision | Granted:
        """Whose yes a call needs at this moment, with everything that stands in the journal."""
        found = self._setting.decide(tool, call)
        if isinstance(found, Ruled) and found.is_limited:
            return await self._if_left(found, tool, call)
        if isinstance(found, Person):
            return await self.instead_of(found, tool, call)
        return found

    async def instead_of(self, person: Person, tool: Tool, call: Call) -> Person | Granted:
        """A grant that covers a call about which a person would be asked; else the person, and why it is they."""
        if person.is_ruled or tool.manifest.auto_approve is False:
            return person
        setting = self._setting
        if not await self._journal.store.standing(GRANTED, stream=STREAM):
            return person  # As nearly always, and every question pays for the look.
        who = GrantWho(setting.session_id, self._journal.process_name(), setting.user, call.id, setting.principal)
        folder = partial(folder_for, tool, setting.folder)
        grants = await living(self._journal, who, tool.manifest, tool.digest, call.arguments, folder)
        why = ""
        for grant in grants:
            account = grant.account
            use = await next_use(self._journal, account, call.id, values.decode(call.arguments))
            if not isinstance(use, str):
                return Granted(grant.id, grant.words, account.calls, account.sums)
            why = use
        return msgspec.structs.replace(person, line=f"Asked because {why}.") if why else person

    async def explain(self, tool: Tool, call: Call) -> str:
        """What would be decided at this moment, and by what."""
        found = await self.decide(tool, call)
        setting = self._setting
        if isinstance(found, Granted):
            use = await next_use(self._journal, await self._account(found), call.id, values.decode(call.arguments))
            return f"allow. {use if isinstance(use, str) else use.words}"
        if isinstance(found, Person) and found.line.startswith("Asked because") and not found.is_ruled:
            return f"ask. {found.line.removeprefix('Asked because ').removesuffix('.')}"  # Nothing is left of it.
        return explain(tool, setting.preset, setting.policy, call, setting.folder)

    async def _if_left(self, rule: Ruled, tool: Tool, call: Call) -> Ruled | Person | Granted:
        use = await next_use(self._journal, await self._account(rule), call.id, values.decode(call.arguments))
        if not isinstance(use, str):
            return rule
        return await self.instead_of(Person(("preset",), f"Asked because {use}."), tool, call)

    async def _account(self, decider: Ruled | Granted) -> Account:
        if isinstance(decider, Granted):
            return Account(decider.id, decider.words, decider.calls, decider.sums)
        day = f":{utc_day(await moment(self._journal))}" if decider.per == "day" else ""
        return Account(f"rule:{decider.key}{day}", f"the rule {decider.rule}", decider.calls, decider.sums)

    async def use(self, decider: Decision | Granted | Waived, call: Call) -> NotAsked | str:
        """What to write down with a start that nobody was asked about, or why it cannot start after all."""
        match decider:
            case Auto() | Waived():
                return NotAsked()
            case Ruled() if not decider.is_limited:
                return NotAsked(f"the rule {decider.rule} allows it")
            case Ruled() | Granted():
                account = await self._account(decider)
                use = await next_use(self._journal, account, call.id, values.decode(call.arguments))
                return use if isinstance(use, str) else NotAsked(use.words, (use.entry,))
        assert isinstance(decider, (Nobody, Forbidden, Person))
        return "nothing stands for a person any more"

    async def is_lost(self, used: NotAsked) -> bool:
        """After a start that was refused: whether the number of its use was taken, by another call or a revocation."""
        for entry in used.uses:
            assert entry.once is not None
            if await self._journal.store.taken(entry.once) is not None:
                return True
        return False
