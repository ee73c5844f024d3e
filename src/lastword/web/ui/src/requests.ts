// What the page asks of the server, and what becomes of it. The shapes are in wire.ts.

import type {
  AnswerBody,
  CallBody,
  Done,
  DoneInWords,
  EmptyBody,
  ErrorBody,
  NewKey,
  PresetBody,
  ResolveBody,
  SayBody,
  SessionTimeline,
  StopBody,
  UndoBody,
} from "./wire.ts";

// What is sent to each path, and what comes back.
type Posts = {
  answer: [AnswerBody, Done];
  say: [SayBody, Done];
  stop: [StopBody, Done];
  cancel: [CallBody, Done];
  undo: [UndoBody, DoneInWords];
  resolve: [ResolveBody, DoneInWords];
  preset: [PresetBody, Done];
  key: [EmptyBody, NewKey];
  lock: [EmptyBody, Done];
};

export class Refused extends Error {
  readonly code: string;
  readonly param: string | null;

  constructor(code: string, param: string | null, message: string) {
    super(message);
    this.code = code;
    this.param = param;
  }
}

let token = "";

export function keepToken(given: string): void {
  token = given;
}

export async function post<K extends keyof Posts>(what: K, body: Posts[K][0]): Promise<Posts[K][1]> {
  const answer = await fetch(`/page/${what}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-lastword-token": token },
    body: JSON.stringify(body),
  }).catch(away);
  return read(answer);
}

export async function timeline(session: string): Promise<SessionTimeline> {
  return read(await fetch(`/page/timeline${session ? `?session=${encodeURIComponent(session)}` : ""}`).catch(away));
}

// Why the stream of events cannot be opened: null when it may be worth another try.
export async function whyNoEvents(): Promise<Refused | null> {
  try {
    await read(await fetch("/page/state").catch(away));
    return null;
  } catch (refused) {
    return refused as Refused;
  }
}

function away(): never {
  throw new Refused("away", null, "lastword does not answer. Nothing was changed; try again when it is back.");
}

async function read<T>(answer: Response): Promise<T> {
  const data = await answer.json().catch(() => null);
  if (answer.ok && data !== null) return data as T;
  const error = (data as ErrorBody | null)?.error;
  throw new Refused(error?.code ?? "broken", error?.param ?? null, error?.message ?? `The server answered ${answer.status}.`);
}
