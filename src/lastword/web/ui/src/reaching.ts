// Whether all of a card has been in sight. Its buttons stay at the bottom of the window, over whatever of it was not scrolled
// to yet: a yes to something that lies behind them would be a yes to something unseen. A card is shown from its
// beginning, so once the buttons have stood below its end, all of it has passed by. What is unfolded then has not.

import { useEffect, useState } from "preact/hooks";

// A part of a pixel that rounding leaves, and the room that the buttons take from what is above them.
const NEAR_PIXELS = 10;
// So much of what can be seen is gone past at once: the last lines stay, to read on from.
const PART_OF_PAGE = 0.6;

// `actions` may lie over what stands before it in the card. Whether its end was reached, and what begins it anew.
export function useReached(actions: { current: HTMLElement | null }, parts: unknown[]): [boolean, () => void] {
  const [reached, setReached] = useState(false);
  useEffect(() => {
    if (reached) return;
    const look = () => {
      const last = actions.current?.previousElementSibling;
      if (!actions.current || !last) return;
      const { bottom } = last.getBoundingClientRect();
      if (bottom <= actions.current.getBoundingClientRect().top + NEAR_PIXELS && bottom <= seenTo(actions.current)) setReached(true);
    };
    const sizes = new ResizeObserver(look);
    if (actions.current?.parentElement) sizes.observe(actions.current.parentElement);
    addEventListener("scroll", look, { passive: true, capture: true });
    addEventListener("resize", look);
    look();
    return () => {
      sizes.disconnect();
      removeEventListener("scroll", look, { capture: true });
      removeEventListener("resize", look);
    };
  }, [reached, ...parts]);
  return [reached, () => setReached(false)];
}

// Go to the first part that is folded, before it is opened: from there on everything is new. Otherwise what stands
// below would keep its place on the screen, and the new text would pass by above it.
export function goToFold(card: HTMLElement | null): void {
  card?.querySelector(".fold[aria-expanded=false]")?.scrollIntoView({ block: "center" });
}

// A page further, not to the end: whoever jumps has seen nothing of what lies between.
export function readOn(from: HTMLElement | null): void {
  const pane = from && paneOf(from);
  if (pane) pane.scrollBy({ top: pane.clientHeight * PART_OF_PAGE });
  else scrollBy({ top: innerHeight * PART_OF_PAGE });
}

function seenTo(element: HTMLElement): number {
  const pane = paneOf(element);
  return NEAR_PIXELS + Math.min(innerHeight, pane ? pane.getBoundingClientRect().bottom : innerHeight);
}

// What scrolls by itself around an element; null where it is the window.
function paneOf(element: HTMLElement): HTMLElement | null {
  for (let around = element.parentElement; around && around !== document.body; around = around.parentElement)
    if (around.scrollHeight > around.clientHeight && /auto|scroll/.test(getComputedStyle(around).overflowY)) return around;
  return null;
}
