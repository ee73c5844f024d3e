"""What is and what is not a tool request, written out: the text, and what it must be taken for."""

import random
from collections.abc import Iterator
from typing import Any

ASK = '{"tool_request": {"name": "t", "arguments": {}}}'

# The example of the document that the protocol comes from.
LISBON = """{
  "tool_request": {
    "name": "lookup_weather",
    "arguments": {
      "city": "Lisbon"
    }
  }
}"""


def asking(arguments: str) -> str:
    """A request with these arguments, as they are written."""
    return f'{{"tool_request": {{"name": "t", "arguments": {arguments}}}}}'


def deep(levels: int) -> str:
    """A request whose whole message is nested this deep. Two levels are the envelope's, one is the arguments'."""
    inside = levels - 3
    return '{"tool_request": {"name": "t", "arguments": {"a": ' + "[" * inside + "]" * inside + "}}}"


def long_name(length: int) -> str:
    return '{"tool_request": {"name": "' + "n" * length + '"}}'


# The text is a request for this tool with these arguments.
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    (ASK, "t", {}),
    ('{"tool_request":{"name":"t","arguments":{}}}', "t", {}),
    ('{"tool_request": {"name": "t"}}', "t", {}),
    ('{"tool_request": {"arguments": {"a": 1}, "name": "t"}}', "t", {"a": 1}),
    (" " + ASK, "t", {}),
    (ASK + " ", "t", {}),
    ("\n\n" + ASK + "\n", "t", {}),
    ("\t\r\n " + ASK + " \r\n\t", "t", {}),
    (LISBON, "lookup_weather", {"city": "Lisbon"}),
    ('{ "tool_request" : { "name" : "t" , "arguments" : { } } }', "t", {}),
    (asking('{"s": ""}'), "t", {"s": ""}),
    (asking('{"": 1}'), "t", {"": 1}),
    (asking('{"n": null}'), "t", {"n": None}),
    (asking('{"b": true, "c": false}'), "t", {"b": True, "c": False}),
    (asking('{"n": -0.5e-3}'), "t", {"n": -0.0005}),
    (asking('{"n": 1E5}'), "t", {"n": 100000.0}),
    (asking('{"n": 123456789012345678901234567890}'), "t", {"n": 123456789012345678901234567890}),
    (asking('{"l": [1, [2, [3]]]}'), "t", {"l": [1, [2, [3]]]}),
    (asking('{"o": {"name": "x", "arguments": 1}}'), "t", {"o": {"name": "x", "arguments": 1}}),
    (asking('{"tool_request": {"name": "u"}}'), "t", {"tool_request": {"name": "u"}}),
    (asking('{"text": "{\\"tool_request\\": 1}"}'), "t", {"text": '{"tool_request": 1}'}),
    (asking('{"text": "```json\\n{}\\n```"}'), "t", {"text": "```json\n{}\n```"}),
    (asking('{"text": "}}} and more"}'), "t", {"text": "}}} and more"}),
    (asking('{"text": "[[[[{{{{"}'), "t", {"text": "[[[[{{{{"}),
    (asking('{"q": "\\"\\\\\\/\\b\\f\\n\\r\\t"}'), "t", {"q": '"\\/\b\f\n\r\t'}),
    (asking('{"u": "\\u00e9"}'), "t", {"u": "é"}),
    (asking('{"u": "\\ud83d\\ude00"}'), "t", {"u": "😀"}),
    (asking('{"u": "日本語 😀"}'), "t", {"u": "日本語 😀"}),
    (asking('{"z": "\\u0000"}'), "t", {"z": "\x00"}),
    (asking('{"f": "\ufeff"}'), "t", {"f": "\ufeff"}),
    (asking('{"s": "\u2028\u2029\u0085\u00a0"}'), "t", {"s": "\u2028\u2029\x85\xa0"}),
    ('{"tool\\u005frequest": {"name": "t"}}', "t", {}),
    ('{"\\u0074ool_request": {"\\u006eame": "t"}}', "t", {}),
    ('{"tool_request": {"name": "lookup weather"}}', "lookup weather", {}),
    ('{"tool_request": {"name": " "}}', " ", {}),
    ('{"tool_request": {"name": "../../etc"}}', "../../etc", {}),
    ('{"tool_request": {"name": "naïve-tool.v2"}}', "naïve-tool.v2", {}),
    ('{"tool_request": {"name": "tool_request"}}', "tool_request", {}),
    ('{"tool_request": {"name": "null"}}', "null", {}),
    (asking('{"__proto__": {}, "__class__": 1}'), "t", {"__proto__": {}, "__class__": 1}),
    (asking('{"a": 1, "A": 2}'), "t", {"a": 1, "A": 2}),
    (asking('{"x": {"a": 1}, "y": {"a": 2}}'), "t", {"x": {"a": 1}, "y": {"a": 2}}),
    (asking('{"e": {}, "f": [], "g": [{}], "h": [[]]}'), "t", {"e": {}, "f": [], "g": [{}], "h": [[]]}),
    (long_name(10_000), "n" * 10_000, {}),
]

