"""A tool: its manifest, its functions, its digest, and how arguments reach it.

A tool does not run itself. The one place that calls `execute` is call/execution.py.

The digest binds a yes to one version of the code, also after a restart. Of a folder it covers every file that Python
could import from it (folder.py). Of a function: its byte code with constants, names and defaults, that of the functions
inside of it, and of what it wraps. What it reaches through closures, globals, objects of its own and imported modules
is not covered, and neither is a change of the interpreter's own: other byte code is other code, and somebody is asked
again.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePath
from types import CodeType
from typing import Any, Literal, Unpack
from uuid import UUID

from lastword import values
from lastword.errors import ArgumentsError, ManifestError, NotJSON, Problem, ToolLoadError, did_you_mean
from lastword.tools.declaration import RESERVED, Convert, Facts, ToolFacts, manifest_of, refuse_wrong_facts
from lastword.tools.json_schema import can_be_told, misfits, validator_for
from lastword.tools.manifest import Manifest, Parameter

Style = Literal["assistant", "function", "registry"]
"""How `execute` wants to be called: by reserved names, by its own argument names, or `execute(args, context)`."""

Function = Callable[..., Any]

# A model that got this much wrong starts over; the rest would only be paid for.
MAX_PROBLEMS = 20
# How much of a wrong value, and of what was expected in its place, is repeated to whoever sent it.
MAX_QUOTED = 400
# How deep wrappers wrap, and defaults hold others. What holds itself must not be followed for ever.
MAX_LEVELS = 20


@dataclass(frozen=True, eq=False)
class Tool:
    """Everything needed to ask for, approve and carry out a call."""

    manifest: Manifest
    style: Style
    execute: Function | None
    request: Function | None = None
    needs_approval: Function | None = None
    """The tool's own rule: given the arguments, `False` when nobody need be asked. Anything else asks."""
    inline: bool = False
    code: bytes = b""
    converters: Mapping[str, Convert] = field(default_factory=dict)
    folder: str | None = None
    carried_out_by: str | None = None
    """The program that carries a call out once it was allowed, where that is not this one: it is handed over then."""
    address: str | None = None
    """What rules may call it beside its id, for one of another program: `mcp:files/read`."""
    works_in: Path | None = None
    """The folder that paths and commands of its calls are meant from, where it is not the session's. `Path()` when
    nobody here knows it: another program's server has a folder of its own, or none on this machine."""
    consists_of: Callable[[dict[str, Any]], Iterable[tuple[Tool, dict[str, Any]]]] | None = None
    """For a tool that does in one call what others do in several: given its arguments, the calls that it stands for.
    A rule that asks about one of them, or denies it, holds for the whole."""
    spell: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """For a tool to which several spellings of an argument mean the same: given arguments that fit, the same in the one
    spelling that travels. Rules, cards and records then see no other."""

    name: str = field(init=False)
    digest: str = field(init=False)
    secrets: frozenset[str] = field(init=False)
    takes_answer: bool = field(init=False)
    is_async: bool = field(init=False)
    defaults: Mapping[str, bytes] = field(init=False)
    path_schemas: Mapping[str, Any] = field(init=False)
    """What it says of arguments that may be paths."""
    is_placed: bool = field(init=False)
    """Whether what a call does may depend on the folder that it is meant from."""
    _wants: tuple[str, ...] = field(init=False)
    _request_wants: tuple[str, ...] = field(init=False)
    _rule_wants: tuple[str, ...] = field(init=False)
    _schema: Mapping[str, Any] = field(init=False)
    _validator: Any = field(init=False)

    def __post_init__(self) -> None:
        manifest = self.manifest
        words = ("secret", "display_name", "description", "icon", "color")  # An empty one harms nobody.
        stated = {name: getattr(manifest, name) for name in Facts.__annotations__ if name not in words}
        if manifest.auto_approve == "bounds":
            del stated["auto_approve"]  # The person's word for the tool of another program. No author can say it.
        place = self.folder or str(manifest.id)
        refuse_wrong_facts(stated, stated, [parameter.name for parameter in manifest.parameters], place)
        for function in (self.execute, self.request, self.needs_approval):
            if function is not None and (inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)):
                hint = "return the whole result; report(…) says how it goes"
                raise ToolLoadError("a generator gives no result when it is called", place=place, hint=hint)
        put = object.__setattr__
        put(self, "name", manifest.id)
        put(self, "secrets", manifest.secrets)
        put(self, "digest", values.digest(manifest.canonical() + b"\0" + (self.code or self._own_code())))
        put(self, "_schema", manifest.arguments_schema())
        paths = {parameter.name: parameter.schema for parameter in manifest.parameters if parameter.names_path}
        has_command = any(parameter.name in Manifest.COMMAND_NAMES for parameter in manifest.parameters)
        put(self, "path_schemas", paths)
        put(self, "is_placed", bool(paths) or has_command or self.works_in is not None)
        try:
            put(self, "_validator", validator_for(self._schema))
        except ValueError as problem:
            fact = f"a schema is not a JSON Schema: {problem}"
            raise ManifestError("", [Problem(fact, place=place)]) from None
        defaults = {
            p.name: values.canonical(p.schema["default"])
            for p in manifest.parameters
            if p.schema is not None and "default" in p.schema and not p.required
        }
        put(self, "defaults", defaults)
        wants = () if self.execute is None or self.style == "registry" else _reserved(self.execute, self)
        put(self, "_wants", wants)
        if not manifest.require_approval and (self.request or self.needs_approval):
            raise ToolLoadError(
                "it has a request function or an approval rule, but nobody is ever asked about it",
                place=place,
                hint="require_approval=True, or leave the function out",
            )
        put(self, "_request_wants", () if self.request is None else self._request_names(self.request))
        put(self, "_rule_wants", () if self.needs_approval is None else _of_arguments(self.needs_approval, self))
        put(self, "takes_answer", "user_action" in wants)
        put(self, "is_async", self.execute is not None and inspect.iscoroutinefunction(inspect.unwrap(self.execute)))

    @classmethod
    def from_function(
        cls, function: Function, *, inline: bool = False, request: Function | None = None, **facts: Unpack[Facts]
    ) -> Tool:
        """A tool from a typed function."""
        manifest, converters = manifest_of(function, **facts)
        refuse_wrong_facts({"inline": inline, "request": request}, ToolFacts.__annotations__, None, manifest.id)
        asks = facts.get("require_approval", True)
        rule = asks if callable(asks) else None
        return cls(
            manifest, "function", function, request=request, needs_approval=rule, inline=inline, converters=converters
        )

    def folder_from(self, folder: Callable[[], Path]) -> Path:
        """The folder that paths and commands of its calls are meant from, given the session's; a relative one when
        nobody knows it."""
        return folder() if self.works_in is None else self.works_in

    def _own_code(self) -> bytes:
        """What the digest covers of a tool that is made of functions."""
        functions = [f for f in (self.execute, self.request, self.needs_approval) if f is not None]
        return "\n".join(digest_of_function(function) for function in functions).encode()

    def validate(self, arguments: Any) -> bytes:
        """The bytes of the arguments that travel, with defaults filled in; every problem at once otherwise."""
        try:
            # The bytes come first: a validator in another language cannot be shown lone surrogates.
            plain, data = values.reduce(arguments)
            if self.defaults and type(plain) is dict and not self.defaults.keys() <= plain.keys():
                # What was written comes first, in its order; what was left out comes after it.
                plain |= {name: values.decode(d) for name, d in self.defaults.items() if name not in plain}
                data = values.encode(plain)
        except NotJSON as problem:
            raise ArgumentsError(
                f"the arguments of {self.name} are not JSON:", [Problem(problem.fact, hint=problem.hint)]
            ) from None
        if not self._validator.is_valid(plain):
            found = list(itertools.islice(self._problems(plain), MAX_PROBLEMS + 1))
            more = "there is more; " if len(found) > MAX_PROBLEMS else ""
            raise ArgumentsError(
                f"the arguments do not fit {self.name}:",
                found[:MAX_PROBLEMS],
                hint=f"{more}nothing was done; correct the arguments and ask again",
            )
        return data if self.spell is None else values.encode(self.spell(plain))

    def _problems(self, arguments: Any) -> Iterator[Problem]:
        if type(arguments) is not dict:
            yield Problem(f"found {_words(arguments)}, expected an object of named arguments")
            return
        declared = {p.name: p for p in self.manifest.parameters}
        for name, parameter in declared.items():
            if name not in arguments and parameter.required:
                about = f": {parameter.description}" if parameter.description else ""
                yield Problem(f"the argument {name} ({parameter.type}) is missing{about}")
        known: str | None = f"the arguments are: {', '.join(declared) or 'none'}"
        for name in arguments:
            if name not in declared and not self.manifest.additional_parameters:
                hint = did_you_mean(name, declared)
                if hint is None:
                    hint, known = known, None  # Told once is enough.
                yield Problem(f"unknown argument {_cut(name)}", hint=hint)
        if not can_be_told(self._schema, arguments):
            hint = "write fewer levels, one inside of the other, or find the part that is wrong by leaving others out"
            yield Problem("the arguments do not fit, and are nested too deeply to say where", hint=hint)
            return
        for problem in self._validator.iter_errors(arguments):
            path = list(problem.instance_path)
            if not path:
                if self.manifest.arguments is not None and _is_of_the_whole(problem):
                    yield Problem(f"the arguments do not fit: {_cut(problem.message)}")
                continue  # missing and unknown ones, told above in better words
            name = str(path[0])
            parameter_here = declared.get(name)
            if parameter_here is not None and parameter_here.secret:
                # What a secret holds is told to nobody, also when it is wrong.
                yield Problem(f"the secret argument {name} does not fit: expected {_expected(parameter_here)}")
                continue
            value = arguments[name]
            kinds = (values.type_name.get(type(value)), "any")
            if len(path) == 1 and parameter_here and parameter_here.type not in kinds:
                yield Problem(f"the argument {name} must be {_a(parameter_here.type)}, found {_words(value)}")
                continue
            for path, words in misfits(problem, self._schema):
                place = name + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path[1:])
                yield Problem(f"the argument {_cut(place)} does not fit: {_cut(words)}")

    def bind(self, arguments: bytes, given: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What to call `execute` with: a fresh decoding of the bytes, and what it declares of the rest."""
        params = values.decode(arguments)
        if self.style == "registry":
            return (params, given["context"]), {}
        named = {name: params if name == "params" else given[name] for name in self._wants}
        if self.style == "function":
            self._convert(params)
            if "params" in named:
                named["params"] = values.decode(arguments)
            return (), params | named
        return (), named

    def _convert(self, params: dict[str, Any]) -> None:
        """Turn JSON into the types that the function asks for."""
        for name, convert in self.converters.items():
            if name in params:
                try:
                    params[name] = convert(params[name])
                except ValueError as problem:
                    raise ArgumentsError(
                        f"the arguments do not fit {self.name}:", [Problem(f"the argument {name}: {problem}")]
                    ) from None

    def bind_rule(self, arguments: bytes) -> dict[str, Any]:
        """What to call the approval rule with: the arguments that it declares, and no others."""
        params = values.decode(arguments)
        given = {"params": values.decode(arguments)} if "params" in self._rule_wants else {}
        self._convert(params)
        return {name: params[name] for name in self._rule_wants if name in params} | given

    def _request_names(self, function: Function) -> tuple[str, ...]:
        """What the request function declares: a typed or registered tool's may name the tool's own arguments, too."""
        if self.style == "assistant":
            return _reserved(function, self)
        return _of_arguments(function, self, RESERVED, "request function")

    def bind_request(self, arguments: bytes, given: Mapping[str, Any]) -> dict[str, Any]:
        """What to call the request function with."""
        assert self.request is not None
        named = {name: given[name] for name in self._request_wants if name in given}
        own = [name for name in self._request_wants if name not in RESERVED]
        if own:
            params = values.decode(arguments)
            self._convert(params)
            named |= {name: params[name] for name in own if name in params}
        return named | ({"params": values.decode(arguments)} if "params" in self._request_wants else {})


def _reserved(function: Function, tool: Tool) -> tuple[str, ...]:
    """Which of the reserved names a function declares. An assistant tool's function may declare nothing else."""
    names = []
    for argument in inspect.signature(function).parameters.values():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            continue
        if argument.name in RESERVED:
            names.append(argument.name)
        elif argument.default is argument.empty and tool.style == "assistant":
            raise ToolLoadError(
                f"{function.__name__} declares the argument {argument.name}, which nobody will pass",
                place=tool.folder or tool.manifest.id,
                hint=did_you_mean(argument.name, RESERVED) or f"it may declare {', '.join(RESERVED)}",
            )
    return tuple(names)


def _of_arguments(
    function: Function, tool: Tool, beside: tuple[str, ...] = ("params",), what: str = "approval rule"
) -> tuple[str, ...]:
    """Which of a tool's arguments such a function declares; `params` stands for all of them, in a dict."""
    known = (*beside, *(parameter.name for parameter in tool.manifest.parameters))
    names = []
    for argument in inspect.signature(function).parameters.values():
        if argument.name in known and argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY):
            names.append(argument.name)
        elif argument.default is argument.empty:
            raise ToolLoadError(
                f"its {what} declares {argument}, which nobody will pass",
                place=tool.folder or tool.manifest.id,
                hint=did_you_mean(argument.name, known) or f"it may declare {', '.join(known)}",
            )
    return tuple(names)


