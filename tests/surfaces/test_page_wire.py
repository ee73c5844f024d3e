"""One shape for what the page shows: sent by Python, read by the page and by the terminal, never read out of words."""

import asyncio
import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lastword.card import responses, script_line, views
from lastword.consent import UserAction, outcome
from lastword.display import first_units, units
from lastword.runs import script_origin
from lastword.web.call_item import own_words
from surfaces.windows import PATIENCE_SECONDS, WELCOME

UI = Path(__file__).parents[2] / "src" / "lastword" / "web" / "ui"


def generate_wire() -> Any:
    """The generator, which lies beside what it writes and in no package."""
    spec = importlib.util.spec_from_file_location("generate_wire", UI / "generate_wire.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_types_of_the_page_are_those_of_the_structs():
    """A field that is renamed, added or taken away in Python does not compile in TypeScript until it is there too."""
    file, generated = UI / "src" / "wire.ts", generate_wire().wire()
    if os.environ.get("LASTWORD_WRITE_GOLDEN"):
        file.write_text(generated)
    assert file.read_text() == generated, "LASTWORD_WRITE_GOLDEN=1 writes it again"


def same_shape(data: Any, kind: Any) -> Any:
    """What was sent, as its struct; and nothing was sent that the struct does not know."""
    found = msgspec.convert(data, kind)
    assert json.loads(msgspec.json.encode(found)) == data
    return found


def test_everything_that_is_sent_has_the_shape_that_is_written_down(house, window, tmp_path):
    """A conversation with a card, an edit, a script, a denial and an undo: each answer and each event of it."""
    (tmp_path / "hello.py").write_text("before\n")
    kinds = {field.name: field.type for field in msgspec.structs.fields(views.PageEvents)}
    seen = set()
    with window.events() as following:

        def hear(until: str) -> None:
            kind = ""
            while kind != until:
                _, kind, data = following()
                same_shape(data, kinds[kind])
                seen.add(kind)

        hear("state")
        same_shape(window.post("/page/stop", {"turn": True})[1], responses.Done)
        assert same_shape(window.post("/page/say", {"text": "Hello."})[1], responses.Done).event
        hear("piece")
        with_card = house.call("write_file", path="hello.py", text=WELCOME)
        house.waiting()
        [item] = [
            i for i in same_shape(window.get("/page/state")[1], views.PageState).items if isinstance(i, views.CallItem)
        ]
        assert item.card is not None
        asked = f"/page/question?call_id={item.id}&digest={item.card.digest}"
        same_shape(window.get(asked)[1], responses.CardQuestion)
        answer = {"call_id": item.id, "digest": item.card.digest, "action": "allow"}
        same_shape(window.post("/page/answer", answer)[1], responses.Done)
        assert with_card.result(PATIENCE_SECONDS).success
        same_shape(window.post("/page/undo", {"call_id": item.id})[1], responses.DoneInWords)
        same_shape(window.post("/page/preset", {"name": "trusting"})[1], responses.Done)
        hear("settings")
        script = 'LET a = CALL add_up { numbers: [1], factor: 1, rounded: true }\nPRINT("done")\n'
        running = asyncio.run_coroutine_threadsafe(house.session.run_script(script), house.loop)
        assert running.result(PATIENCE_SECONDS).status == "done"
        same_shape(window.get("/page/timeline")[1], responses.SessionTimeline)
        same_shape(window.get("/page/shared")[1], responses.SharedText)
        same_shape(window.post("/page/key")[1], responses.NewKey)
        lines = window.raw("GET", "/page/export", headers={"Cookie": window.cookie})[2].splitlines()
        assert len([same_shape(json.loads(line), responses.ExportedRecord) for line in lines]) > 5
    assert {"state", "item", "piece", "busy", "settings"} <= seen


def test_a_call_of_a_script_names_its_line_as_a_number(house, window):
    """The page points at it, live and from the journal, without reading it out of a sentence."""
    script = 'PRINT("first")\nLET a = CALL publish { version: "1", index: "x" }\n'
    running = asyncio.run_coroutine_threadsafe(house.session.run_script(script), house.loop)
    house.waiting()
    [live] = [i for i in window.get("/page/state")[1]["items"] if i["kind"] == "call"]
    [told] = window.get("/page/timeline")[1]["calls"]
    assert live["line"] == told["line"] == 2
    alone = house.call("publish", version="2", index="x")
    house.waiting(2)
    assert [i["line"] for i in window.get("/page/state")[1]["items"] if i["kind"] == "call"] == [2, None]
    for request in house.session.pending():
        house.session.cancel(request.call_id)
    running.result(PATIENCE_SECONDS)
    alone.result(PATIENCE_SECONDS)


def test_a_denial_brings_the_words_of_the_tool_apart_from_ours(house, window, tmp_path):
    """Live and from the journal: what the tool said to a no, and nothing of what every no says."""
    (tmp_path / "hello.py").write_text("before\n")
    call = house.call("write_file", path="hello.py", text=WELCOME)
    house.waiting()
    [item] = [i for i in window.get("/page/state")[1]["items"] if i["kind"] == "call"]
    answer = {"call_id": item["id"], "digest": item["card"]["digest"], "action": "deny", "reason": "Not today.\nNo."}
    assert window.post("/page/answer", answer)[0] == 200
    message = call.result(PATIENCE_SECONDS).message
    [live] = [i for i in window.get("/page/state")[1]["items"] if i["kind"] == "call"]
    [told] = window.get("/page/timeline")[1]["calls"]
    assert live["end"]["own_words"] == told["end"]["own_words"]
    assert live["end"]["own_words"] in message
    for ours in ("Not today.", "denied it", "That settles it"):
        assert ours in message
        assert ours not in live["end"]["own_words"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(tool=TEXTS, reason=st.none() | TEXTS, words=st.none() | TEXTS, closed=st.booleans())
@example(tool="t", reason="That settles it, unless they ask for it again.", words="Their reason: x", closed=False)
def test_own_words_are_found_whatever_anybody_wrote(tool, reason, words, closed):
    """The inverse of `outcome.denied`, also where a reason or a tool imitates our words."""
    message = outcome.denied(tool, reason, words, closed=closed)
    assert own_words(message, tool, UserAction(False, not closed, reason)) == (words or "")


def test_a_denial_in_other_words_is_shown_whole():
    """A journal of an earlier version: nothing is taken away from what cannot be recognised."""
    assert own_words("It was not done.", "t", UserAction(False, True, None)) == "It was not done."
    assert own_words("It was not done.", "t", None) == "It was not done."


@given(line=st.integers(1, 999_999_999), name=st.none() | TEXTS)
def test_the_line_in_an_origin_is_the_one_that_was_put_there(line, name):
    """The inverse of `script_origin`."""
    assert script_line(script_origin(line, name or "the script")) == line


@pytest.mark.parametrize("origin", ["", "the assistant", "line 0 of x", "line 1", "a line 1 of x", "line ١ of x"])
def test_any_other_origin_has_no_line(origin):
    """An origin is also what a caller calls itself."""
    assert script_line(origin) is None


@given(before=st.text(max_size=20), after=st.text(max_size=20))
def test_units_count_a_text_as_a_browser_does(before, after):
    """`first_units` keeps exactly what `units` has counted, half characters included."""
    assert first_units(before + after, units(before)) == before
    assert units(before) + units(after) == units(before + after)


def test_no_sentence_is_read_in_typescript():
    """What decides how something looks comes as a field. Ours to word, and nobody's to take apart."""
    read = re.compile(
        r"\b(effect_words|origin|message|sentence|why_asked|by)\b[?!]?\.(startsWith|match|replace|split|includes)\("
    )
    found = [
        f"{file.name}: {line.strip()}"
        for file in sorted((UI / "src").glob("*.ts*"))
        for line in file.read_text().splitlines()
        if read.search(line)
    ]
    assert found == []