# Text with this reason beside it: nearly a request, and never guessed into one.
NEAR: list[tuple[str, str]] = [
    # Habits of writing.
    ("{tool_request: {name: t}}", "quotes"),
    ("{'tool_request': {'name': 't'}}", "quotes"),
    ("{`tool_request`: {`name`: `t`}}", "quotes"),
    ("{\u201ctool_request\u201d: {\u201cname\u201d: \u201ct\u201d}}", "quotes"),
    ("{\u2018tool_request\u2019: {\u2018name\u2019: \u2018t\u2019}}", "quotes"),
    ('{\u00a0"tool_request": {"name": "t"}}', "quotes"),
    ('{"tool_request"\u00a0: {"name": "t"}}', "quotes"),
    ("Sure: {'tool_request': {'name': 't'}}", "text_before"),
    ("```\n{'tool_request': {'name': 't'}}\n```", "fence"),
    ("{\"tool_request\": {'name': 't'}}", "not_json"),
    # Something around it.
    ("```json\n" + ASK + "\n```", "fence"),
    ("```\n" + ASK + "\n```", "fence"),
    ("```JSON\n" + ASK + "```", "fence"),
    ("~~~\n" + ASK + "\n~~~", "fence"),
    ("Here it is:\n```json\n" + ASK + "\n```\nThanks", "fence"),
    ("````\n" + ASK + "\n````", "fence"),
    ("`" + ASK + "`", "text_before"),
    ("Sure! " + ASK, "text_before"),
    ("Sure!\n\n" + ASK, "text_before"),
    ("I will call the tool.\n" + ASK + "\nPlease wait.", "text_before"),
    ("<tool_call>" + ASK + "</tool_call>", "text_before"),
    ("json\n" + ASK, "text_before"),
    ("// comment\n" + ASK, "text_before"),
    ("/* c */" + ASK, "text_before"),
    ("[" + ASK + "]", "text_before"),
    ("(" + ASK + ")", "text_before"),
    ('"' + ASK + '"', "text_before"),
    ("}" + ASK, "text_before"),
    ("1 " + ASK, "text_before"),
    ("tool_request: " + ASK, "text_before"),
    ("data: " + ASK, "text_before"),
    ("\x00" + ASK, "text_before"),
    ("\u200b" + ASK, "text_before"),
    ("\x0b" + ASK, "text_before"),
    ("\x0c" + ASK, "text_before"),
    ("\u00a0" + ASK, "text_before"),
    ("\u2003" + ASK, "text_before"),
    ("\ufeff" + ASK, "byte_order_mark"),
    (" \n\ufeff" + ASK, "byte_order_mark"),
    ("ï»¿" + ASK, "text_before"),
    (ASK + " done", "text_after"),
    (ASK + "\n\nI asked for the weather.", "text_after"),
    (ASK + "\n```", "text_after"),
    (ASK + ",", "text_after"),
    (ASK + ";", "text_after"),
    (ASK + "}", "text_after"),
    (ASK + "]", "text_after"),
    (ASK + ASK, "text_after"),
    (ASK + "\n" + ASK, "text_after"),
    (ASK + ", " + ASK, "text_after"),
    (ASK + "{}", "text_after"),
    (ASK + "null", "text_after"),
    (ASK + "\ufeff", "text_after"),
    (ASK + "\x00", "text_after"),
    (ASK + "\u00a0", "text_after"),
    (ASK + "\x0c", "text_after"),
    (ASK + " // comment", "text_after"),
    ("{} " + ASK, "text_after"),
    ('{"a": 1}\n' + ASK, "text_after"),
    # Not JSON, or not all of it.
    ('{"tool_request": ', "not_json"),
    ('{"tool_request":', "not_json"),
    ('{"tool_request": {', "not_json"),
    ('{"tool_request": {"name"', "not_json"),
    ('{"tool_request": {"name": "t', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"city": "Lis', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": [1, 2}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": "}}}', "not_json"),
    ('{"tool_request": {"name": "t",}}', "not_json"),
    ('{"tool_request": {"name": "t"},}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": 1,}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": [1,]}}}', "not_json"),
    ('{"tool_request": {"name": \'t\'}}', "not_json"),
    ('{"tool_request": {name: "t"}}', "not_json"),
    ('{"tool_request": {"name": t}}', "not_json"),
    ('{"tool_request": {"name" "t"}}', "not_json"),
    ('{"tool_request": {"name": "t" "arguments": {}}}', "not_json"),
    ('{"tool_request": {"name" = "t"}}', "not_json"),
    ('{"tool_request": {"name": "t", /* c */ "arguments": {}}}', "not_json"),
    ('{"tool_request": {"name": "t" // c\n}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {...}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": { … }}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": True}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": None}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": undefined}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": NaN}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": Infinity}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": -Infinity}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": 1e999}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": 01}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": +1}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": .5}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": 1.}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": 0x10}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": 1_000}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": ' + "9" * 5000 + "}}}", "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": "line\nbreak"}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": "tab\there"}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": "nul\x00"}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": "\\x41"}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": "\\u12"}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": "\\ud800"}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": "\ud800"}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"\udfff": 1}}}', "not_json"),
    ('{"tool_request": {"name": "\udc80"}}', "not_json"),
    ('{"tool_request": {"name": "t\\"}}', "not_json"),
    ('{"tool_request":\u00a0{"name": "t"}}', "not_json"),
    ('{"tool_request": {"name": "t"\x0c}}', "not_json"),
    ('{\n"tool_request": {"name": "t"}', "not_json"),
    ('{"tool_request": {"name": "t"}, "a"}', "not_json"),
    ('{"a": 1, "tool_request": {"name": "t"', "not_json"),
    ('{"a": [1, {"b": "}"}], "tool_request": {', "not_json"),
    # The same key twice: two readers would see two requests.
    ('{"tool_request": {"name": "t"}, "tool_request": {"name": "u"}}', "not_json"),
    ('{"tool_request": {"name": "t", "name": "u"}}', "not_json"),
    ('{"tool_request": {"name": "t", "name": "t"}}', "not_json"),
    ('{"tool_request": {"name": "t", "\\u006eame": "u"}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {}, "arguments": {"a": 1}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"a": 1, "a": 2}}}', "not_json"),
    ('{"tool_request": {"name": "t", "arguments": {"x": [{"a": 1, "a": 2}]}}}', "not_json"),
    # JSON of another shape.
    ('{"tool_request": {"name": "t"}, "thought": "hm"}', "extra_key"),
    ('{"thought": "hm", "tool_request": {"name": "t"}}', "extra_key"),
    ('{"": 0, "tool_request": {"name": "t"}}', "extra_key"),
    ('{"tool_request": {"name": "t"}, "tool_requests": []}', "extra_key"),
    ('{"tool_request": {"name": "t", "id": "1"}}', "extra_key"),
    ('{"tool_request": {"name": "t", "args": {}}}', "extra_key"),
    ('{"tool_request": {"name": "t", "parameters": {}}}', "extra_key"),
    ('{"tool_request": {"name": "t", "Arguments": {}}}', "extra_key"),
    ('{"tool_request": {"name": "t", "arguments ": {}}}', "extra_key"),
    ('{"tool_request": {"name": "t", "arguments": {}, "' + "k" * 5000 + '": 1}}', "extra_key"),
    ('{"tool_request": null}', "not_an_object"),
    ('{"tool_request": "t"}', "not_an_object"),
    ('{"tool_request": 1}', "not_an_object"),
    ('{"tool_request": true}', "not_an_object"),
    ('{"tool_request": []}', "not_an_object"),
    ('{"tool_request": [{"name": "t"}]}', "not_an_object"),
    ('{"tool_request": "{\\"name\\": \\"t\\"}"}', "not_an_object"),
    ('{"tool_request": {}}', "bad_name"),
    ('{"tool_request": {"arguments": {}}}', "bad_name"),
    ('{"tool_request": {"name": ""}}', "bad_name"),
    ('{"tool_request": {"name": null}}', "bad_name"),
    ('{"tool_request": {"name": 1}}', "bad_name"),
    ('{"tool_request": {"name": true}}', "bad_name"),
    ('{"tool_request": {"name": ["t"]}}', "bad_name"),
    ('{"tool_request": {"name": {"name": "t"}}}', "bad_name"),
    ('{"tool_request": {"name": "t", "arguments": null}}', "bad_arguments"),
    ('{"tool_request": {"name": "t", "arguments": []}}', "bad_arguments"),
    ('{"tool_request": {"name": "t", "arguments": [{"a": 1}]}}', "bad_arguments"),
    ('{"tool_request": {"name": "t", "arguments": ""}}', "bad_arguments"),
    ('{"tool_request": {"name": "t", "arguments": "{}"}}', "bad_arguments"),
    ('{"tool_request": {"name": "t", "arguments": 0}}', "bad_arguments"),
    ('{"tool_request": {"name": "t", "arguments": false}}', "bad_arguments"),
    # One level too many, and a hundred thousand too many.
    (deep(65), "too_deep"),
    (deep(66), "too_deep"),
    (deep(100_000), "too_deep"),
    ('{"tool_request": ' + "[" * 100_000, "too_deep"),
    ('{"tool_request": ' * 100_000, "too_deep"),
    # The object with the key begins deeper inside.
    ('{"call": {"tool_request": {"name": "t"}}', "not_json"),
]

