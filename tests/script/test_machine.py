"""Running scripts: the host's side of a CALL, variables, waiting, and the time in between."""

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from lastword.errors import ScriptError
from lastword.script import CallFailed, Machine, ScriptLimits, Site, machine, parse, runtime
from requirements import requirement
from script.hosts import TestHost, run


@requirement("NUWA-12")
async def test_given_variables_are_used_by_reference_and_never_changed() -> None:
    """The host's own data is not copied up front and not written to."""
    rows = [1, 2]
    given: dict[str, Any] = {"rows": rows, "untouched": []}
    result = await run("LET copy = APPEND(rows, 3) SET rows = [9] LET total = SUM(copy)", variables=given)
    assert given == {"rows": [1, 2], "untouched": []}
    assert given["rows"] is rows
    assert result.variables == {"rows": [9], "untouched": [], "copy": [1, 2, 3], "total": 6}
    assert result.variables["untouched"] is given["untouched"]


@requirement("NUWA-12")
async def test_variables_can_be_read_after_an_error_too() -> None:
    """What was worked out before the error helps to go on."""
    result = await run("LET a = 10 / 2 FOR i IN [1] DO LET inner = 2 END LET b = a / 0 LET c = 3")
    assert (result.status, result.variables) == ("failed", {"a": 5})


@requirement("NUWA-1")
async def test_an_integer_beyond_the_doubles_passes_through_untouched() -> None:
    """Identifiers are often 64-bit integers; one digit off is another person's account."""
    big = 2**60 + 1
    host = TestHost()
    text = "PRINT(big) PRINT([big]) CALL echo { id: big } LET same = big == big LET less = 1 < big LET kept = big"
    result = await run(text, host, {"big": big})
    assert result.output == [str(big), f"[{big}]"]
    assert host.calls == [("echo", {"id": big})]
    assert (result.variables["kept"], result.variables["same"], result.variables["less"]) == (big, True, True)
    for text in ("big + 0", "0 - big", "-big", "+big", "big * 0", "big / big", "big % 2", "SUM([big])"):
        result = await run(f"LET x = {text}", variables={"big": big})
        assert type(result.error).__name__ == "NumberRange", text


@requirement("NUWA-30")
async def test_the_tool_is_looked_up_before_its_arguments_are_evaluated() -> None:
    """A misspelt tool must not run the calls inside its arguments."""
    host = TestHost()
    for text in ("CALL missing { a: CALL echo { b: 1 }, c: 1 / 0 }", "CALL missing { a: 1 / 0 }"):
        assert type((await run(text, host)).error).__name__ == "ToolNotFound"
    assert host.calls == []


@requirement("NUWA-30", "NUWA-31")
async def test_effects_happen_in_the_order_of_the_text() -> None:
    """Left before right, inside before outside, and nothing after an error."""
    host = TestHost()
    text = """
LET x = [CALL echo { n: 1 }, 2, CALL echo { n: CALL add { a: 1, b: 1 } }]
PRINT(CALL echo { n: 3 }.n + CALL echo { n: 4 }.n)
LET y = CALL echo { n: 5, m: nope, o: CALL echo { n: 6 } }
"""
    result = await run(text, host)
    assert [given.get("n", "add") for _, given in host.calls] == [1, "add", 2, 3, 4]
    assert (type(result.error).__name__, result.output) == ("UndefinedVariable", ["7"])


@requirement("NUWA-30")
@pytest.mark.parametrize("waits", [False, True], ids=["at-once", "awaited"])
@pytest.mark.parametrize(
    "kind", ["ToolNotFound", "ToolArgument", "ToolExecution", "LimitExceeded", "Cancelled", "ReplayDivergence"]
)
async def test_a_failure_of_the_host_becomes_an_error_at_the_tool(kind: str, waits: bool) -> None:
    """The host knows what went wrong; the machine knows where."""

    def fails() -> Any:
        raise CallFailed(kind, "the words of the host", "what to do")

    result = await run("LET a = 1\n  CALL broken {}\nPRINT(a)", TestHost({"broken": fails}, waits=waits))
    error = result.error
    assert error is not None
    assert (type(error).__name__, error.line, error.column, error.phase) == (kind, 2, 8, "run")
    assert str(error) == "2:8: the words of the host\n    CALL broken {}\n         ^^^^^^\nhint: what to do"
    assert result.status == ("cancelled" if kind == "Cancelled" else "failed")
    assert isinstance(error, ScriptError)
    assert error.as_dict()["class"] == kind


