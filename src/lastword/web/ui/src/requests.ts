// What the page asks of the server, and what becomes of it. The shapes are in wire.ts.

import type {
  AddServerBody,
  AgainBody,
  AnswerBody,
  AnswersBody,
  CallBody,
  CallItem,
  ConversationBody,
  ConversationsFound,
  Done,
  DoneInWords,
  DoneSeverally,
  EarlierItems,
  EmptyBody,
  ErrorBody,
  ExplainBody,
  ExplainedCall,
  GrantBody,
  GrantChoiceBody,
  GrantStep,
  GrantsFound,
  ModelBody,
  NewKey,
  PresetBody,
  QuestionBody,
  RenameBody,
  ResolveBody,
  RevokeBody,
  SayBody,
  SeenServer,
  ServerBody,
  ServerQuestion,
  ServersFound,
  SessionTimeline,
  StopBody,
  TokenTotal,
  TriedModel,
  TrustBody,
  UndoBody,
} from "./wire.ts";

// What is sent to each path, and what comes back.
type Posts = {
  answer: [AnswerBody, Done];
  answers: [AnswersBody, DoneSeverally];
  answer_question: [QuestionBody, Done];
  say: [SayBody, Done];
  again: [AgainBody, Done];
  new: [EmptyBody, Done];
  open: [ConversationBody, Done];
  rename: [RenameBody, Done];
  delete: [ConversationBody, Done];
  stop: [StopBody, Done];
  stop_everything: [EmptyBody, DoneInWords];
  cancel: [CallBody, Done];
  undo: [UndoBody, DoneInWords];
  resolve: [ResolveBody, DoneInWords];
  preset: [PresetBody, Done];
  model: [ModelBody, TriedModel];
  key: [EmptyBody, NewKey];
  lock: [EmptyBody, Done];
  grant_step: [GrantChoiceBody, GrantStep];
  grant: [GrantBody, Done];
  grant_revoke: [RevokeBody, Done];
  explain: [ExplainBody, ExplainedCall];
  server_add: [AddServerBody, Done];
  server_look: [TrustBody, SeenServer];
  server_trust: [TrustBody, Done];
  server_remove: [ServerBody, Done];
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
let tokenCame: () => void;
const firstToken = new Promise<void>((come) => {
  tokenCame = come;
});
// A window that has just opened is told its token with its first picture. Whoever is faster waits for it, and not for ever.
const TOKEN_MILLISECONDS = 5000;

export function keepToken(given: string): void {
  token = given;
  tokenCame();
}

export async function post<K extends keyof Posts>(what: K, body: Posts[K][0]): Promise<Posts[K][1]> {
  if (!token) await Promise.race([firstToken, new Promise((over) => setTimeout(over, TOKEN_MILLISECONDS))]);
  const answer = await fetch(`/page/${what}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-lastword-token": token },
    body: JSON.stringify(body),
  }).catch(() => away(" Whether this arrived is not known."));
  return read(answer);
}

export async function timeline(session: string): Promise<SessionTimeline> {
  return read(await fetch(`/page/timeline${session ? `?session=${encodeURIComponent(session)}` : ""}`).catch(() => away()));
}

export async function cardOf(id: string, digest: string): Promise<CallItem> {
  return read(await fetch(`/page/card?${new URLSearchParams({ call_id: id, digest })}`).catch(() => away()));
}

export async function conversations(words: string): Promise<ConversationsFound> {
  return read(await fetch(`/page/conversations?words=${encodeURIComponent(words)}`).catch(() => away()));
}

export async function tokens(): Promise<TokenTotal> {
  return read(await fetch("/page/tokens").catch(() => away()));
}

export async function grants(): Promise<GrantsFound> {
  return read(await fetch("/page/grants").catch(() => away()));
}

export async function servers(): Promise<ServersFound> {
  return read(await fetch("/page/servers").catch(away));
}

export async function serverQuestion(name: string): Promise<ServerQuestion> {
  return read(await fetch(`/page/server?name=${encodeURIComponent(name)}`).catch(away));
}

export async function earlier(): Promise<EarlierItems> {
  return read(await fetch("/page/earlier").catch(() => away()));
}

// Where the bytes are that a call returned.
export function contentPath(call: string, digest: string): string {
  return `/page/content?call_id=${encodeURIComponent(call)}&digest=${encodeURIComponent(digest)}`;
}

// Why the stream of events cannot be opened: null when it may be worth another try.
export async function whyNoEvents(): Promise<Refused | null> {
  try {
    await read(await fetch("/page/state").catch(() => away()));
    return null;
  } catch (refused) {
    return refused as Refused;
  }
}

let unanswered = () => {};

// Who is told of a request that got no answer, whatever the stream of events looks like.
export function whenUnanswered(tell: () => void): void {
  unanswered = tell;
}

function away(unknown = ""): never {
  unanswered();
  throw new Refused("away", null, `lastword does not answer.${unknown} This window goes on trying.`);
}

async function read<T>(answer: Response): Promise<T> {
  const data = await answer.json().catch(() => null);
  if (answer.ok && data !== null) return data as T;
  const error = (data as ErrorBody | null)?.error;
  throw new Refused(error?.code ?? "broken", error?.param ?? null, error?.message ?? `The server answered ${answer.status}.`);
}