# Ordinary text, whatever it talks about.
TEXT: list[str] = [
    "",
    " ",
    "\n\t\r ",
    "\ufeff",
    "Paris",
    "It is 18 degrees and clear.",
    "tool_request",
    '"tool_request"',
    '"tool_request": {"name": "t"}',
    "To ask, send a tool_request with a name and arguments.",
    'The key "tool_request" is followed by an object.',
    'Hello, "tool_request": that is the key.',
    '{"name": "t", "arguments": {}}',
    '{"tool_requests": [{"name": "t"}]}',
    '{"Tool_Request": {"name": "t"}}',
    '{"tool_request ": {"name": "t"}}',
    '{" tool_request": {"name": "t"}}',
    '{"toolrequest": {"name": "t"}}',
    '{"tool-request": {"name": "t"}}',
    '{"tool_request_error": {"name": "t"}}',
    '{"tool_call": {"name": "t"}}',
    '{"function": "t"}',
    '{"text": "{\\"tool_request\\": {\\"name\\": \\"t\\"}}"}',
    '{"text": "tool_request"}',
    '{"a": "x, \\"tool_request\\": y"}',
    '{"a": ["x", "tool_request"]}',
    '{"tool_request"}',
    '{"tool_request"',
    '{"tool_requ',
    '{"',
    "{",
    "{}",
    "{ }",
    "{}{}",
    "[]",
    "[1, 2]",
    "null",
    "true",
    "NaN",
    "0",
    '""',
    '"',
    "```json\n{}\n```",
    "```\n",
    '{"a": 1}',
    '{"a": ',
    '{"a": 1, "a": 2}',
    "}{",
    "]]]]",
    "{" * 100_000,
    "[" * 100_000,
    '"' * 100_001,
    "\\" * 100_000,
    '{"a":' * 100_000,
    "\ud800",
    '{"\udc00": 1}',
    "\x00",
    "if (x) { return {tool_request: 1}; }",
    'CALL lookup_weather { city: "Lisbon" }',
    "<tool_request><name>t</name></tool_request>",
    "tool_request:\n  name: t",
]

# What the grammar is made of, so that random texts come near it, and characters that are trouble anywhere.
PIECES = [
    *'{}[]:,"\\ \n\t\r0-.eE+',
    *["tool_request", '"tool_request"', '{"tool_request":', '"name":', '"t"', '"arguments":', "null", "true", "NaN"],
    *["```", "~~~", "json\n", "\ufeff", "\ud800", "\udc00", "\\ud800", "\\u0041", "\x00", "\u2028", "é", "😀", "text "],
]


def texts(seed: int, count: int) -> Iterator[str]:
    """Half of them pieces in any order, half of them the written cases with something put in or taken out."""
    chance = random.Random(seed)
    cases = [*(case[0] for case in REQUESTS), *(case[0] for case in NEAR), *TEXT]
    written = [text for text in cases if len(text) < 500]
    for _ in range(count):
        if chance.random() < 0.5:
            yield "".join(chance.choices(PIECES, k=chance.randrange(30)))
        else:
            text = chance.choice(written)
            for _ in range(chance.randrange(3)):
                place = chance.randrange(len(text) + 1)
                text = text[:place] + chance.choice(PIECES) + text[place + chance.randrange(3) :]
            yield text
