"""Choosing a model on the page: tried at once, asked from then on, kept, and its key seen by nobody."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from lastword import Session, ToolRegistry
from lastword.errors import ConfigError
from lastword.store import MemoryStore
from lastword.talk import KeptModel
from lastword.testing.scripted import Fault, Pause, ScriptedModel
from lastword.web.assistant import tool_entries
from requirements import requirement
from surfaces.conftest import Houses
from surfaces.windows import PATIENCE_SECONDS, Browserless, House

KEY = "sk-nobody-sees-this"
TIME = '{"tool_request": {"name": "get_time", "arguments": {"city": "Lisbon"}}}'


@pytest.fixture
def house(houses: Houses, tmp_path: Path) -> House:
    return houses(store=MemoryStore(), model_file=tmp_path / "kept" / "model.json")


def choose(window: Browserless, address: str, **more: str) -> tuple[int, Any]:
    return window.post("/page/model", {"address": address, **more})


def test_a_model_is_tried_at_once_and_kept_with_what_it_can_do(house, window):
    """Somebody who names a model learns now, and not in the middle of a conversation, what works with it."""
    with ScriptedModel(lambda body: [TIME[:9], TIME[9:]], owned_by="llamacpp", context=4096, key=KEY) as model:
        status, found = choose(window, model.url, key=KEY)
    assert status == 200, found
    assert (found["streams"], found["native"], found["grammar"]) == (True, False, True)
    assert (found["context_tokens"], found["protocols"]) == (4096, ["json"])
    kept = KeptModel.read(house.model_file)
    assert kept == KeptModel(upstream=model.url, key=KEY)
    assert house.model_file.stat().st_mode & 0o777 == 0o600
    assert house.model_file.parent.stat().st_mode & 0o777 == 0o700


def said_to(window: Browserless, text: str) -> None:
    status, answer = window.post("/page/say", {"text": text})
    assert status == 200, answer


def until(window: Browserless, is_there: Callable[[Any], bool]) -> Any:
    """What the page shows once it is there, heard from its events."""
    with window.events() as following:
        while not is_there(state := window.get("/page/state")[1]):
            following()
    return state


def test_the_chosen_model_answers_the_next_message(house, window):
    """Whoever has just seen that it works would otherwise wonder why the old one still answers."""

    def reply(body: dict[str, Any]) -> str:
        return TIME if "Lisbon" in str(body["messages"][-1]["content"]) else f"I am {body['model']}."

    with ScriptedModel(reply, models=("small", "large"), key=KEY) as model:
        assert choose(window, model.url, model="large", key=KEY)[0] == 200
        settings = window.get("/page/state")[1]["settings"]
        assert settings["model"] == f"Model: large at {model.url} (chosen on the page)."
        assert (settings["rehearsal"], settings["next_model"]) == (False, "")
        said_to(window, "Who are you?")
        until(window, lambda state: not state["busy"] and "I am large." in json.dumps(state["items"]))
        assert model.requests[-1]["messages"][-1]["content"] == "Who are you?"


def test_a_model_is_not_shown_what_the_rehearsal_model_said(house, window):
    """A small one takes it for its own words: asked for a light, it went on with the tour."""
    said_to(window, "Hello")
    until(window, lambda state: not state["busy"] and "Rehearsal model" in json.dumps(state["items"]))
    with ScriptedModel(lambda body: TIME if "Lisbon" in str(body) else "Yes.") as model:
        assert choose(window, model.url)[0] == 200
        said_to(window, "Are you there?")
        until(window, lambda state: not state["busy"] and json.dumps(state["items"]).count("Yes.") == 1)
        said_to(window, "Still?")
        state = until(window, lambda state: not state["busy"] and json.dumps(state["items"]).count("Yes.") == 2)
    first, second = ([m["content"] for m in body["messages"][1:]] for body in model.requests[-2:])
    assert first == ["Are you there?"]
    assert second == ["Are you there?", "Yes.", "Still?"]
    assert "Rehearsal model" in json.dumps(state["items"]), "the person still sees it"


def test_a_model_that_is_chosen_in_the_middle_of_a_turn_waits_for_its_end(house, window):
    """The turn is the other model's: half of it from each would be nobody's answer."""
    first, gate = ScriptedModel(lambda body: TIME if "Lisbon" in str(body) else ["One ", gate, "two."]), Pause()
    with first, ScriptedModel(lambda body: TIME if "Lisbon" in str(body) else "Second.") as second:
        assert choose(window, first.url)[0] == 200
        said_to(window, "Count")
        assert gate.reached.wait(PATIENCE_SECONDS)
        assert choose(window, second.url)[0] == 200
        settings = window.get("/page/state")[1]["settings"]
        assert (settings["model"], settings["next_model"]) == (
            f"Model: {first.url} (chosen on the page).",
            second.url,
        )
        gate.open()
        state = until(window, lambda state: not state["busy"] and state["settings"]["next_model"] == "")
        assert "One two." in json.dumps(state["items"])
        assert state["settings"]["model"] == f"Model: {second.url} (chosen on the page)."
        said_to(window, "Who are you?")
        until(window, lambda state: not state["busy"] and "Second." in json.dumps(state["items"]))


def test_the_key_is_in_no_record_no_state_no_event_and_no_log(house, window, caplog):
    """A journal is exported, a page is photographed, a log is sent to others."""
    caplog.set_level("DEBUG")
    other = house.window()
    with (
        ScriptedModel(lambda body: TIME, key=KEY) as model,
        other.events() as following,
    ):
        status, found = choose(window, model.url, key=KEY)
        assert status == 200, found
        told = [following()]
        while told[-1][1] != "settings":
            told.append(following())
    assert told[-1][2]["model"] == f"Model: {model.url} (chosen on the page).", "other windows hear of the choice"
    seen = [found, told, window.get("/page/state"), house.do(house.store.read(limit=10_000)), caplog.text]
    assert KEY not in repr(seen)
    assert KEY not in repr(KeptModel.read(house.model_file))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"address": "127.0.0.1:11434"}, "bad_address"),
        ({"address": ""}, "bad_address"),
        ({"address": "ftp://host/v1"}, "bad_address"),
        ({"address": "file:///etc/passwd"}, "bad_address"),
        ({"address": "http://"}, "bad_address"),
        ({"address": "http://host:99999/v1"}, "bad_address"),
        ({"address": f"http://me:{KEY}@127.0.0.1:9/v1"}, "bad_address"),
        ({"address": f"http://127.0.0.1:9/v1?key={KEY}"}, "bad_address"),
        ({"address": "http://ho st/v1"}, "bad_address"),
        ({"address": "http://127.0.0.1:9/v1", "model": "a\nb"}, "bad_name"),
        ({"address": "http://127.0.0.1:9/v1", "key": f"{KEY}\r\nX: 1"}, "bad_key"),
        ({"address": "http://127.0.0.1:9/v1", "key": "ключ"}, "bad_key"),
    ],
)
def test_what_cannot_be_a_model_is_refused_without_repeating_it(house, window, body, code):
    """A key that was pasted into the wrong field must not come back in a message."""
    status, answer = window.post("/page/model", body)
    assert (status, answer["error"]["code"]) == (400, code)
    assert KEY not in json.dumps(answer)
    assert not house.model_file.exists()


@pytest.mark.parametrize(
    "fault",
    [Fault("status", status=401, body=f"no such key: {KEY}".encode()), Fault("garbage"), Fault("status", status=404)],
    ids=["refuses our key", "garbage", "another server"],
)
def test_a_model_that_does_not_answer_is_not_kept_and_the_one_before_stays(house, window, fault):
    """The next start would otherwise be the first to find out."""
    before = KeptModel(upstream="http://127.0.0.1:9/v1", key="sk-before")
    before.write(house.model_file)
    with ScriptedModel(lambda body: fault) as model:
        status, answer = choose(window, model.url, key=KEY)
    assert status == 409
    assert KEY not in json.dumps(answer)
    assert KeptModel.read(house.model_file) == before
    assert window.get("/page/state")[1]["settings"]["next_model"] == ""


def test_a_server_with_several_models_asks_for_a_name(house, window):
    """Whichever came first in its list would be a guess."""
    with ScriptedModel(lambda body: TIME, models=("small", "large")) as model:
        status, answer = choose(window, model.url)
        assert (status, answer["error"]["param"]) == (409, "model")
        assert "small, large" in answer["error"]["message"]
        assert choose(window, model.url, model="large")[0] == 200
        assert {request["model"] for request in model.requests} == {"large"}


def test_a_name_that_the_server_does_not_list_is_tried_and_said(house, window):
    """A slip of the pen is found at once where the server minds, and told where it does not."""
    with ScriptedModel(lambda body: TIME, models=("small", "large")) as model:
        status, found = choose(window, model.url, model="lage")
        assert (status, found["unlisted"]) == (200, "the model's server does not list lage; did you mean large?")
        assert choose(window, model.url, model="large")[1]["unlisted"] == ""
    with ScriptedModel(lambda body: Fault("status", status=404, body=b"no such model"), models=("small",)) as model:
        status, answer = choose(window, model.url, model="smal")
        assert status == 409
        assert "no such model; the model's server does not list smal; did you mean small?" in answer["error"]["message"]


def test_a_server_that_lists_nothing_is_asked_for_the_name_that_was_given(house, window):
    """Some have no list. Whoever knows the name of the model needs none."""
    with ScriptedModel(lambda body: TIME, models=()) as model:
        status, answer = choose(window, model.url)
        assert (status, answer["error"]["param"]) == (409, "model")
        status, found = choose(window, model.url, model="any")
        assert (status, found["unlisted"]) == (200, "")


def test_an_address_without_its_end_is_answered_with_the_whole_one(house, window):
    """Most people know a server by its port. What it says to that is 404."""
    with ScriptedModel(lambda body: TIME) as model:
        status, answer = choose(window, model.url.removesuffix("/v1"))
    assert (status, answer["error"]["param"]) == (409, "address")
    assert answer["error"]["message"] == f"no model's server answers there; is it {model.url}?"
    assert not house.model_file.exists()


def test_one_model_is_tried_at_a_time(house, window):
    """Two windows that press at once must not both believe that theirs was kept."""
    pause = Pause()
    with ScriptedModel(lambda body: [pause, TIME]) as model:
        other = house.window()
        with ThreadPoolExecutor(1) as thread:
            first = thread.submit(choose, window, model.url)
            assert pause.reached.wait(PATIENCE_SECONDS)
            status, answer = choose(other, model.url)
            assert (status, answer["error"]["code"]) == (409, "busy")
            pause.open()
            assert first.result(PATIENCE_SECONDS)[0] == 200


def test_where_the_configuration_names_a_model_none_can_be_chosen(houses):
    """What was kept would never be asked, and the page would have promised it."""
    window = houses().window()
    assert window.get("/page/state")[1]["settings"]["can_choose_model"] is False
    status, answer = choose(window, "http://127.0.0.1:9/v1")
    assert (status, answer["error"]["code"]) == (409, "configured")


@requirement("API-52")
def test_another_site_cannot_choose_a_model(house, window):
    """A forged form could send the conversations of this machine to a stranger."""
    body = {"address": "http://127.0.0.1:9/v1"}
    assert window.post("/page/model", body, Origin="http://evil.example")[0] == 403
    window.token = ""
    assert window.post("/page/model", body)[0] == 403
    assert not house.model_file.exists()


def test_a_kept_model_that_others_could_have_touched_is_refused(tmp_path):
    """It holds a key, and names who hears every conversation."""
    file = tmp_path / "model.json"
    assert KeptModel.read(file) is None
    KeptModel(upstream="http://127.0.0.1:9/v1", key=KEY).write(file)
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read or write"):
        KeptModel.read(file)
    file.chmod(0o600)
    file.write_text("{")
    with pytest.raises(ConfigError, match="damaged"):
        KeptModel.read(file)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        KeptModel.read(link)


def test_the_form_says_what_is_wrong_and_then_what_the_model_can_do(page):
    """By hand: a typing mistake, and then the right address. The key is gone from the form once it is kept."""
    page.get_by_role("link", name="Settings").or_(page.get_by_role("button", name="Settings")).first.click()
    address, key = page.get_by_label("Address of a model's server"), page.get_by_label("Key, if the server wants one")
    with ScriptedModel(lambda body: [TIME[:9], TIME[9:]], owned_by="llamacpp", context=4096, key=KEY) as model:
        address.fill("127.0.0.1")
        page.get_by_role("button", name="Try it and keep it").click()
        expect(page.get_by_role("alert")).to_contain_text("not the address of a model's server")
        address.fill(model.url)
        key.fill(KEY)
        page.get_by_role("button", name="Try it and keep it").click()
        expect(page.locator(".model")).to_contain_text("It sees 4096 tokens at once.")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(key).to_have_value("")
    expect(page.get_by_role("main")).to_contain_text(f"Model: {model.url} (chosen on the page).")
    assert KEY not in page.content()


@requirement("RULE-9")
@pytest.mark.parametrize(("key", "said"), [(False, (False, False)), ("exact", (False, True)), (True, (True, True))])
def test_a_tool_is_not_said_to_ask_always_where_a_grant_may_answer(key: Any, said: tuple[bool, bool]):
    """By a preset, by a grant or a rule: a page that knows one key only would promise questions that do not come."""
    registry = ToolRegistry()

    @registry.tool(auto_approve=key)
    def pay(amount: float) -> str:
        """Pay."""
        return "paid"

    (entry,) = tool_entries(Session(registry))
    assert (entry.auto_approve, entry.grantable) == said