async def test_a_call_carries_where_it_stands() -> None:
    """A card says which line of the script asked."""
    host = TestHost()
    await run("CALL nothing {}\nFOR i IN [1, 2] DO\n  LET x = [CALL echo { a: CALL nothing {} }]\nEND", host)
    sites = [(site.tool, site.index, site.line, site.column) for site in host.sites]
    inner, outer = ("nothing", 2, 3, 32), ("echo", 1, 3, 17)
    assert sites == [("nothing", 0, 1, 6), inner, outer, inner, outer]


async def test_what_a_host_gives_is_taken_as_it_is() -> None:
    """Whole floats, large integers, nested nulls: a value is a value."""
    values: list[object] = [1.0, 2**70, None, True, "text", [None, {"a": []}], {"k": 0.5}]
    for value in values:
        result = await run("LET x = CALL give {} LET y = x", TestHost({"give": lambda value=value: value}))
        assert result.variables["y"] == value


async def test_now_is_asked_of_the_host_and_may_be_awaited() -> None:
    """A resumed run must see the time it saw before, so only the host knows what time it is."""

    class Clock(TestHost):
        def now(self) -> Any:
            async def later() -> int:
                return 42

            return later()

    assert (await run("PRINT(NOW() + 1) LET t = NOW()", Clock())).output == ["43"]


async def test_lines_are_shown_as_they_are_printed() -> None:
    """A person watches; the output of a long run cannot wait for its end."""
    seen: list[int] = []
    host = TestHost({"look": lambda: seen.append(len(host.lines))})
    await run('PRINT("a") CALL look {} PRINT("b") CALL look {}', host)
    assert seen == [1, 2]


@requirement("NUWA-63")
async def test_a_long_computation_lets_others_have_their_turn() -> None:
    """Many runs share one loop, and none of them may hold it."""
    turns = 0
    done = False

    async def other() -> None:
        nonlocal turns
        while not done:
            turns += 1
            await asyncio.sleep(0)

    for text in (
        "FOR i IN RANGE(200000) DO LET x = i * 2 END",
        "FOR i IN RANGE(300) DO FOR j IN RANGE(300) DO LET x = i * j END END",
        "FOR i IN RANGE(100000) DO FOR j IN [] DO LET x = j END END",
        'LET l = RANGE(2000) FOR i IN RANGE(500) DO LET x = JOIN(l, ",") END',
        "FOR i IN RANGE(19000) DO CALL nothing {} END",
    ):
        turns, done = 0, False
        watching = asyncio.create_task(other())
        result = await run(text)
        done = True
        await watching
        assert result.error is None, result.error
        assert turns > 2, text


@requirement("NUWA-1", "NUWA-2")
async def test_integers_beyond_the_doubles_are_compared_digit_by_digit() -> None:
    """Two ids of a tool that differ in the last digit are two, and one of them is the greater."""
    small = 2**53
    text = (
        "PRINT([a < b, b < a, a <= b, b <= a, a > b, b > a, a >= b, b >= a, a == b, a != b])\n"
        "FOR x IN [a] DO PRINT([x < b, x <= b, x > b, x >= b]) END\n"
        "PRINT([o.a < o.b, o.b <= o.a, o.a > o.b, o.b >= o.a])"
    )
    given = {"a": small, "b": small + 1, "o": {"a": small, "b": small + 1}}
    result = await run(text, variables=given)
    assert result.error is None, result.error
    assert result.output == [
        "[true, false, true, false, false, true, false, true, false, true]",
        "[true, true, false, false]",
        "[true, false, false, true]",
    ]


