"""A secret that a model writes reaches the tool, and no memory: not the conversation, not the journal, not a log."""

import json
from pathlib import Path
from typing import Any

import pytest

from flow.conftest import Cut, MakeStage, native, request
from lastword import Session, ToolRegistry
from lastword.call.events import Printed, RunStarted
from lastword.consent import ALLOWED
from lastword.errors import SessionError
from lastword.journal import Journal
from lastword.script import Concealed
from lastword.store import SqliteStore
from lastword.talk import InProcessWire
from lastword.testing import FixedApprover
from requirements import requirement

SECRET = 'hunter2-Gr\u00fc\u00dfe "quoted"'
PLAIN = "hunter2-Gr"
SECRETS = {"unlock": ["pin"]}


def spoken(*calls: str) -> dict[str, Any]:
    return native(*((f"c{i}", "unlock", text) for i, text in enumerate(calls)))


def scripted(value: str = SECRET) -> str:
    return json.dumps(value, ensure_ascii=False)


DIRECT = f'CALL unlock {{ door: "front", pin: {scripted()} }}'
BY_VARIABLE = f"""\
// The pin is {SECRET}, as I was told.
LET parts = [{scripted()}]
LET pin = "?"
FOR part IN parts DO
  SET pin = part
END
PRINT(pin)
CALL unlock {{ door: "front", pin: pin }}
"""
WAYS: dict[str, tuple[str, Any]] = {
    "json": ("json", request("unlock", door="front", pin=SECRET)),
    "native": ("native", spoken(json.dumps({"door": "front", "pin": SECRET}))),
    "script": ("script", DIRECT),
    "script, by a variable": ("script", BY_VARIABLE),
}
NEAR_MISSES: dict[str, tuple[str, Any]] = {
    "words around it": ("json", "Sure! " + request("unlock", door="front", pin=SECRET)),
    "single quotes": ("json", f"{{'tool_request': {{'name': 'unlock', 'arguments': {{'pin': '{PLAIN}'}}}}}}"),
    "arguments that are no JSON": ("native", spoken(f'{{"door": "front", "pin": {scripted()},,}}')),
    "a script that does not parse": ("script", f"{DIRECT}\nCALL unlock {{ pin: {scripted()} "),
}


def add_unlock(registry: ToolRegistry, opened: list[Any]) -> None:
    @registry.tool(secret=("pin",), effect="reversible")
    def unlock(door: str, pin: str) -> str:
        """Unlocks a door."""
        opened.append(pin)
        return f"The {door} door is open."


def kept_in(folder: Path) -> bytes:
    """Every byte of every file of the store: the database, its log, what lies beside them."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    assert any(file.name.endswith("-wal") for file in files), "the log is looked at too"
    return b"".join(file.read_bytes() for file in files)


@requirement("API-54")
@pytest.mark.parametrize("way", WAYS)
async def test_a_secret_of_the_model_reaches_the_tool_and_no_file(stage: MakeStage, tmp_path: Path, way: str):
    """The server cannot know what is secret, and kept the model's whole message; the journal kept whole scripts."""
    protocol, reply = WAYS[way]
    store = SqliteStore(tmp_path / "kept.db")
    s = await stage([reply, "It is open."], store=store, journal=Journal(store))
    add_unlock(s.registry, s.did)
    satellite = s.satellite(ALLOWED, protocol=protocol)
    told: list[Any] = []
    satellite.session.listen(told.append)
    ended = await satellite.say("Open the door.")
    assert ended.text == "It is open."
    assert s.did == [SECRET]  # the tool has it
    await store.commit()
    found = kept_in(tmp_path)
    await store.close()
    assert PLAIN.encode() not in found
    assert Concealed.NOT_KEPT.encode() in found
    # The model finds the mark in its own history, and the result beside it.
    history = json.dumps(s.sent(), ensure_ascii=False)
    assert Concealed.NOT_KEPT in history
    assert PLAIN not in history
    assert "The front door is open." in history
    # And no window is told of it.
    shown = [event.text for event in told if isinstance(event, RunStarted)]
    shown += [event.line for event in told if isinstance(event, Printed)]
    assert not any(PLAIN in text for text in [*shown, s.text])


@requirement("API-54")
@pytest.mark.parametrize("way", NEAR_MISSES)
async def test_a_secret_in_a_request_that_nearly_is_one_is_not_kept_either(stage: MakeStage, tmp_path: Path, way: str):
    """A model that gets the form wrong has written the secret all the same."""
    protocol, reply = NEAR_MISSES[way]
    store = SqliteStore(tmp_path / "kept.db")
    s = await stage([reply, "I could not."], store=store, journal=Journal(store))
    add_unlock(s.registry, s.did)
    await s.satellite(ALLOWED, protocol=protocol).say("Open the door.")
    assert s.did == []
    await store.commit()
    found = kept_in(tmp_path)
    await store.close()
    assert PLAIN.encode() not in found
    assert PLAIN not in json.dumps(s.sent(), ensure_ascii=False)


