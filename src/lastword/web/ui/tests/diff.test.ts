// Which parts of a line are named as new. Colours and marks come from two sides, and neither may lose a character.

import assert from "node:assert/strict";
import { test } from "node:test";
import { marked } from "../src/pieces.ts";

test("a mark that begins inside a coloured piece cuts it and keeps its colour", () => {
  const found = marked(
    [
      ["return ", "tok-keyword"],
      ["total", ""],
    ],
    [[3, 9]],
  );
  assert.deepEqual(found, [
    ["ret", "tok-keyword"],
    ["urn ", "tok-keyword new"],
    ["to", "new"],
    ["tal", ""],
  ]);
});

test("whatever is marked, the line stays the same", () => {
  const pieces: [string, string][] = [
    ["ab", "x"],
    ["", ""],
    ["cde", ""],
    ["f", "y"],
  ];
  for (let from = 0; from <= 6; from++)
    for (let to = from; to <= 6; to++) {
      const found = marked(pieces, from < to ? [[from, to]] : []);
      assert.equal(found.map(([text]) => text).join(""), "abcdef");
      const isNew = found.filter(([, kind]) => kind.endsWith("new")).map(([text]) => text);
      assert.equal(isNew.join(""), "abcdef".slice(from, to));
    }
});
