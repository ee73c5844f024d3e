"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_the_card_shows_no_token() -> None:
    assert "desk-4711" not in str(tool.test_approval({"token": "desk-4711"}))


def test_a_token_that_the_bank_knows_signs_in() -> None:
    assert tool.test_execute({"token": "desk-4711"})["success"]


def test_a_wrong_token_is_refused_and_not_repeated() -> None:
    refused = tool.test_execute({"token": "guess-4711"})
    assert refused == {"success": False, "message": "The bank does not know this token."}
