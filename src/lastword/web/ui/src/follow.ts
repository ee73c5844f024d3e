// Following the conversation: a window at its end stays there, or goes to the card that waits. One that was scrolled up
// is left where it is.

const NEAR_PIXELS = 160;
// So far down, a card that waits still shows enough of itself.
const NEAR_TOP = 0.55;

let away = false;

function look(): void {
  requestAnimationFrame(() => {
    away = innerHeight + scrollY < document.documentElement.scrollHeight - NEAR_PIXELS;
  });
}

export function watchScrolling(): void {
  addEventListener("wheel", look, { passive: true });
  addEventListener("touchmove", look, { passive: true });
  addEventListener("keydown", (event) => {
    if (["PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown"].includes(event.key)) look();
  });
}

export function follow(): void {
  if (away || location.hash.length > "#chat".length) return;
  const card = document.querySelector(".card[data-call]") ?? document.querySelector(".question");
  // A card whose beginning can be seen is not moved: what was said before it is read first, and its buttons are in sight.
  if (card) {
    const { top } = card.getBoundingClientRect();
    if (top < 0 || top > innerHeight * NEAR_TOP) card.scrollIntoView({ block: "start" });
  } else scrollTo(0, document.documentElement.scrollHeight);
}
