"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_it_indents() -> None:
    assert tool.test_execute({"text": '{"b":1,"a":[]}'})["message"] == '{\n  "b": 1,\n  "a": []\n}'


def test_it_sorts_keys_when_asked() -> None:
    result = tool.test_execute({"text": '{"b":1,"a":2}', "sort_keys": True, "indent": 0})
    assert result["message"] == '{\n"a": 2,\n"b": 1\n}'


def test_what_is_not_json_gets_a_place() -> None:
    assert tool.test_execute({"text": "{]"}) == {
        "success": False,
        "message": "Line 1, column 2: Expecting property name enclosed in double quotes",
    }
