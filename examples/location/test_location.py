"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)
YES = {"primary_confirmed": True, "secondary_confirmed": False}
NO = {"primary_confirmed": False, "secondary_confirmed": True}


def test_the_card_says_what_is_asked_for() -> None:
    assert tool.test_approval({})["message"] == "The assistant wants to request your current location."


def test_a_yes_gives_the_location_of_the_source() -> None:
    tool.use_source(lambda: (39.9042, 116.4074))
    result = tool.test_execute({}, YES)
    assert result["success"]
    assert "<latitude>39.9042</latitude>" in result["message"]
    assert "<longitude>116.4074</longitude>" in result["message"]


def test_a_no_never_asks_the_source() -> None:
    asked = []

    def source() -> tuple[float, float]:
        asked.append(1)
        return 0.0, 0.0

    tool.use_source(source)
    result = tool.test_execute({}, NO)
    assert not result["success"]
    assert "User cancelled the location request." in result["message"]
    assert asked == []


def test_a_source_that_fails_is_told_in_words() -> None:
    def broken() -> tuple[float, float]:
        raise OSError("no signal")

    tool.use_source(broken)
    assert tool.test_execute({}, YES) == {"success": False, "message": "Failed to retrieve user location."}
