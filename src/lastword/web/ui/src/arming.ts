// When a press counts. A card that has just appeared, or that has just moved under the pointer, cannot be answered yet;
// nor can the click that only brought the window to the front, a key that is held down, or the second half of a double
// press. It holds for both answers alike.

import { useEffect, useRef, useState } from "preact/hooks";

export const ARM_MILLISECONDS = 700;
const FOCUS_MILLISECONDS = 400;

export type Press = { trusted: boolean; by: "key" | "pointer" | "other"; repeat: boolean };

// One card: since when it can be answered, and whether the pointer went down after that.
export class Arming {
  private since = Number.POSITIVE_INFINITY;
  private begunArmed = false;

  disarm(): void {
    this.since = Number.POSITIVE_INFINITY;
  }

  arm(now: number): void {
    this.since = now;
  }

  // A press begins when the button goes down: one that began before the card was armed is not finished on it.
  pointerDown(now: number): void {
    this.begunArmed = now > this.since;
  }

  counts(press: Press, now: number): boolean {
    if (!press.trusted || now <= this.since) return false;
    if (press.by === "key") return !press.repeat;
    return press.by === "other" || this.begunArmed;
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

// Whatever shifts the page under the pointer disarms every card: an answer, a new card, the window coming to front.
let restless = 0;
const cards = new Set<() => void>();

export function disarmAll(milliseconds = ARM_MILLISECONDS): void {
  restless = Math.max(restless, performance.now() + milliseconds);
  for (const again of cards) again();
}

export function watchFocus(): void {
  addEventListener("focus", () => disarmAll(FOCUS_MILLISECONDS));
  document.addEventListener("visibilitychange", () => disarmAll(FOCUS_MILLISECONDS));
}

// True once the card has stood still for a moment. `ready` is false while a part of it is still loading.
export function useArmed(digest: string, ready: boolean): { armed: boolean; counts: (event: Event) => boolean } {
  const [armed, setArmed] = useState(false);
  const arming = useRef(new Arming()).current;
  useEffect(() => {
    let timer = 0;
    const arm = () => {
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
    arm();
    cards.add(arm);
    return () => {
      clearTimeout(timer);
      cards.delete(arm);
    };
  }, [digest, ready]);
  useEffect(() => {
    const down = () => arming.pointerDown(performance.now());
    addEventListener("pointerdown", down, true);
    return () => removeEventListener("pointerdown", down, true);
  }, []);
  return { armed, counts: (event) => arming.counts(pressOf(event), performance.now()) };
}
