"""One card, wherever it is looked at; and the first look at the page."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from requirements import requirement
from surfaces.conftest import Run
from surfaces.windows import PATIENCE_SECONDS, House, Up, settled

ROOT = Path(__file__).parents[2]


def order(text: str) -> list[str]:
    """The arguments, in the order in which a text has them."""
    return re.findall(r"(?m)^[│ ]*(version|index)\b", text)


def buttons(card: Locator) -> list[str]:
    return [name.strip() for name in card.locator(".actions button").all_inner_texts()]


@requirement("TOOL-55")
def test_a_card_is_the_same_in_the_terminal_in_plain_words_on_the_page_and_in_the_inbox(
    house: House, windows: Any, run: Run
) -> None:
    """Who learned one of them knows all: the arguments in one order, Deny is Deny, and two acts for what is final."""
    terminal = run("chat", "--attach", house.key(), lines=60)
    plain = run("chat", "--attach", house.key(), "--plain", lines=60)
    terminal.until("Joined the conversation")
    plain.until("Joined the conversation")
    page = windows(house.key())
    call = house.call("publish", version="1.2", index="main")
    terminal.until("[d] Deny")
    plain.until("deny because REASON")
    in_chat = page.locator(".card[data-armed=true]")
    expect(in_chat).to_have_count(1)
    rows = [in_chat.get_by_role("rowheader").all_inner_texts()]
    labels = [buttons(in_chat)]
    words = [in_chat.inner_text()]
    page.get_by_role("link", name="Inbox").click()
    page.locator("[data-stop]").first.click()
    in_inbox = page.locator(".pane .card")
    expect(in_inbox).to_have_count(1)
    rows.append(in_inbox.get_by_role("rowheader").all_inner_texts())
    labels.append(buttons(in_inbox))
    words.append(in_inbox.inner_text())
    for text in (terminal.text, plain.text):
        rows.append(order(text))
        words.append(text)
    assert [[name.strip() for name in named] for named in rows] == [["version", "index"]] * 4
    assert all("Cannot be undone" in said for said in words)
    assert labels[0] == labels[1]
    assert "Deny" in labels[0]
    assert f"[a] {labels[0][0]}" in terminal.text
    assert f"allow ({labels[0][0]})" in plain.text or labels[0][0] == "Allow"
    # On the page the first of the two acts is the typed word, in both places.
    assert all("type allow here" in said for said in words[:2])
    # In the terminal it is asked for after the key, in plain words after the word: neither is enough, nor is another
    # word than the one that is asked for. Each says so, and the card waits on.
    terminal.press("a")
    terminal.type_by_hand("yes", "╰▸ Type allow and press Enter to go on: ")
    terminal.until("Not approved: the word allow was not typed, alone and by hand.")
    plain.press("allow\r")
    plain.press_at("This cannot be undone. Type the name of the tool, publish, and press Enter to go on.", "allow\r")
    plain.until("Not approved: that was not publish, alone.")
    word = page.locator(".pane .card[data-armed=true] .word")
    word.press_sequentially("yes")
    allow = page.locator(".pane .card").get_by_role("button", name=labels[0][0])
    allow.click(force=True)
    expect(allow).to_have_attribute("aria-disabled", "true")
    terminal.until("[d] Deny", times=2)
    assert not call.done()
    assert house.effects == []
    page.locator(".pane .card[data-armed=true]").get_by_role("button", name="Deny", exact=True).click()
    assert call.result(PATIENCE_SECONDS).kind == "denied"


@requirement("TOOL-55")
@pytest.mark.parametrize("way", ["terminal", "plain"])
def test_the_second_act_in_a_terminal_allows_and_is_told_everywhere(house: House, run: Run, way: str) -> None:
    """The two acts are different, each is asked for in words, and together they are enough."""
    program = run("chat", "--attach", house.key(), *(["--plain"] if way == "plain" else []), lines=60)
    other = run("chat", "--attach", house.key(), lines=60)
    for each in (program, other):
        each.until("Joined the conversation")
    call = house.call("publish", version="1.2", index="main")
    other.until("[d] Deny")
    if way == "plain":
        program.press_at("deny because REASON", "allow\r", then="Type the name of the tool, publish,")
        assert not call.done()
        program.press("publish\r")
    else:
        program.press_at("[d] Deny", "a", then="Type allow and press Enter")
        assert not call.done()
        program.type_by_hand("allow", "╰▸ Type allow and press Enter to go on: ")
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == [("publish", "1.2", "main")]
    program.until("You chose: Allow")
    other.until("allowed")


@pytest.mark.parametrize("size", [(1200, 900), (390, 844)])
def test_the_first_look_begins_with_the_first_sentence_and_the_field_is_whole(
    tmp_path: Path, windows: Any, size: tuple[int, int]
) -> None:
    """Whoever opens the page reads from the top; and what they type is not covered by the buttons."""
    up = Up(tmp_path)
    try:
        page = windows(up.key, viewport={"width": size[0], "height": size[1]})
        settled(page)
        first, header = (page.locator(place).first.bounding_box() for place in (".message", "header"))
        assert first is not None
        assert header is not None
        assert header["y"] + header["height"] - 1 <= first["y"] < size[1]
        field = page.get_by_label("Message to the assistant")
        field.scroll_into_view_if_needed()
        # Whatever a finger meets at its four corners and in its middle is the field itself.
        assert field.evaluate(
            """field => {
              const { left, right, top, bottom } = field.getBoundingClientRect();
            const places = [[left + 9, top + 9], [right - 9, top + 9], [left + 9, bottom - 9], [right - 9, bottom - 9],
                              [(left + right) / 2, (top + bottom) / 2]];
              return places.every(([x, y]) => document.elementFromPoint(x, y) === field);
            }"""
        )
    finally:
        up.stop()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], "up"),
        (["--port", "9000"], "up --port 9000"),
        (["up", "--port", "9000"], "up --port 9000"),
        (["--open"], "up --open"),
        (["doctor"], "doctor"),
        (["--version"], "--version"),
    ],
)
def test_run_without_a_command_takes_the_options_of_up(tmp_path: Path, given: list[str], meant: str) -> None:
    """`./run --port 9000` is what people type first; it used to be refused."""
    shutil.copy(ROOT / "run", tmp_path / "run")
    (tmp_path / ".setup.sh").write_text("make_env() { :; }\n")
    command = tmp_path / ".venv" / "bin" / "lastword"
    command.parent.mkdir(parents=True)
    command.write_text('#!/bin/sh\necho "$*"\n')
    command.chmod(0o755)
    done = subprocess.run([tmp_path / "run", *given], capture_output=True, text=True, check=True)
    assert done.stdout == f"{meant}\n"
