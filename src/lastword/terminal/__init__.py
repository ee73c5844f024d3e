"""Cards, progress and chat in a terminal.

    face.py       what a card says, as data: the words, before anybody chose a shape for them
    card.py       the face with a frame and colour, for eyes
    flat.py       the face as plain sentences, for screen readers and dumb terminals
    screen.py     the terminal itself: its size, and whether anybody is there
    keys.py       one key or one line from the person, and nothing that was typed for something else
    arguments.py  `name=value` in the type the tool wants
    draft.py      the arguments as the person has changed them so far
    dialogue.py   the conversation about one card
    approver.py   one card at a time, and who waits
    progress.py   what a running tool reports, in place
    window.py     the page's API: events as they come, and everything that a person may do
    picture.py    what those events add up to, and what each of them changes
    transcript.py the conversation as lines on a screen, each written once
    chat.py       the conversation in this terminal: prompt, words, cards, Ctrl+C
    composer.py   where the person writes
    slash.py      the commands that begin with a slash
    speech.py     the model's words, as they come

What does not live here: which call needs a card (call/) and the commands (commands/).
"""

from lastword.terminal.approver import TerminalApprover, terminal_approver

__all__ = ["TerminalApprover", "terminal_approver"]
