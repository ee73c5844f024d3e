"""One call, one card, one answer: however often an agent starts its hook, and however hooks die."""

import asyncio
import signal

from hook.gates import (
    CLAUDE_AFTER,
    CLAUDE_BEFORE,
    CODEX_AFTER,
    CODEX_BEFORE,
    GEMINI_AFTER,
    GEMINI_BEFORE,
    Gate,
    Queue,
    heard,
)
from lastword.consent import ApprovalRequest
from requirements import requirement


async def allowed(gate: Gate, queue: Queue, said: dict, agent: str = "claude", **edits: str) -> str:
    """Have a call allowed, and return its id."""
    card, _ = await queue.decide(gate.start(said, agent), lambda card: card.edit(**edits) if edits else card.allow())
    return card.call_id


@requirement("HOOK-2")
async def test_a_hook_that_is_started_again_gets_the_same_answer_and_no_second_card(gate: Gate, queue: Queue):
    """An answer is given once. With changed arguments it stays the changed ones."""
    await allowed(gate, queue, CLAUDE_BEFORE, command="echo bye")
    again = await gate.ask(CLAUDE_BEFORE)
    assert again.decided["updatedInput"] == {"command": "echo bye"}
    assert await queue.journal.waiting() == []


@requirement("HOOK-2")
async def test_a_no_stays_a_no(gate: Gate, queue: Queue):
    """An agent must not get another answer by asking once more."""
    _, first = await queue.decide(gate.start(CLAUDE_BEFORE), ApprovalRequest.deny)
    again = await gate.ask(CLAUDE_BEFORE)
    assert first.decided == again.decided
    assert await queue.journal.waiting() == []


@requirement("HOOK-2")
async def test_two_hooks_of_one_call_share_one_card(gate: Gate, queue: Queue):
    """Agents start all hooks that match at once, and two settings files may both name ours."""
    first, second = gate.start(CLAUDE_BEFORE), gate.start(CLAUDE_BEFORE)
    card = await queue.card()
    assert len(await queue.journal.waiting()) == 1
    await queue.answer(card, card.allow())
    answers = await asyncio.gather(heard(first), heard(second))
    assert [answer.decided["permissionDecision"] for answer in answers] == ["allow", "allow"]
    assert (await queue.kinds(card.call_id)).count("handed_over") == 1


@requirement("HOOK-2")
async def test_the_same_id_with_other_arguments_is_denied(gate: Gate, queue: Queue):
    """A yes to one command is no yes to another one that goes by its name."""
    await allowed(gate, queue, CLAUDE_BEFORE)
    answer = await gate.ask(CLAUDE_BEFORE | {"tool_input": {"command": "rm -rf /"}})
    assert answer.code == 2
    assert "other arguments" in answer.complaint
    assert await queue.journal.waiting() == []


@requirement("HOOK-2")
async def test_the_same_id_in_another_session_is_another_call(gate: Gate, queue: Queue):
    """Fake models and proxies number their calls from one."""
    await allowed(gate, queue, CLAUDE_BEFORE)
    other = gate.start(CLAUDE_BEFORE | {"session_id": "another"})
    _, answer = await queue.decide(other, ApprovalRequest.deny)
    assert answer.decided["permissionDecision"] == "deny"


@requirement("HOOK-2")
async def test_a_call_without_an_id_is_asked_about_every_time(gate: Gate, queue: Queue):
    """Gemini CLI gives its calls no names. One yes must not serve for two equal ones."""
    await allowed(gate, queue, GEMINI_BEFORE, "gemini")
    _, answer = await queue.decide(gate.start(GEMINI_BEFORE, "gemini"), ApprovalRequest.deny)
    assert answer.said["decision"] == "deny"


