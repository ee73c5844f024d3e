"""Cards, progress and chat in a terminal.

A command asks its person with `terminal_approver`, and shows how it goes with `attend`. A chat is a `TerminalChat`
behind a `Window`, one of those that a conversation in a server has. What does not live here: what a card says (card/),
which call needs one (call/door.py), and the commands (commands/).
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.terminal.approver import Look
    from lastword.terminal.card_dialogue import CardDialogue
    from lastword.terminal.card_layout import PROMPT
    from lastword.terminal.chat import TerminalChat
    from lastword.terminal.composer import Composer, LineComposer, PipeComposer, PlainComposer
    from lastword.terminal.progress import Progress, attend, terminal_approver
    from lastword.terminal.tty import fitted, is_dumb, is_interactive, settle, wrap
    from lastword.terminal.window import Window
else:
    __getattr__ = open_door(__name__)