@requirement("API-42")
@pytest.mark.parametrize("way", ["json", "native", "script"])
async def test_a_request_whose_answer_was_lost_is_asked_for_again_and_never_run_with_the_mark(
    stage: MakeStage, way: str
):
    """The server remembers the request without its secret. Running that would try the mark as a pin."""
    protocol, reply = WAYS[way]
    s = await stage([reply, reply, "It is open."])
    add_unlock(s.registry, s.did)
    wire = Cut(InProcessWire(s.app), {0: "after"})
    ended = await s.satellite(ALLOWED, protocol=protocol, wire=wire).say("Open the door.")
    assert ended.text == "It is open."
    assert s.did == [SECRET]
    assert "secrets are not kept" in json.dumps(s.sent(1))


@requirement("API-42")
@pytest.mark.parametrize("way", ["json", "native", "script"])
async def test_what_was_done_with_a_lost_secret_is_told_and_not_done_again(stage: MakeStage, way: str):
    """After a restart the request is without its secret, and the journal knows that its call has ended."""
    protocol, reply = WAYS[way]
    s = await stage([reply, "It is open."])
    add_unlock(s.registry, s.did)
    first = s.satellite(ALLOWED, protocol=protocol, id="s", wire=Cut(InProcessWire(s.app), {1: "before"}))
    first.bounds = type(first.bounds)(reconnects=0)
    with pytest.raises(Exception, match="cut before"):
        await first.say("Open the door.")
    await first.session.close()
    assert s.did == [SECRET]
    ended = await s.satellite(ALLOWED, protocol=protocol, id="s").resume()
    assert ended is not None
    assert ended.text == "It is open."
    assert s.did == [SECRET]
    assert "The front door is open." in json.dumps(s.sent(), ensure_ascii=False)


@requirement("API-54")
async def test_a_model_that_repeats_the_mark_is_told_and_nobody_is_asked(stage: MakeStage):
    """It copies what it sees of its own history; the person would see dots, and could not know."""
    s = await stage([request("unlock", door="front", pin=Concealed.NOT_KEPT), "What is the pin?"])
    add_unlock(s.registry, s.did)
    satellite = s.satellite(ALLOWED)
    assert (await satellite.say("Again.")).text == "What is the pin?"
    assert s.did == []
    assert await s.records(satellite, "asked") == []


@requirement("API-54")
async def test_a_run_whose_secrets_were_not_kept_is_not_resumed_as_something_else():
    """Its text has marks where secrets were: to go on with it would hand the mark to the tool."""
    registry = ToolRegistry()
    opened: list[Any] = []
    add_unlock(registry, opened)
    journal = Journal()
    async with Session(registry, id="s", journal=journal, approver=FixedApprover(ALLOWED)) as session:
        run = await session.run_script('CALL unlock { door: "front", pin: pin }', variables={"pin": SECRET})
        assert (run.status, opened) == ("done", [SECRET])
        assert PLAIN not in str([record.data for record in await journal.history("s")])
        with pytest.raises(SessionError, match="the secrets in this script were not kept"):
            await session.resume(run.run_id)
    assert opened == [SECRET]


FROM_A_TOOL = 'LET c = CALL read { path: "config.json" }\nCALL unlock { pin: c.pin }'
HIDDEN = [
    ('CALL unlock { pin: "abcd" }', f'CALL unlock {{ pin: "{Concealed.NOT_KEPT}" }}'),
    ('CALL unlock { door: "abcd", pin: 1234 }', f'CALL unlock {{ door: "abcd", pin: "{Concealed.NOT_KEPT}" }}'),
    ('CALL other { pin: "abcd" }', 'CALL other { pin: "abcd" }'),
    ('LET a = "x1y2"\nLET b = a + "z"\nCALL unlock { pin: b }', None),
    (FROM_A_TOOL, FROM_A_TOOL),
    ('PRINT("hello")', 'PRINT("hello")'),
]


@requirement("API-54")
@pytest.mark.parametrize(("text", "kept"), HIDDEN)
def test_what_flows_into_a_secret_is_hidden_and_the_rest_of_a_script_is_not(text: str, kept: str | None):
    """A remembered script has to stay readable: only what is secret goes."""
    found = Concealed.of(text, SECRETS)
    if kept is not None:
        assert found.text == kept
    else:
        assert "x1y2" not in found.text
        assert '"z"' not in found.text
    assert Concealed.of(text, {}).text == text
