// Following the conversation: whoever is at its end stays there, or is brought to the card that waits. Whoever has
// scrolled up to read is left alone.

const NEAR_PIXELS = 160;

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
  const card = document.querySelector(".card[data-call]");
  if (card) card.scrollIntoView({ block: "start" });
  else scrollTo(0, document.documentElement.scrollHeight);
}