def _a(kind: str) -> str:
    """`an array`, `a string`, `null`."""
    return kind if kind == "null" else f"{'an' if kind[0] in 'ao' else 'a'} {kind}"


def _expected(parameter: Parameter) -> str:
    return f"{_a(parameter.type)} that fits its schema" if parameter.schema else _a(parameter.type)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"


def _words(value: Any) -> str:
    kind = values.type_name.get(type(value), type(value).__name__)
    if kind in ("array", "object", "null"):
        return _a(kind)
    shown = values.canonical(value).decode()
    return f"the {kind} {shown if len(shown) <= 60 else shown[:60] + '…'}"


def _is_of_the_whole(problem: Any) -> bool:
    """Whether a problem with all arguments together is neither a missing nor an unknown one."""
    return str(problem.schema_path[-1] if problem.schema_path else "") not in ("required", "additionalProperties")


def digest_of_function(function: Callable[..., Any]) -> str:
    """Changes when the function's own code does, or that of what it wraps."""
    return values.digest("\n".join(_described(function)).encode("utf-8", "surrogatepass"))


def _described(function: Any, levels: int = MAX_LEVELS) -> Iterator[str]:
    if levels <= 0:
        yield "and more"
        return
    if isinstance(function, functools.partial):
        yield f"partial {_constant(function.args, levels)} {_constant(function.keywords, levels)}"
        yield from _described(function.func, levels - 1)
        return
    if not inspect.isroutine(function) and callable(function):
        yield f"object of {type(function).__qualname__}"
        yield from _described(type(function).__call__, levels - 1)
    else:
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            yield from _code(code)
            defaults, named = function.__defaults__, function.__kwdefaults__
            yield f"defaults {_constant(defaults, levels)} {_constant(named, levels)}"
        else:  # Written in another language: its name is all there is, but for what it wraps, as a cache does.
            yield f"built in {getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    wrapped = getattr(function, "__wrapped__", None)
    if callable(wrapped):
        yield from _described(wrapped, levels - 1)


