"""Cards, progress and chat in a terminal.

    card.py       the face of a card (card/face.py) with a frame and colour
    flat.py       the face as plain sentences, for screen readers and dumb terminals
    screen.py     the terminal itself: its size, and whether a person is at it
    arming.py     which press was meant for the card, told from when keys come
    keys.py       one key or one line from the person, and nothing that was typed for something else
    quiet.py      a terminal while nothing reads its keys
    marks.py      the line in which a value is edited, with marks for what cannot be seen
    sheet.py      where a card is printed
    shrinking.py  how small the window became while something stood on it
    dialogue.py   the conversation about one card
    approver.py   one card at a time, and who waits
    attended.py   the same for this terminal, where a person is at it
    attendance.py progress and Ctrl+C while a command runs
    progress.py   what a running tool reports, in place
    window.py     the page's API: events as they come, and everything that a person may do
    picture.py    what those events add up to, and what each of them changes
    transcript.py the conversation as lines on a screen, each written once
    chat.py       the conversation in this terminal: prompt, words, cards, Ctrl+C
    composer.py   where the person writes
    slash.py      the commands that begin with a slash
    speech.py     the model's words, as they come

What does not live here: what a card says (card/), which call needs one (call/door.py), and the commands (commands/).
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.terminal.attendance import attend as attend
    from lastword.terminal.attended import terminal_approver as terminal_approver
    from lastword.terminal.card import PROMPT as PROMPT
    from lastword.terminal.card import fitted as fitted
    from lastword.terminal.card import wrap as wrap
    from lastword.terminal.dialogue import CardDialogue as CardDialogue
    from lastword.terminal.progress import Progress as Progress
    from lastword.terminal.quiet import settle as settle
    from lastword.terminal.screen import is_dumb as is_dumb
    from lastword.terminal.screen import is_interactive as is_interactive
    from lastword.terminal.steps import Look as Look
    from lastword.terminal.window import Window as Window
else:
    __getattr__ = open_door(
        __name__,
        attendance="attend",
        attended="terminal_approver",
        card="PROMPT fitted wrap",
        dialogue="CardDialogue",
        progress="Progress",
        quiet="settle",
        screen="is_dumb is_interactive",
        steps="Look",
        window="Window",
    )
