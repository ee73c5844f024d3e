"""Two windows at the same moment: on one card, on one conversation. One of them wins, whole."""

import threading
from typing import Any

from requirements import requirement
from surfaces.test_page_conversations import said, talk
from surfaces.windows import PATIENCE_SECONDS, Browserless

ROUNDS = 15
CALL = {"name": "add_up", "arguments": {"numbers": [1], "factor": 1, "rounded": False}}


def at_once(*posts: tuple[Browserless, str, Any]) -> list[tuple[int, Any]]:
    """Send all of these in one moment; what came back of each."""
    start = threading.Barrier(len(posts))
    answers: dict[int, tuple[int, Any]] = {}

    def send(place: int, window: Browserless, path: str, body: Any) -> None:
        start.wait(PATIENCE_SECONDS)
        answers[place] = window.post(path, body)

    threads = [threading.Thread(target=send, args=(place, *post)) for place, post in enumerate(posts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    return [answers[place] for place in range(len(posts))]


@requirement("TOOL-55")
def test_of_an_edited_yes_and_a_no_in_two_windows_one_counts_and_the_other_is_told(houses):
    """What ran is what the winner saw and changed; the loser hears that theirs did not count, and nothing is mixed."""
    house = houses()
    windows = [house.window() for _ in range(2)]
    for number in range(ROUNDS):
        call = house.call("add_up", numbers=[number], factor=1, rounded=False)
        [request] = house.waiting()
        seen = {"call_id": request.call_id, "digest": request.digest}
        yes = (windows[0], "/page/answer", {**seen, "action": "allow", "edits": {"factor": "10"}})
        no = (windows[1], "/page/answer", {**seen, "action": "deny", "reason": "no"})
        # Whoever comes first in the list has the start of a hair.
        posts = [yes, no] if number % 2 else [no, yes]
        answers = dict(zip((post[2]["action"] for post in posts), at_once(*posts), strict=True))
        assert sorted(status for status, _ in answers.values()) == [200, 409]
        # The edit is drawn and asked again, with what was changed; whoever denied first has ended it.
        if answers["allow"][0] == 200:
            assert answers["deny"][1]["error"]["code"] in ("not_waiting", "changed")
            while not call.done() and house.session.pending():
                again = house.session.pending()[0]
                body = {"call_id": again.call_id, "digest": again.digest, "action": "allow"}
                windows[0].post("/page/answer", body)
            assert call.result(PATIENCE_SECONDS).success
            assert house.effects.pop() == ("add_up", [number], 10, False)
        else:
            assert answers["allow"][1]["error"]["code"] == "not_waiting"
            assert call.result(PATIENCE_SECONDS).kind == "denied"
        assert house.effects == []


def test_an_edited_message_and_an_answer_at_once_never_run_a_call_twice(houses):
    """While a card waits its conversation is not gone back in; whatever comes first, the call runs once at the most."""
    house = houses(*[CALL, "Done.", "Other."] * ROUNDS)
    one, other = (house.window() for _ in range(2))
    for number in range(ROUNDS):
        one.post("/page/say", {"text": f"Add {number}"})
        [request] = house.waiting()
        message = [i for i in one.get("/page/state")[1]["items"] if i.get("text") == f"Add {number}"][-1]
        seen = {"call_id": request.call_id, "digest": request.digest, "action": "allow"}
        answered, edited = at_once(
            (one, "/page/answer", seen), (other, "/page/again", {"message": message["id"], "text": "Subtract"})
        )
        assert answered[0] == 200
        assert edited[0] in (200, 409)
        until_idle(one)
        assert len(house.effects) == number + 1
        if edited[0] == 409:
            assert edited[1]["error"]["code"] == "busy"
            talk(one, "/page/say", {"text": "and so"})
        assert house.session.pending() == []


def until_idle(window: Browserless) -> None:
    """Wait until the model and the tools are at rest."""
    with window.events() as following:
        if not following()[2]["busy"]:
            return
        while True:
            _, kind, data = following()
            if kind == "busy" and not data["busy"]:
                return


def test_a_message_and_a_new_conversation_at_once_end_in_one_place(houses):
    """What was said is answered where it was said, or refused; it never goes to a conversation that nobody sees."""
    house = houses(*["Heard."] * ROUNDS)
    one, other = (house.window() for _ in range(2))
    for number in range(ROUNDS):
        spoke, began = at_once((one, "/page/say", {"text": f"word {number}"}), (other, "/page/new", {}))
        until_idle(one)
        assert {spoke[0], began[0]} <= {200, 409}
        assert 200 in (spoke[0], began[0])
        shown = said(one)
        assert spoke[0] == 409 or not shown or shown[-2:] == [f"word {number}", "Heard."]
        if spoke[0] == 200 and not shown:
            # It was said before, and the new one began after it was answered: it is in the list.
            found = one.get(f"/page/conversations?words=word%20{number}")[1]["conversations"]
            assert f"word {number}" in [entry["title"] for entry in found]
        other.post("/page/new")
