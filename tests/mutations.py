"""The mutants of mutants.py: one mend each, and the tests that would miss it."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A piece of a file of the package, what is put in its place, and the tests that have to notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str


GRANTING = "tests/attack/test_granting_at_a_terminal.py"
SECOND_STEP = "tests/rules/test_second_step.py"
RESTARTED = "tests/attack/test_standing_across_a_restart.py"
LIMITS = "tests/script/test_limits.py -k a_limit_holds"
LANGUAGE = "tests/script/test_habits.py tests/script/test_language.py tests/script/test_machine.py"

# The mutants of each file: by name what is taken away, what is put there, and the tests.
CHANGES: dict[str, dict[str, tuple[str, str, str]]] = {
    "runs.py": {
        "language: NOW is not written down": (
            'self._door.journal.note(self._door.setting.session_id, "run_now", self._run_id, {"now": now})',
            "pass",
            "tests/test_runs.py",
        ),
        "language: tools for an editor can be called without one": (
            "if tool is None or (tool.manifest.script_editor_only and self._door.setting.editor is None):",
            "if tool is None:",
            "tests/test_runs.py",
        ),
        "records: an edited run is carried out": (
            "    await store.prove((*records[:ended], *later, *going_on))\n",
            "",
            "tests/attack/test_edited_records.py",
        ),
        "records: what was taken out before a run goes on is not missed": (
            "        await self._door.journal.prove_since(self._run_id)\n",
            "",
            "tests/attack/test_edited_records.py",
        ),
        "consent: a call taken as done stops its run for good": (
            '    if kind == "succeeded":\n        return None',
            '    if kind == "never":\n        return None',
            "tests/commands/test_answering.py -k goes_on_with_the_value",
        ),
        "granting: a grant for a run outlives it": (
            "(setting.gave or past.calls)",
            "setting.gave",
            RESTARTED,
        ),
    },
    "script/static_plan.py": {
        "language: how often an inner loop runs is not multiplied": (
            "most = self.most * count",
            "most = count",
            "tests/script/test_plan.py",
        ),
    },
    "script/runtime.py": {
        "language: output is not counted": (
            'self.output_left -= len(line.encode("utf-8", "surrogatepass")) + 1',
            "self.output_left -= 0",
            LIMITS,
        ),
        "language: texts create nothing": ("        self.created -= 8 + length // 2\n", "", LIMITS),
        "language: arguments of a CALL cost no steps": ("            self.work(elements, 0, at)\n", "", LIMITS),
        "language: arguments of a CALL nest as deep as they like": (
            "value, max_depth=limits.value_depth, max_size=limits.value_size, max_elements=limits.at_once",
            "value, max_depth=10**6, max_size=limits.value_size, max_elements=limits.at_once",
            LIMITS,
        ),
        "language: small numbers print as Python writes them": (
            "        if kind is float:\n            return number_text(value)\n",
            "        if kind is float:\n            return repr(value)\n",
            LANGUAGE,
        ),
    },
    "script/builtins.py": {
        "language: SPLIT creates nothing": ("    run.work(0, 8 * length + len(whole) // 2, at)\n", "", LIMITS),
        "language: FORMAT creates nothing": (
            '    run.string(sum(map(len, pieces)), at)\n    return "".join(pieces)',
            '    return "".join(pieces)',
            LIMITS,
        ),
        "language: JOIN creates nothing": (
            "    run.string(len(separator) * max(0, len(items) - 1) + sum(map(len, pieces)), at)\n",
            "",
            LIMITS,
        ),
        "language: KEYS makes lists of any length": (
            "run.list(len(value), len(value) // 4, at)",
            "run.work(1 + len(value) // 4, 8 + len(value), at)",
            LIMITS,
        ),
        "language: SORT costs no steps": (
            "    run.work(count * count.bit_length() // (1 if len(kinds) > 1 else 2 if str in kinds else 3), 0, at)\n",
            "",
            LIMITS,
        ),
        "language: CONTAINS in a list costs no steps": ("    run.work(1 + len(items), 0, at)\n", "", LIMITS),
        "language: CONTAINS in a text costs no steps": (
            "    run.work(len(whole if type(whole) is str else part) // CHARACTERS, 0, at)\n",
            "",
            LIMITS,
        ),
        "language: NUMBER of a long text costs no steps": (
            "    run.work(1 + len(value) // CHARACTERS, 0, at)\n    if not _NUMBER",
            "    run.work(1, 0, at)\n    if not _NUMBER",
            "tests/script/test_limits.py -k paid_for_by_its_length",
        ),
    },
    "script/machine.py": {
        "language: the time of other runs counts as ours": (
            "        await sleep(0)\n        run.deadline += perf_counter() - before\n",
            "        await sleep(0)\n",
            "tests/script/test_machine.py -k time_that_others_take",
        ),
    },
    "script/steps.py": {
        "language: loops with others inside spend no fuel": (
            "        run.fuel -= cost\n",
            "",
            "tests/script/test_machine.py -k long_computation",
        ),
        "language: innermost loops spend no fuel": (
            "        run.fuel -= cost * before\n",
            "",
            "tests/script/test_machine.py -k long_computation",
        ),
        "language: no hint for a loop over an object": (
            'hint = "loop over KEYS(object)" if type(values) is dict else None',
            "hint = None",
            LANGUAGE,
        ),
        "language: no hint for a condition": (', hint="compare: x == 1, x != null"', "", LANGUAGE),
        "language: a loop over a million calls fails before its first": (
            "if ends_early or (waits and not (count * cost <= run.steps and count * words <= run.created)):",
            "if ends_early:",
            "tests/script/test_limits.py -k million_calls",
        ),
    },
    "script/operators.py": {
        "language: large integers are ordered as floats": (
            "return a {operator} b\n        return compare",
            "return float(a) {operator} float(b)\n        return compare",
            LANGUAGE,
        ),
        "language: no hint for an index": (
            'hint = "the first element is [0]" if target else "the list is empty"',
            "hint = None",
            LANGUAGE,
        ),
    },
    "script/hints.py": {
        "language: no hint with the nearest key": (
            "return nearest(name, target) or (f\"it has {', '.join(target)}\" if 0 < len(target) <= 8 else None)",
            "return None",
            LANGUAGE,
        ),
        "language: no hint for operands": (
            "        return 'join strings with FORMAT(\"{a}{b}\", {a: …, b: …})'\n",
            "        return None\n",
            LANGUAGE,
        ),
    },
    "script/prompt.py": {
        "language: the prompt is not cut": (
            "        if room < 0:\n            break\n",
            "",
            "tests/script/test_prompt.py",
        ),
        "language: the prompt's state is not cut": (
            'return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} characters left out)"',
            "return text",
            "tests/script/test_prompt.py",
        ),
    },
    "call/setting.py": {
        "house: a listener that failed stays": (
            '                log.error("a listener failed and hears nothing more", exc_info=problem)\n'
            "                self._forget(listener)\n",
            '                log.error("a listener failed and hears nothing more", exc_info=problem)\n',
            "tests/attack/test_interruptions.py -k listener",
        ),
    },
    "call/execution.py": {
        "house: a second line runs tools": (
            "result = _invoke(guard, self.context, self.tool, args, kwargs)\n        except KeyboardInterrupt:",
            "function = self.tool.execute\n            result = function(*args, **kwargs)\n"
            "        except KeyboardInterrupt:",
            "tests/test_architecture.py -k one_line",
        ),
        "consent: cancelled while the code still runs": (
            "self._settle(StoppedEarly(partial, self._began) if await self._code_stops() else StillActs(partial))",
            "self._settle(StoppedEarly(partial, self._began))",
            "tests/attack/test_cancelled_and_running.py",
        ),
        "consent: overdue while the code still runs": (
            "self._settle(TimedOut(seconds) if await self._code_stops() else StillActs(seconds=seconds))",
            "self._settle(TimedOut(seconds))",
            "tests/attack/test_cancelled_and_running.py",
        ),
    },
    "editor/project.py": {
        "house: a change waits for the disk on the loop": (
            "            await off_loop(changing.settle)\n",
            "            changing.settle()\n",
            "tests/editor/test_off_loop.py -k deleting_renaming",
        ),
        "house: a deletion that was cancelled happens": (
            "            changing.leave()  # Whoever was cancelled meanwhile has changed nothing.\n            raise\n",
            "            pass\n",
            "tests/editor/test_off_loop.py -k deletion",
        ),
    },
    "tools/manifest.py": {
        "consent: a tool that does not say what it does takes one press": (
            'return self.effect in (None, "irreversible")',
            'return self.effect == "irreversible"',
            "tests/surfaces/test_card.py tests/surfaces/test_page_api.py -k undone",
        ),
        "consent: every tool takes two acts": (
            'return self.effect in (None, "irreversible")',
            "return True",
            "tests/surfaces/test_card.py -k says_what_it_does",
        ),
    },
    "call/approval_round.py": {
        "consent: files that a card was drawn from may change": (
            "            changed += await THREADS.result_of(partial(changed_files, looked_at))\n",
            "            pass\n",
            "tests/attack/test_stale_looks.py",
        ),
        "consent: state that a card was drawn from may change": (
            "return changed + changed_state(looked_at, self._setting.state)",
            "return changed",
            "tests/attack/test_stale_looks.py",
        ),
        "granting: a grant of another program outlives its session": (
            "            self._setting.gave.add(grant.id)\n",
            "",
            "tests/rules/test_grants.py -k another_program_gave",
        ),
        "granting: a rule answers a card that waits": (
            "            decider = put_to\n",
            "            pass\n",
            RESTARTED,
        ),
        "granting: a grant from elsewhere is nobody's": (
            "setting.user_digest)",
            "None)",
            "tests/rules/test_grants.py -k another_program_gave",
        ),
    },
    "tools/guard/patches.py": {
        "guard: pipes": ('    "mkfifo": "make a pipe",\n', "", "tests/attack/test_guard_routes.py -k mkfifo"),
        "guard: requests on open connections": (
            '"socket": {"socket.send": _NETWORK, "socket.sendall": _NETWORK, "socket.sendfile": _NETWORK},',
            '"socket": {},',
            "tests/attack/test_guard_routes.py -k open",
        ),
    },
    "store/contract.py": {
        "guard: answers from inside a request function": (
            "    if guard is not None:\n        raise guard.refuse(what + name)\n",
            "    return\n",
            "tests/attack/test_guard_routes.py -k session",
        ),
        "guard: the store below the journal": (
            "                refuse_if_watched(WRITE)\n            for entry in entries:",
            "                pass\n            for entry in entries:",
            "tests/attack/test_guard_routes.py -k store",
        ),
    },
    "journal/journal.py": {
        "guard: the clock and the people of the journal": (
            '        refuse_if_watched("change the journal")  # its clock, its people or its store, for one\n',
            "",
            "tests/attack/test_guard_routes.py -k journal",
        ),
    },
    "commands/approvals.py": {
        "consent: a command is one act for what cannot be undone": (
            "digest is None and not await _is_meant(request, plain=plain)",
            "False",
            "tests/commands/test_memory_commands.py -k names_the_card",
        ),
        "buttons: a stop in a person's name": (
            'Answerer("below") if is_below(journal.store) else WHO',
            "WHO",
            "tests/attack/test_pressing_our_buttons.py -k stop",
        ),
        "buttons: answer": (
            'with_own_journal(store, "lastword answer", reply)',
            "with_journal(store, reply)",
            "tests/attack/test_pressing_our_buttons.py -k person_runs_below",
        ),
    },
    "terminal/keyboard.py": {
        "consent: a paste to a busy program is taken for a typed word": (
            "together > MAX_TOGETHER or ",
            "",
            "tests/attack/test_typing.py -k typed_and_not_pasted",
        ),
        "granting: another word, with keys": (
            "return typed is not None and typed.strip().casefold() == word",
            "return bool(typed)",
            f"{GRANTING} -k one_act_alone",
        ),
    },
    "web/conversation.py": {
        "consent: a call in doubt runs again by one press on the page": (
            "            self.checks.check_word(tool.casefold(), word, fact, hint)\n",
            "            pass\n",
            "tests/surfaces/test_page_api.py -k in_doubt_is_decided",
        ),
    },
    "commands/call_and_run.py": {
        "consent: a call in doubt runs again by one command": (
            'if decision == "again" and not await _is_again_meant(journal, call_id, digest):',
            "if False:",
            "tests/commands/test_memory_commands.py -k run_again_or_given_up",
        ),
    },
    "tools/tool.py": {
        "consent: what a cache wraps is in no digest": (
            "    if callable(wrapped):\n",
            "    if False:\n",
            "tests/tools/test_tool.py",
        ),
        "consent: the code of functions is in no digest": (
            "            yield from _code(code)\n            defaults",
            "            defaults",
            "tests/tools/test_tool.py",
        ),
    },
    "tools/folder.py": {
        "consent: a folder counts one file": (
            "if name.endswith(suffixes) or name == self.MANIFEST_FILE)",
            "if name == self.CODE_FILE)",
            "tests/tools/test_tool.py",
        ),
    },
    "call/recovery.py": {
        "records: what was taken out before a call goes on is not missed": (
            "    await door.journal.prove_since(life.call_id)\n",
            "",
            "tests/attack/test_edited_records.py",
        ),
        "records: what was taken out before a call is decided about is not missed": (
            "    await door.journal.prove_since(call_id)\n",
            "",
            "tests/attack/test_edited_records.py",
        ),
        "consent: an id answers for other arguments": (
            "    _check_same(door, life, name, arguments)\n    if life.finished",
            "    if life.finished",
            "tests/attack/test_replayed_answers.py -k id_that_was_used",
        ),
        "granting: a call in doubt starts again by a yes that was taken back": (
            " or await door.authority.still_stands(tool, call, by)",
            " or True",
            RESTARTED,
        ),
    },
    "call/changes.py": {
        "records: an edited change is taken back": (
            "    await journal.store.prove(records)\n",
            "",
            "tests/editor/test_undo.py -k somebody_edited",
        ),
    },
    "web/page_gate.py": {
        "records: an edited window is let in": (
            "        await self._store.prove(records)",
            "        pass",
            "tests/attack/test_edited_records.py",
        ),
    },
    "store/sqlite_file.py": {
        "records: a store that lost its log starts calls": (
            "            return start_refused(behind, str(self._memory))\n",
            "            pass\n",
            "tests/store/test_store_head.py",
        ),
    },
    "consent/approval.py": {
        "consent: why it is asked again is not sealed": (
            "            self.author,\n            self.problem,\n            self.nonce,\n        )\n",
            "            self.author,\n            self.nonce,\n        )\n",
            "tests/attack/test_replayed_answers.py -k seal_covers",
        ),
        "consent: which keys are missing is not sealed": (
            "self.looked_at,\n            self.missing,\n            self.origin,\n            self.author,\n",
            "self.looked_at,\n            self.origin,\n            self.author,\n",
            "tests/attack/test_replayed_answers.py -k seal_covers",
        ),
    },
    "tools/declaration.py": {
        "consent: secrets that name no parameter": (
            "    for name in sorted(set(value) - set(parameters)):\n",
            "    for name in ():\n",
            "tests/tools/test_signature.py",
        ),
        "consent: a time limit that is no number": (
            "            if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:\n",
            "            if False:\n",
            "tests/tools/test_signature.py",
        ),
    },
    "tools/guard/ancestry.py": {
        "buttons: the marker in the environment": (
            "        os.environ[MARKER] = str(_marked_for)\n",
            "",
            "tests/attack/test_pressing_our_buttons.py -k library",
        ),
        "buttons: the processes above": (
            "    if any(_is_host(each, folders) or (agents and _is_agent(each, folders)) for each in above):\n",
            "    if any(agents and _is_agent(each, folders) for each in above):\n",
            "tests/attack/test_pressing_our_buttons.py -k by_auto_approve",
        ),
        "buttons: the processes above, on the memory that is named": (
            "    return store is not None and any(_holds(store, each.pid, each.began) for each in above)\n",
            "    return False\n",
            "tests/attack/test_pressing_our_buttons.py -k memory_of_its_own",
        ),
        "buttons: a marker with one's own number": (
            "    return MARKER in os.environ and _marked_itself != os.getpid()\n",
            "    return os.environ.get(MARKER, str(os.getpid())) != str(os.getpid())\n",
            "tests/attack/test_pressing_our_buttons.py -k number",
        ),
        "rules: below, a memory that the environment names": (
            "    return None if outermost is None else outermost.environment.get(name)\n",
            "    return os.environ.get(name)\n",
            "tests/rules/test_below.py",
        ),
    },
    "commands/history.py": {
        "buttons: an undo": (
            'undone: Undone = with_own_journal(store, "lastword undo", do)',
            "undone: Undone = with_journal(store, do)",
            "tests/attack/test_pressing_our_buttons.py -k no_command_of_a_person",
        ),
    },
    "terminal/chat_commands.py": {
        "buttons: a chat in a pipe": (
            '            if name in DECIDING or (name == "grants" and rest):\n',
            "            if False:\n",
            "tests/attack/test_pressing_our_buttons.py -k pipe",
        ),
    },
    "commands/workbench.py": {
        "buttons: a new tool that is trusted": (
            "    if not is_below():\n",
            "    if True:\n",
            "tests/attack/test_pressing_our_buttons.py -k new_tool",
        ),
    },
    "commands/invocation.py": {
        "buttons: --auto-approve": (
            "        refuse_below(AUTO_APPROVE, hint=NOT_BY_ITSELF)\n",
            "        pass\n",
            "tests/attack/test_pressing_our_buttons.py -k by_auto_approve",
        ),
    },
    "config/loader.py": {
        "buttons: a preset that auto-approves": (
            "    if turned and is_below():\n",
            "    if False:\n",
            "tests/attack/test_found_configurations.py -k accepted_preset",
        ),
        "rules: below, another data folder": (
            "    if not is_in_folder_above():\n        return False\n",
            "",
            "tests/rules/test_below.py",
        ),
        "rules: below, half a path in a variable": (
            "    if named and not StoreAddress(named).is_whole:\n",
            "    if False:\n",
            "tests/rules/test_below.py",
        ),
        "rules: below, half a path in a configuration": (
            '        table["store"] = StoreAddress(table["store"]).meant_in(file.parent)\n',
            "        pass\n",
            "tests/rules/test_below.py",
        ),
        "configuration: found is as good as meant": (
            "    if not is_meant:\n        laid_aside",
            "    if False:\n        laid_aside",
            "tests/attack/test_found_configurations.py -k loosens",
        ),
        "configuration: a tool that names one is believed": (
            "is_meant = path is not None and not is_below()",
            "is_meant = path is not None",
            "tests/attack/test_found_configurations.py -k names_nothing",
        ),
    },
    "commands/agents.py": {
        "buttons: a client that answers itself": (
            '    if approve == "client":\n',
            "    if False:\n",
            "tests/mcp_both_ways/test_serve_command.py -k answer_itself",
        ),
        "buttons: an agent that is a client is refused": (
            "refuse_below(BY_CLIENT, agents=False, hint=BY_PERSON)",
            "refuse_below(BY_CLIENT, hint=BY_PERSON)",
            "tests/mcp_both_ways/test_serve_command.py -k own_dialogue",
        ),
    },
    "commands/local_session.py": {
        "rules: below, on another memory": (
            "    return policy if is_own_memory(store, config) else policy.only_stricter(ELSEWHERE)\n",
            "    return policy\n",
            "tests/rules/test_below.py",
        ),
    },
    "terminal/tty.py": {
        "buttons: a terminal that a tool made": (
            "    return not is_below()\n",
            "    return True\n",
            "tests/attack/test_pressing_our_buttons.py -k nobodys",
        ),
        "granting: a window that is narrower only for a while": (
            "            self.look()\n            await",
            "            await",
            f"{GRANTING} -k narrower",
        ),
    },
    "tools/trust.py": {
        "configuration: accepted once is accepted whatever it says": (
            "return known is not None and known.digest == self.digest_of(text)",
            "return known is not None",
            "tests/attack/test_found_configurations.py -k only_as_it_was",
        ),
    },
    "terminal/grant_dialogue.py": {
        "granting: Enter after the word grants": (
            "            if key == ENTER:\n",
            "            if key == ENTER and self._is_typed:\n                return self._steps.agree(step)\n"
            "            elif key == ENTER:\n",
            f"{GRANTING} -k one_act_alone",
        ),
        "granting: the name of the tool, read aloud": (
            "if await self._words.ask(words, CROWDED) == self._tool:",
            "if await self._words.ask(words, CROWDED) is not None:",
            f"{GRANTING} -k two_acts",
        ),
        "granting: another word, read aloud": (
            "elif typed.casefold() == step.word and step.digest:",
            "elif typed and step.digest:",
            f"{GRANTING} -k two_acts",
        ),
        "granting: a window that became narrower": (
            "if self._smallest.columns < self._drawn_width:",
            "if False:",
            f"{GRANTING} -k narrower",
        ),
        "granting: a window that is too low": (
            "return TOO_LOW if self._smallest.rows < min(needed, ROWS) else ",
            "return ",
            f"{GRANTING} -k too_low",
        ),
    },
    "terminal/card_dialogue.py": {
        "granting: a folded part": (
            "if self._draft.is_changed or self._unseen:\n            await self._refuse",
            "if self._draft.is_changed:\n            await self._refuse",
            f"{GRANTING} -k not_shown_whole",
        ),
        "granting: an edited card": (
            "if self._draft.is_changed or self._unseen:\n            await self._refuse",
            "if self._unseen:\n            await self._refuse",
            f"{GRANTING} -k edited",
        ),
        "granting: a tool without its key": (
            "self._steps = None if self._why_no_step else steps",
            "self._steps = steps",
            f"{GRANTING} -k without_a_second_step",
        ),
    },
    "web/call_item.py": {
        "granting: the timeline's line": (
            'self._change(reply=views.CallReply("standing", one_line(not_asked, MAX_WHY)))',
            "pass",
            "tests/surfaces/test_page_grants.py -k timeline_says",
        ),
    },
    "rules/terms.py": {
        "granting: listed beyond the sum": (
            "            if all(total >= 0 for total in after.values()):\n",
            "            if True:\n",
            SECOND_STEP,
        ),
        "granting: listed although a rule asks": (
            "                or why_no_offer(other) is not None\n",
            "",
            SECOND_STEP,
        ),
        "granting: listed although it came back": ("                or other.problem is not None\n", "", SECOND_STEP),
        "granting: a folder by another way": ("real = os.path.realpath(folder)", "real = str(folder)", SECOND_STEP),
    },
    "rules/grants.py": {
        "granting: a grant stands for its own card": (
            "        if self.call_id == who.call_id:\n",
            "        if False:\n",
            f"{SECOND_STEP} -k own_card",
        ),
    },
}

MUTANTS = [Mutant(name, file, *change) for file, named in CHANGES.items() for name, change in named.items()]
