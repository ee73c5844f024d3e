// The picture that the server's events draw, and the hook that shows it.

import { useEffect, useState } from "preact/hooks";
import { keepToken, whyNoEvents } from "./requests.ts";
import type { CallItem, CardView, Item, PageEvents, ScriptItem, Settings } from "./wire.ts";

export type Link = "connecting" | "live" | "lost" | "locked";
export type Picture = {
  link: Link;
  trouble: string;
  session: string;
  items: ReadonlyMap<string, Item>;
  busy: boolean;
  settings: Settings | null;
  changes: number;
};
export type PageEvent = { [K in keyof PageEvents]: { kind: K; data: PageEvents[K] } }[keyof PageEvents];

const KINDS = { state: 0, item: 0, gone: 0, piece: 0, busy: 0, settings: 0 } satisfies Record<keyof PageEvents, 0>;
const AGAIN_MILLISECONDS = 1500;

export const EMPTY: Picture = { link: "connecting", trouble: "", session: "", items: new Map(), busy: false, settings: null, changes: 0 };

// The picture with an event in it.
export function after(picture: Picture, event: PageEvent): Picture {
  return { ...picture, ...changeBy(picture, event), changes: picture.changes + 1 };
}

function changeBy({ items }: Picture, event: PageEvent): Partial<Picture> {
  switch (event.kind) {
    case "state": {
      const { session, busy, settings } = event.data;
      return { link: "live", trouble: "", session, busy, settings, items: new Map(event.data.items.map((item) => [item.id, item])) };
    }
    case "item":
      return { items: new Map(items).set(event.data.id, event.data) };
    case "gone": {
      const left = new Map(items);
      left.delete(event.data.id);
      return { items: left };
    }
    case "piece": {
      const { id, keep, text } = event.data;
      const message = items.get(id);
      return message?.kind === "message" ? { items: new Map(items).set(id, { ...message, text: message.text.slice(0, keep) + text }) } : {};
    }
    case "busy":
      return { busy: event.data.busy };
    case "settings":
      return { settings: event.data };
  }
}

export type WaitingCall = CallItem & { card: CardView };

export function isWaiting(item: Item): item is WaitingCall {
  return item.kind === "call" && item.status === "waiting" && item.card !== null;
}

export function waitingIn(items: Iterable<Item>): WaitingCall[] {
  return [...items].filter(isWaiting);
}

export function scriptOf(call: CallItem, items: ReadonlyMap<string, Item>): ScriptItem | undefined {
  const script = call.run === null ? undefined : items.get(call.run);
  return script?.kind === "run" ? script : undefined;
}

let picture = EMPTY;
const watchers = new Set<() => void>();

function draw(next: Picture): void {
  picture = next;
  for (const watcher of watchers) watcher();
}

export function usePicture(): Picture {
  const [, again] = useState(0);
  useEffect(() => {
    const watcher = () => again((n) => n + 1);
    watchers.add(watcher);
    // Whatever came between the first drawing and this moment was not drawn yet.
    watcher();
    return () => void watchers.delete(watcher);
  }, []);
  return picture;
}

// Pieces of text come faster than a screen shows them; they are drawn once a frame.
let isDrawnSoon = false;
function take(event: PageEvent): void {
  if (event.kind === "state") keepToken(event.data.token);
  picture = after(picture, event);
  if (event.kind !== "piece") {
    draw(picture);
  } else if (!isDrawnSoon) {
    isDrawnSoon = true;
    requestAnimationFrame(() => {
      isDrawnSoon = false;
      draw(picture);
    });
  }
}

export function connect(): void {
  const source = new EventSource("/page/events");
  for (const kind of Object.keys(KINDS) as (keyof PageEvents)[])
    source.addEventListener(kind, (event: MessageEvent<string>) => take({ kind, data: JSON.parse(event.data) } as PageEvent));
  const link = (link: Link, trouble = "") => draw({ ...picture, link, trouble, changes: picture.changes + 1 });
  source.onopen = () => link("live");
  source.onerror = () => {
    link("lost", picture.trouble);
    if (source.readyState !== EventSource.CLOSED) return;
    // The browser gives up after an answer that is no stream: a key that does not count any more, a server half up, or
    // one that fails and says under which id its log has the rest.
    void whyNoEvents().then((refused) => {
      if (refused?.code === "no_key") return link("locked");
      if (refused && refused.code !== "away") link("lost", refused.message);
      setTimeout(connect, AGAIN_MILLISECONDS);
    });
  };
}
