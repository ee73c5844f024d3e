"""Cards, progress and chat in a terminal.

A command asks its person with `terminal_approver`, and shows how it goes with `attend`. A chat is a `TerminalChat`
behind a `Window`, one of those that a conversation in a server has. What does not live here: what a card says (card/),
which call needs one (call/door.py), and the commands (commands/).
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.terminal.approver import Look as Look
    from lastword.terminal.card_dialogue import CardDialogue as CardDialogue
    from lastword.terminal.card_layout import PROMPT as PROMPT
    from lastword.terminal.chat import TerminalChat as TerminalChat
    from lastword.terminal.composer import Composer as Composer
    from lastword.terminal.composer import LineComposer as LineComposer
    from lastword.terminal.composer import PipeComposer as PipeComposer
    from lastword.terminal.composer import PlainComposer as PlainComposer
    from lastword.terminal.progress import Progress as Progress
    from lastword.terminal.progress import attend as attend
    from lastword.terminal.progress import terminal_approver as terminal_approver
    from lastword.terminal.tty import fitted as fitted
    from lastword.terminal.tty import is_dumb as is_dumb
    from lastword.terminal.tty import is_interactive as is_interactive
    from lastword.terminal.tty import settle as settle
    from lastword.terminal.tty import wrap as wrap
    from lastword.terminal.window import Window as Window
else:
    __getattr__ = open_door(__name__)
