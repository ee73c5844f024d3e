"""Who may say yes to a call at this moment: keys, rules, grants, the tool's own rule; and spending what they have.

Rules and keys are decided without waiting (rules/). Grants and limits stand in the journal, so whoever asks for them
waits for it. A standing yes that has nothing left is a question, which says so.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from lastword import values
from lastword.call.draw import waives
from lastword.consent import deciders
from lastword.display import visible
from lastword.editor import PATHS
from lastword.journal import NotAsked
from lastword.rules import Accounts, Decision, Explanation, Grants, GrantWho, decide

if TYPE_CHECKING:
    from lastword.call.setting import Setting
    from lastword.consent import Answerer, ApprovalRequest, Call, UserAction
    from lastword.rules import ProtectedFile
    from lastword.store import Entry
    from lastword.tools import Tool

log = logging.getLogger("lastword")

# No path is longer. A text of the editor's tools that is can only be what would be written.
MAX_PATH = 4_096


class Authority:
    """Who decides about the calls of one session, and what stands for a person in it."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._journal = setting.journal
        self._grants, self._accounts = Grants(setting.journal), Accounts(setting.journal)

    def at_once(self, tool: Tool, call: Call) -> Decision:
        """Whose yes a call needs, as preset and rules are at this moment."""
        setting = self._setting
        return decide(tool, setting.preset, setting.policy, call, setting.folder)

    def forbids(self, tool: Tool, call: Call) -> bool:
        """Whether a rule denies a call at this moment, whoever has said yes to it."""
        policy = self._setting.policy
        return policy is not None and policy.verdict(tool, call, self._setting.folder).saying == "deny"

    async def decide(self, tool: Tool, call: Call) -> Decision | deciders.Granted:
        """Whose yes a call needs at this moment, with everything that stands in the journal."""
        found = self.at_once(tool, call)
        if isinstance(found, deciders.Ruled) and found.is_limited:
            return await self._if_left(found, tool, call)
        if isinstance(found, deciders.Person):
            return await self.instead_of(found, tool, call)
        return found

    async def instead_of(self, person: deciders.Person, tool: Tool, call: Call) -> deciders.Person | deciders.Granted:
        """A grant that covers a call about which a person would be asked; else the person, and why it is they."""
        if person.is_ruled or tool.manifest.auto_approve is False:
            return person
        if not await self._grants.any_standing():
            return person
        who, folder = self._who(call), partial(tool.folder_from, self._setting.folder)
        grants = await self._grants.living(who, tool, call.arguments, folder)
        why = ""
        for grant in grants:
            if await self._grants.waited_before(grant, call.id):
                continue  # Its card goes on waiting as it was, also when its program comes back to it.
            granted = deciders.Granted(grant.id, grant.words, grant.account.calls, grant.account.sums)
            use = await self._accounts.next_use(granted, call)
            if not isinstance(use, str):
                return granted
            why = use
        if not grants and (old := await self._grants.outdated(who, tool, call.arguments, folder)):
            why = f"the tool is not the one that {old.words} was given for"
        if why:
            return _asked_because(why, person)
        return person if grants or person.line else await self._with_nearest(person, who, tool, call)

    async def _with_nearest(self, person: deciders.Person, who: GrantWho, tool: Tool, call: Call) -> deciders.Person:
        """The person, told of a grant of theirs that just misses. Where a rule comes near, its line says so already."""
        folder = partial(tool.folder_from, self._setting.folder)
        found = await self._grants.nearest(who, tool, call.arguments, folder)
        if found is None:
            return person
        why = f"{found[0].words} does not cover it: {found[1]}"
        return msgspec.structs.replace(person, line=f"Asked. {why[:1].upper()}{why[1:]}.", why=why)

    async def still_stands(self, tool: Tool, call: Call, by: Answerer) -> bool:
        """Whether what a call was started by, without asking anybody, stands still. What it used was counted then."""
        found = self.at_once(tool, call)
        if isinstance(found, (deciders.Nobody, deciders.Auto)):
            return True
        if isinstance(found, deciders.Ruled):
            return by.kind == "rule" and by.name in (found.rule, *(other.rule for other in found.others))
        if isinstance(found, deciders.Forbidden) or found.is_ruled:
            return False
        if by.kind == "waiver":
            return await waives(tool, call, self._setting)
        folder = partial(tool.folder_from, self._setting.folder)
        grants = await self._grants.living(self._who(call), tool, call.arguments, folder)
        return by.kind == "grant" and any(grant.id == by.name for grant in grants)

    def _who(self, call: Call) -> GrantWho:
        setting = self._setting
        process = self._journal.process_name()
        return GrantWho(setting.session_id, process, setting.user_digest, call.id, setting.principal)

    async def explain(self, tool: Tool, call: Call) -> Explanation:
        """What would be decided at this moment, and by what. The tool's own rule is asked; nothing else of it runs."""
        setting = self._setting
        found = await self.decide(tool, call)
        if not isinstance(found, (deciders.Nobody, deciders.Forbidden, deciders.Person)) and (
            file := self._guarded(tool, call)
        ):
            return Explanation("ask", f"{visible(file.path)} {file.why}")
        if isinstance(found, deciders.Granted):
            use = await self._accounts.next_use(found, call)
            return Explanation("allow", use if isinstance(use, str) else use.words)
        # In the order in which a call meets them: a rule with nothing left asks, and the tool's own is not heard.
        by_rules = self.at_once(tool, call)
        if isinstance(by_rules, deciders.Person) and not by_rules.is_ruled and await waives(tool, call, setting):
            if file := self._guarded(tool, call):
                return Explanation("ask", f"{visible(file.path)} {file.why}")
            return Explanation("allow", "The tool's own rule says that nobody need be asked about these arguments")
        return Explanation.of(found, tool, setting.preset, setting.policy, call, setting.folder)

    def _guarded(self, tool: Tool, call: Call) -> ProtectedFile | None:
        """Which file that people alone change a call of the editor names: it is drawn first, and then asked about."""
        if not tool.manifest.script_editor_only:
            return None
        given = values.decode(call.arguments)
        parts = [given] if tool.consists_of is None else [own for _, own in tool.consists_of(given)]
        # Of a tool that is not ours nobody knows which of its texts are paths.
        texts = [part.get(name) for part in parts for name in (part if tool.spell is None else PATHS)]
        return self._setting.guarded([text for text in texts if isinstance(text, str) and len(text) <= MAX_PATH], tool)

    async def _if_left(
        self, rule: deciders.Ruled, tool: Tool, call: Call
    ) -> deciders.Ruled | deciders.Person | deciders.Granted:
        """The first of the rules that allow it of which something is left; else a grant, or a person, told why."""
        why = ""
        for one in (rule, *rule.others):
            use = await self._accounts.next_use(one, call)
            if not isinstance(use, str):
                return one
            why = why or use
        return await self.instead_of(_asked_because(why, deciders.Person(("preset",))), tool, call)

    async def use(self, decider: Decision | deciders.Granted | deciders.Waived, call: Call) -> NotAsked | str:
        """What to write down with a start that nobody was asked about, or why it cannot start after all."""
        match decider:
            case deciders.Auto() | deciders.Waived():
                return NotAsked()
            case deciders.Ruled() if not decider.is_limited:
                return NotAsked(f"the rule {decider.rule} allows it")
            case deciders.Ruled() | deciders.Granted():
                use = await self._accounts.next_use(decider, call)
                return use if isinstance(use, str) else NotAsked(use.words, (use.entry,))
        assert isinstance(decider, (deciders.Nobody, deciders.Forbidden, deciders.Person))
        return "nothing stands for a person any more"

    async def is_lost(self, used: NotAsked) -> bool:
        """After a start that was refused: whether the number of its use was taken, by another call or a revocation."""
        for entry in used.uses:
            assert entry.once is not None
            if await self._journal.store.taken(entry.once) is not None:
                return True
        return False

    def granted(
        self, tool: Tool, request: ApprovalRequest, action: UserAction, by: Answerer
    ) -> tuple[UserAction, tuple[Entry, ...]]:
        """The answer as it counts, and the record of the grant that came with it.

        A surface offers only what can be granted (rules/). What comes back is believed no more than any other input:
        terms that do not hold are left out, and the yes to the one call stands.
        """
        setting, process = self._setting, self._journal.process_name()
        given = self._grants.given(tool.manifest, request, action, by, process, setting.user_digest)
        if isinstance(given, str):
            log.error("call %s: nothing was granted with its answer: %s", request.call_id, given)
            return msgspec.structs.replace(action, grant=None), ()
        setting.gave.add(given.id)
        return action, (self._grants.entry(given),)


def _asked_because(why: str, person: deciders.Person) -> deciders.Person:
    """Somebody to be asked, since nothing is left of what stood for them."""
    return msgspec.structs.replace(person, line=f"Asked because {why}.", why=why)
