"""MCP servers under Settings: named, looked at, trusted as they were shown, and removed; by a person, in two acts."""

import asyncio
import json
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from lastword.mcp.client_records import Greeter
from lastword.mcp.server_trust import Pins, launch_of
from lastword.store import MemoryStore
from mcp_neighbour import MONEY, PLAIN, Neighbour, defined
from requirements import requirement
from surfaces.conftest import quick, windows
from surfaces.windows import PATIENCE_SECONDS, House, settled

__all__ = ["quick", "windows"]

ARMED = ".card[data-armed=true]"
PAY = defined("pay", description="Pays.", inputSchema=MONEY)
HOSTILE = "<img src=x onerror=alert(1)> \u202eevil\u200b ‹U+0041› \x1b[2J"


expect.set_options(timeout=PATIENCE_SECONDS * 1000)


class Street:
    """A page, and a server next door that its file names."""

    def __init__(self, folder: Path, *tools: dict[str, Any], named: bool = True, **facts: Any) -> None:
        self.shop = Neighbour(folder, *tools)
        command, args = self.shop.config.command, self.shop.config.args
        if named:
            self.shop.place.write_text(f"[mcp.shop]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\n")
        servers = self.shop.servers() if named else type(self.shop.servers())({}, self.shop.place, self.shop.pins)
        self.way = shlex.join([command or "", *args])
        self.house = House(folder, MemoryStore(), servers=servers, **facts).open()
        self.window = self.house.window()

    def entry(self, name: str = "shop") -> Any:
        [found] = [server for server in self.window.get("/page/servers")[1]["servers"] if server["name"] == name]
        return found

    def question(self) -> Any:
        status, asked = self.window.get("/page/server?name=shop")
        assert status == 200, asked
        return asked

    def look(self, word: str | None = "start", **more: Any) -> tuple[int, Any]:
        body = {"name": "shop", "digest": self.question()["digest"], "word": word} | more
        return self.window.post("/page/server_look", body)

    def trust(self, seen: Any, word: str | None = "trust", **more: Any) -> tuple[int, Any]:
        body = {"name": "shop", "digest": seen["digest"], "word": word, "opened": seen["must_open"]} | more
        return self.window.post("/page/server_trust", body)

    def accept(self, **more: Any) -> Any:
        """Look at it, trust it, and give what was seen."""
        _, seen = self.look(**more)
        status, answer = self.trust(seen)
        assert status == 200, answer
        return seen

    def allowed(self, tool: str, **arguments: Any) -> Any:
        """What becomes of a call that a person allows."""
        call = self.house.call(tool, **arguments)
        [card] = self.house.waiting()
        self.house.loop.call_soon_threadsafe(self.house.session.answer, card.call_id, card.allow())
        return call.result(PATIENCE_SECONDS)

    def tools(self) -> list[str]:
        found = self.window.get("/page/state")[1]["settings"]["tools"]
        return [tool["tool"] for tool in found if tool["tool"].startswith("shop__")]


@pytest.fixture
def streets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    opened: list[Street] = []

    def open_street(*tools: dict[str, Any], **facts: Any) -> Street:
        opened.append(Street(tmp_path, *(tools or (PAY,)), **facts))
        return opened[-1]

    yield open_street
    for street in opened:
        street.house.close()


@requirement("MCP-2", "MCP-3")
def test_a_server_is_seen_started_seen_again_and_trusted_and_then_called(streets):
    """The same two questions as on the command line, and each step by itself does no more than it says."""
    street = streets()
    assert (street.entry()["state"], street.entry()["tools"]) == ("not trusted", [])
    asked = street.question()
    assert "plain_server.py" in dict(asked["way"])["command"]
    assert (asked["word"], asked["rights"]) == ("start", "It would run with all the rights of your account.")
    assert street.shop.heard() == [], "it was shown, and not started"
    status, seen = street.look()
    assert status == 200, seen
    assert [tool["id"] for tool in seen["tools"]] == ["shop__pay"]
    assert seen["tools"][0]["about"] == "The MCP server shop says of it: “Pays.”"
    assert street.tools() == [], "it was looked at, and not trusted"
    assert street.trust(seen)[0] == 200
    assert street.tools() == ["shop__pay"]
    assert street.entry()["state"] == "trusted"
    assert street.allowed("shop__pay", amount=7).value == "paid 7"
    assert street.entry()["state"] == "running"


