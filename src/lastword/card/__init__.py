"""What every surface shows, whatever draws it: a card, the inbox and a grant step as data and words.

The page and the terminal differ only in drawing. `views` and `responses` are the structs that the server and its
windows exchange, each handed out as a module: what events tell, and what requests are answered.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.card.arguments import read_arguments as read_arguments
    from lastword.card.arguments import read_value as read_value
    from lastword.card.delta import difference as difference
    from lastword.card.delta import put_in as put_in
    from lastword.card.draft import Draft as Draft
    from lastword.card.faces import EFFECT_WORDS as EFFECT_WORDS
    from lastword.card.faces import FOLD_CHARACTERS as FOLD_CHARACTERS
    from lastword.card.faces import FOLD_DIFF_LINES as FOLD_DIFF_LINES
    from lastword.card.faces import FOLD_LINES as FOLD_LINES
    from lastword.card.faces import TAB as TAB
    from lastword.card.faces import Face as Face
    from lastword.card.faces import Passage as Passage
    from lastword.card.faces import diff_rows as diff_rows
    from lastword.card.faces import face as face
    from lastword.card.faces import one_line as one_line
    from lastword.card.inbox import called as called
    from lastword.card.inbox import entry_of as entry_of
    from lastword.card.inbox import groups as groups
    from lastword.card.inbox import is_alone as is_alone
    from lastword.card.inbox import summary_of as summary_of
    from lastword.card.origin import script_line as script_line
    from lastword.card.origin import script_origin as script_origin
    from lastword.card.question import DECLINE as DECLINE
    from lastword.card.question import GIVE as GIVE
    from lastword.card.question import question_view as question_view
    from lastword.card.reading import in_one_line as in_one_line
    from lastword.card.reading import literal as literal
    from lastword.card.second_act import WORD as WORD
    from lastword.card.second_act import is_typed as is_typed
    from lastword.card.second_act import why_two as why_two
    from lastword.card.second_act import word_for as word_for
    from lastword.card.text_units import first_units as first_units
    from lastword.card.text_units import units as units
    from lastword.card.troubles import trouble as trouble
else:
    __getattr__ = open_door(
        __name__,
        arguments="read_arguments read_value",
        delta="difference put_in",
        draft="Draft",
        faces="EFFECT_WORDS FOLD_CHARACTERS FOLD_DIFF_LINES FOLD_LINES Face Passage TAB diff_rows face one_line",
        inbox="called entry_of groups is_alone summary_of",
        origin="script_line script_origin",
        question="DECLINE GIVE question_view",
        reading="in_one_line literal",
        second_act="WORD is_typed why_two word_for",
        text_units="first_units units",
        troubles="trouble",
    )
