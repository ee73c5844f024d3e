"""Consent as data: what a request covers, what a seal binds, what a secret looks like."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword import ApprovalRequest, LastWordError, Session, ToolRegistry, UserAction
from lastword.consent import Answerer, Seal, Secrets
from lastword.editor import Preview
from lastword.testing import FixedApprover
from lastword.tools.guard import Observation
from requirements import requirement
from sending import CALL
from test_values import json_values
from tries import tries


@pytest.fixture
async def request_seen(registry: ToolRegistry, send) -> ApprovalRequest:
    approver = FixedApprover(ApprovalRequest.deny)
    await Session(registry, approver=approver).call("send", CALL)
    return approver.requests[0]


@requirement("TOOL-45")
async def test_an_answer_made_by_a_request_names_it(request_seen: ApprovalRequest):
    """Yes, no, neither, and yes with changes."""
    assert request_seen.allow() == UserAction(True, False, answers=request_seen.digest)
    assert request_seen.deny("why") == UserAction(False, True, "why", answers=request_seen.digest)
    assert request_seen.close() == UserAction(False, False, answers=request_seen.digest)
    assert request_seen.edit(amount=1).arguments == CALL | {"amount": 1}


@requirement("TOOL-45")
async def test_two_requests_are_never_the_same(request_seen: ApprovalRequest, registry: ToolRegistry):
    """The nonce alone tells them apart, and a digest cannot be given from outside."""
    again = msgspec.structs.replace(request_seen, nonce="other")
    assert again.digest != request_seen.digest
    assert msgspec.structs.replace(request_seen, digest="forged").digest == request_seen.digest


OTHERWISE = {
    "rule_line": "Asked because the rule lunches (policy.toml:1) says so.",
    "call_id": "another",
    "tool_digest": "0" * 64,
    "session_id": "another",
    "argument_bytes": b'{"to":"mallory"}',
    "title": "Another",
    "message": "Another",
    "primary_button_label": "Another",
    "secondary_button_label": "Another",
    "preview_label": "Another",
    "preview": (Preview("a.txt", None, None, "new"),),
    "reads": (("a.txt", None),),
    "looked_at": (Observation("state", "key", None),),
    "missing": ("preset",),
    "origin": "line 3 of another.nuwa",
    "author": "person",
    "problem": "the approval was already spent",
    "nonce": "another",
    "denials": 3,
    "principal": "another",
    "carried_out_by": "Claude Code",
}


@requirement("TOOL-45")
@pytest.mark.parametrize("field", sorted({*ApprovalRequest.__struct_fields__} - {"digest", "tool", "manifest"}))
async def test_the_digest_covers_everything_a_person_can_see(request_seen: ApprovalRequest, field: str):
    """A field that is new must be here. The tool and its manifest are in the digest of the tool."""
    assert getattr(request_seen, field) != OTHERWISE[field]
    assert msgspec.structs.replace(request_seen, **{field: OTHERWISE[field]}).digest != request_seen.digest


@requirement("TOOL-45")
async def test_a_seal_has_one_flaw_at_a_time(request_seen: ApprovalRequest):
    """Another request, another nonce, another tool, no tool, too late, too early; and none."""
    good = Seal(request_seen.digest, request_seen.nonce, Answerer.person("Ann"), 100.0)

    def found(seal: Seal = good, tool: str | None = request_seen.tool_digest, now: float = 100.0) -> str | None:
        return seal.why_void(request_seen, tool_digest=tool, now=now, valid_seconds=60)

    assert found() is None
    assert found(now=160.0) is None
    assert found(msgspec.structs.replace(good, request="other")) == "the answer was given to another request"
    assert found(msgspec.structs.replace(good, nonce="other")) == "the answer was given to another request"
    assert found(tool="other") == found(tool=None) == "the tool changed while the question waited"
    assert found(now=160.1) == "the answer is older than 60 seconds"
    assert found(now=99.9) == "the answer is from the future: a clock was set back"


@requirement("TOOL-45")
def test_the_seal_binds_who_answered_and_when():
    """Its digest is what the journal burns."""
    seals = [
        Seal("r", "n", Answerer.person("Ann"), 1.0),
        Seal("r", "n", Answerer.person("Bob"), 1.0),
        Seal("r", "n", Answerer.person("Ann"), 2.0),
        Seal("x", "n", Answerer.person("Ann"), 1.0),
    ]
    seals.append(Seal("r", "n", Answerer.person("Ann", "page"), 1.0))
    seals.append(Seal("r", "n", Answerer("preset", "Ann"), 1.0))
    assert len({seal.digest for seal in seals}) == 6


@requirement("TOOL-2")
@tries(20)
@given(st.dictionaries(st.sampled_from(["a", "b", "pin"]), json_values))
def test_secrets_are_hidden_from_surfaces_and_from_the_journal_and_come_back(arguments):
    """What a surface sends back unchanged is what was there; what it changed is changed."""
    secrets = frozenset({"pin"})
    for seen in (Secrets.mask(arguments, secrets), Secrets.hide(arguments, secrets)):
        assert Secrets.keep(seen, arguments, secrets) == arguments
        assert {k: v for k, v in seen.items() if k != "pin"} == {k: v for k, v in arguments.items() if k != "pin"}
    if "pin" in arguments:
        assert Secrets.mask(arguments, secrets)["pin"] == Secrets.MASK
        assert Secrets.hide(arguments, secrets)["pin"].keys() == {"secret"}
        assert Secrets.keep({"pin": "new"}, arguments, secrets) == {"pin": "new"}


@requirement("TOOL-2")
def test_a_secret_cannot_pretend_to_be_hidden_already():
    """An object that looks like a digest and is none is digested like any other."""
    hidden = Secrets.hide({"pin": {"secret": "hunter2"}}, frozenset({"pin"}))
    assert "hunter2" not in str(hidden)
    assert Secrets.hide(hidden, frozenset({"pin"})) == hidden


@requirement("TOOL-47")
@pytest.mark.parametrize("arguments", [[], "x", 5, {"a": object()}, {1: 2}, {"a": "\ud800"}])
def test_edited_arguments_are_a_json_object(arguments):
    """Refused where they are given, to whoever gave them."""
    with pytest.raises(LastWordError):
        UserAction(True, False, arguments=arguments)


async def test_a_request_survives_the_way_to_another_process(request_seen: ApprovalRequest):
    """Plain data, JSON, and everything on it that a person needs."""
    facts = msgspec.json.decode(msgspec.json.encode(request_seen.facts()))
    assert facts["digest"] == request_seen.digest
    assert facts["arguments"] == CALL
    assert {"tool", "display_name", "message", "title", "preview", "missing", "effect", "origin"} <= facts.keys()
