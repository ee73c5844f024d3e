// The picture that the server's events draw, and the hook that shows it.

import { useEffect, useState } from "preact/hooks";
import { keepToken, type Call, type Item, type Script, type Settings, type Whole } from "./wire";

export type Link = "connecting" | "live" | "lost" | "locked";
export type Picture = {
  link: Link;
  session: string;
  items: Map<string, Item>;
  busy: boolean;
  settings: Settings | null;
  changes: number;
};

const AGAIN_MILLISECONDS = 1500;

let picture: Picture = { link: "connecting", session: "", items: new Map(), busy: false, settings: null, changes: 0 };
const watchers = new Set<() => void>();

function draw(next: Partial<Picture>): void {
  picture = { ...picture, ...next, changes: picture.changes + 1 };
  for (const watcher of watchers) watcher();
}

export function usePicture(): Picture {
  const [, again] = useState(0);
  useEffect(() => {
    const watcher = () => again((n) => n + 1);
    watchers.add(watcher);
    // Whatever came between the first drawing and this moment has been told to nobody.
    watcher();
    return () => void watchers.delete(watcher);
  }, []);
  return picture;
}

export function waitingIn(items: Iterable<Item>): Call[] {
  return [...items].filter((item): item is Call => item.kind === "call" && item.status === "waiting" && item.card !== null);
}

export function scriptOf(call: Call): Script | undefined {
  const script = call.run ? picture.items.get(call.run) : undefined;
  return script?.kind === "run" ? script : undefined;
}

// Pieces of text come faster than anybody reads; they are drawn once a frame.
let frame = 0;
function drawSoon(): void {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    draw({});
  });
}

function take(kind: string, data: any): void {
  if (kind === "state") {
    const whole = data as Whole;
    keepToken(whole.token);
    draw({
      link: "live",
      session: whole.session,
      items: new Map(whole.items.map((item) => [item.id, item])),
      busy: whole.busy,
      settings: whole.settings,
    });
  } else if (kind === "item") {
    picture.items.set(data.id, data as Item);
    draw({ items: new Map(picture.items) });
  } else if (kind === "gone") {
    picture.items.delete(data.id);
    draw({ items: new Map(picture.items) });
  } else if (kind === "piece") {
    const message = picture.items.get(data.id);
    if (message?.kind === "message") {
      picture.items.set(data.id, { ...message, text: message.text.slice(0, data.keep) + data.text });
      drawSoon();
    }
  } else if (kind === "busy") {
    draw({ busy: data.busy });
  } else if (kind === "settings") {
    draw({ settings: data });
  }
}

export function connect(): void {
  const source = new EventSource("/page/events");
  for (const kind of ["state", "item", "gone", "piece", "busy", "settings"])
    source.addEventListener(kind, (event) => take(kind, JSON.parse((event as MessageEvent<string>).data)));
  source.onopen = () => draw({ link: "live" });
  source.onerror = () => {
    draw({ link: "lost" });
    if (source.readyState !== EventSource.CLOSED) return;
    // The browser gives up after an answer that is no stream: a key that does not count any more, or a server half up.
    void fetch("/page/state")
      .then((answer) => answer.status === 401)
      .catch(() => false)
      .then((locked) => (locked ? draw({ link: "locked" }) : setTimeout(connect, AGAIN_MILLISECONDS)));
  };
}
