"""When the server breaks, its log says where, and its client gets a sentence with the place to look."""

import asyncio
import json
import logging
import re

import apsw
from processes import a_model, served

from lastword.store import Entry, MemoryStore, SqliteStore
from lastword.testing.scripted import Fault
from requirements import requirement

SECRET = "swordfish"
SENTENCE = "something went wrong inside the server; its log says more about request "


class Broken(MemoryStore):
    """A store with a fault that nobody foresaw, and a secret in its text."""

    async def read(self, **_):
        raise RuntimeError(SECRET)

    async def commit(self, *_):
        raise RuntimeError(SECRET)


def request_id(answer, error):
    """The id that the client is told, in the words and in the header."""
    assert (error["code"], error["type"]) == ("internal_error", "server_error")
    assert re.fullmatch(re.escape(SENTENCE) + r"[0-9a-f]{12}-[0-9a-f]+", error["message"])
    assert answer.headers["x-request-id"] == error["message"].removeprefix(SENTENCE)
    return answer.headers["x-request-id"]


def logged(caplog, id):
    """What the log says about a request."""
    [record] = [record for record in caplog.records if f"request {id} failed" in record.getMessage()]
    assert (record.name, record.levelname) == ("lastword.server", "ERROR")
    assert record.exc_info is None, "a handler of the operator's own would print the text"
    return record.getMessage()


@requirement("API-54")
def test_a_failing_route_leaves_its_traceback_under_the_id_that_the_client_has(house, caplog):
    """A person can only pass on a number. Whoever gets it finds the place, and none of what the error quoted."""
    server = house.server(lambda _: "Hello.", store=MemoryStore())
    assert server.chat("Hi").status == 200
    server.store.__class__ = Broken
    answer = server.chat("Hi")
    assert answer.status == 500
    id = request_id(answer, answer.json["error"])
    words, *lines = logged(caplog, id).split("\n")
    assert words == f"request {id} failed: POST /v1/chat/completions"
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "RuntimeError"
    assert any("test_failures.py" in line and "in read" in line for line in lines)
    assert json.loads(server.log[-1])["request"] == id
    assert SECRET not in caplog.text
    assert SECRET.encode() not in answer.body


def test_a_failure_after_a_stream_has_begun_is_its_last_event(house, caplog):
    """The status is spent, and a stream that merely ends could be taken for a bad connection."""
    server = house.server(lambda _: "One two three.", store=MemoryStore())
    assert server.chat("Hi", conversation_id="other").status == 200

    class CannotWrite(MemoryStore):
        commit = Broken.commit

    server.store.__class__ = CannotWrite
    answer = server.chat("Hi", stream=True, conversation_id="c")
    assert answer.status == 200
    *before, last = answer.chunks
    assert before
    assert "error" not in before[-1]
    assert b"[DONE]" not in answer.body
    assert "in commit" in logged(caplog, request_id(answer, last["error"]))


def test_a_record_that_the_tail_cannot_take_is_named_in_the_log(house, caplog):
    """Others are served, so nobody would notice before the conversation is needed."""
    store = MemoryStore()
    server = house.server(lambda _: "Hello.", store=store)
    assert server.chat("Hi", conversation_id="broken").status == 200
    damage = Entry("conversation/broken", "conversation.message", "broken", 1, b'{"said":')
    asyncio.run(asyncio.wait_for(store.commit(damage), 30))
    seq = asyncio.run(store.head()).seq
    assert server.chat("Hi", conversation_id="sound").status == 200
    [record] = [record for record in caplog.records if "cannot be read" in record.getMessage()]
    words, *lines = record.getMessage().split("\n")
    assert words == f"record {seq} (conversation.message) cannot be read"
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "DecodeError"
    caplog.clear()
    answer = server.chat("Hi", conversation_id="broken")
    assert "DecodeError" in logged(caplog, request_id(answer, answer.json["error"]))


@requirement("API-54")
def test_whoever_asks_hears_of_attempts_that_failed_and_of_what_the_network_said(house, caplog):
    """The client is told nothing of an attempt that was made good, and one sentence of a network; never a key."""
    caplog.set_level(logging.DEBUG, "lastword")
    refusing = Fault("status", status=500, body=f"bad key: {SECRET}".encode())
    server = house.server([refusing, "Hello."], key=SECRET)
    assert server.chat("Hi").status == 200
    attempt = (
        "the model's server answered with status 500: bad key: [removed]; this was attempt 1, and another one follows"
    )
    assert attempt in caplog.messages
    caplog.clear()
    assert house.server(None).chat("Hi", model="m").status == 502
    assert sum("ClientConnectorError: Cannot connect to host 127.0.0.1:9" in line for line in caplog.messages) == 3
    caplog.clear()
    assert house.server([Fault("die", after=("Hel",))]).chat("Hi", stream=True).chunks[-1]["error"]
    assert any("the model's server: ClientPayloadError" in line for line in caplog.messages)


@requirement("API-54")
def test_a_tampered_record_is_named_in_the_log_of_the_real_command(tmp_path):
    """In words that say what to do, as one JSON object a line like everything else there."""
    address = f"sqlite:///{tmp_path}/a.db"
    with a_model() as url, served("--upstream", url, "--store", address, folder=tmp_path) as server:
        assert server.chat("Say hello.", conversation="c")[0] == 200
        asyncio.run(add_and_change_a_record(tmp_path / "a.db"))
        status, body = server.chat("Say hello.")
    assert (status, body["error"]["code"]) == (500, "internal_error")
    id = body["error"]["message"].removeprefix(SENTENCE)
    *_, told, line = [json.loads(line) for line in (tmp_path / "serve.log").read_text().splitlines()]
    assert (line["event"], line["request"], line["problem"].partition(" ")[0]) == ("request", id, "Tampered")
    assert (told["event"], told["level"]) == ("log", "error")
    assert told["message"].startswith(f"request {id} failed: POST /v1/chat/completions\nTraceback")
    assert "Tampered: " in told["message"]
    assert told["message"].endswith("hint: it was changed after it was written; restore from a copy")


async def add_and_change_a_record(path):
    """What anybody can do who can write the file."""
    store = SqliteStore(path)
    await store.commit(Entry("somebody", "asked", "1", 1, b"{}"))
    await store.close()
    raw = apsw.Connection(str(path))
    raw.execute("UPDATE records SET subject = CAST(x'ff' AS TEXT) WHERE stream = 'somebody'")
    raw.close()