@requirement("MCP-2", "CONF-2")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"word": None}, "not_confirmed"),
        ({"word": ""}, "not_confirmed"),
        ({"word": "trust"}, "not_confirmed"),
        ({"word": "yes"}, "not_confirmed"),
        ({"digest": "0" * 64}, "changed"),
        ({"digest": ""}, "changed"),
        ({"name": "other"}, "refused"),
        ({"name": "../shop"}, "refused"),
    ],
)
def test_one_press_and_a_guess_start_nothing(streets, body, code):
    """A program is started with all rights of the account: a slip of the hand must not do it."""
    street = streets()
    status, answer = street.look(**body)
    assert (status in (400, 409), answer["error"]["code"]) == (True, code), answer
    assert street.shop.heard() == []


@requirement("MCP-3")
def test_what_was_not_shown_is_not_trusted(streets):
    """Without the word, for another digest, before it was looked at, or under another name: nothing is pinned."""
    street = streets()
    assert street.trust({"digest": street.question()["digest"], "must_open": []})[0] == 409
    _, seen = street.look()
    for body, code in (
        ({"word": None}, "not_confirmed"),
        ({"word": "start"}, "not_confirmed"),
        ({"digest": "0" * 64}, "changed"),
        ({"name": "other"}, "changed"),
    ):
        status, answer = street.trust(seen, **body)
        assert (status in (400, 409), answer["error"]["code"]) == (True, code), answer
    assert street.tools() == []
    assert street.shop.pins.of(street.shop.place, "shop") is None


@requirement("MCP-3")
def test_a_question_that_nobody_can_have_read_is_not_answered(streets, monkeypatch):
    """Neither the one about the way nor the one about the tools, however well the answer is formed."""
    street = streets()
    _, seen = street.look()
    monkeypatch.setattr("lastword.web.conversation.UNREAD_SECONDS", 3600.0)
    status, answer = street.look()
    assert (status, answer["error"]["code"]) == (409, "too_soon")
    status, answer = street.trust(seen)
    assert (status, answer["error"]["code"]) == (409, "too_soon")
    assert street.tools() == []


@requirement("MCP-3")
def test_what_is_pinned_is_what_was_shown_and_not_what_the_server_says_since(streets):
    """Between the look and the yes the server changes its mind. The yes was to what stood there."""
    street = streets()
    _, seen = street.look()
    street.shop.define(PAY | {"description": "Pays me."})
    assert street.trust(seen)[0] == 200
    pinned = street.shop.pins.of(street.shop.place, "shop")
    assert "Pays me." not in pinned.tools["pay"]
    assert "not the one that you trusted" in street.allowed("shop__pay", amount=7).message
    assert street.shop.calls() == []
    assert street.entry()["tools"][0]["withheld"] == "its definition is not the one that you trusted"


@requirement("MCP-3")
def test_a_file_that_changed_since_it_was_shown_is_asked_about_again(streets, tmp_path):
    """`python server.py` is what the file says. Who agreed to one file agreed to no other."""
    street = streets()
    asked = street.question()
    (street.shop.data / "more.py").write_text("")
    street.shop.config.args.append(str(street.shop.data / "more.py"))
    status, answer = street.window.post(
        "/page/server_look", {"name": "shop", "digest": asked["digest"], "word": "start"}
    )
    assert (status, answer["error"]["code"]) == (409, "changed")
    _, seen = street.look()
    (street.shop.data / "more.py").write_text("print('other')")
    status, answer = street.trust(seen)
    assert status == 409
    assert "has changed since you saw it" in answer["error"]["message"]
    assert street.tools() == []


@requirement("MCP-3")
def test_a_changed_definition_is_shown_as_a_diff_and_trusted_again(streets):
    """What was trusted to be started needs no second word for that; what it says now needs the person's."""
    street = streets(PAY, defined("other"))
    street.accept()
    street.shop.define(PAY | {"description": "Pays.\u200b"}, defined("new"))
    asked = street.question()
    assert (asked["word"], asked["changed"]) == (None, [])
    status, seen = street.look(word=None)
    assert status == 200, seen
    assert seen["tools"] == []
    changes = {change["path"]: change for change in seen["changes"]}
    assert {path: change["kind"] for path, change in changes.items()} == {
        "shop__new": "created",
        "shop__other": "deleted",
        "shop__pay": "changed",
    }
    rows = [row for row in changes["shop__pay"]["lines"] if row[0] != "same" and "Pays." in row[3]]
    assert [(row[0], row[3].strip()) for row in rows] == [
        ("removed", '"description": "Pays.",'),
        ("added", '"description": "Pays.‹U+200B›",'),
    ]
    assert street.trust(seen)[0] == 200
    assert sorted(street.tools()) == ["shop__new", "shop__pay"]
    status, seen = street.look(word=None)
    assert (status, seen["same"], seen["changes"]) == (200, True, []), "as it was trusted, it asks nothing"


