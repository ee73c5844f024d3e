"""The line in which a value is edited, with marks where the text has what cannot be seen.

The text itself stays what it is; only its drawing changes, as on the card. The cursor passes a mark in one step.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from lastword.display import marks

STYLE = "bold fg:ansiyellow reverse"


class Marks(Processor):
    """Draws the marks."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """One line of the field, with every mark in the place of its character."""
        fragments = explode_text_fragments(transformation_input.fragments)
        found = dict(marks(fragment_list_to_text(fragments)))
        if not found:
            return Transformation(transformation_input.fragments)
        drawn = [(STYLE, found[place]) if place in found else (f[0], f[1]) for place, f in enumerate(fragments)]
        # Where each character begins on the screen, and where the line ends.
        starts = [0, *accumulate(len(text) for _, text in drawn)]

        def to_screen(place: int) -> int:
            last = len(starts) - 1
            return starts[min(place, last)] + max(0, place - last)

        def to_text(column: int) -> int:
            return max(0, bisect_right(starts, column) - 1)

        return Transformation(list(drawn), source_to_display=to_screen, display_to_source=to_text)