@requirement("NUWA-63")
async def test_runs_that_wait_do_not_wait_for_each_other() -> None:
    """Each script waits in its own coroutine; the answers may come in any order."""
    futures: dict[int, asyncio.Future[int]] = {}
    all_wait = asyncio.Event()

    def ask(n: int) -> Any:
        futures[n] = asyncio.get_running_loop().create_future()
        if len(futures) == 20:
            all_wait.set()
        return futures[n]

    tasks = [asyncio.create_task(run(f"PRINT(CALL ask {{ n: {n} }} + 1)", TestHost({"ask": ask}))) for n in range(20)]
    await all_wait.wait()
    for n in reversed(range(20)):
        futures[n].set_result(n * 10)
    assert [(await task).output for task in tasks] == [[str(n * 10 + 1)] for n in range(20)]


@requirement("NUWA-60")
async def test_waiting_is_not_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person may think about a card for a day."""
    now = 0.0

    def clock() -> float:
        return now

    def wait_a_day() -> None:
        nonlocal now
        now += 86_400

    monkeypatch.setattr(runtime, "perf_counter", clock)
    monkeypatch.setattr(machine, "perf_counter", clock)
    text = "CALL day {} FOR i IN RANGE(100000) DO LET x = i + 1 END CALL day {}"
    for waits in (False, True):
        assert (await run(text, TestHost({"day": wait_a_day}, waits=waits))).error is None


@requirement("NUWA-60", "NUWA-63")
async def test_the_time_that_others_take_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many runs on one loop each would come to the end of its time because of the others."""
    now, turns, done = 0.0, 0, False

    async def other() -> None:
        nonlocal now, turns
        while not done:
            now += 3_600
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(runtime, "perf_counter", lambda: now)
    monkeypatch.setattr(machine, "perf_counter", lambda: now)
    for text in (
        "FOR i IN RANGE(200000) DO LET x = i * 2 END",
        "FOR i IN RANGE(300) DO FOR j IN RANGE(300) DO LET x = i * j END END",
    ):
        turns, done = 0, False
        busy = asyncio.create_task(other())
        result = await run(text)
        done = True
        await busy
        assert turns > 2
        assert result.error is None, result.error


async def test_a_cancelled_task_is_cancelled() -> None:
    """Cancelling the coroutine is the host's way out; no error of the language hides it."""
    started = asyncio.Event()

    async def forever() -> None:
        started.set()
        await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(run("CALL forever {}", TestHost({"forever": forever})))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_waiting_script_takes_little_memory() -> None:
    """A thousand scripts may wait for a thousand people: at most 40 KB each."""
    text = "LET a = CALL ask { id: 1 }\n" + "".join(f"LET b{n} = [a.id + {n}, FORMAT('', {{}})]\n" for n in range(6))
    text = text.replace("'", '"')
    count, waiting = 200, asyncio.Event()
    futures: list[asyncio.Future[Any]] = []

    def ask(id: int) -> Any:
        futures.append(asyncio.get_running_loop().create_future())
        if len(futures) == count:
            waiting.set()
        return futures[-1]

    class Bare:
        def lookup(self, name: str) -> Callable[[dict[str, Any], Site], Any]:
            return lambda arguments, site: ask(**arguments)

        def now(self) -> int:
            return 0

        def printed(self, line: str) -> None: ...

    gc.collect()
    tracemalloc.start()
    tasks = [asyncio.ensure_future(Machine(parse(text), Bare()).run()) for _ in range(count)]
    await waiting.wait()
    used = tracemalloc.get_traced_memory()[0] / count
    tracemalloc.stop()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert used < 40_000


async def test_the_machine_uses_the_limits_it_is_given() -> None:
    """Defaults are for those who say nothing."""
    result = await run("CALL nothing {} CALL nothing {}", limits=ScriptLimits(calls=1))
    assert type(result.error).__name__ == "LimitExceeded"


@requirement("NUWA-84")
async def test_others_have_their_turn_between_many_calls_that_wait_for_nothing() -> None:
    """A CALL is little work for a script and some for its host: a thousand of them in one go keep a key waiting."""
    host, at_once, last = TestHost(), [0], 0

    async def look() -> None:
        nonlocal last
        while True:
            at_once.append(len(host.calls) - last)
            last = len(host.calls)
            await asyncio.sleep(0)

    looking = asyncio.ensure_future(look())
    result = await run("FOR i IN RANGE(2000) DO CALL echo { value: i } END", host)
    looking.cancel()
    assert (result.status, len(host.calls)) == ("done", 2000)
    assert max(at_once) <= 250
