"""Manifests: what the seeds wrote loads unchanged; what is wrong is told at once, with its place."""

import json
import re
from pathlib import Path

import pytest

from lastword import Session, ToolRegistry
from lastword.display import color_name, glyph
from lastword.errors import ManifestError
from lastword.testing import FixedApprover
from lastword.tools.manifest import MAX_ID_LENGTH, TYPES, parse_manifest, parse_schema
from lastword.tools.tool import Tool
from lastword.values import canonical
from requirements import requirement
from sending import MANIFEST

GOLDEN = Path(__file__).parent.parent / "golden" / "manifest"

# The example that two of the documents share, byte for byte.
SEED = """{
  "displayName": "Request Current Location",
  "id": "request_current_location",
  "description": "Requests the user's current location one time.",
  "icon": "location.fill",
  "color": "systemBlue",
  "parameters": [],
  "requireApproval": true,
  "autoApprove": true,
  "scriptEditorOnly": false
}"""


@requirement("TOOL-1")
def test_the_example_of_the_seeds_loads_unchanged():
    """All fields that they name, and our defaults for the rest."""
    manifest = parse_manifest(SEED)
    assert manifest.id == "request_current_location"
    assert manifest.display_name == "Request Current Location"
    assert manifest.description == "Requests the user's current location one time."
    assert (manifest.icon, manifest.color) == ("location.fill", "systemBlue")
    assert (manifest.require_approval, manifest.auto_approve, manifest.script_editor_only) == (True, True, False)
    assert (manifest.parameters, manifest.returns) == ((), "any")


@requirement("TOOL-1")
def test_the_schema_of_the_seeds_loads_unchanged():
    """The registry's way to say the same, with a required parameter and a return type."""
    manifest = parse_schema(
        {
            "name": "get_user_profile",
            "description": "Retrieves a user's profile information based on their ID.",
            "parameters": [
                {
                    "name": "user_id",
                    "type": "string",
                    "description": "The unique identifier of the user.",
                    "required": True,
                }
            ],
            "returns": "object",
        }
    )
    assert manifest.parameters[0].required
    assert manifest.returns == "object"
    assert not manifest.require_approval


@requirement("TOOL-1", "TOOL-2", "TOOL-6")
def test_what_is_left_out_has_a_safe_default():
    """A tool that says nothing about approval needs it; nothing is known of its effect."""
    manifest = parse_manifest(canonical(MANIFEST))
    assert manifest.require_approval
    assert not manifest.auto_approve
    assert not manifest.script_editor_only
    assert not manifest.additional_parameters
    assert not manifest.idempotent
    assert manifest.returns == "any"
    assert (manifest.icon, manifest.color, manifest.effect) == (None, None, None)
    assert (manifest.timeout_seconds, manifest.content_parameter) == (None, None)
    to, amount = manifest.parameters
    assert (to.required, amount.required) == (True, False)
    assert (to.secret, to.schema) == (False, None)


@requirement("TOOL-1")
@pytest.mark.parametrize(
    ("icon", "sign"), [("location.fill", "⌖"), ("trash", "⌫"), ("no.such.symbol", "◆"), (None, "◆"), ("", "◆")]
)
def test_symbol_names_map_to_signs_of_our_own(icon, sign):
    """An unknown one is neutral, not an error."""
    assert glyph(icon) == sign


@requirement("TOOL-1")
@pytest.mark.parametrize(
    ("color", "name"), [("systemBlue", "blue"), ("Red", "red"), ("chartreuse", None), (None, None), ("\x1b[31m", None)]
)
def test_colour_names_map_to_a_few(color, name):
    """A name we do not know, and anything that is no name, is no colour."""
    assert color_name(color) == name


@requirement("TOOL-2")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("value", "is_a"),
    [
        ("a", "string"),
        (1, "number"),
        (1.5, "number"),
        (True, "boolean"),
        (None, "null"),
        ([1], "array"),
        ({}, "object"),
    ],
)
async def test_a_parameter_takes_its_type_and_no_other(registry: ToolRegistry, effects, kind, value, is_a):
    """`any` takes all of them; a boolean is no number."""
    schema = {"description": "d", "parameters": [{"name": "x", "type": kind}], "returns": "any"}
    registry.register("take", schema, lambda args, context: effects.append(args["x"]))
    outcome = await Session(registry).call("take", {"x": value})
    if kind in ("any", is_a):
        assert (outcome.kind, effects) == ("succeeded", [value])
    else:
        assert (outcome.kind, effects) == ("invalid_arguments", [])
        assert f"the argument x must be {'an' if kind[0] in 'ao' else 'a'} {kind}".replace("a null", "null") in (
            outcome.message
        )


