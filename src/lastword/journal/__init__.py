"""What is remembered of calls, runs and sessions, and the stories that it tells."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.journal.journal import Clock, Journal
    from lastword.journal.queue import asker_of, attending, does_live, is_attended
    from lastword.journal.records import (
        ASKED,
        Life,
        NotAsked,
        OnceKey,
        RunPast,
        content_of,
        data_of,
        handover_in_words,
        read_answer,
    )
    from lastword.journal.sessions import is_visible, open_as, open_default_journal, open_journal
    from lastword.journal.stories import cut, timeline
    from lastword.journal.tool_questions import (
        ANSWERED,
        StandingQuestion,
        answer_from_elsewhere,
        how,
        put_down,
        question_answer_key,
        read_given_answer,
        standing_questions,
        write_answer,
    )
else:
    __getattr__ = open_door(__name__)
