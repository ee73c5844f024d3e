// What every event makes of the picture, and which calls wait in it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { after, EMPTY, type PageEvent, type Picture, scriptOf, waitingIn } from "../src/picture.ts";
import type { CallItem, CardView, Item, MessageItem, PageState, ScriptItem, Settings } from "../src/wire.ts";

const SETTINGS: Settings = {
  model: "a model",
  rehearsal: false,
  preset: "default",
  presets: [],
  tools: [],
  can_choose_model: false,
  has_servers: false,
  next_model: "",
};

const CARD: CardView = {
  digest: "d",
  sentence: "",
  effect: null,
  effect_words: "",
  origin: "",
  again: "",
  edited: false,
  title: "",
  message: "",
  message_fold: null,
  why_asked: "",
  why_no_grant: "",
  preview_heading: "",
  primary: "Allow",
  secondary: "Deny",
  second: null,
  offers_rest: false,
  editable: false,
  word: null,
  folded: [],
  must_open: [],
  arguments: [],
  left_out: [],
  previews: [],
};

function call(id: string, more: Partial<CallItem> = {}): CallItem {
  return {
    kind: "call",
    id,
    tool: "t",
    name: "T",
    glyph: "◆",
    color: null,
    origin: "",
    run: null,
    line: null,
    session: null,
    status: "waiting",
    arguments: [],
    card: CARD,
    question: null,
    reply: null,
    reports: [],
    reported_so_far: 0,
    stopping: false,
    end: null,
    content: [],
    changed: [],
    undone_by: null,
    undone_on: null,
    times_asked: 1,
    asked_at: 1,
    answered_at: null,
    started_at: null,
    ended_at: null,
    ...more,
  };
}

function message(id: string, text: string): MessageItem {
  const said = { used: "", tokens: null, reasoning: "", turn: null, raw: null };
  return { kind: "message", id, by: "assistant", text, at: 1, open: true, window: "", problem: false, ...said };
}

function script(id: string): ScriptItem {
  return { kind: "run", id, name: null, text: "", status: "running", lines: [], printed: 0, error: "", at: 1 };
}

function state(...items: Item[]): PageEvent {
  const data: PageState = {
    session: "s",
    items,
    has_earlier: false,
    busy: true,
    settings: SETTINGS,
    inbox: [],
    missed: [],
    token: "t",
    window: "w",
  };
  return { kind: "state", data };
}

function drawn(...events: PageEvent[]): Picture {
  return events.reduce(after, EMPTY);
}

test("a state replaces everything that was there", () => {
  const picture = drawn(state(call("a"), call("b")), state(call("c")));
  assert.deepEqual([...picture.items.keys()], ["c"]);
  assert.equal(picture.link, "live");
  assert.equal(picture.session, "s");
  assert.equal(picture.busy, true);
  assert.equal(picture.settings, SETTINGS);
});

test("an item that is known keeps its place, and a new one comes last", () => {
  const picture = drawn(
    state(call("a"), call("b")),
    { kind: "item", data: call("a", { status: "running" }) },
    { kind: "item", data: call("c") },
  );
  assert.deepEqual([...picture.items.keys()], ["a", "b", "c"]);
  assert.equal((picture.items.get("a") as CallItem).status, "running");
});

test("an item that is gone is gone, and one that never was is no trouble", () => {
  const picture = drawn(state(call("a")), { kind: "gone", data: { id: "a" } }, { kind: "gone", data: { id: "x" } });
  assert.equal(picture.items.size, 0);
});

test("a piece keeps so many units of sixteen bits and goes behind them", () => {
  // The server counts as browsers do: an emoji has two.
  const picture = drawn(state(message("m", "a😀b")), { kind: "piece", data: { id: "m", keep: 3, text: "c" } });
  assert.equal((picture.items.get("m") as MessageItem).text, "a😀c");
});

test("a piece of something else than a message changes nothing", () => {
  const picture = drawn(state(call("a")), { kind: "piece", data: { id: "a", keep: 0, text: "c" } });
  assert.deepEqual(picture.items.get("a"), call("a"));
  assert.equal(drawn(state(), { kind: "piece", data: { id: "x", keep: 0, text: "c" } }).items.size, 0);
});

test("what is really sent adds up to what is there", () => {
  // Written by the server's own tests, from the server's own events.
  const vectors: { events: PageEvent[]; items: Item[] }[] = JSON.parse(readFileSync(new URL("pictures.json", import.meta.url), "utf8"));
  assert.ok(vectors.length > 3);
  for (const { events, items } of vectors) assert.deepEqual([...drawn(...events).items.values()], items);
});

test("a delta changes some fields, and what was cut out of and put into a list", () => {
  const picture = drawn(state({ ...script("s"), lines: ["a", "b", "c"] }), {
    kind: "delta",
    data: {
      id: "s",
      fields: { status: "done", printed: 4 },
      splices: [
        { field: "lines", at: 0, cut: 1, put: [] },
        { field: "lines", at: 2, cut: 0, put: ["d"] },
      ],
    },
  });
  assert.deepEqual(picture.items.get("s"), { ...script("s"), lines: ["b", "c", "d"], status: "done", printed: 4 });
});

test("a delta of an item that is not there changes nothing", () => {
  const picture = drawn(state(), { kind: "delta", data: { id: "x", fields: { status: "done" }, splices: [] } });
  assert.equal(picture.items.size, 0);
});

test("busy and settings are taken as they are told", () => {
  const other = { ...SETTINGS, preset: "trusting" };
  const picture = drawn(state(), { kind: "busy", data: { busy: false } }, { kind: "settings", data: other });
  assert.equal(picture.busy, false);
  assert.equal(picture.settings, other);
});

test("an event leaves the picture before it as it was", () => {
  // Components compare by identity what they have drawn.
  const before = drawn(state(call("a"), message("m", "text")));
  const items = [...before.items.entries()];
  for (const event of [
    { kind: "item", data: call("a", { status: "ended" }) },
    { kind: "gone", data: { id: "a" } },
    { kind: "delta", data: { id: "a", fields: { status: "ended" }, splices: [{ field: "changed", at: 0, cut: 0, put: ["f"] }] } },
    { kind: "piece", data: { id: "m", keep: 0, text: "x" } },
  ] satisfies PageEvent[]) {
    const next = after(before, event);
    assert.notEqual(next.items, before.items);
    assert.equal(next.changes, before.changes + 1);
    assert.deepEqual([...before.items.entries()], items);
  }
});

test("only a call that waits and has a card is counted", () => {
  const items: Item[] = [
    call("waits"),
    call("answered", { card: null }),
    call("runs", { status: "running" }),
    message("m", ""),
    script("s"),
  ];
  assert.deepEqual(
    waitingIn(items).map((found) => found.id),
    ["waits"],
  );
});

test("the script of a call is the one that it names", () => {
  const { items } = drawn(state(script("s"), message("m", "")));
  assert.equal(scriptOf(call("a", { run: "s" }), items)?.id, "s");
  assert.equal(scriptOf(call("a", { run: null }), items), undefined);
  assert.equal(scriptOf(call("a", { run: "gone" }), items), undefined);
  assert.equal(scriptOf(call("a", { run: "m" }), items), undefined);
});
