"""What is remembered of calls, runs and sessions, and the stories that it tells."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.journal.asker import asker_of as asker_of
    from lastword.journal.asker import does_live as does_live
    from lastword.journal.asker import is_held as is_held
    from lastword.journal.attendance import attending as attending
    from lastword.journal.attendance import is_attended as is_attended
    from lastword.journal.belonging import is_visible as is_visible
    from lastword.journal.belonging import open_as as open_as
    from lastword.journal.handover import MAX_RESULT as MAX_RESULT
    from lastword.journal.handover import back_key as back_key
    from lastword.journal.handover import depart as depart
    from lastword.journal.handover import hand_back as hand_back
    from lastword.journal.handover import handover_in_words as handover_in_words
    from lastword.journal.handover import open_handovers as open_handovers
    from lastword.journal.journal import Clock as Clock
    from lastword.journal.journal import Journal as Journal
    from lastword.journal.keys import answer_key as answer_key
    from lastword.journal.keys import burn_key as burn_key
    from lastword.journal.keys import stop_key as stop_key
    from lastword.journal.opening import open_default_journal as open_default_journal
    from lastword.journal.opening import open_journal as open_journal
    from lastword.journal.questions import ANSWERED as ANSWERED
    from lastword.journal.questions import StandingQuestion as StandingQuestion
    from lastword.journal.questions import answer_from_elsewhere as answer_from_elsewhere
    from lastword.journal.questions import how as how
    from lastword.journal.questions import put_down as put_down
    from lastword.journal.questions import question_answer_key as question_answer_key
    from lastword.journal.questions import read_given_answer as read_given_answer
    from lastword.journal.questions import standing_questions as standing_questions
    from lastword.journal.questions import write_answer as write_answer
    from lastword.journal.records import ASKED as ASKED
    from lastword.journal.records import LIFE_KINDS as LIFE_KINDS
    from lastword.journal.records import Life as Life
    from lastword.journal.records import NotAsked as NotAsked
    from lastword.journal.records import content_of as content_of
    from lastword.journal.records import data_of as data_of
    from lastword.journal.records import read_answer as read_answer
    from lastword.journal.records import value_of as value_of
    from lastword.journal.stories import cut as cut
    from lastword.journal.stories import timeline as timeline
else:
    __getattr__ = open_door(
        __name__,
        asker="asker_of does_live is_held",
        attendance="attending is_attended",
        belonging="is_visible open_as",
        handover="MAX_RESULT back_key depart hand_back handover_in_words open_handovers",
        journal="Clock Journal",
        keys="answer_key burn_key stop_key",
        opening="open_default_journal open_journal",
        questions="ANSWERED StandingQuestion answer_from_elsewhere how put_down question_answer_key read_given_answer "
        "standing_questions write_answer",
        records="ASKED LIFE_KINDS Life NotAsked content_of data_of read_answer value_of",
        stories="cut timeline",
    )
