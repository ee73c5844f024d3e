// The picture that the server's events draw, and the hook that shows it.

import { useEffect, useState } from "preact/hooks";
import { type Standing, standingAfter } from "./inbox.ts";
import { keepToken, whenUnanswered, whyNoEvents } from "./requests.ts";
import type { CallItem, CardView, Item, ItemDelta, PageEvents, QuestionView, ScriptItem, Settings } from "./wire.ts";

export type Link = "connecting" | "live" | "lost" | "locked";
export type Picture = {
  link: Link;
  // How often the link was lost and is back.
  returns: number;
  trouble: string;
  session: string;
  items: ReadonlyMap<string, Item>;
  inbox: Standing;
  hasEarlier: boolean;
  busy: boolean;
  settings: Settings | null;
  changes: number;
};
export type PageEvent = { [K in keyof PageEvents]: { kind: K; data: PageEvents[K] } }[keyof PageEvents];

const KINDS = { state: 0, item: 0, delta: 0, gone: 0, piece: 0, busy: 0, settings: 0, inbox: 0 } satisfies Record<keyof PageEvents, 0>;
const AGAIN_MILLISECONDS = 1500;

export const EMPTY: Picture = {
  link: "connecting",
  returns: 0,
  trouble: "",
  session: "",
  items: new Map(),
  inbox: { entries: new Map(), over: new Map(), missed: [] },
  hasEarlier: false,
  busy: false,
  settings: null,
  changes: 0,
};

// The picture with an event in it.
export function after(picture: Picture, event: PageEvent): Picture {
  return { ...picture, ...changeBy(picture, event), changes: picture.changes + 1 };
}

function changeBy({ items, inbox, link, returns }: Picture, event: PageEvent): Partial<Picture> {
  switch (event.kind) {
    case "state": {
      const { session, busy, settings, has_earlier: hasEarlier } = event.data;
      const items = new Map(event.data.items.map((item) => [item.id, item]));
      // What was there and is not any more was answered while this window was away; how, nobody told it.
      const gone = [...inbox.entries.keys()].filter((id) => !event.data.inbox.some((entry) => entry.id === id));
      const change = {
        put: event.data.inbox,
        gone: gone.map((id) => ({ id, reply: null, end: null, at: null })),
        missed: event.data.missed,
      };
      return {
        link: "live",
        returns: returns + Number(link === "lost"),
        trouble: "",
        session,
        busy,
        settings,
        hasEarlier,
        items,
        inbox: standingAfter(inbox, change),
      };
    }
    case "item":
      return { items: new Map(items).set(event.data.id, event.data) };
    case "delta": {
      const item = items.get(event.data.id);
      return item ? { items: new Map(items).set(item.id, changed(item, event.data)) } : {};
    }
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
    case "inbox":
      return { inbox: standingAfter(inbox, event.data) };
  }
}

function changed(item: Item, { fields, splices }: ItemDelta): Item {
  const next: Record<string, unknown> = { ...item, ...fields };
  for (const { field, at, cut, put } of splices) {
    const list = next[field];
    if (Array.isArray(list)) next[field] = [...list.slice(0, at), ...put, ...list.slice(at + cut)];
  }
  return next as Item;
}

// What comes faster than a screen shows it. That something waits, or waits no longer, is drawn at once.
function flows(event: PageEvent): boolean {
  if (event.kind !== "delta") return event.kind === "piece";
  return !["status", "card", "question"].some((field) => field in event.data.fields);
}

export type WaitingCall = CallItem & { card: CardView };

export function isWaiting(item: Item): item is WaitingCall {
  return item.kind === "call" && item.status === "waiting" && item.card !== null;
}

export function waitingIn(items: Iterable<Item>): WaitingCall[] {
  return [...items].filter(isWaiting);
}

export type AskingCall = CallItem & { question: QuestionView };

// Calls that run and ask something.
export function isAsking(item: Item): item is AskingCall {
  return item.kind === "call" && item.status === "running" && item.question !== null;
}

export function askingIn(items: Iterable<Item>): AskingCall[] {
  return [...items].filter(isAsking);
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

// How often the link was lost and is back, for whoever does not have to be drawn again with every event.
export function useReturns(): number {
  const [returns, setReturns] = useState(picture.returns);
  useEffect(() => {
    const watcher = () => setReturns(picture.returns);
    watchers.add(watcher);
    watcher();
    return () => void watchers.delete(watcher);
  }, []);
  return returns;
}

// What flows is drawn once a frame.
let isDrawnSoon = false;
function take(event: PageEvent): void {
  if (event.kind === "state") keepToken(event.data.token);
  picture = after(picture, event);
  if (!flows(event)) {
    draw(picture);
  } else if (!isDrawnSoon) {
    isDrawnSoon = true;
    requestAnimationFrame(() => {
      isDrawnSoon = false;
      draw(picture);
    });
  }
}

function relink(link: Link, trouble = ""): void {
  const returns = picture.returns + Number(link === "live" && picture.link === "lost");
  draw({ ...picture, link, returns, trouble, changes: picture.changes + 1 });
}

let source: EventSource | null = null;

// A request got no answer. The stream may not have noticed, or may be the only thing that still works: until something
// answers again, this is not called live.
async function look(): Promise<void> {
  const refused = await whyNoEvents();
  if (refused?.code === "away") setTimeout(() => void look(), AGAIN_MILLISECONDS);
  else if (refused?.code === "no_key") relink("locked");
  else if (source?.readyState === EventSource.OPEN && picture.link === "lost") relink("live");
}

whenUnanswered(() => {
  if (picture.link !== "live") return;
  relink("lost");
  void look();
});

export function connect(): void {
  const stream = new EventSource("/page/events");
  source = stream;
  for (const kind of Object.keys(KINDS) as (keyof PageEvents)[])
    stream.addEventListener(kind, (event: MessageEvent<string>) => take({ kind, data: JSON.parse(event.data) } as PageEvent));
  // Before its first state a window has no token, and can do nothing yet.
  stream.onopen = () => {
    if (picture.settings) relink("live");
  };
  stream.onerror = () => {
    relink("lost", picture.trouble);
    if (stream.readyState !== EventSource.CLOSED) return;
    // The browser gives up after an answer that is no stream: a key that does not count any more, a server half up, or
    // one that fails and says under which id its log has the rest.
    void whyNoEvents().then((refused) => {
      if (refused?.code === "no_key") return relink("locked");
      if (refused && refused.code !== "away") relink("lost", refused.message);
      setTimeout(connect, AGAIN_MILLISECONDS);
    });
  };
}