@requirement("MCP-5")
def test_hostile_words_of_a_server_and_a_client_are_marked_wherever_they_are_shown(streets):
    """Names, descriptions, arguments, changes, errors and what a client calls itself."""
    schema = {"type": "object", "properties": {HOSTILE: {"type": "string"}}}
    evil = defined(f"do {HOSTILE}", description=HOSTILE, inputSchema=schema)
    street = streets(evil)
    seen = street.accept()
    street.shop.define(defined(f"do {HOSTILE}", description=f"{HOSTILE}!", inputSchema=schema))
    _, again = street.look(word=None)

    async def meet() -> None:
        Greeter().meet(street.house.session.journal, "stdio", HOSTILE)

    street.house.do(meet())
    found = street.window.get("/page/servers")[1]
    assert [client["name"] for client in found["clients"]], "a client is there"
    told = json.dumps([seen, again, found], ensure_ascii=False)
    for hidden in ("\u202e", "\u200b", "\\u001b["):
        assert hidden not in told.replace("\\\\u001b", ""), hidden
    assert "‹U+202E›" in told


@requirement("MCP-1")
def test_a_server_is_named_on_the_page_and_nothing_is_started(streets, tmp_path):
    """The file says what the command would have written, and keeps what else it says."""
    street = streets(named=False)
    place = street.shop.place
    place.write_text("# mine\n[editor]\nprivate = []\n")
    status, answer = street.window.post(
        "/page/server_add", {"name": "shop", "way": street.way, "given": "API_KEY=${SHOP_KEY}\n\nMODE=fast"}
    )
    assert status == 200, answer
    text = place.read_text()
    assert text.startswith("# mine\n[editor]\nprivate = []\n")
    entry = tomllib.loads(text)["mcp"]["shop"]
    assert entry == {
        "command": sys.executable,
        "args": [str(PLAIN), str(street.shop.data)],
        "env": {"API_KEY": "${SHOP_KEY}", "MODE": "fast"},
    }
    assert street.entry()["state"] == "not trusted"
    assert ["variable", "API_KEY=${SHOP_KEY}"] in street.entry()["way"]
    assert street.shop.heard() == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "Shop", "way": "x"}, "no name of an MCP server"),
        ({"name": "", "way": "x"}, "no name of an MCP server"),
        ({"name": "x]\n[server", "way": "x"}, "no name of an MCP server"),
        ({"name": "shop", "way": " "}, "say how the server is reached"),
        ({"name": "shop", "way": "a 'b"}, "no command"),
        ({"name": "shop", "way": "x", "given": "hush-hush"}, "line 1 of what it is given"),
        ({"name": "shop", "way": "x", "given": "=hush-hush"}, "line 1 of what it is given"),
        ({"name": "taken", "way": "x"}, "there is an MCP server taken already"),
    ],
)
def test_what_names_no_server_is_refused_without_repeating_what_may_be_secret(streets, body, words):
    """The file stays as it is."""
    street = streets(named=False)
    street.shop.place.write_text('[mcp.taken]\ncommand = "x"\n')
    status, answer = street.window.post("/page/server_add", body)
    assert status in (400, 409)
    assert words in answer["error"]["message"]
    assert "hush-hush" not in json.dumps(answer)
    assert street.shop.place.read_text() == '[mcp.taken]\ncommand = "x"\n'


@requirement("MCP-1")
def test_an_address_is_named_with_its_headers_and_contacted_by_nobody(streets):
    """What would be sent there is shown as it is written, secrets by their names."""
    street = streets(named=False)
    way = "http://127.0.0.1:9/mcp?x=1"
    body = {"name": "shop", "way": way, "given": "Authorization=Bearer ${KEY}"}
    assert street.window.post("/page/server_add", body)[0] == 200
    asked = street.question()
    assert asked["way"] == [["address", way], ["header", "Authorization: Bearer ${KEY}"]]
    assert (asked["word"], asked["rights"]) == ("contact", "What its tools are given would be sent there.")


@requirement("MCP-1")
def test_a_removed_server_is_gone_from_the_file_the_tools_and_the_trust(streets):
    """And the process that ran for it with them."""
    street = streets()
    street.accept()
    assert street.window.post("/page/server_remove", {"name": "shop"})[0] == 200
    assert street.window.get("/page/servers")[1]["servers"] == []
    assert street.tools() == []
    assert tomllib.loads(street.shop.place.read_text()) == {}
    launch = launch_of("shop", street.shop.config, street.shop.folder)
    assert Pins(street.shop.pins.file).of(street.shop.place, launch.name) is None
    assert street.window.post("/page/server_remove", {"name": "shop"})[0] == 409


