"""What is remembered of calls, runs and sessions, and the stories that it tells."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.journal.journal import Clock as Clock
    from lastword.journal.journal import Journal as Journal
    from lastword.journal.queue import asker_of as asker_of
    from lastword.journal.queue import attending as attending
    from lastword.journal.queue import does_live as does_live
    from lastword.journal.queue import is_attended as is_attended
    from lastword.journal.records import ASKED as ASKED
    from lastword.journal.records import LIFE_KINDS as LIFE_KINDS
    from lastword.journal.records import Life as Life
    from lastword.journal.records import NotAsked as NotAsked
    from lastword.journal.records import answer_key as answer_key
    from lastword.journal.records import back_key as back_key
    from lastword.journal.records import burn_key as burn_key
    from lastword.journal.records import content_of as content_of
    from lastword.journal.records import data_of as data_of
    from lastword.journal.records import handover_in_words as handover_in_words
    from lastword.journal.records import read_answer as read_answer
    from lastword.journal.records import stop_key as stop_key
    from lastword.journal.records import value_of as value_of
    from lastword.journal.sessions import is_visible as is_visible
    from lastword.journal.sessions import open_as as open_as
    from lastword.journal.sessions import open_default_journal as open_default_journal
    from lastword.journal.sessions import open_journal as open_journal
    from lastword.journal.stories import cut as cut
    from lastword.journal.stories import timeline as timeline
    from lastword.journal.tool_questions import ANSWERED as ANSWERED
    from lastword.journal.tool_questions import StandingQuestion as StandingQuestion
    from lastword.journal.tool_questions import answer_from_elsewhere as answer_from_elsewhere
    from lastword.journal.tool_questions import how as how
    from lastword.journal.tool_questions import put_down as put_down
    from lastword.journal.tool_questions import question_answer_key as question_answer_key
    from lastword.journal.tool_questions import read_given_answer as read_given_answer
    from lastword.journal.tool_questions import standing_questions as standing_questions
    from lastword.journal.tool_questions import write_answer as write_answer
else:
    __getattr__ = open_door(__name__)
