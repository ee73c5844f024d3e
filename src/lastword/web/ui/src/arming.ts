// When a press counts. A card that has just appeared, or that has just moved under the pointer, cannot be answered yet;
// nor can the click that only brought the window to the front, a key that is held down, or the second half of a double
// press. It holds for both answers alike.

import { useEffect, useRef, useState } from "preact/hooks";

export const ARM_MILLISECONDS = 700;
const FOCUS_MILLISECONDS = 400;

// Whatever shifts the page under somebody's hand disarms every card: an answer, a new card, the window coming to front.
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
  const since = useRef(Infinity);
  const pressedArmed = useRef(false);
  useEffect(() => {
    let timer = 0;
    const arm = () => {
      clearTimeout(timer);
      setArmed(false);
      since.current = Infinity;
      if (!ready) return;
      const wait = Math.max(ARM_MILLISECONDS, restless - performance.now());
      timer = window.setTimeout(() => {
        since.current = performance.now();
        setArmed(true);
      }, wait);
    };
    arm();
    cards.add(arm);
    return () => {
      clearTimeout(timer);
      cards.delete(arm);
    };
  }, [digest, ready]);
  useEffect(() => {
    // A press begins when the button goes down: one that began before the card was armed is not finished on it.
    const down = () => {
      pressedArmed.current = performance.now() > since.current;
    };
    addEventListener("pointerdown", down, true);
    return () => removeEventListener("pointerdown", down, true);
  }, []);
  const counts = (event: Event) => {
    if (!event.isTrusted || performance.now() <= since.current) return false;
    if (event instanceof KeyboardEvent) return !event.repeat;
    // A click without a pointer comes from the space bar or from a screen reader.
    return !(event instanceof MouseEvent) || event.detail === 0 || pressedArmed.current;
  };
  return { armed, counts };
}
