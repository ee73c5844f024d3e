"""What tool code may not do, and how it is kept from it.

While a card is drawn the request function runs under a `Guard`: an effect is refused and written down, and what it
reads is noted as `Observations`, which are part of the question. And what only a person may decide is refused to a
process that a tool or an agent started (`refuse_below`).
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.tools.guard.ancestry import (
        MARKER,
        given_above,
        host_name,
        is_below,
        is_in_folder_above,
        mark,
        note_agent,
        refuse_below,
    )
    from lastword.tools.guard.audit_hook import Guard, note_state
    from lastword.tools.guard.observations import (
        MAX_OBSERVATIONS,
        Observation,
        Observations,
        changed_files,
        changed_state,
    )
else:
    __getattr__ = open_door(__name__)
