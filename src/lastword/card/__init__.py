"""What every surface shows, whatever draws it: a card, the inbox and a grant step as data and words.

The page and the terminal differ only in drawing. `views` and `responses` are the structs that a server and its windows
exchange, each handed out as a module: what events tell, and what requests are answered.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.card.card_view import card_of, preview_of_texts
    from lastword.card.delta import difference, put_in
    from lastword.card.draft import Draft, answer_of, read_arguments, read_value
    from lastword.card.face import Face, SecondAct, called, entry_of, question_view, summary_of
    from lastword.card.text import fold_of, one_line, script_line, shortened, visible
else:
    __getattr__ = open_door(__name__)
