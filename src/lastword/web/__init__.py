"""The page for the person who decides: cards, chat and timeline in a browser on this machine.

`open_page` serves it over a session, beside an API, until it is closed again; nobody comes in but by a key of its
`PageGate`, and every window shows the same. A card that one window answers is gone from all of them.

    page.py               all paths, the app that serves them, and opening it
    page_gate.py          who may come in: keys, cookies, tokens; keys in files for own programs and the browser
    endpoints.py          how a path answers: read, changed, streamed, or as a file
    conversation.py       one conversation as all windows show it: its calls, its inbox, what people do
    assistant.py          who talks in it: model, preset, turns
    model_form.py         trying another model, and keeping it
    conversation_list.py  which conversations there are, going from one to another, and what was done in them
    history.py            the same conversation after a restart, the timeline, the tokens
    shared_items.py       the items that all windows show, and the numbered events that tell of them
    call_item.py          one call as an item, from events or from the journal
    card_routes.py        looking at cards, what counts as an answer, and the grants that are given with one
    other_sessions.py     questions of other programs that share the memory
    server_routes.py      MCP servers to look at, trust and remove
    ui/                   the page itself, in TypeScript; static/ is built from it

What does not live here: deciding and running (call/), and talking with the model (talk/).
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.web.assistant import AssistantSetup
    from lastword.web.call_item import CallItemBuilder
    from lastword.web.conversation_list import begins_session, left_unfinished, open_last
    from lastword.web.history import calls_of
    from lastword.web.model_form import ModelForm
    from lastword.web.other_sessions import programs_called
    from lastword.web.page import PageApp, PageSetup, open_page
    from lastword.web.page_gate import (
        JoinableServer,
        JoinFile,
        NoBrowser,
        PageGate,
        PageRecord,
        find_joinable,
        open_browser,
    )
else:
    __getattr__ = open_door(__name__)
