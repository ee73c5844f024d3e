"""The page for the person who decides: cards, chat and timeline in a browser on this machine.

    routes.py          the paths, and what may be asked of them
    assets.py          the built files, compressed
    gate.py            who may come in: the one-time key, the cookie, the CSRF token, the headers of every answer
    join_file.py       a key for the person's own programs, in a file that only they can read
    events.py          numbered events, so that a window that was away catches up exactly
    conversation.py    what every window shows: one conversation, its calls, its cards
    picture.py         the items that all windows show
    open_message.py    the model's words as they come
    settings.py        who answers, who approves, which tools there are
    servers.py         MCP servers to look at, trust and remove, and the clients that use our tools
    answers.py         what a person did with a card
    story.py           one call as the page tells it, from events as they happen or from the journal afterwards
    card.py            a question as the page shows it: marked, masked, with everything that a decision needs
    past.py            the same conversation after a restart, and the timeline, from the journal
    opening.py         all of it together, over a session
    other_sessions.py  questions of other programs that share the memory
    ui/                the page itself, in TypeScript; static/ is built from it

What does not live here: deciding and running (call/door.py), and talking with the model (talk/satellite.py).
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.web.browser import NoBrowser as NoBrowser
    from lastword.web.browser import opened as opened
    from lastword.web.join_file import JoinableServer as JoinableServer
    from lastword.web.join_file import JoinFile as JoinFile
    from lastword.web.join_file import find_joinable as find_joinable
    from lastword.web.model_form import ModelForm as ModelForm
    from lastword.web.opening import left_unfinished as left_unfinished
    from lastword.web.opening import open_page as open_page
    from lastword.web.shelf import begins_session as begins_session
    from lastword.web.shelf import open_last as open_last
else:
    __getattr__ = open_door(
        __name__,
        browser="NoBrowser opened",
        join_file="JoinFile JoinableServer find_joinable",
        model_form="ModelForm",
        opening="left_unfinished open_page",
        shelf="begins_session open_last",
    )
