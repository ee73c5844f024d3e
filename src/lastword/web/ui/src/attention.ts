// Being noticed: the count in the title, one announcement for a screen reader, a notification when the window is not in
// front. However many cards come at once, it is one announcement.

import { useEffect, useRef, useState } from "preact/hooks";
import type { AskingCall } from "./picture.ts";
import type { InboxEntry } from "./wire.ts";

// More names than these are not listened to.
const MAX_NAMED = 3;

export function wordsFor(fresh: readonly InboxEntry[], asking: readonly AskingCall[] = []): string {
  const all = [
    ...fresh.map((entry) => `${entry.name}. ${entry.effect_words}.`),
    ...asking.map((call) => `${call.name} wants to know something.`),
  ];
  const named = all.slice(0, MAX_NAMED);
  const more = all.length - named.length;
  return [...named, ...(more > 0 ? [`And ${more} more.`] : [])].join(" ");
}

export function useAttention(waiting: readonly InboxEntry[], asking: readonly AskingCall[]): string {
  const told = useRef(new Set<string>());
  const [words, setWords] = useState("");
  useEffect(() => {
    const count = waiting.length + asking.length;
    document.title = `${count ? `(${count}) ` : ""}lastword`;
    const cards = waiting.filter((entry) => !told.current.has(entry.digest));
    const questions = asking.filter((call) => !told.current.has(call.question.id));
    // Those that are over are forgotten, so that a window that is open for weeks does not remember all of them.
    told.current = new Set([...waiting.map((entry) => entry.digest), ...asking.map((call) => call.question.id)]);
    if (!cards.length && !questions.length) return;
    const said = wordsFor(cards, questions);
    setWords(`Waiting for your answer: ${said}`);
    if (!document.hasFocus() && "Notification" in window && Notification.permission === "granted") {
      notify(said);
    }
  });
  return words;
}

function notify(said: string): void {
  try {
    // Our words only: what a tool or a model wrote stays on the card, where it is quoted.
    const notice = new Notification("lastword is waiting for you", { body: said, tag: "lastword" });
    notice.onclick = () => {
      window.focus();
      notice.close();
    };
  } catch {
    // Browsers of phones have the name and refuse to make one. The title still counts.
  }
}

export function mayNotify(): "granted" | "denied" | "default" | "impossible" {
  return "Notification" in window ? Notification.permission : "impossible";
}