@requirement("MCP-12")
def test_a_server_with_a_running_call_is_neither_replaced_nor_removed(streets):
    """A call that runs keeps its tool; ending its server would leave it in doubt."""
    street = streets(PAY, defined("hang"))
    street.accept()
    call = street.house.call("shop__hang")
    [card] = street.house.waiting()
    street.house.loop.call_soon_threadsafe(street.house.session.answer, card.call_id, card.allow())

    async def until_called() -> None:
        while not street.shop.calls():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    street.house.do(until_called())
    street.shop.define(PAY)
    _, seen = street.look(word=None)
    for status, answer in (street.trust(seen), street.window.post("/page/server_remove", {"name": "shop"})):
        assert status == 409
        assert "is running" in answer["error"]["message"]
    assert not call.done()
    street.house.loop.call_soon_threadsafe(street.house.session.cancel, card.call_id)
    assert call.result(PATIENCE_SECONDS).kind == "cancelled"


@requirement("CONF-2", "API-52")
@pytest.mark.parametrize("path", ["server_add", "server_look", "server_trust", "server_remove"])
def test_another_site_and_a_window_without_its_token_do_nothing_to_servers(streets, path):
    """A forged form would start a program on this machine."""
    street = streets()
    body = {"name": "shop", "way": "x"} if path == "server_add" else {"name": "shop"}
    if path in ("server_look", "server_trust"):
        body |= {"digest": street.question()["digest"], "word": "start"}
    before = street.shop.place.read_text()
    assert street.window.post(f"/page/{path}", body, Origin="http://evil.example")[0] == 403
    street.window.token = ""
    assert street.window.post(f"/page/{path}", body)[0] == 403
    street.window.cookie = ""
    assert street.window.post(f"/page/{path}", body)[0] == 401
    assert street.window.get("/page/servers")[0] == 401
    assert street.window.get("/page/server?name=shop")[0] == 401
    assert (street.shop.heard(), street.shop.place.read_text()) == ([], before)


def test_a_server_that_cannot_be_started_says_why(streets):
    """In its own words, marked, and nothing is trusted."""
    street = streets(named=False)
    assert street.window.post("/page/server_add", {"name": "shop", "way": "no-such-program-anywhere --x"})[0] == 200
    status, answer = street.window.get("/page/server?name=shop")
    assert status == 409
    assert "there is no program no-such-program-anywhere" in answer["error"]["message"]


@requirement("MCP-1")
def test_a_secret_of_a_server_is_on_no_page(streets, tmp_path):
    """It is named in what is shown, and put in when the server starts."""
    street = streets(defined("fail"), named=False)
    street.house.servers.secrets.keep("SHOP_KEY", "hush-hush-hush")
    body = {"name": "shop", "way": street.way, "given": "API_KEY=${SHOP_KEY}"}
    assert street.window.post("/page/server_add", body)[0] == 200
    seen = street.accept()
    told = json.dumps([seen, street.window.get("/page/servers"), street.window.get("/page/state")])
    assert "${SHOP_KEY}" in told
    assert "hush-hush-hush" not in told


def settings_of(windows: Any, street: Street) -> Page:
    page = windows(street.house.key())
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_role("heading", name="MCP servers")).to_be_visible()
    return page


def say_yes(page: Page, word: str | None) -> None:
    """The word, typed, and the press."""
    settled(page, ARMED)
    if word is not None:
        page.locator(f"{ARMED} .word").press_sequentially(word)
    settled(page, ARMED)
    page.locator(f"{ARMED} .primary").click()


