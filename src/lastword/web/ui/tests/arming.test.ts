// When a press counts, and above all when it does not.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ARM_MILLISECONDS, Arming, type Press, waitToArm } from "../src/arming.ts";

const KEY: Press = { trusted: true, by: "key", repeat: false };
const CLICK: Press = { trusted: true, by: "pointer", repeat: false };
const SPACE: Press = { trusted: true, by: "other", repeat: false };

test("nothing counts on a card that was never armed", () => {
  const card = new Arming();
  card.pointerDown(1000);
  for (const press of [KEY, CLICK, SPACE]) assert.equal(card.counts(press, 1e9), false);
});

test("nothing counts at the very moment of arming, and everything right after it", () => {
  const card = new Arming();
  card.arm(1000);
  for (const press of [KEY, SPACE]) {
    assert.equal(card.counts(press, 1000), false);
    assert.equal(card.counts(press, 1001), true);
  }
});

test("a click counts only when its button went down on an armed card", () => {
  const card = new Arming();
  card.pointerDown(900);
  card.arm(1000);
  assert.equal(card.counts(CLICK, 1100), false, "the press began before the card could be read");
  card.pointerDown(1200);
  assert.equal(card.counts(CLICK, 1300), true);
});

test("a card that is disarmed takes no press that had begun before", () => {
  const card = new Arming();
  card.arm(1000);
  card.pointerDown(1100);
  card.disarm();
  for (const press of [KEY, CLICK, SPACE]) assert.equal(card.counts(press, 1200), false);
  card.pointerDown(1250);
  card.arm(1300);
  assert.equal(card.counts(CLICK, 1400), false, "the press began while it was disarmed");
});

test("a key that is held down answers nothing", () => {
  const card = new Arming();
  card.arm(1000);
  assert.equal(card.counts({ ...KEY, repeat: true }, 2000), false);
});

test("a key that went down too early presses nothing when it comes up", () => {
  const card = new Arming();
  card.keyDown(900);
  card.arm(1000);
  assert.equal(card.counts(SPACE, 1100), false, "the space bar presses when it comes up");
  card.keyUp();
  assert.equal(card.counts(SPACE, 1200), true, "a screen reader presses without any key");
  card.keyDown(1300);
  assert.equal(card.counts(SPACE, 1400), true);
});

test("an event that no hand made answers nothing", () => {
  const card = new Arming();
  card.arm(1000);
  card.pointerDown(1100);
  for (const press of [KEY, CLICK, SPACE]) assert.equal(card.counts({ ...press, trusted: false }, 2000), false);
});

test("a card waits until the page has been still, and never less than its own time", () => {
  assert.equal(waitToArm(0, 5000), ARM_MILLISECONDS);
  assert.equal(waitToArm(5000 + 100, 5000), ARM_MILLISECONDS);
  assert.equal(waitToArm(5000 + 2 * ARM_MILLISECONDS, 5000), 2 * ARM_MILLISECONDS);
});