def _code(code: CodeType) -> Iterator[str]:
    yield f"code {code.co_name} {code.co_flags} {code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}"
    yield code.co_code.hex()
    yield code.co_exceptiontable.hex()
    yield f"{code.co_names} {code.co_varnames} {code.co_freevars} {code.co_cellvars}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield _constant(constant)


def _constant(value: Any, levels: int = MAX_LEVELS) -> str:
    """A value in words that do not depend on where it lies in memory, or on the order of a set."""
    kind = type(value)
    if kind in _PLAIN:
        return f"{kind.__name__} {value!r}"
    name = kind.__name__ if kind in _HOLDING else f"a {kind.__module__}.{kind.__qualname__}"
    if levels <= 0:
        return name
    inner = functools.partial(_constant, levels=levels - 1)
    if isinstance(value, Enum):
        return f"{name} {value.name}"
    if isinstance(value, (tuple, list)):
        return f"{name} [{', '.join(map(inner, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"{name} [{', '.join(sorted(map(inner, value)))}]"
    if isinstance(value, dict):
        return f"{name} [{', '.join(f'{inner(k)}: {inner(v)}' for k, v in value.items())}]"
    for plain in (*_PLAIN, *_SAID):
        if isinstance(value, plain):
            return f"{name} {plain.__repr__(value)}"
    if isinstance(value, type):
        return f"class {value.__module__}.{value.__qualname__}"
    if is_dataclass(value):
        held = {field.name: getattr(value, field.name, None) for field in fields(value)}
        return f"{name} {inner(held)}"
    if isinstance(value, re.Pattern):  # which cuts what it says of itself
        return f"{name} {value.pattern!r} {value.flags}"
    if inspect.isroutine(value) or isinstance(value, functools.partial):
        return f"{name} [{', '.join(_described(value, levels - 1))}]"
    return name


_PLAIN: tuple[Any, ...] = (str, bytes, int, float, complex, bool, type(None), type(...))
_HOLDING = (tuple, list, set, frozenset, dict)
# What else a default usually is, and says of itself as it will after a restart.
_SAID: tuple[Any, ...] = (Decimal, Fraction, datetime, date, time, timedelta, timezone, UUID, PurePath, range, slice)