@requirement("MCP-1", "MCP-2", "MCP-3")
def test_a_person_adds_looks_trusts_sees_a_change_and_removes(streets, windows):
    """By hand, in one window; another one hears of the tools at once."""
    street = streets(named=False)
    page, other = settings_of(windows, street), settings_of(windows, street)
    page.get_by_role("button", name="Add a server").click()
    page.get_by_label("Name: small letters").fill("Shop")
    page.get_by_label("Command, or address").fill(street.way)
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_role("alert")).to_contain_text("is no name of an MCP server")
    page.get_by_label("Name: small letters").fill("shop")
    page.get_by_role("button", name="Add it").click()
    expect(page.locator(".servers")).to_contain_text("not trusted yet")
    page.get_by_role("button", name="Look at it").click()
    expect(page.locator(".trusting")).to_contain_text("It would run with all the rights of your account.")
    settled(page, ARMED)
    page.locator(f"{ARMED} .primary").click(force=True)
    assert street.shop.heard() == [], "one press starts nothing"
    settled(page, ARMED)
    page.locator(f"{ARMED} .word").press_sequentially("start")
    page.locator(f"{ARMED} .word").press("Enter")
    page.locator(f"{ARMED} .primary").press("Enter")
    assert street.shop.heard() == [], "nor does Enter"
    settled(page, ARMED)
    page.locator(f"{ARMED} .primary").click()
    expect(page.locator(".trusting")).to_contain_text("shop names one tool")
    expect(page.locator(".trusting")).to_contain_text("The MCP server shop says of it: “Pays.”")
    assert street.tools() == []
    say_yes(page, "trust")
    expect(page.get_by_role("status").filter(has_text="Trusted, with one tool.")).to_be_visible()
    expect(other.locator(".tools")).to_contain_text("shop__pay")
    street.shop.define(PAY | {"description": "Pays whom it likes."})
    page.get_by_role("button", name="Look what has changed").click()
    say_yes(page, None)
    expect(page.locator(".trusting")).to_contain_text("What changed in shop since you trusted it")
    expect(page.locator(".trusting tr.added")).to_contain_text("Pays whom it likes.")
    page.get_by_role("button", name="Not now").click()
    expect(page.locator(".trusting")).to_have_count(0)
    assert "likes" not in street.shop.pins.of(street.shop.place, "shop").tools["pay"]
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_role("button", name="Remove shop").click()
    expect(page.locator(".servers")).to_have_count(0)
    expect(other.locator(".tools")).not_to_contain_text("shop__pay")


@requirement("MCP-5")
def test_words_of_a_server_are_text_wherever_they_are_shown(streets, windows):
    """A name, a description, an argument, a change, a client's name: no markup of theirs becomes any of ours."""
    schema = {"type": "object", "properties": {HOSTILE: {"type": "string"}}}
    street = streets(defined(f"do {HOSTILE}", description=HOSTILE, inputSchema=schema))

    async def meet() -> None:
        Greeter().meet(street.house.session.journal, "stdio", HOSTILE)

    street.house.do(meet())
    page = settings_of(windows, street)
    expect(page.locator("section", has_text="That is what it calls itself")).to_contain_text("<img src=x")
    page.get_by_role("button", name="Look at it").click()
    say_yes(page, "start")
    expect(page.locator(".trusting")).to_contain_text("<img src=x onerror=alert(1)>")
    say_yes(page, "trust")
    expect(page.get_by_role("status").filter(has_text="Trusted, with one tool.")).to_be_visible()
    street.shop.define(defined(f"do {HOSTILE}", description=f"{HOSTILE} more", inputSchema=schema))
    page.get_by_role("button", name="Look what has changed").click()
    say_yes(page, None)
    expect(page.locator(".trusting tr.added")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.locator(".trusting tr.added")).to_contain_text("‹U+202E›")
    assert page.locator("main img").count() == 0
    shown = page.locator("main").inner_text()
    assert not {"\u202e", "\u200b", "\x1b"} & set(shown)


def test_a_part_that_is_folded_has_to_be_opened_before_a_server_is_trusted(streets, windows):
    """What nobody has seen of a description is not what they trust."""
    street = streets(defined("pay", description="Pays.\n" + "and more\n" * 200 + "and you."))
    page = settings_of(windows, street)
    page.get_by_role("button", name="Look at it").click()
    say_yes(page, "start")
    expect(page.locator(".trusting")).to_contain_text("A part of it is folded")
    settled(page, ARMED)
    page.locator(f"{ARMED} .primary").click(force=True)
    assert street.tools() == []
    page.get_by_role("button", name="open it").click()
    say_yes(page, "trust")
    expect(page.get_by_role("status").filter(has_text="Trusted, with one tool.")).to_be_visible()
    assert street.tools() == ["shop__pay"]


def test_a_folded_part_that_was_not_opened_is_not_trusted_by_a_window_of_others(streets):
    """The page's word for it is looked at where trust is kept."""
    street = streets(defined("pay", description="Pays.\n" + "and more\n" * 200))
    _, seen = street.look()
    status, answer = street.trust(seen, opened=[])
    assert (status, answer["error"]["code"]) == (400, "not_opened")
    assert street.trust(seen)[0] == 200


def test_every_path_about_servers_is_documented(streets):
    """The API is for others too."""
    told = (Path(__file__).parents[2] / "docs" / "page.md").read_text()
    for route in streets().house.page_routes():
        assert any(f"`{method} {route.path}" in told for method in route.methods or ("GET",)), route.path
