"""`lastword serve` in a process of its own: docs, stops, deaths and restarts."""

import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import openai
import pytest
from processes import THINKING, a_model, served

from lastword.server.server_limits import ServerLimits
from requirements import requirement
from warm import run_warm

DOCS = Path(__file__).parents[2] / "docs" / "api.md"


def blocks(language: str) -> list[str]:
    """The examples of the docs in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", DOCS.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def model():
    with a_model() as url:
        yield url


@requirement("API-20", "API-27", "API-67")
def test_the_examples_of_the_docs_do_what_the_docs_say(model, tmp_path):
    """curl, as a reader would paste it, against the real command."""
    with served("--upstream", model, "--store", f"sqlite:///{tmp_path}/a.db", folder=tmp_path) as server:
        spoken = []
        for block in blocks("sh"):
            done = subprocess.run(
                ["bash", "-ec", block],
                env={"LASTWORD": server.url, "PATH": "/usr/bin:/bin"},
                capture_output=True,
                check=True,
            )
            spoken.append(done.stdout.decode())
        hello, stream, asked, answered, conversation, response, machines = spoken
        assert json.loads(hello)["choices"][0]["message"]["content"] == "Hello."

        *events, done_event, end = stream.split("\n\n")
        assert (done_event, end) == ("data: [DONE]", "")
        chunks = [json.loads(event.removeprefix("data: ")) for event in events]
        assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks[:-1]) == "Hello."
        assert chunks[-1]["usage"]["total_tokens"] == 10

        request = json.loads(asked)["tool_request"]
        assert (request["name"], request["arguments"]) == ("lookup_weather", {"city": "Lisbon"})
        assert json.loads(answered)["choices"][0]["message"]["content"] == "It is 18°C and clear in Lisbon."

        decoder = json.JSONDecoder()
        shown, at = decoder.raw_decode(conversation)
        assert [message["role"] for message in shown["messages"]] == ["user", "assistant", "tool_result", "assistant"]
        listed, end_of_list = decoder.raw_decode(conversation[at:])
        assert [entry["id"] for entry in listed["data"]] == ["trip"]
        rewound, end_of_rewound = decoder.raw_decode(conversation[at + end_of_list :])
        assert rewound == {"id": "trip", "turns": 3, "object": "conversation.rewound"}
        assert json.loads(conversation[at + end_of_list + end_of_rewound :])["deleted"] is True
        assert machines.startswith('{"status":"ok"}{"status":"ok"}# HELP lastword_requests_total')
        assert '"openapi":"3.1.0"' in machines

        assert json.loads(response)["output"][0]["content"][0]["text"] == "Hello."

        told = ["Hello.\n", 'lookup_weather {"city": "Lisbon"}\nIt is 18°C and clear in Lisbon.\n']
        for python, words in zip(blocks("python"), told, strict=True):
            with redirect_stdout(io.StringIO()) as printed:
                exec(python.replace("http://127.0.0.1:8811", server.url), {})
            assert printed.getvalue() == words


@requirement("API-53")
def test_the_docs_name_every_limit_with_its_default():
    """A table that is written by hand is checked by machine."""
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", DOCS.read_text(), re.MULTILINE))
    assert {name: float(value) for name, value in rows.items()} == {
        name: float(getattr(ServerLimits(), name)) for name in ServerLimits.__struct_fields__
    }


@requirement("API-20")
def test_the_official_client_against_the_real_command(model, tmp_path):
    """Plain, streaming, tools, errors, and a client that goes away, over two processes."""
    with served("--upstream", model, "--store", "memory:", folder=tmp_path) as server:
        # What we add to the dialect is not among its types.
        client: Any = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=20)
        hello = [{"role": "user", "content": "Say hello."}]
        assert client.chat.completions.create(model="lastword", messages=hello).choices[0].message.content == "Hello."
        with client.chat.completions.create(model="lastword", messages=hello, stream=True) as stream:
            assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Hello."
        asked = client.chat.completions.create(
            model="lastword", messages=[{"role": "user", "content": "ask lookup"}], extra_body={"conversation_id": "c"}
        )
        assert asked.tool_request["name"] == "lookup"
        with client.chat.completions.create(model="lastword", messages=hello, stream=True) as stream:
            next(iter(stream))
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="lastword", messages=hello, n=2)
        assert [entry.id for entry in client.models.list()] == ["lastword", "scripted"]


def test_the_log_has_a_line_for_each_request(model, tmp_path):
    """Lines are written together, and none is lost, also not the last one before the server stops."""
    with served("--upstream", model, "--store", "memory:", folder=tmp_path) as server:
        askers = [threading.Thread(target=server.chat, args=("Say hello.",)) for _ in range(20)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        assert server.ask("GET", "/healthz")[0] == 200
        assert server.end(signal.SIGTERM) == 0
    lines = [json.loads(line) for line in (tmp_path / "serve.log").read_text().splitlines()]
    assert [line["route"] for line in lines] == ["/v1/chat/completions"] * 20 + ["/healthz"]
    assert len({line["request"] for line in lines}) == 21
    assert all(line["status"] == 200 and line["at"].endswith("Z") for line in lines)


@requirement("API-50")
def test_a_public_address_without_a_token_does_not_start(model, tmp_path):
    """And says what to type."""
    store = f"sqlite:///{tmp_path}/a.db"
    command = ["serve", "--host", "::", "--port", "0", "--upstream", model, "--store", store]
    done = run_warm(command, tmp_path, os.environ)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "there is no token to keep them out\nhint: make one with `lastword token create NAME`" in done.stderr


@requirement("API-20")
def test_a_signal_stops_the_server_in_order(model, tmp_path):
    """Exit code 0, and everything it accepted is there again after a start."""
    arguments = ("--upstream", model, "--store", f"sqlite:///{tmp_path}/a.db")
    for answered, number in enumerate((signal.SIGTERM, signal.SIGINT, signal.SIGTERM)):
        with served(*arguments, folder=tmp_path) as server:
            _, shown = server.ask("GET", "/v1/conversations/c")
            assert len(shown.get("messages", ())) == 2 * answered
            assert server.chat("one", conversation="c")[0] == 200
            assert server.end(number) == 0
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


@requirement("API-21", "API-23")
def test_kill_9_leaves_whole_turns_and_what_was_pending(model, tmp_path):
    """The process is killed at a moment of its own choosing, again and again, while a satellite works with it.

    A turn that was answered is there. One that was not is there whole, or not at all.
    """
    arguments = ("--upstream", model, "--store", f"sqlite:///{tmp_path}/a.db")
    answered = 0
    for death in range(3):
        with served(*arguments, folder=tmp_path) as server:
            done = check_whole(server.ask("GET", "/v1/conversations/c"), answered)
            killer = threading.Timer(0.01 + 0.02 * death, server.process.send_signal, [signal.SIGKILL])
            number = done
            try:
                while number < done + 2000:
                    # A request, and its result with the next words: every second turn leaves something pending.
                    said = f"ask tool{number}" if number % 2 == 0 else result_for(number)
                    status, _ = server.chat(said, conversation="c")
                    assert status == 200
                    number += 1
                    answered = number
                    if number == done + 1:  # It got some work done: from here on it may die at any moment.
                        killer.start()
            except (OSError, http.client.HTTPException):  # Nothing came back, or half of an answer did.
                pass
            finally:
                killer.join()
            assert server.end(9) == -9
    with served(*arguments, folder=tmp_path) as server:
        check_whole(server.ask("GET", "/v1/conversations/c?limit=1000"), answered)


@requirement("API-21", "API-23")
def test_kill_9_while_the_model_thinks_leaves_the_turn_absent(tmp_path):
    """Between request and reply there is nothing to remember, and what was pending before still is."""
    with a_model() as url:
        arguments = ("--upstream", url, "--store", f"sqlite:///{tmp_path}/a.db")
        with served(*arguments, folder=tmp_path) as server:
            assert server.chat("ask tool0", conversation="c")[0] == 200
            lost = []

            def think():
                try:
                    server.chat("think", conversation="c")
                except (OSError, http.client.HTTPException) as problem:
                    lost.append(problem)

            thread = threading.Thread(target=think)
            thread.start()
            assert THINKING.wait(60)
            assert server.end(9) == -9
            thread.join()
            assert lost
        with served(*arguments, folder=tmp_path) as server:
            _, shown = server.ask("GET", "/v1/conversations/c")
            assert [message["content"] for message in shown["messages"]][:1] == ["ask tool0"]
            assert (shown["turns"], [entry["name"] for entry in shown["pending"]]) == (1, ["tool0"])
            status, answer = server.chat(result_for(1), conversation="c")
            assert (status, answer["ignored_tool_results"]) == (200, [])


def result_for(number):
    return {"role": "tool_result", "name": f"tool{number - 1}", "content": "done"}


def check_whole(found, answered):
    """A conversation of whole turns, at least those that were answered, with the right thing pending."""
    status, conversation = found
    if status == 404:
        assert answered == 0
        return 0
    turns = conversation["turns"]
    assert answered <= turns <= answered + 1
    by_turn: dict[int, list[str]] = {}
    for message in conversation["messages"]:
        by_turn.setdefault(message["turn"], []).append(message["role"])
    first = min(by_turn)
    for turn in range(first + 1, turns + 1):
        expected = ["user", "assistant"] if turn % 2 == 1 else ["tool_result", "assistant"]
        assert by_turn[turn] == expected
    waiting = [entry["name"] for entry in conversation["pending"]]
    assert waiting == ([f"tool{turns - 1}"] if turns % 2 == 1 else [])
    return turns


@requirement("API-31", "API-1")
def test_with_nothing_configured_the_rehearsal_model_answers_and_says_so(tmp_path):
    """Everything can be tried without a model; and the process that serves still cannot run a tool."""
    with served("--store", "memory:", folder=tmp_path) as server:
        body = {"messages": [{"role": "user", "content": "/lookup_weather city=Lisbon"}]}
        status, answer = server.ask("POST", "/v1/chat/completions", body)
    assert status == 200
    asked = answer["tool_request"]
    assert (asked["name"], asked["arguments"]) == ("lookup_weather", {"city": "Lisbon"})
    looked = (
        "import sys\n"
        "from lastword.commands.serve import api, talk\n"
        "api.build_app, talk.ModelChoice, api.Stopping, api.Serving\n"  # Loaded by being asked for.
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", looked], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "lastword.talk.rehearsal" in loaded
    assert not loaded & {
        "lastword.tools.registry",
        "lastword.call.door",
        "lastword.session",
        "lastword.call.execution",
        "lastword.runs",
    }
