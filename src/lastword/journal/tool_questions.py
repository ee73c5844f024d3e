"""Questions of running tools in the memory: put down before anybody sees them, answered once, and found again.

What a person gave is kept, but for secrets, of which there are digests. What does not live here: the questions whether
a call may run, which are the journal's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lastword.consent import Answerer, Secrets
from lastword.errors import SessionError, Tampered
from lastword.tools import questions

if TYPE_CHECKING:
    from lastword.journal.journal import Journal
    from lastword.journal.programs import Asker
    from lastword.store import Record
    from lastword.tools import QuestionAnswer, ToolQuestion


class StandingQuestion(msgspec.Struct, frozen=True):
    """A question without an answer, and whether whoever asked still waits for one."""

    question: ToolQuestion
    asker: Asker
    at: float
    principal: str = ""
    """Whose question it is."""

    @property
    def is_dead(self) -> bool:
        """Whether nobody would hear an answer: its program has ended, and the call with it."""
        return self.asker == "ended"


class ToolQuestions:
    """The questions in one memory."""

    ASKED = "question_asked"
    ANSWERED = "question_answered"
    key = "question:{}".format
    """Of a question: the key that makes an answer the only one."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def put_down(self, question: ToolQuestion, principal: str = "") -> None:
        """Make a question durable, before anybody sees it."""
        facts = {"question": msgspec.to_builtins(question), "process": self._journal.process_name()}
        if principal:
            facts["principal"] = principal
        await self._journal.claim(question.session_id, self.ASKED, question.call_id, facts, once=f"ask:{question.id}")

    async def write_answer(self, question: ToolQuestion, answer: QuestionAnswer, by: Answerer) -> bool:
        """Write an answer down. False when the question had one, or its call has ended."""
        if any(record.kind == "finished" for record in await self._journal.store.read(subject=question.call_id)):
            return False
        facts: dict[str, Any] = {"question": question.id, "how": self.how(answer), "by": msgspec.to_builtins(by)}
        if isinstance(answer, questions.Given):
            facts["values"] = Secrets.hide(answer.values, question.secrets)
        elif isinstance(answer, questions.Closed) and answer.why:
            facts["why"] = answer.why
        key = self.key(question.id)
        return await self._journal.claim(question.session_id, self.ANSWERED, question.call_id, facts, once=key)

    async def answer_from_elsewhere(self, waiting: StandingQuestion, answer: QuestionAnswer, by: Answerer) -> bool:
        """Answer a question of another program. No secret can be given here: none passes through the journal."""
        question = waiting.question
        by = self._journal.people.signed(by, waiting.principal, question.call_id)
        answer = questions.check_answer(question, answer)
        if waiting.is_dead:
            raise SessionError(
                "the program that asked has ended, and nobody waits for this answer",
                place=question.call_id,
                hint="lastword show says how its call stands",
            )
        if isinstance(answer, questions.Given) and (secrets := question.secrets & answer.values.keys()):
            raise SessionError(
                f"the secret {min(secrets)} can only be given where the call was made",
                place=question.call_id,
                hint="a secret does not pass through the journal; you can decline here",
            )
        return await self.write_answer(question, answer, by)

    async def given_answer(self, question: ToolQuestion, principal: str = "") -> tuple[QuestionAnswer, Answerer]:
        """The answer that a question got, whoever gave it."""
        record = await self._journal.store.taken(self.key(question.id))
        if record is None:
            return questions.Closed("its call has ended"), Answerer("unknown")
        await self._journal.store.prove([record])
        facts = self._journal.data_of(record)
        by = Answerer.read(facts.get("by"))
        if not self._journal.people.may_answer(by.whose, principal):
            return questions.Closed("somebody answered who may not"), by
        match facts.get("how"):
            case "given":
                # Checked again: a program of another version may have written it.
                return questions.check_answer(question, questions.Given(facts.get("values", {}))), by
            case "declined":
                return questions.Declined(), by
        return questions.Closed(str(facts.get("why", ""))), by

    async def standing(self) -> tuple[list[StandingQuestion], dict[str, Tampered]]:
        """The questions that wait for whoever sits here, oldest first; apart from them those that were changed.

        A call that asks again waits for an answer to its last question alone.
        """
        found: list[StandingQuestion] = []
        damaged: dict[str, Tampered] = {}
        for record in await self._journal.store.current(self.ASKED):
            try:
                question = self._question_in(record)
                principal = str(self._journal.data_of(record).get("principal", ""))
                if not self._journal.people.sees(principal):
                    continue
                if question is None or await self._journal.store.taken(self.key(question.id)) is not None:
                    continue
                await self._journal.store.prove([record])
            except Tampered as problem:
                damaged[record.subject] = problem
                continue
            facts = {"process": self._journal.data_of(record).get("process"), "call_id": record.subject}
            found.append(
                StandingQuestion(question, await self._journal.programs.asker_of(facts), record.at / 1e6, principal)
            )
        return found, damaged

    def _question_in(self, record: Record) -> ToolQuestion | None:
        """The question that a record holds; None when it was pruned."""
        facts = self._journal.data_of(record)
        if not facts:
            return None
        try:
            return msgspec.convert(facts["question"], questions.ToolQuestion)
        except msgspec.ValidationError as problem:
            raise Tampered(
                f"record {record.seq} ({record.kind}) holds no question: {problem}",
                place=record.subject,
                hint="lastword journal verify finds the first such record",
            ) from None

    @staticmethod
    def how(answer: QuestionAnswer) -> Literal["given", "declined", "closed"]:
        """The answer in a word."""
        match answer:
            case questions.Given():
                return "given"
            case questions.Declined():
                return "declined"
        return "closed"
