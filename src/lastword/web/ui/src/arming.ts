// When a press counts. A card that has just appeared, or that has just moved under the pointer, cannot be answered yet;
// nor can the click that only brought the window to the front, a key that is held down, or the second half of a double
// press. Whoever presses before that is busy with something else, so their press starts the wait anew. It holds for both
// answers alike.

import { useEffect, useRef, useState } from "preact/hooks";

export const ARM_MILLISECONDS = 700;
// After a press that was not meant for the card. Longer: people who click at nothing do it about once a second.
export const PRESSED_MILLISECONDS = 1200;
const FOCUS_MILLISECONDS = 400;

export type Press = { trusted: boolean; by: "key" | "pointer" | "other"; repeat: boolean };

// One card: since when it can be answered, and whether what is pressed now went down after that.
export class Arming {
  private since = Number.POSITIVE_INFINITY;
  private begunArmed = false;
  private heldEarly = false;

  disarm(): void {
    this.since = Number.POSITIVE_INFINITY;
  }

  arm(now: number): void {
    this.since = now;
  }

  isArmed(now: number): boolean {
    return now > this.since;
  }

  // A press begins when the button goes down: one that began before the card was armed is not finished on it.
  pointerDown(now: number): void {
    this.begunArmed = this.isArmed(now);
  }

  // Nor is a key: the space bar presses a button when it comes up.
  keyDown(now: number): void {
    if (!this.isArmed(now)) this.heldEarly = true;
  }

  keyUp(): void {
    this.heldEarly = false;
  }

  counts(press: Press, now: number): boolean {
    if (!press.trusted || !this.isArmed(now)) return false;
    if (press.by === "key") return !press.repeat;
    return press.by === "other" ? !this.heldEarly : this.begunArmed;
  }
}

// How long a card has to stand still from now on, when the page was restless until then.
export function waitToArm(restlessUntil: number, now: number): number {
  return Math.max(ARM_MILLISECONDS, restlessUntil - now);
}

function pressOf(event: Event): Press {
  if (event instanceof KeyboardEvent) return { trusted: event.isTrusted, by: "key", repeat: event.repeat };
  // A click without a pointer comes from the space bar or from a screen reader.
  const isPointer = event instanceof MouseEvent && event.detail !== 0;
  return { trusted: event.isTrusted, by: isPointer ? "pointer" : "other", repeat: false };
}

type Card = { arming: Arming; again: () => void };

// Whatever shifts the page under the pointer disarms every card: an answer, a new card, the window coming to front.
let restless = 0;
const cards = new Set<Card>();

function keepRestless(milliseconds: number): void {
  restless = Math.max(restless, performance.now() + milliseconds);
}

export function disarmAll(milliseconds = ARM_MILLISECONDS): void {
  keepRestless(milliseconds);
  for (const card of cards) card.again();
}

// A press, wherever on the page: also before the first card, because what it belongs to may go on.
function pressed(event: Event): void {
  if (!event.isTrusted) return;
  const now = performance.now();
  keepRestless(PRESSED_MILLISECONDS);
  for (const { arming, again } of cards) {
    if (event.type === "pointerdown") arming.pointerDown(now);
    if (event.type === "keydown") arming.keyDown(now);
    if (!arming.isArmed(now)) again();
  }
}

// The click that the space bar makes comes with its coming up, and right after this event.
function released(): void {
  setTimeout(() => {
    for (const { arming } of cards) arming.keyUp();
  });
}

export function watchPresses(): void {
  // A text can come without a key: pasted, dictated, chosen on the keyboard of a phone.
  for (const kind of ["pointerdown", "keydown", "paste", "beforeinput"]) addEventListener(kind, pressed, true);
  addEventListener("keyup", released, true);
  addEventListener("focus", () => disarmAll(FOCUS_MILLISECONDS));
  document.addEventListener("visibilitychange", () => disarmAll(FOCUS_MILLISECONDS));
}

// Where the buttons are, that a press could hit.
function places(): string {
  const buttons = [...document.querySelectorAll(".actions, .ways")];
  return buttons
    .map((each) => each.getBoundingClientRect())
    .map(({ left, top }) => `${Math.round(left)},${Math.round(top)}`)
    .join(";");
}

// A picture that arrives above a card, or a line of progress, pushes the buttons away while somebody aims at one of them.
export function watchPlaces(): void {
  let seen = "";
  const look = () => {
    seen = places();
  };
  // Whoever scrolls moves them on purpose.
  addEventListener("scroll", look, { passive: true, capture: true });
  new ResizeObserver(() => {
    const before = seen;
    look();
    if (seen !== before) disarmAll();
  }).observe(document.body);
}

// True once the card has stood still for a moment. `ready` is false while a part of it is still loading.
export function useArmed(digest: string, ready: boolean): { armed: boolean; counts: (event: Event) => boolean } {
  const [armed, setArmed] = useState(false);
  const arming = useRef(new Arming()).current;
  useEffect(() => {
    let timer = 0;
    const again = () => {
      clearTimeout(timer);
      setArmed(false);
      arming.disarm();
      if (!ready) return;
      timer = window.setTimeout(
        () => {
          arming.arm(performance.now());
          setArmed(true);
        },
        waitToArm(restless, performance.now()),
      );
    };
    const card = { arming, again };
    again();
    cards.add(card);
    return () => {
      clearTimeout(timer);
      cards.delete(card);
    };
  }, [digest, ready]);
  return { armed, counts: (event) => arming.counts(pressOf(event), performance.now()) };
}
