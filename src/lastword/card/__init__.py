"""What every surface shows, whatever draws it: a card, the inbox and a grant step as data and words.

The page and the terminal differ only in drawing. `views` and `responses` are the structs that a server and its windows
exchange, each handed out as a module: what events tell, and what requests are answered.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.card.delta import difference as difference
    from lastword.card.delta import put_in as put_in
    from lastword.card.draft import Draft as Draft
    from lastword.card.draft import answer_of as answer_of
    from lastword.card.draft import read_arguments as read_arguments
    from lastword.card.draft import read_value as read_value
    from lastword.card.face import Face as Face
    from lastword.card.face import SecondAct as SecondAct
    from lastword.card.face import called as called
    from lastword.card.face import entry_of as entry_of
    from lastword.card.face import question_view as question_view
    from lastword.card.face import summary_of as summary_of
    from lastword.card.text import fold_of as fold_of
    from lastword.card.text import in_one_line as in_one_line
    from lastword.card.text import literal as literal
    from lastword.card.text import one_line as one_line
    from lastword.card.text import script_line as script_line
    from lastword.card.text import script_origin as script_origin
    from lastword.card.text import shortened as shortened
    from lastword.card.text import visible as visible
else:
    __getattr__ = open_door(__name__)