@requirement("TOOL-2")
async def test_a_parameter_may_carry_a_schema_with_a_default(registry: ToolRegistry, effects):
    """Nested shape, enum, range; the default is filled in before anybody sees the arguments."""
    fields = {
        "parameters": [
            {"name": "how", "type": "string", "required": False, "schema": {"enum": ["a", "b"], "default": "a"}},
            {"name": "n", "type": "number", "required": False, "schema": {"minimum": 0, "maximum": 9}},
        ],
        "description": "d",
        "returns": "any",
    }
    registry.register("take", fields, lambda args, context: effects.append(args), require_approval=True)
    approver = FixedApprover()
    session = Session(registry, approver=approver)
    await session.call("take", {"n": 9})
    assert approver.requests[0].arguments == {"how": "a", "n": 9}
    assert effects == [{"how": "a", "n": 9}]
    assert (await session.call("take", {"n": 10})).kind == "invalid_arguments"
    assert (await session.call("take", {"how": "c"})).kind == "invalid_arguments"
    assert len(effects) == 1


@requirement("TOOL-2")
async def test_undeclared_arguments_pass_only_where_the_manifest_says_so(registry: ToolRegistry, effects):
    """The default is no: what a person was not told about does not run."""
    fields = {"description": "d", "parameters": [], "returns": "any"}
    registry.register("strict", fields, lambda args, context: effects.append(args))
    registry.register("open", {**fields, "additionalParameters": True}, lambda args, context: effects.append(args))
    session = Session(registry)
    assert (await session.call("strict", {"x": 1})).kind == "invalid_arguments"
    assert (await session.call("open", {"x": 1})).kind == "succeeded"
    assert effects == [{"x": 1}]


@requirement("TOOL-2")
async def test_a_secret_is_masked_on_the_card_and_a_digest_in_the_journal(
    registry: ToolRegistry, assistant, effects, history
):
    """The tool gets it; nobody else reads it."""
    assistant(parameters=[{"name": "to", "type": "string"}, {"name": "pin", "type": "string", "secret": True}])
    approver = FixedApprover()
    session = Session(registry, approver=approver)
    await session.call("send", {"to": "Ann", "pin": "hunter2"})
    assert approver.requests[0].shown_arguments == {"to": "Ann", "pin": "••••••"}
    assert effects == [{"to": "Ann", "pin": "hunter2"}]
    records = await history(session.journal, session.id)
    assert "hunter2" not in json.dumps(records)
    started = next(data for kind, data in records if kind == "started")
    assert re.fullmatch("[0-9a-f]{64}", started["arguments"]["pin"]["secret"])


@requirement("TOOL-3")
@pytest.mark.parametrize("name", ["a", "_", "Send_2", "a" * MAX_ID_LENGTH])
def test_an_id_is_a_name(name):
    """Letters, digits and underscores, not starting with a digit."""
    assert parse_manifest(canonical(MANIFEST | {"id": name})).id == name


@requirement("TOOL-3")
@pytest.mark.parametrize("name", ["", "2a", "a-b", "a b", "a\n", "ä", "а", "a.b", "a" * (MAX_ID_LENGTH + 1), "../a"])
def test_what_is_no_name_is_no_id(name):
    """Also where it only looks like one, as a Cyrillic letter does."""
    with pytest.raises(ManifestError):
        parse_manifest(canonical(MANIFEST | {"id": name}))
    with pytest.raises(ManifestError):
        parse_schema({"name": name, "description": "d", "parameters": [], "returns": "any"})


@requirement("TOOL-4")
@pytest.mark.parametrize("case", sorted(path.stem for path in GOLDEN.glob("*.json")))
def test_a_bad_manifest_is_refused_with_place_fact_and_hint(case, golden):
    """Every problem of the file in one pass, each with its line, what was found and what was expected."""
    with pytest.raises(ManifestError) as refusal:
        parse_manifest((GOLDEN / f"{case}.json").read_bytes(), "assistant_tool.json")
    golden(GOLDEN / f"{case}.txt", str(refusal.value) + "\n")
    for problem in refusal.value.problems:
        assert problem.place is not None
        assert problem.place.startswith("assistant_tool.json")


