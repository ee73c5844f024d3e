"""The kit that ships: it passes on a tool that is in order, catches one that is not, and runs neither."""

from pathlib import Path

import pytest

from lastword import ToolRegistry, UserAction
from lastword.editor import ProjectEditor
from lastword.testing import ATTACKS, Attack
from requirements import requirement
from sending import CALL


@pytest.fixture
def kinds(registry: ToolRegistry, assistant, effects) -> dict[str, tuple[str, dict]]:
    """One tool of every style, all in order."""
    assistant(lambda params: {"message": f"Send to {params['to']}?"})

    async def quiet(user_action):
        if user_action.primary_confirmed:
            effects.append("quiet")
        return {"success": True, "message": ""}

    assistant(None, quiet, id="quiet", parameters=[], autoApprove=True)
    schema = {"description": "d", "parameters": [{"name": "n", "type": "number"}], "returns": "any"}
    registry.register("wipe", schema, lambda args, context: effects.append(args), require_approval=True)

    @registry.tool
    def forget(names: list[str], really: bool = False) -> None:
        effects.append(names)

    assistant(lambda context: {"message": f"{context.get_state_value('a')}"}, id="stateful")
    registry.register("free", schema, lambda args, context: effects.append(args))
    return {
        "assistant": ("send", CALL),
        "assistant without params": ("quiet", {}),
        "assistant with state": ("stateful", CALL),
        "registry": ("wipe", {"n": 1}),
        "function": ("forget", {"names": ["a"]}),
        "no approval": ("free", {"n": 1}),
    }


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
@pytest.mark.parametrize(
    "kind", ["assistant", "assistant without params", "assistant with state", "registry", "function", "no approval"]
)
async def test_a_tool_in_order_withstands_every_attack_and_never_runs(registry, kinds, effects, attack: Attack, kind):
    """The attacks use the real door and the real request function, and leave the tool where it was."""
    name, arguments = kinds[kind]
    tool = registry.lookup(name)
    await attack.run(registry, name, arguments)
    assert effects == []
    assert registry.lookup(name) is tool


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
async def test_an_editor_can_be_passed_in(registry, assistant, effects, attack: Attack, tmp_path: Path):
    """For tools that work on files only."""
    (tmp_path / "a.txt").write_text("old")

    def request(params, editor):
        return {
            "message": "?",
            "preview_button": {"label": "P", "action": lambda: editor.open_diff_editor("a.txt", "x")},
        }

    assistant(request, scriptEditorOnly=True)
    await attack.run(registry, "send", CALL, editor=ProjectEditor(tmp_path))
    assert (tmp_path / "a.txt").read_text() == "old"


@requirement("TOOL-42", "TOOL-43")
async def test_the_kit_catches_a_tool_with_effects_in_its_request(registry, assistant, effect_file: Path):
    """Every attack needs a card; a tool without one fails them all, with the reason."""
    assistant(lambda params: {"message": effect_file.write_text("forged")})
    for attack in ATTACKS:
        if attack.name == "the card is drawn with side effects":
            with pytest.raises(AssertionError, match="it tried to write"):
                await attack.run(registry, "send", CALL)
    assert not effect_file.exists()


@requirement("TOOL-43")
async def test_the_kit_catches_a_tool_that_ignores_a_denial(registry, assistant, effect_file: Path, caplog):
    """The one attack that runs the real function does so under the guard."""

    def execute(params, user_action):
        effect_file.write_text("done")
        return {"success": True, "message": ""}

    assistant(None, execute)
    caught = []
    for attack in ATTACKS:
        try:
            await attack.run(registry, "send", CALL)
        except AssertionError:
            caught.append(attack.name)
    assert caught == ["a denial is ignored"]
    assert not effect_file.exists()


@requirement("TOOL-62")
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
async def test_an_attack_runs_nothing_that_a_rule_would_let_pass(registry: ToolRegistry, effects, attack: Attack):
    """Trying an attack changes nothing, also for arguments that the tool's own rule asks nobody about."""

    @registry.tool(require_approval=lambda amount: amount > 100)
    def pay(amount: float, user_action: UserAction) -> str:
        """Pay."""
        if user_action.agrees:
            effects.append(amount)
        return "paid"

    await attack.run(registry, "pay", {"amount": 1})
    assert effects == []
