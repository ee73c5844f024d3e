// What the server tells and is told. The shapes are those of docs/page.md.

export type Told = { id: string | null; text: string; fraction: number | null };
export type Reply = { how: "allowed" | "edited" | "denied" | "closed" | "auto"; by: string; reason: string };
export type End = { kind: string; words: string; message: string; hidden: number; success: boolean };

export type Argument = {
  name: string;
  shown_name: string;
  type: string;
  about: string;
  shown: string;
  raw: string;
  marked: boolean;
  secret: boolean;
  in_preview: boolean;
};

// An argument that the call does without.
export type LeftOut = Pick<Argument, "name" | "shown_name" | "type" | "about" | "secret">;

export type Preview = {
  path: string;
  kind: "text" | "changed" | "created" | "deleted" | "renamed" | "unchanged";
  text?: string;
  added?: number;
  removed?: number;
  renamed_to?: string | null;
  note?: string;
  content?: string | null;
  base?: string;
  proposed?: string;
  raw?: string;
  marks?: [number, number, string][];
  rows?: [string, string][];
};

export type Card = {
  digest: string;
  sentence: string;
  effect: string;
  irreversible: boolean;
  origin: string;
  again: string;
  edited: boolean;
  title: string;
  message: string;
  why_asked: string;
  preview_label: string;
  primary: string;
  secondary: string;
  editable: boolean;
  arguments: Argument[];
  left_out: LeftOut[];
  previews: Preview[];
};

export type Call = {
  id: string;
  kind: "call";
  tool: string;
  name: string;
  glyph: string;
  color: string | null;
  origin: string;
  run: string | null;
  session: string | null;
  status: "waiting" | "running" | "ended" | "doubt" | "left";
  arguments: [string, string][];
  card: Card | null;
  reply: Reply | null;
  reports: Told[];
  stopping: boolean;
  end: End | null;
  changed: string[];
  undone_by: string | null;
  times_asked: number;
  asked_at: number | null;
  answered_at: number | null;
  started_at: number | null;
  ended_at: number | null;
};

export type Message = { id: string; kind: "message"; by: "you" | "assistant" | "lastword"; text: string; at: number; open: boolean };
export type Script = { id: string; kind: "run"; name: string; text: string; status: string; lines: string[]; error: string; at: number };
export type Item = Call | Message | Script;

export type Preset = { name: string; auto_approve: boolean; protocol: string; model: string };
export type Tool = {
  tool: string;
  name: string;
  about: string;
  asks: boolean;
  auto_approve: boolean;
  effect: string | null;
  parameters: string[];
};
export type Settings = { model: string; rehearsal: boolean; preset: string; presets: Preset[]; tools: Tool[] };
export type Whole = { session: string; items: Item[]; busy: boolean; settings: Settings; token: string };
export type History = {
  session: string;
  own: string;
  calls: Call[];
  runs: Script[];
  left_out: number;
  sessions: { id: string; from: number; to: number }[];
};

export class Refused extends Error {
  constructor(
    readonly code: string,
    readonly param: string | null,
    message: string,
  ) {
    super(message);
  }
}

let token = "";

export function keepToken(given: string): void {
  token = given;
}

export async function post<T = object>(what: string, body: object = {}): Promise<T> {
  const answer = await fetch(`/page/${what}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-lastword-token": token },
    body: JSON.stringify(body),
  }).catch(() => {
    throw new Refused("away", null, "lastword does not answer. Nothing was changed; try again when it is back.");
  });
  return read<T>(answer);
}

export async function get<T>(what: string): Promise<T> {
  return read<T>(await fetch(`/page/${what}`));
}

async function read<T>(answer: Response): Promise<T> {
  const data = await answer.json().catch(() => ({}));
  if (answer.ok) return data as T;
  const error = data.error ?? {};
  throw new Refused(error.code ?? "broken", error.param ?? null, error.message ?? `The server answered ${answer.status}.`);
}
