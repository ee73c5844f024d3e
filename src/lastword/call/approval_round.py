"""An approval round: the card is drawn, put before whoever decides, and their answer made good for one start.

Nothing here runs a tool. What comes out is consent that was spent on a start which stands in the journal, `AskAgain` or
`CallEnds`. Where cards wait is the desk's business (desk.py); what is asked again, and how often, is the door's.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, assert_never

import msgspec

from lastword import values
from lastword.call.draw import Undrawable, draw
from lastword.call.events import Answered
from lastword.call.threads import THREADS
from lastword.consent import (
    ALLOWED,
    Answerer,
    ApprovalRequest,
    AskingSession,
    Call,
    LiveCall,
    Outcome,
    Phase,
    Seal,
    Secrets,
    UserAction,
    deciders,
    outcome,
)
from lastword.display import displayable
from lastword.editor import ProjectProvider, changed_bytes, still_current
from lastword.errors import ArgumentsError
from lastword.journal import ASKED, Life, NotAsked, read_answer
from lastword.tools.guard import changed_files, changed_state

if TYPE_CHECKING:
    from lastword.call.authority import Authority
    from lastword.call.desk import Desk
    from lastword.call.setting import Setting
    from lastword.store import Entry
    from lastword.tools import Tool

Author = Literal["model", "person"]

# So often is a start tried again that another program was faster with. After that somebody is asked.
MAX_TRIES = 50
# How many of the things that changed are named to whoever is asked again.
MAX_NAMED = 5

CHANGED_MEANWHILE = "it was asked before, and what would happen has changed since"
FORBIDDEN_MEANWHILE = "a rule denies it by now"
STOPPED_MEANWHILE = "it was asked before, and everything was stopped since"


class Question(msgspec.Struct, frozen=True):
    """A call that needs a yes, and what is known when it is asked for."""

    tool: Tool
    call: Call
    decider: deciders.Decider
    live: LiveCall
    author: Author = "model"
    problem: str | None = None
    """Why the same call is asked again."""
    earlier: Life | None = None
    """What the journal knew of the call: it may have been asked, and even answered, before a restart."""
    denials: int = 0
    """How many calls of the same script were denied before it."""


class Consent(msgspec.Struct, frozen=True):
    """An answer to a question, with the request it was given to."""

    question: Question
    request: ApprovalRequest
    action: UserAction
    sealed: Seal
    is_written: bool = True
    """False for a plain yes that was given here: it goes to the disk in one step with the start of its call."""

    @property
    def approval(self) -> outcome.Approval:
        return _APPROVAL.get(self.sealed.approver.kind, "auto")

    def ask_again(self, why: str, earlier: Life | None = None) -> AskAgain:
        """Ask again about what was shown, whatever the caller has done to its own copy of the arguments since."""
        return AskAgain(why, values.decode(self.question.call.arguments), self.request.author, earlier)


class AskAgain(Exception):
    """The answer starts nothing as it stands; the same call is asked again."""

    def __init__(self, why: str, arguments: Any, author: Author, earlier: Life | None = None) -> None:
        self.why, self.arguments, self.author, self.earlier = why, arguments, author, earlier


class CallEnds(Exception):
    """There is no start and no further question: how the call ends, and whether that was told already."""

    def __init__(self, outcome: Outcome, *, is_told: bool = False) -> None:
        self.outcome, self.is_told = outcome, is_told


class ApprovalRound:
    """The way from a question to a start, for the calls of one session."""

    def __init__(self, setting: Setting, desk: Desk, authority: Authority) -> None:
        self._setting = setting
        self._journal = setting.journal
        self._desk = desk
        self._authority = authority

    async def ask(self, question: Question) -> Consent:
        """Draw the card, put it before whoever decides, and write down what they said."""
        tool, call, decider, earlier = question.tool, question.call, question.decider, question.earlier
        live = question.live
        if isinstance(decider, (deciders.Ruled, deciders.Auto)):
            put_to = live.put_to or _who_was_asked(earlier)
            is_answered = live.put_to is not None or _has_answered(earlier)
            if put_to is not None and (isinstance(decider, deciders.Ruled) or is_answered):
                # A rule that was loaded, or has something left again, answers no card that a person was shown. Whoever
                # turns their preset's key means what waits as well, but not what they have answered otherwise.
                decider = put_to
        if isinstance(decider, deciders.Person):
            if not decider.is_ruled and tool.manifest.auto_approve is not False:
                decider = await self._authority.instead_of(decider, tool, call)
            live.put_to = decider if isinstance(decider, deciders.Person) else live.put_to
        if decider is not question.decider:
            question = msgspec.structs.replace(question, decider=decider)
        request = await self._draw(question)
        if isinstance(request, Undrawable):
            raise CallEnds(request.ended(call))
        if not isinstance(decider, deciders.Person):
            # Drawing took its time, and whoever stood for the person may have been taken back meanwhile.
            decides_now = await self._decides_now(tool, call, decider, request)
            if isinstance(decides_now, deciders.Forbidden):
                raise AskAgain(FORBIDDEN_MEANWHILE, values.decode(call.arguments), question.author)
            if isinstance(decides_now, deciders.Person):
                live.put_to = decides_now
                request = msgspec.structs.replace(request, missing=decides_now.missing, rule_line=decides_now.line)
            decider = decides_now

        if earlier is not None and earlier.asked is not None:
            asked, answered = await self._found_asked(question, request, earlier)
            if answered is not None:
                return self._accepted(question, asked, decider, *answered)
            request = asked
        else:
            await self._write_asked(tool, request, question.live.stops or 0)
        return await self._answered(question, request, decider)

    async def _decides_now(
        self, tool: Tool, call: Call, decider: deciders.Decider, request: ApprovalRequest
    ) -> deciders.Decider | deciders.Forbidden:
        """Who decides at this moment about a call that a standing yes was to decide about."""
        if request.preview:
            written = [path for shown in request.preview for path in (shown.path, shown.renamed_to) if path]
            if file := self._setting.guarded(written, tool):
                why = f"Asked because it would change {file.path}, and {file.has} are changed by people alone."
                return deciders.Person((), why, True)
        decides_now = await self._authority.decide(tool, call)
        if isinstance(decides_now, deciders.Nobody):
            return decider  # It needs less than it did; what was decided is enough.
        if (
            isinstance(decider, deciders.Waived)
            and isinstance(decides_now, deciders.Person)
            and not decides_now.is_ruled
        ):
            return decider  # The tool's own rule stands, since no other one speaks against it.
        return decides_now

    async def _write_asked(self, tool: Tool, request: ApprovalRequest, stops: int) -> None:
        """Have the question on the disk. One of megabytes is brought into its form beside the loop."""
        setting, facts, asking = self._setting, None, AskingSession(stops)
        if tool.manifest.auto_approve is not False:
            folder = str(tool.folder_from(setting.folder)) if tool.is_placed else ""
            asking = AskingSession(stops, folder, tool.path_schemas, setting.user_digest)
        if ApprovalRequest.is_large(request.argument_bytes, request.preview):
            facts = await THREADS.result_of(self._journal.facts_of(request, asking))
        await self._journal.asked(request, asking, facts)

    async def _found_asked(
        self, question: Question, request: ApprovalRequest, earlier: Life
    ) -> tuple[ApprovalRequest, tuple[UserAction, Seal] | None]:
        """The question that an earlier process put, its answer if it has one, or a new question that says why."""
        assert earlier.asked is not None
        stops = question.live.stops or 0
        before = self._as_asked_before(request, earlier)
        # A question that does not say how often everything had been stopped is from before the first time.
        is_stopped = earlier.asked.get("stops", 0) != stops
        if before is not None and earlier.answered is not None:
            answered = read_answer(before.nonce, earlier.answered)
            if not (is_stopped and answered[0].agrees):
                return before, answered
        said_before = None if before is None else (before.missing, before.rule_line)
        if before is not None and not is_stopped and said_before == (request.missing, request.rule_line):
            return before, None
        why = STOPPED_MEANWHILE if is_stopped else CHANGED_MEANWHILE
        request = msgspec.structs.replace(request, problem=request.problem or why)
        await self._write_asked(question.tool, request, stops)
        return request, None

    def _as_asked_before(self, request: ApprovalRequest, earlier: Life) -> ApprovalRequest | None:
        """The very question that was put before a restart, if this is it. It may even have been answered since."""
        assert earlier.asked is not None
        asked = earlier.asked
        # Why it was asked is told as it was then: whether that still holds is looked at apart, and may ask again.
        same = msgspec.structs.replace(
            request,
            nonce=asked.get("nonce", request.nonce),
            problem=asked.get("problem", request.problem),
            missing=tuple(asked.get("missing", request.missing)),
            denials=asked.get("denials", 0),
            rule_line=asked.get("rule_line", ""),
        )
        return same if same.digest == asked.get("digest") else None

    async def _answered(self, question: Question, request: ApprovalRequest, decider: deciders.Decider) -> Consent:
        """Wait for the answer, and see to it that it is the only one."""
        action: UserAction
        by: Answerer | Seal
        if question.live.is_cancelled:
            action, by = request.close(), Answerer.CANCELLED
        elif isinstance(decider, deciders.Person):
            answer = await self._desk.ask(request)
            if isinstance(answer, Outcome):  # Nobody to ask, or nobody answered.
                raise CallEnds(answer)
            action, by = answer
        elif isinstance(decider, deciders.Auto):
            action, by = ALLOWED, Answerer(self._setting.preset.standing, self._setting.preset.name)
        elif isinstance(decider, deciders.Waived):
            action, by = ALLOWED, Answerer("waiver")
        elif isinstance(decider, deciders.Ruled):
            action, by = ALLOWED, Answerer("rule", decider.rule)
        elif isinstance(decider, deciders.Granted):
            action, by = ALLOWED, Answerer("grant", decider.id)
        else:
            assert_never(decider)  # Whoever is none of these has not said yes.
        if isinstance(by, Seal):
            return self._accepted(question, request, decider, action, by)
        by = by.signed(request.principal)
        sealed = action.sealed(request, by, self._journal.clock())
        granted: tuple[Entry, ...] = ()
        if action.grant is not None:
            action, granted = self._authority.granted(question.tool, request, action, by)
        if action.primary_confirmed and action.arguments is None and not granted:
            return Consent(question, request, action.as_counted(sealed, request), sealed, is_written=False)
        is_written = await self._journal.answered(request, action, sealed, *granted)
        if not is_written and granted:
            # The same terms may have been given with another answer. Then the yes to this call stands by itself.
            action = msgspec.structs.replace(action, grant=None)
            is_written = await self._journal.answered(request, action, sealed)
        if not is_written:
            # Somebody was faster, in another window or another process. Theirs is the answer.
            action, sealed = await self._journal.answer_to(request)
        return self._accepted(question, request, decider, action, sealed)

    def _accepted(
        self, question: Question, request: ApprovalRequest, decider: deciders.Decider, action: UserAction, sealed: Seal
    ) -> Consent:
        """An answer that stands in the journal, whoever wrote it there, if this call may go by their word."""
        consent, by = Consent(question, request, action.as_counted(sealed, request), sealed), sealed.approver
        if consent.action.agrees and by.kind != "person" and isinstance(decider, deciders.Person):
            # A yes that no person gave is worth something only where none has to be asked; a no counts from anybody.
            raise consent.ask_again(f"{by} had said yes, and a person has to be asked now")
        whose = request.principal
        if consent.action.agrees and by.kind == "person" and not self._journal.people.may_answer(by.whose, whose):
            # Whoever wrote it there goes by other rules than we do, or by none.
            raise consent.ask_again(f"{by} had said yes, and may not answer for {displayable(whose)}")
        if (grant := consent.action.grant) is not None:
            # Also one that another program gave: it ends with this session all the same. The waiting cards that the
            # person was shown beside it are answered; whether it covers each is decided when each would start.
            self._setting.gave.add(grant.id)
            for call_id in grant.settles:
                self._desk.answer(call_id, ALLOWED, Answerer("grant", grant.id))
        self._announce(consent)
        return consent

    async def edited(self, consent: Consent) -> Consent:
        """The call as the person changed it, drawn and sealed anew. What they have not seen is put to them first."""
        question, given = consent.question, consent.action.arguments
        tool, call = question.tool, question.call
        assert given is not None
        if void := await self._why_void(consent):
            # An edit cannot make up for an answer that belongs to another request, or that came too late.
            raise consent.ask_again(void)
        try:
            given = Secrets.keep(given, values.decode(call.arguments), tool.manifest.secrets)
            arguments = tool.validate(given)
        except ArgumentsError as problem:
            facts = "; ".join(p.fact for p in problem.problems)
            raise consent.ask_again(f"the edited arguments do not fit: {facts}") from None
        if values.canonical(values.decode(arguments)) == values.canonical(values.decode(call.arguments)):
            return consent
        edited = Call(call.id, call.tool, arguments, call.origin)
        asked = question.decider if isinstance(question.decider, deciders.Person) else deciders.Person(())
        request = await self._draw(Question(tool, edited, asked, question.live, author="person"))
        if isinstance(request, Undrawable):
            why = f"the edited call could not be shown: {request.why}"
            # When the tool itself says what is wrong with the change, they see the call without it.
            raise consent.ask_again(why) if request.for_model else AskAgain(why, given, "person")
        content = tool.manifest.content_parameter
        wrote = request.arguments.get(content) if content else None
        seen = {(preview.path, preview.base_digest) for preview in consent.request.preview}
        if any(p.proposed != wrote or (p.path, p.base_digest) not in seen for p in request.preview):
            raise AskAgain("you changed the arguments, and this is what would happen now", given, "person")
        await self._write_asked(tool, request, question.live.stops or 0)
        sealed = ALLOWED.sealed(request, consent.sealed.approver, consent.sealed.answered_at)
        if not await self._journal.answered(request, ALLOWED, sealed):
            raise AskAgain("somebody else answered while you edited", given, "person")
        return Consent(msgspec.structs.replace(question, call=edited), request, ALLOWED, sealed, consent.is_written)

    async def spend(self, consent: Consent) -> None:
        """Spend the yes and mark its call as started, durably and together.

        What may be in the way: another request's answer, a late one, a changed tool, a changed file, a second spending.
        """
        live = consent.question.live
        problem = await self._why_void(consent)
        if problem is None:
            problem = await self._start(consent)
            if problem is None:
                # Looked up after the start is on the disk: a stop comes before it and calls it off, or finds it there.
                live.is_cancelled |= await self._journal.stops() != live.stops
                return
            live.phase = Phase.ASKING
            await self._refuse_started_elsewhere(consent.question.call)
        earlier: Life | None = None
        if not consent.is_written:  # A yes that started nothing is written down, unless somebody else's answer stands.
            if await self._journal.answered(consent.request, consent.action, consent.sealed):
                self._announce(consent)
            else:
                earlier = await self._journal.life(consent.request.call_id)
        raise consent.ask_again(problem, earlier)

    async def _start(self, consent: Consent) -> str | None:
        """Why the call could not be started, or None. What a standing yes has is spent in the same commit."""
        by, tool, call = consent.sealed.approver, consent.question.tool, consent.question.call
        if by.kind == "person":
            if self._setting.policy is not None and self._authority.forbids(tool, call):
                return FORBIDDEN_MEANWHILE
            return await self._burn_and_start(consent, ASKED)
        for _ in range(MAX_TRIES):
            decides_now = await self._decides_now(tool, call, consent.question.decider, consent.request)
            if isinstance(decides_now, deciders.Forbidden):
                return FORBIDDEN_MEANWHILE
            if isinstance(decides_now, deciders.Person):
                return f"{by} had said yes, and a person has to be asked now"
            use = await self._authority.use(decides_now, call)
            if isinstance(use, str):
                return use
            problem = await self._burn_and_start(consent, use)
            if problem is None or not await self._authority.is_lost(use):
                return problem
        return "others were faster each time"

    async def _burn_and_start(self, consent: Consent, use: NotAsked) -> str | None:
        call, tool, live = consent.question.call, consent.question.tool, consent.question.live
        live.phase, live.not_asked = Phase.STARTING, use.why
        if consent.is_written:
            spent = await self._journal.burn_and_start(
                self._setting.session_id, call, tool, consent.sealed, consent.approval, live, use
            )
            return None if spent else "the approval was already spent"
        if not await self._journal.answer_and_start(
            consent.request, consent.action, call, tool, consent.sealed, consent.approval, live, use
        ):
            return "it was answered elsewhere in the same moment"
        self._announce(consent)
        return None

    async def _refuse_started_elsewhere(self, call: Call) -> None:
        """Somebody else may have been faster to start this very call: a second yes must not run it twice."""
        life = await self._journal.life(call.id)
        if life.finished is not None:
            raise CallEnds(life.outcome(), is_told=True)
        if life.started is not None:
            words = outcome.still_running(call.tool)
            running = Outcome(kind="outcome_unknown", message=words, call_id=call.id, tool=call.tool)
            raise CallEnds(running, is_told=True)

    async def _why_void(self, consent: Consent) -> str | None:
        """Why this consent may not start the call now, or None."""
        setting, request = self._setting, consent.request
        registered = setting.registry.find(request.tool)
        found = consent.sealed.why_void(
            request,
            # The same description with other code behind it is another tool.
            tool_digest=registered.digest if registered is consent.question.tool else None,
            now=self._journal.clock(),
            valid_seconds=setting.limits.answer_valid_seconds,
        )
        if found is None and (request.reads or request.looked_at):
            changed = await self._changed_since(request)
            if changed:
                more = f" and {len(changed) - MAX_NAMED} more" if len(changed) > MAX_NAMED else ""
                found = f"{', '.join(changed[:MAX_NAMED])}{more} changed while the question waited"
        return found

    async def _changed_since(self, request: ApprovalRequest) -> list[str]:
        """What of all that the card was drawn from is not what it was then."""
        editor, reads, looked_at = self._setting.editor, dict(request.reads), request.looked_at
        changed: list[str] = []
        if reads and editor is not None:
            if isinstance(editor, ProjectProvider):
                changed += await THREADS.result_of(partial(changed_bytes, editor, reads))
            else:
                changed += await still_current(editor, reads)
        if any(look.is_file for look in looked_at):
            changed += await THREADS.result_of(partial(changed_files, looked_at))
        # Last, since it takes no time: what is set while the files are read is found, too.
        return changed + changed_state(looked_at, self._setting.state)

    def _draw(self, question: Question) -> Awaitable[ApprovalRequest | Undrawable]:
        decider = question.decider
        facts: dict[str, Any] = {}
        if isinstance(decider, deciders.Person):
            facts = {"missing": decider.missing, "rule_line": decider.line}
        if question.problem is not None or question.author != "model" or question.denials:
            facts |= {"problem": question.problem, "author": question.author, "denials": question.denials}
        return draw(question.tool, question.call, self._setting, **facts)

    def _announce(self, consent: Consent) -> None:
        """The answer stands in the journal now, so whoever listens may hear of it."""
        audience = self._setting.audience
        if audience.listeners:
            audience.tell(Answered(consent.request.call_id, consent.action, consent.sealed.approver))


def _who_was_asked(earlier: Life | None) -> deciders.Person | None:
    """Whom a question of an earlier process was put to; None where it was not put to a person."""
    if earlier is None or earlier.asked is None:
        return None
    missing, line = tuple(earlier.asked.get("missing", ())), earlier.asked.get("rule_line", "")
    return deciders.Person(missing, line) if missing or line else None


def _has_answered(earlier: Life | None) -> bool:
    """Whether a person has answered a question of an earlier process."""
    answer = None if earlier is None else earlier.answered
    return answer is not None and Answerer.read(answer.get("approver")).kind == "person"


_APPROVAL: dict[str, outcome.Approval] = {"person": "person", "waiver": "waived", "rule": "rule", "grant": "grant"}
