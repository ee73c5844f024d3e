"""Everyday tasks for a model with the tools of a small house (examples/home), and what a good reply asks for.

The day is Tuesday 2026-11-17. A task that names several calls wants all of them from a script; a request can be only
one, and any of them is a good beginning. A task without calls wants words.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

TODAY = datetime(2026, 11, 17, 9, 0, tzinfo=UTC)
TOMORROW, FRIDAY = "2026-11-18", "2026-11-20"

ANY = None
"""Whatever it is, it is right."""

Call = tuple[str, dict[str, Any]]


class Task(msgspec.Struct, frozen=True):
    """What a person says, and the calls that it takes. A text argument in a tuple is right if it holds the words."""

    say: str
    calls: tuple[Call, ...] = ()


def _light(room: str, on: bool, **more: Any) -> Call:
    return "set_light", {"room": room, "on": on, **more}


def _weather(city: str, day: str) -> Call:
    return "get_weather", {"city": (city,), "day": day}


def _event(day: str, hour: int, *words: str) -> Call:
    return "add_event", {"day": day, "hour": hour, "title": words}


PUBLIC = (
    Task("Turn on the kitchen light.", (_light("kitchen", True),)),
    Task("Switch off the light in the hall, please.", (_light("hall", False),)),
    Task("Set the living room light to 40 percent.", (_light("living room", True, brightness=40),)),
    Task("It is too dark in the bedroom.", (_light("bedroom", True, brightness=ANY),)),
    Task("Which lights are on?", (("get_lights", {}),)),
    Task("Did I leave a light on somewhere?", (("get_lights", {}),)),
    Task("What will the weather be like in Lisbon tomorrow?", (_weather("Lisbon", TOMORROW),)),
    Task("Will it rain in Porto on Friday?", (_weather("Porto", FRIDAY),)),
    Task("How is the weather in Berlin on 2026-12-24?", (_weather("Berlin", "2026-12-24"),)),
    Task("What do I have on my calendar today?", (("list_events", {"day": "2026-11-17"}),)),
    Task("Am I free on Friday?", (("list_events", {"day": FRIDAY}),)),
    Task("Put a dentist appointment into my calendar, tomorrow at 9.", (_event(TOMORROW, 9, "dentist"),)),
    Task("Add lunch with Ana on Thursday at 1 pm.", (_event("2026-11-19", 13, "lunch", "ana"),)),
    Task("Remind me on Monday at 18:00 to water the plants.", (_event("2026-11-23", 18, "plants"),)),
    Task("Please unlock the front door, my sister is outside.", (("unlock_door", {}),)),
    Task("Turn off the lights in the hall and in the bedroom.", (_light("hall", False), _light("bedroom", False))),
    Task("Good morning! How are you?"),
    Task("What is the capital of France?"),
    Task("Thank you, that is all for today."),
    Task("What is 17 times 3?"),
)
"""These were at hand while the instructions were written."""

LATER = (
    Task("Lights on in the living room, please.", (_light("living room", True),)),
    Task("I am going to bed, switch the bedroom light off.", (_light("bedroom", False),)),
    Task("Dim the hall to 20 %.", (_light("hall", True, brightness=20),)),
    Task("Could you make the kitchen as bright as possible?", (_light("kitchen", True, brightness=100),)),
    Task("Is the kitchen light still on?", (("get_lights", {}),)),
    Task("Show me the state of all lights.", (("get_lights", {}),)),
    Task("What is the forecast for Madrid on Saturday?", (_weather("Madrid", "2026-11-21"),)),
    Task("Do I need an umbrella in London today?", (_weather("London", "2026-11-17"),)),
    Task("Tell me the weather in Oslo on the 1st of December 2026.", (_weather("Oslo", "2026-12-01"),)),
    Task("What is planned for tomorrow?", (("list_events", {"day": TOMORROW}),)),
    Task("List my appointments on 2026-11-30.", (("list_events", {"day": "2026-11-30"}),)),
    Task("Schedule a haircut for Saturday at 11.", (_event("2026-11-21", 11, "haircut"),)),
    Task("Note in the calendar: call the bank, tomorrow at 15:00.", (_event(TOMORROW, 15, "bank"),)),
    Task("Book the gym on Sunday at 8 in the morning.", (_event("2026-11-22", 8, "gym"),)),
    Task("Let the plumber in: open the front door.", (("unlock_door", {}),)),
    Task(
        "Switch on the kitchen light and the hall light.",
        (_light("kitchen", True), _light("hall", True)),
    ),
    Task(
        "What is the weather in Rome and in Paris tomorrow?",
        (_weather("Rome", TOMORROW), _weather("Paris", TOMORROW)),
    ),
    Task("Who wrote Romeo and Juliet?"),
    Task("Good night!"),
    Task("Please explain in one sentence what a tide is."),
)
"""These were written after the instructions were final."""
