"""The picture in the README is of the card as it is drawn today."""

import html
import re
import runpy
from pathlib import Path

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"


def test_the_picture_shows_the_card_that_is_drawn_now():
    """Its words and their order; corners are the drawing library's. `python docs/pictures/draw.py` draws it anew."""
    drawn = runpy.run_path(str(PICTURES / "draw.py"))
    svg = (PICTURES / "card.svg").read_text()
    pieces = re.findall(r'<text class="card-r\d+" x="[^"]*" y="[^"]*" textLength[^>]*>(.*?)</text>', svg)
    shown = "".join(html.unescape("".join(pieces)).replace("\xa0", " ").split())
    card = "".join("".join(line.plain for line in drawn["lines"]()).split())
    assert shown == card
