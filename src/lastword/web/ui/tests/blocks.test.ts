// How a message is cut into blocks, and which addresses may be followed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksOf, safeTarget } from "../src/blocks.ts";

test("a block ends with an empty line, and what is indented after one still belongs to it", () => {
  const blocks = blocksOf("one\ntwo\n\nthree\n\n  four\n\nfive");
  assert.deepEqual(blocks, [
    { kind: "markdown", text: "one\ntwo" },
    { kind: "markdown", text: "three\n\n  four" },
    { kind: "markdown", text: "five" },
  ]);
});

test("code is a block of its own, whatever is in it, and open until its fence comes", () => {
  assert.deepEqual(blocksOf("see\n```Python x\na\n\n# b\n~~~\n````\nend"), [
    { kind: "markdown", text: "see" },
    { kind: "code", text: "a\n\n# b\n~~~", info: "Python x", isOpen: false },
    { kind: "markdown", text: "end" },
  ]);
  assert.deepEqual(blocksOf("~~~\nhalf"), [{ kind: "code", text: "half", info: "", isOpen: true }]);
});

test("what would take long to read is shown as it is", () => {
  // Each of these keeps a parser busy for seconds, or ends in its stack.
  for (const hostile of [
    ">".repeat(20_000),
    "- ".repeat(10_000),
    "*".repeat(20_000),
    "_a_".repeat(7_000),
    "[".repeat(20_000),
    "![".repeat(10_000),
    "| ".repeat(10_000),
    "`".repeat(20_000),
  ])
    assert.deepEqual(blocksOf(hostile), [{ kind: "plain", text: hostile.replace(/\n+$/, "") }]);
  assert.equal(blocksOf("word ".repeat(2_000))[0]?.kind, "plain");
});

test("nothing of a message is lost by cutting it", () => {
  const text = "# a\n\n\n- b\n\n  c\n```\nd\n```\n> e\n\n    f";
  const kept = blocksOf(text).map((block) => block.text);
  for (const letter of "abcdef") assert.ok(kept.join("").includes(letter), letter);
});

test("only an address that is what it looks like is followed", () => {
  assert.equal(safeTarget("https://example.org/a?b#c"), "https://example.org/a?b#c");
  assert.equal(safeTarget("mailto:a@example.org"), "mailto:a@example.org");
  for (const bad of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "file:///etc/passwd",
    "//example.org",
    "/page/lock",
    "#settings",
    "https://exa‹U+202E›mple.org",
    "https://bank.example@evil.example/",
    "https://",
    "http:/\\evil.example",
    "blob:https://example.org/1",
  ])
    assert.equal(safeTarget(bad), null, bad);
});
