"""Questions of running tools in the memory: put down before anybody sees them, answered once, and found again.

What a person gave is kept, but for secrets, of which there are digests. What does not live here: the questions whether
a call may run, which are the journal's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lastword.consent import Answerer, Secrets
from lastword.errors import SessionError, Tampered
from lastword.journal.queue import Asker, asker_of
from lastword.journal.records import data_of
from lastword.tools import QuestionAnswer, ToolQuestion, questions

if TYPE_CHECKING:
    from lastword.journal.journal import Journal
    from lastword.store import Record

ASKED = "question_asked"
ANSWERED = "question_answered"


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


def question_answer_key(question_id: str) -> str:
    """The key that makes an answer the only one."""
    return f"question:{question_id}"


async def put_down(journal: Journal, question: ToolQuestion, principal: str = "") -> None:
    """Make a question durable, before anybody sees it."""
    facts = {"question": msgspec.to_builtins(question), "process": journal.process_name()}
    if principal:
        facts["principal"] = principal
    await journal.claim(question.session_id, ASKED, question.call_id, facts, once=f"ask:{question.id}")


async def write_answer(journal: Journal, question: ToolQuestion, answer: QuestionAnswer, by: Answerer) -> bool:
    """Write an answer down. False when the question had one, or its call has ended."""
    if any(record.kind == "finished" for record in await journal.store.read(subject=question.call_id)):
        return False
    facts: dict[str, Any] = {"question": question.id, "how": how(answer), "by": msgspec.to_builtins(by)}
    if isinstance(answer, questions.Given):
        facts["values"] = Secrets.hide(answer.values, question.secrets)
    elif isinstance(answer, questions.Closed) and answer.why:
        facts["why"] = answer.why
    key = question_answer_key(question.id)
    return await journal.claim(question.session_id, ANSWERED, question.call_id, facts, once=key)


async def answer_from_elsewhere(
    journal: Journal, waiting: StandingQuestion, answer: QuestionAnswer, by: Answerer
) -> bool:
    """Answer a question of another program. A secret does not pass through the journal, so it cannot be given here."""
    question = waiting.question
    by = journal.people.signed(by, waiting.principal, question.call_id)
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
    return await write_answer(journal, question, answer, by)


async def read_given_answer(
    journal: Journal, question: ToolQuestion, principal: str = ""
) -> tuple[QuestionAnswer, Answerer]:
    """The answer that a question got, whoever gave it."""
    record = await journal.store.taken(question_answer_key(question.id))
    if record is None:
        return questions.Closed("its call has ended"), Answerer("unknown")
    await journal.store.prove([record])
    facts = data_of(record)
    by = Answerer.read(facts.get("by"))
    if not journal.people.may_answer(by.whose, principal):
        return questions.Closed("somebody answered who may not"), by
    match facts.get("how"):
        case "given":
            # Checked again: a program of another version may have written it.
            return questions.check_answer(question, questions.Given(facts.get("values", {}))), by
        case "declined":
            return questions.Declined(), by
    return questions.Closed(str(facts.get("why", ""))), by


async def standing_questions(journal: Journal) -> tuple[list[StandingQuestion], dict[str, Tampered]]:
    """The questions that wait for whoever sits here, oldest first; apart from them those that were changed.

    A call that asks again waits for an answer to its last question alone.
    """
    found: list[StandingQuestion] = []
    damaged: dict[str, Tampered] = {}
    for record in await journal.store.current(ASKED):
        try:
            question = question_in(record)
            principal = str(data_of(record).get("principal", ""))
            if not journal.people.sees(principal):
                continue
            if question is None or await journal.store.taken(question_answer_key(question.id)) is not None:
                continue
            await journal.store.prove([record])
        except Tampered as problem:
            damaged[record.subject] = problem
            continue
        facts = {"process": data_of(record).get("process"), "call_id": record.subject}
        found.append(StandingQuestion(question, await asker_of(journal.store, facts), record.at / 1e6, principal))
    return found, damaged


def question_in(record: Record) -> ToolQuestion | None:
    """The question that a record holds; None when it was pruned."""
    facts = data_of(record)
    if not facts:
        return None
    try:
        return msgspec.convert(facts["question"], ToolQuestion)
    except msgspec.ValidationError as problem:
        raise Tampered(
            f"record {record.seq} ({record.kind}) holds no question: {problem}",
            place=record.subject,
            hint="lastword journal verify finds the first such record",
        ) from None


def how(answer: QuestionAnswer) -> Literal["given", "declined", "closed"]:
    """The answer in a word."""
    match answer:
        case questions.Given():
            return "given"
        case questions.Declined():
            return "declined"
    return "closed"
