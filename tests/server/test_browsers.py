"""What else clients ask for: a single model, health without words, answers that a page of a named origin may read."""

import openai
import pytest

from requirements import requirement

DESK = "https://desk.example"
PREFLIGHT = {"Origin": DESK, "Access-Control-Request-Method": "POST"}


@requirement("API-27")
def test_one_model_is_found_by_its_name(house):
    """`client.models.retrieve`, also for names with slashes, as most models have."""
    server = house.server(house.model(lambda _: "Hello.", models=["meta/llama-3:8b", "small"]))
    with server.client() as client:
        assert client.models.retrieve("lastword").owned_by == "lastword"
        assert client.models.retrieve("meta/llama-3:8b").id == "meta/llama-3:8b"
        with pytest.raises(openai.NotFoundError) as raised:
            client.models.retrieve("smal")
    assert raised.value.code == "model_not_found"
    assert "did you mean small?" in raised.value.message


@requirement("API-27")
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_told_without_words_too(plain, path):
    """Some supervisors send HEAD, and took 405 for a server that is down."""
    answer = plain.send("HEAD", path)
    assert (answer.status, answer.body) == (200, b"")
    assert plain.send("HEAD", "/v1/models").status == 405


@requirement("API-53")
def test_a_page_of_a_named_origin_may_ask_and_read(house):
    """A browser asks first, and hides every answer that does not name the page's origin."""
    server = house.server(lambda _: "Hello.", origins=[DESK])
    wanted = {"Access-Control-Request-Headers": "authorization, Content-Type,x-stainless-lang"}
    answer = server.send("OPTIONS", "/v1/chat/completions", headers={**PREFLIGHT, **wanted})
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == DESK
    assert answer.headers["access-control-allow-headers"] == "authorization, content-type, x-stainless-lang"
    assert "POST" in answer.headers["access-control-allow-methods"]
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    for sent, status in ((body, 200), ({**body, "n": 2}, 400)):
        answer = server.send("POST", "/v1/chat/completions", sent, {"Origin": DESK})
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (status, DESK)
        assert answer.headers["vary"] == "origin"
        # Tokens come with each request. A cookie is never asked for, so no page can borrow one.
        assert "access-control-allow-credentials" not in answer.headers


@requirement("API-53")
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://desk.example.evil.example", "*", ""])
def test_no_other_page_is_told_anything(house, origin):
    """The wish of a page is no permission: neither its preflight nor its request gets the header."""
    server = house.server(lambda _: "Hello.", origins=[DESK])
    for method in ("OPTIONS", "GET"):
        answer = server.send(method, "/v1/models", headers={**PREFLIGHT, "Origin": origin})
        assert answer.status == 403
        assert not any(name.startswith("access-control") for name in answer.headers)


@requirement("API-53")
def test_a_preflight_repeats_names_of_headers_and_nothing_else(house):
    """What is sent back goes into a header of ours."""
    server = house.server(lambda _: "Hello.", origins=[DESK])
    wanted = "x-ok, x y, x=1, " + "x" * 65 + ", ü"
    answer = server.send("OPTIONS", "/v1/models", headers={**PREFLIGHT, "Access-Control-Request-Headers": wanted})
    assert answer.headers["access-control-allow-headers"] == "x-ok"


@requirement("API-53")
def test_without_a_named_origin_nothing_is_shared(plain):
    """The default: pages of other sites may neither ask nor read, and our own needs no permission."""
    answer = plain.send("OPTIONS", "/v1/models", headers=PREFLIGHT)
    assert (answer.status, answer.code) == (403, "origin_refused")
    answer = plain.send("GET", "/v1/models", headers={"Origin": f"http://127.0.0.1:{plain.port}"})
    assert answer.status == 200
    assert "access-control-allow-origin" not in answer.headers
