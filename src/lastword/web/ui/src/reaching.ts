// Whether all of a card has been in sight. Its buttons stay at the bottom of the window, over whatever of it was not scrolled
// to yet: a yes to something that lies behind them would be a yes to something unseen. What counts is what the window
// has passed over, from the beginning on and without a gap: whoever jumps to the end has not seen what lies between.

import { useEffect, useRef, useState } from "preact/hooks";

type Place = { current: HTMLElement | null };
// What was not seen lies further down, or was jumped over; null once all was seen.
export type Left = "below" | "above" | null;

// A part of a pixel that rounding leaves, and the room that the buttons take from what is above them.
const NEAR_PIXELS = 10;
// So much of what can be seen is gone past at once: the last lines stay, to read on from.
const PART_OF_PAGE = 0.6;

// How far a card was seen from its beginning on, in pixels from its top.
export class Reading {
  private to = 0;
  private end = 0;

  // The window shows this much of a card that ends there.
  see(from: number, to: number, end: number): Left {
    // Somewhere something went away: nobody knows where, so it counts as a part that was seen.
    if (end < this.end) this.to = Math.max(0, this.to - (this.end - end));
    this.end = end;
    if (from <= this.to + NEAR_PIXELS) this.to = Math.max(this.to, Math.min(to, end));
    if (this.to >= end - NEAR_PIXELS) return null;
    return from > this.to + NEAR_PIXELS ? "above" : "below";
  }

  hasSeen(place: number): boolean {
    return this.to >= place - NEAR_PIXELS;
  }

  // Here something opens, closes unseen or takes another form: what follows was not seen, however tall the card is then.
  goBackTo(place: number): void {
    this.to = Math.max(0, Math.min(this.to, place));
    this.end = 0;
  }

  get seenTo(): number {
    return this.to;
  }
}

export type Reached = {
  left: Left;
  // A fold is turned here. Whether what it closes was seen to its end.
  turned: (fold: HTMLElement, open: boolean) => boolean;
  // A part takes another form, which nobody has seen. Without one it is the whole card.
  reshaped: (part: Element | null) => void;
  readOn: () => void;
};

// `actions` may lie over what stands before it in the card.
export function useReached(card: Place, actions: Place, parts: unknown[]): Reached {
  const [left, setLeft] = useState<Left>("below");
  const reading = useRef(new Reading()).current;
  const look = () => {
    const last = actions.current?.previousElementSibling;
    // A part that is still being drawn is short, and has not been seen.
    if (!card.current?.offsetHeight || !actions.current || !last || card.current.querySelector("[aria-busy=true]")) return;
    const { top } = card.current.getBoundingClientRect();
    const [from, to] = inSight(card.current);
    const hidden = actions.current.getBoundingClientRect().top + NEAR_PIXELS;
    setLeft(reading.see(from - top, Math.min(to, hidden) - top, last.getBoundingClientRect().bottom - top));
  };
  useEffect(() => {
    if (left === null) return;
    const sizes = new ResizeObserver(look);
    if (card.current) sizes.observe(card.current);
    addEventListener("scroll", look, { passive: true, capture: true });
    addEventListener("resize", look);
    look();
    return () => {
      sizes.disconnect();
      removeEventListener("scroll", look, { capture: true });
      removeEventListener("resize", look);
    };
  }, [left, ...parts]);

  const placeOf = (element: Element) => element.getBoundingClientRect().top - (card.current?.getBoundingClientRect().top ?? 0);
  return {
    left,
    turned: (fold, open) => {
      const isSeen = left === null || reading.hasSeen(placeOf(fold));
      if (open) {
        reading.goBackTo(placeOf(fold));
        setLeft("below");
      } else if (!isSeen) reading.goBackTo(placeOf(fold.closest("figure") ?? fold.parentElement ?? fold));
      return isSeen;
    },
    reshaped: (part) => {
      reading.goBackTo(part ? placeOf(part) : 0);
      setLeft("below");
    },
    // What was seen last stays in sight, and whoever went too far comes back to it.
    readOn: () => {
      if (!card.current) return;
      const [from, to] = inSight(card.current);
      const seenTo = card.current.getBoundingClientRect().top + reading.seenTo;
      (paneOf(card.current) ?? window).scrollBy({ top: seenTo - from - (to - from) * (1 - PART_OF_PAGE) });
      // Where nothing can be scrolled, no event says so.
      look();
    },
  };
}

// Go to the first part that is folded, before it is opened: from there on everything is new. Otherwise what stands
// below would keep its place on the screen, and the new text would pass by above it.
export function goToFold(card: HTMLElement | null): HTMLElement | null {
  const fold = card?.querySelector<HTMLElement>(".fold[aria-expanded=false]") ?? null;
  fold?.scrollIntoView({ block: "center" });
  return fold;
}

// From where to where on the screen something can be seen: not under the bar at the top, nor outside of what scrolls.
function inSight(element: HTMLElement): [number, number] {
  const pane = paneOf(element)?.getBoundingClientRect();
  const bar = document.querySelector(".bar")?.getBoundingClientRect().bottom ?? 0;
  return [Math.max(0, bar, pane?.top ?? 0), NEAR_PIXELS + Math.min(innerHeight, pane?.bottom ?? innerHeight)];
}

// What scrolls by itself around an element; null where it is the window.
function paneOf(element: HTMLElement): HTMLElement | null {
  for (let around = element.parentElement; around && around !== document.body; around = around.parentElement)
    if (around.scrollHeight > around.clientHeight && /auto|scroll/.test(getComputedStyle(around).overflowY)) return around;
  return null;
}