@requirement("TOOL-4")
def test_a_bad_schema_of_a_registry_tool_names_the_tool():
    """There is no file, so the tool is the place."""
    with pytest.raises(ManifestError) as refusal:
        parse_schema({"name": "send", "descripton": "Sends.", "parameters": []})
    assert str(refusal.value) == (
        "schema of send: unknown field descripton\nhint: did you mean description?\n"
        "schema of send: description is missing, expected what the tool does, for the model and the person"
    )


@requirement("TOOL-4")
def test_lines_are_found_behind_brackets_in_strings_and_escapes():
    """The place of a problem is where it is, whatever stands in the texts before it."""
    text = """{
  "displayName": "a \\"}{[ ,: b",
  "id": "x",
  "description": "],[ {",

  "parameters": [{"name": "a", "type": "string", "description": "}"},
                 {"name": "b",
                  "type": "oops"}]
}"""
    with pytest.raises(ManifestError) as refusal:
        parse_manifest(text, "t.json")
    assert [problem.place for problem in refusal.value.problems] == ["t.json:8"]


@requirement("TOOL-5")
def test_the_digest_covers_the_manifest_and_the_code():
    """Any change of either is another tool; the order of the fields is not a change."""
    manifest = parse_manifest(canonical(MANIFEST))
    again = parse_manifest(json.dumps(dict(reversed(MANIFEST.items())), indent=3))

    def execute(params):
        return None

    def digest(manifest, code=b""):
        return Tool(manifest, "assistant", execute, code=code).digest

    assert digest(manifest) == digest(again)
    assert len({digest(manifest), digest(manifest, b"a"), digest(manifest, b"b")}) == 3
    for change in (
        {"description": "Sends it."}, {"autoApprove": True}, {"effect": "none"}, {"icon": "x"}, {"timeoutSeconds": 5},
        {"parameters": MANIFEST["parameters"][:1]}, {"returns": "string"}, {"idempotent": True},
    ):  # fmt: skip
        assert digest(parse_manifest(canonical(MANIFEST | change))) != digest(manifest)


@requirement("TOOL-6")
def test_a_manifest_may_say_more_of_itself():
    """Effect, idempotence, a timeout, and which argument a preview shows."""
    manifest = parse_manifest(
        canonical(
            MANIFEST | {"effect": "irreversible", "idempotent": True, "timeoutSeconds": 2.5, "contentParameter": "to"}
        )
    )
    assert (manifest.effect, manifest.idempotent, manifest.timeout_seconds, manifest.content_parameter) == (
        "irreversible",
        True,
        2.5,
        "to",
    )


@requirement("TOOL-6")
async def test_the_card_carries_what_the_manifest_says(registry: ToolRegistry, assistant):
    """Also that nothing is known, so that a surface can say so."""
    assistant(effect="reversible", contentParameter="to", icon="paperplane", color="systemRed")
    approver = FixedApprover()
    await Session(registry, approver=approver).call("send", {"to": "Ann"})
    facts = approver.requests[0].facts()
    assert [facts[key] for key in ("effect", "content_parameter", "icon", "color", "display_name")] == [
        "reversible", "to", "paperplane", "systemRed", "Send money",
    ]  # fmt: skip


def test_a_manifest_refers_to_nothing_outside_of_itself():
    """Reading a description must not fetch an address or open a file."""
    for address in ("http://127.0.0.1:9/x", "file:///etc/passwd"):
        schema = {"$ref": address}
        with pytest.raises(ManifestError, match="lies outside of the manifest"):
            parse_manifest(canonical(MANIFEST | {"parameters": [{"name": "a", "type": "any", "schema": schema}]}))


@pytest.mark.parametrize(
    ("field", "hint"),
    [("secret", '"secret": true}'), ("request", "register_approval_request"), ("required", '"required": false}')],
)
def test_what_is_said_elsewhere_is_told_where(field, hint):
    """In Python these are facts of the tool, and whoever writes a manifest looks for them there first."""
    with pytest.raises(ManifestError) as refusal:
        parse_manifest(json.dumps(json.loads(SEED) | {field: ["token"]}))
    assert f"unknown field {field}" in str(refusal.value)
    assert hint in str(refusal.value)
