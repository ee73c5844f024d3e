"""Random programs that mostly make sense: half of them and more should run to their end."""

import json
from random import Random

KINDS = ("number", "string", "boolean", "list", "object")
WORDS = ("a", "b", "c", "total", "item", "x1", "_y", "END_", "printed")
JSONS = ("[1, 2.5, null]", '{"a": {"b": [true]}}', " 7 ", '"x"', "{a: 1}", "")
TEXTS = ("", "a", "two words", "{a}", "{{x}} {b}", "é 你 😀", 'quote " and \\', "12", "-3.5", "line\nbreak", "//no")


class Writer:
    """Writes one program. What it knows of variables is what a reader would, so most names have the kind it expects."""

    def __init__(self, random: Random, size: int) -> None:
        self.random = random
        self.left = size
        self.scopes: list[dict[str, str]] = [{"given": "list", "record": "object"}]

    def program(self) -> str:
        return self.block(0)

    def block(self, depth: int) -> str:
        lines = []
        for _ in range(self.random.randint(1, 5)):
            if self.left <= 0:
                break
            self.left -= 1
            lines.append("  " * depth + self.statement(depth))
        return self.random.choice(["\n", "\n", "\n", " ", "\n// why\n"]).join(lines)

    def statement(self, depth: int) -> str:
        roll = self.random.random()
        if roll < 0.32:
            kind = self.random.choice(KINDS)
            name = self.random.choice(WORDS)
            text = f"LET {name} = {self.value(kind, 3)}"
            self.scopes[-1][name] = kind
            return text
        if roll < 0.44 and (names := [name for scope in self.scopes for name in scope]):
            name = self.random.choice(names)
            return f"SET {name} = {self.value(self.kind_of(name), 3)}"
        if roll < 0.58 and depth < 3:
            condition = self.value("boolean", 2)
            # What a branch defines may not exist afterwards, so it is mostly forgotten.
            before = dict(self.scopes[-1])
            forget = self.random.random() < 0.8
            text = f"IF {condition} THEN\n{self.block(depth + 1)}\n"
            if forget:
                self.scopes[-1] = dict(before)
            for _ in range(self.random.choice([0, 0, 0, 1, 2])):
                text += f"ELSEIF {self.value('boolean', 2)} THEN\n{self.block(depth + 1)}\n"
                if forget:
                    self.scopes[-1] = dict(before)
            if self.random.random() < 0.5:
                text += f"ELSE\n{self.block(depth + 1)}\n"
                if forget:
                    self.scopes[-1] = before
            return text + "  " * depth + "END"
        if roll < 0.72 and depth < 3:
            name = self.random.choice(WORDS)
            items = self.random.choice([self.list_of_numbers(1), f"RANGE({self.random.randint(0, 4)})", "given"])
            self.scopes.append({name: "number"})
            text = f"FOR {name} IN {items} DO\n{self.block(depth + 1)}\n" + "  " * depth + "END"
            self.scopes.pop()
            return text
        if roll < 0.75:
            # In the middle of a block as well: what stands behind it is never reached.
            end = f"STOP {self.value(self.random.choice(KINDS), 2)}" if self.random.random() < 0.2 else "BREAK"
            if end == "BREAK" and len(self.scopes) == 1:
                end = f"PRINT({self.value('number', 1)})"
            elif self.random.random() < 0.7:
                end = f"IF {self.value('boolean', 1)} THEN {end} END"
            return end
        if roll < 0.9:
            return f"PRINT({self.value(self.random.choice(KINDS), 3)})"
        return self.call(2)

    def kind_of(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.random.choice(KINDS)

    def value(self, kind: str, depth: int) -> str:
        """An expression of this kind; now and then, on purpose, of another."""
        random = self.random
        if random.random() < 0.012:
            kind = random.choice(KINDS)
        names = [name for scope in self.scopes for name in scope if self.kind_of(name) == kind]
        if depth <= 0 or random.random() < 0.3:
            if names and random.random() < 0.6:
                return random.choice(names)
            return self.literal(kind)
        return getattr(self, f"_{kind}")(depth - 1)

    def literal(self, kind: str) -> str:
        random = self.random
        match kind:
            case "number":
                return random.choice(["0", "1", "2", "3", "7", "10", "0.5", "2.25", "1000000", "9007199254740993"])
            case "string":
                return json.dumps(random.choice(TEXTS), ensure_ascii=random.random() < 0.5)
            case "boolean":
                return random.choice(["true", "false"])
            case "list":
                return random.choice(["[]", "[1, 2, 3]", '["b", "a"]', "[[1], {a: 2}]", "[3, 1, 2,]"])
            case _:
                return random.choice(["{}", "{a: 1}", '{a: 1, b: "x"}', '{"two words": null, END: 2}'])

    def list_of_numbers(self, depth: int) -> str:
        return "[" + ", ".join(self.value("number", depth) for _ in range(self.random.randint(0, 4))) + "]"

    def _number(self, depth: int) -> str:
        a, b, c = (self.value("number", depth) for _ in range(3))
        return self.random.choice([
            f"{a} + {b}", f"{a} - {b} - {c}", f"{a} * {b}", f"({a} + {b}) * {c}", f"{a} / 4", f"{a} / ({b} + 0.1)",
            f"{a} % 3", f"-{a}", f"+ -{a}", f"ROUND({a} / 3)", f"ROUND({a} / 7, 2)",
            f"SUM({self.list_of_numbers(depth)})", f"MAX({a}, {b})", f"MIN([{a}, {b}, {c}])",
            f"LENGTH({self.value('string', depth)})", f"{self.value('list', depth)}.length", "[5, 6, 7][1]",
            f"[{a}, {b}][1.0]", f"{{k: {a}}}.k", "record.n",
            'record["n"]', 'NUMBER("12.5")', f"NUMBER({a})", "record.deep.list[0]", f"CALL add {{ a: {a}, b: {b} }}",
            f'CALC {{ formula: "(x + 2) * y % 5", vars: {{x: {a}, y: {b}}} }}', "given[0]",
            f"{a} + {b} + {c} + {a} + {b} + {c} + {a} + {b}", f"NOW() - {a}",
            f'GET({self.value("object", depth)}, "a", {b}) * 1' if self.random.random() < 0.2 else f"GET(null, 0, {a})",
            f"GET([{a}, {b}], {self.random.randint(-1, 2)}, {c})", f"TRY CALL add {{ a: {a}, b: {b} }}.value",
        ])  # fmt: skip

    def _string(self, depth: int) -> str:
        a, b = self.value("string", depth), self.value("number", depth)
        return self.random.choice([
            f'FORMAT("{{x}}: {{y}} {{{{z}}}}", {{x: {a}, y: {b}}})', f"STRING({b})",
            f"STRING({self.value('list', depth)})", f'JOIN({self.value("list", depth)}, "-")', "record.name",
            f'SPLIT("a,b,c", ",")[{self.random.randint(0, 2)}]',
            f"FORMAT({a}, {{a: 1, b: [2, {b}]}})", "KEYS(record)[0]", f"CALL echo {{ s: {a} }}.s",
            f"UPPER({a})", f"LOWER({a})", f"TRIM({a})", f'REPLACE({a}, "a", {self.value("string", depth)})',
            f"SLICE({a}, {self.random.randint(0, 2)})", f"SLICE({a}, 1, {self.random.randint(0, 9)})",
            "TRY CALL fail {}.message", f"TRY CALL add {{ a: {b}, b: {a} }}.kind",
        ])  # fmt: skip

    def _boolean(self, depth: int) -> str:
        a, b = self.value("number", depth), self.value("number", depth)
        p, q = self.value("boolean", depth), self.value("boolean", depth)
        kind = self.random.choice(KINDS)
        return self.random.choice([
            f"{a} < {b}", f"{a} >= {b}", f"{a} == {b}", f"{self.value(kind, depth)} != {self.value(kind, depth)}",
            f"{p} AND {q}", f"{p} OR {q}", f"NOT {p}", f"NOT ({p} AND {q}) OR {p}", f"{p} AND {q} AND {p} AND {q}",
            f"{a} == {self.value(self.random.choice(KINDS), depth)}", f"CONTAINS({self.value('list', depth)}, {a})",
            f"CONTAINS({self.value('string', depth)}, {self.value('string', depth)})", 'CONTAINS(record, "n")',
            f"{p} AND CALL echo {{ v: {q} }}.v", f"({p}) == ({q})",
            f"TRY CALL echo {{ v: {a} }}.success", "TRY CALL fail {}.success", f"{p} OR TRY CALL fail {{}}.success",
        ])  # fmt: skip

    def _list(self, depth: int) -> str:
        a, b = self.value("number", depth), self.value(self.random.choice(KINDS), depth)
        return self.random.choice([
            f"[{a}, {b}]", f"APPEND({self.value('list', depth)}, {b})", f"RANGE({self.random.randint(0, 5)})",
            f"RANGE({self.random.randint(0, 5)}, 8, 2)", f"SORT({self.list_of_numbers(depth)})", 'SPLIT("x y z", " ")',
            f"KEYS({self.value('object', depth)})", "record.deep.list", f"[{b}, {b}, {a},]",
            f"CALL list {{ n: {self.random.randint(0, 3)} }}",
            f'SORT([{{k: {a}}}, {{k: 2}}], "k")', f"[CALL echo {{ v: {a} }}, {b}]",
            f"SLICE({self.value('list', depth)}, {self.random.randint(0, 2)}, {self.random.randint(0, 4)})",
        ])  # fmt: skip

    def _object(self, depth: int) -> str:
        a, b = self.value("number", depth), self.value(self.random.choice(KINDS), depth)
        return self.random.choice([
            f"{{a: {a}, b: {b}}}", f'{{"k 1": {b}, THEN: {a}}}', "record.deep", f"CALL echo {{ a: {a}, b: {b} }}",
            f"[{{v: {b}}}][0]", f"{{inner: {self.value('object', depth)}}}",
            f'PUT({self.value("object", depth)}, {self.value("string", depth)}, {b})',
            f"TRY CALL echo {{ a: {a}, b: {b} }}", "TRY CALL fail {}",
            f"{{v: PARSE_JSON({json.dumps(self.random.choice(JSONS))})}}" if self.random.random() < 0.5 else "{}",
        ])  # fmt: skip

    def call(self, depth: int) -> str:
        a, b = self.value("number", depth), self.value(self.random.choice(KINDS), depth)
        return self.random.choice([
            f"CALL echo {{ a: {a}, b: {b} }}", f"CALL add {{ a: {a}, b: CALL add {{ a: 1, b: {a} }} }}",
            f"LET r = CALL echo {{ v: {b}, END: 1 }}", "CALL nothing {}",
            b if b[0] not in "([" and not b.startswith(("CALL", "TRY")) else "1",
            f"CALL echo {{ a: {a} }}\n[{b}]", f"CALL nothing {{}} -{a}", f"CALL nothing {{}}\n({b})",
            f"TRY CALL echo {{ a: {a} }}\n[{b}]", "TRY CALL fail {}", "TRY CALL nothing {} -1",
            "TRY CALL missing {}" if self.random.random() < 0.05 else "LET r = TRY CALL fail {}",
            "CALL fail {}" if self.random.random() < 0.1 else "CALL nothing {}",
            "CALL missing {}" if self.random.random() < 0.05 else "PRINT(CALL list { n: 2 })",
        ])  # fmt: skip
