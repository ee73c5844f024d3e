// Being noticed: the count in the title, one announcement for a screen reader, a notification when the window is not in front.

import { useEffect, useRef, useState } from "preact/hooks";
import type { WaitingCall } from "./picture.ts";

export function useAttention(waiting: WaitingCall[]): string {
  const told = useRef(new Set<string>());
  const [words, setWords] = useState("");
  useEffect(() => {
    document.title = `${waiting.length ? `(${waiting.length}) ` : ""}lastword`;
    const fresh = waiting.filter((call) => !told.current.has(call.card.digest));
    if (!fresh.length) return;
    for (const call of fresh) told.current.add(call.card.digest);
    const said = fresh.map((call) => `${call.name}. ${call.card.effect_words}.`).join(" ");
    setWords(`Waiting for your answer: ${said}`);
    if (!document.hasFocus() && "Notification" in window && Notification.permission === "granted") {
      // Our words only: what a tool or a model wrote stays on the card, where it is quoted.
      const notice = new Notification("lastword is waiting for you", { body: said, tag: "lastword" });
      notice.onclick = () => {
        window.focus();
        notice.close();
      };
    }
  });
  return words;
}

export function mayNotify(): "granted" | "denied" | "default" | "impossible" {
  return "Notification" in window ? Notification.permission : "impossible";
}
