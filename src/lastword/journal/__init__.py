"""What is remembered of calls, runs and sessions, and the stories that it tells."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.journal.call_life import ASKED, Life, NotAsked, OnceKey, RunPast, data_of, read_answer
    from lastword.journal.journal import Clock, Journal
    from lastword.journal.sessions import is_visible, open_as, open_default_journal, open_journal
    from lastword.journal.stories import cut, timeline
    from lastword.journal.tool_questions import StandingQuestion, ToolQuestions
else:
    __getattr__ = open_door(__name__)
