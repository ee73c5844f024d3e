// Where rows stand: what was answered keeps its place, what is new comes last, and only tidying up moves anything.

import assert from "node:assert/strict";
import { test } from "node:test";
import { wordsFor } from "../src/attention.ts";
import { ANYTHING, arranged, blocksOf, fits, type Standing, standingAfter } from "../src/inbox.ts";
import type { InboxEntry } from "../src/wire.ts";

const EMPTY: Standing = { entries: new Map(), over: new Map(), missed: [] };

function entry(id: string, more: Partial<InboxEntry> = {}): InboxEntry {
  return {
    id,
    digest: `d${id}`,
    tool: "add_note",
    name: "Add note",
    glyph: "✎",
    color: null,
    effect: "reversible",
    effect_words: "Can be undone",
    sentence: "Adds a note.",
    summary: `page: ${id}`,
    session: "s",
    program: "clerk.py",
    origin: "",
    asked_at: Number(id),
    asker: "waits",
    alone: false,
    alike: "same",
    ...more,
  };
}

function standing(...entries: InboxEntry[]): Standing {
  return standingAfter(EMPTY, { put: entries, gone: [], missed: null });
}

test("a card that is over keeps its row, and one that is new comes last, however old it is", () => {
  const before = arranged([], standing(entry("3"), entry("1"), entry("2")), ANYTHING, 10);
  assert.deepEqual(
    before.map((row) => row.entry.id),
    ["1", "2", "3"],
  );
  const reply = { how: "denied" as const, by: "the page", reason: "", surface: "page" as const };
  const next = standingAfter(standing(entry("1"), entry("2"), entry("3")), {
    put: [entry("0")],
    gone: [{ id: "2", reply, end: null, at: 0 }],
    missed: null,
  });
  const after = arranged(before, next, ANYTHING, 10);
  assert.deepEqual(
    after.map((row) => [row.entry.id, row.isOver, row.isNew]),
    [
      ["1", false, false],
      ["2", true, false],
      ["3", false, false],
      ["0", false, true],
    ],
  );
  assert.equal(after[1]?.over?.reply, reply);
  assert.deepEqual(
    arranged([], next, ANYTHING, 10).map((row) => row.entry.id),
    ["0", "1", "3"],
  );
});

test("a card that is asked again waits again in its old place, as another question", () => {
  const before = arranged([], standing(entry("1"), entry("2")), ANYTHING, 10);
  const gone = standingAfter(standing(entry("1"), entry("2")), {
    put: [],
    gone: [{ id: "1", reply: null, end: null, at: 0 }],
    missed: null,
  });
  const over = arranged(before, gone, ANYTHING, 10);
  assert.equal(over[0]?.isOver, true);
  const again = arranged(over, standingAfter(gone, { put: [entry("1", { digest: "other" })], gone: [], missed: null }), ANYTHING, 10);
  assert.deepEqual([again[0]?.entry.digest, again[0]?.isOver, again.length], ["other", false, 2]);
});

test("a program that dies moves none of its rows until the list is made anew", () => {
  const before = arranged([], standing(entry("1"), entry("2")), ANYTHING, 10);
  const dead = standing(entry("1", { asker: "ended" }), entry("2"));
  assert.deepEqual(
    arranged(before, dead, ANYTHING, 10).map((row) => row.apart),
    ["", ""],
  );
  assert.deepEqual(
    arranged([], dead, ANYTHING, 10).map((row) => row.apart),
    ["ended", ""],
  );
});

test("those alike stand together where the first of them is, and three are no group", () => {
  const four = ["1", "3", "4", "5"].map((id) => entry(id));
  const rows = arranged([], standing(...four, entry("2", { alike: "else" })), ANYTHING, 10);
  assert.deepEqual(
    blocksOf(rows, true).map((block) => block.rows.map((row) => row.entry.id).join("")),
    ["1345", "2"],
  );
  assert.equal(blocksOf(rows, false).length, 5);
  assert.equal(blocksOf(rows.slice(0, 3), true).length, 3);
});

test("a filter takes program, tool, effect, age and every word", () => {
  const one = entry("100", { effect: null });
  const now = 100 + 30 * 60;
  assert.ok(fits(one, { ...ANYTHING, effect: "unknown", age: "newer60", words: "NOTE clerk", tool: "add_note" }, now));
  for (const wanted of [
    { effect: "reversible" as const },
    { age: "older60" as const },
    { age: "newer5" as const },
    { words: "note nothing" },
    { tool: "send" },
    { program: "mailer.py" },
  ])
    assert.ok(!fits(one, { ...ANYTHING, ...wanted }, now), JSON.stringify(wanted));
});

test("one announcement is enough for many cards", () => {
  assert.equal(wordsFor([entry("1")]), "Add note. Can be undone.");
  assert.match(wordsFor(Array.from({ length: 200 }, (_, n) => entry(String(n)))), /^(Add note\. Can be undone\. ){3}And 197 more\.$/);
});

test("what nobody answered in time keeps its row, and stands apart once the list is made anew", () => {
  const before = arranged([], standing(entry("1"), entry("2")), ANYTHING, 10);
  const missed = [{ entry: entry("1"), at: 9 }];
  const late = standingAfter(standing(entry("1"), entry("2")), { put: [], gone: [{ id: "1", reply: null, end: null, at: 0 }], missed });
  assert.deepEqual(
    arranged(before, late, ANYTHING, 10).map((row) => [row.entry.id, row.isOver, row.apart]),
    [
      ["1", true, ""],
      ["2", false, ""],
    ],
  );
  const anew = arranged([], late, ANYTHING, 10);
  assert.deepEqual(
    anew.map((row) => [row.entry.id, row.isOver, row.apart]),
    [
      ["2", false, ""],
      ["1", true, "missed"],
    ],
  );
  // It waits no longer, whatever else changes: nothing brings it back among those that do.
  assert.equal(arranged(anew, standingAfter(late, { put: [entry("3")], gone: [], missed: null }), ANYTHING, 10)[1]?.apart, "missed");
  assert.deepEqual(arranged([], late, { ...ANYTHING, words: "page: 2" }, 10).length, 1);
});
