// How far a card was seen. A twin that remembers every pixel by itself agrees, whatever somebody does with the window.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Reading } from "../src/reaching.ts";

const LONG = 3000;
const WINDOW = 500;

// Look at a card of this height through a window that begins there.
const look = (reading: Reading, from: number, end = LONG) => reading.see(from, from + WINDOW, end);

test("a card that fits was seen", () => {
  assert.equal(look(new Reading(), -100, 300), null);
});

test("a card that is longer is seen when the window has passed over all of it", () => {
  const reading = new Reading();
  for (let from = 0; from < LONG - WINDOW; from += WINDOW) assert.equal(look(reading, from), "below");
  assert.equal(look(reading, LONG - WINDOW), null);
});

test("whoever jumps to the end has not seen what lies between", () => {
  const reading = new Reading();
  look(reading, 0);
  assert.equal(look(reading, LONG - WINDOW), "above");
  assert.equal(look(reading, 0), "below");
  assert.equal(reading.seenTo, WINDOW);
});

test("a card that is shown from its middle on has to be seen from its beginning", () => {
  const reading = new Reading();
  assert.equal(look(reading, LONG - WINDOW), "above");
  for (let from = 0; from < LONG - WINDOW; from += WINDOW) look(reading, from);
  assert.equal(look(reading, LONG - WINDOW), null);
});

test("what opens has not been seen, and what came after it is seen again", () => {
  const reading = new Reading();
  assert.equal(look(reading, 0, 400), null);
  reading.goBackTo(200);
  assert.equal(look(reading, 0, LONG), "below");
  assert.equal(reading.hasSeen(WINDOW), true);
  assert.equal(reading.hasSeen(1000), false);
});

test("a card that got shorter was seen so much less far, since nobody knows where something went away", () => {
  const reading = new Reading();
  look(reading, 0);
  look(reading, WINDOW);
  assert.equal(look(reading, 800, LONG - 400), "above");
  assert.equal(reading.seenTo, 2 * WINDOW - 400);
  assert.equal(look(reading, 600, LONG - 400), "below");
});

test("what closes unseen takes what follows it out of sight", () => {
  const reading = new Reading();
  look(reading, 0);
  reading.goBackTo(100);
  assert.equal(look(reading, 200, 900), "above");
  assert.equal(look(reading, 100, 900), "below");
  assert.equal(look(reading, 400, 900), null);
});

test("a twin that remembers every pixel agrees", () => {
  let seed = 7;
  const random = (most: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % (most + 1);
  };
  for (let round = 0; round < 300; round++) {
    const reading = new Reading();
    // Steps of a hundred, so that no gap is as small as what counts as none.
    const end = 100 * (1 + random(30));
    const seen = new Set<number>();
    for (let step = 0; step < 30; step++) {
      const from = 100 * (random(34) - 4);
      const left = look(reading, from, end);
      const whole = () => Array.from({ length: end / 100 }, (_, place) => 100 * place).find((place) => !seen.has(place));
      const before = whole() ?? end;
      // Only what joins on to what was seen before counts.
      if (from <= before) for (let place = before; place < Math.min(from + WINDOW, end); place += 100) seen.add(place);
      assert.equal(left === null, whole() === undefined, `round ${round}, step ${step}`);
      assert.equal(reading.seenTo, whole() ?? end);
    }
  }
});