@requirement("HOOK-2")
async def test_a_hook_that_is_killed_while_its_card_waits_leaves_a_card_that_is_taken_up_again(
    gate: Gate, queue: Queue
):
    """kill -9: nobody answered, nothing was allowed, and the next hook of the same call has the same card."""
    hook = gate.start(CLAUDE_BEFORE)
    card = await queue.card()
    hook.send_signal(signal.SIGKILL)
    assert (await heard(hook)).printed == ""
    [waiting] = await queue.journal.waiting()
    assert waiting["asker"] == "ended"
    again = gate.start(CLAUDE_BEFORE)
    await queue.answer(card, card.allow())
    assert (await heard(again)).decided["permissionDecision"] == "allow"
    assert (await queue.kinds(card.call_id)).count("asked") == 1


@requirement("HOOK-5")
async def test_what_was_allowed_is_handed_over_and_not_said_to_have_been_run(gate: Gate, queue: Queue):
    """We did not run it, and do not know what became of it."""
    call_id = await allowed(gate, queue, CLAUDE_BEFORE)
    assert await queue.kinds(call_id) == ["asked", "answered", "burned", "handed_over", "finished"]
    life = await queue.journal.life(call_id)
    assert (life.outcome().kind, life.outcome().success) == ("handed_over", False)
    assert life.handover_in_words() == "handed over"
    assert await queue.journal.in_doubt() == []


@requirement("HOOK-5")
async def test_the_word_of_the_agent_closes_it_once(gate: Gate, queue: Queue):
    """Told as the agent's word, and the second time it says nothing new."""
    for agent, before, after in (
        ("claude", CLAUDE_BEFORE, CLAUDE_AFTER),
        ("codex", CODEX_BEFORE, CODEX_AFTER),
        ("gemini", GEMINI_BEFORE, GEMINI_AFTER),
    ):
        call_id = await allowed(gate, queue, before, agent)
        for _ in range(2):
            answer = await gate.ask(after, agent)
            assert (answer.code, answer.printed) == (0, "")
        assert (await queue.kinds(call_id)).count("handed_back") == 1
        assert (await queue.journal.life(call_id)).handover_in_words() == "handed over, done"


@requirement("HOOK-5")
async def test_a_call_that_failed_there_is_told_as_failed(gate: Gate, queue: Queue):
    """Claude Code has an event of its own for that."""
    call_id = await allowed(gate, queue, CLAUDE_BEFORE)
    failed = {key: value for key, value in CLAUDE_AFTER.items() if key != "tool_response"}
    await gate.ask(failed | {"hook_event_name": "PostToolUseFailure", "error": "exit code 1"})
    life = await queue.journal.life(call_id)
    assert life.handover_in_words() == "handed over, failed"
    assert life.handed_back is not None
    assert life.handed_back["message"] == "exit code 1"


@requirement("HOOK-5")
async def test_other_arguments_than_were_allowed_are_a_departure(gate: Gate, queue: Queue):
    """Another hook, or the agent itself, changed them afterwards. That is not what the person said yes to."""
    call_id = await allowed(gate, queue, CLAUDE_BEFORE)
    await gate.ask(CLAUDE_AFTER | {"tool_input": {"command": "rm -rf /"}})
    life = await queue.journal.life(call_id)
    assert life.handover_in_words() == "departed"
    assert life.departed is not None
    assert life.departed["arguments"] == {"command": "rm -rf /"}


@requirement("HOOK-5")
async def test_what_ran_although_it_was_denied_is_a_departure(gate: Gate, queue: Queue):
    """An agent that gave its hook up, or passed over its answer, is found out afterwards."""
    card, _ = await queue.decide(gate.start(CLAUDE_BEFORE), ApprovalRequest.deny)
    await gate.ask(CLAUDE_AFTER)
    life = await queue.journal.life(card.call_id)
    assert life.departed is not None
    assert "had not been allowed" in life.departed["why"]


@requirement("HOOK-5")
async def test_the_end_of_a_call_that_nobody_was_asked_about_is_nothing_to_us(gate: Gate, queue: Queue):
    """It was there before the hook was."""
    answer = await gate.ask(CLAUDE_AFTER)
    assert (answer.code, answer.printed) == (0, "")
    assert await queue.journal.store.read(limit=1) == []
