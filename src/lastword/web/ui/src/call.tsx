// A call in the conversation: its card while it waits, its progress while it runs, one quiet row afterwards.

import { useState } from "preact/hooks";
import { CardOf } from "./card.tsx";
import { Contents } from "./contents.tsx";
import { isAsking, isWaiting } from "./picture.ts";
import { ProblemOf, useProblem } from "./problem.tsx";
import { QuestionOf } from "./question.tsx";
import { post } from "./requests.ts";
import type { CallItem, CallReply } from "./wire.ts";
import { duration, Folded, Marked, Named } from "./words.tsx";

export function CallOf({ call }: { call: CallItem }) {
  if (isWaiting(call)) return <CardOf call={call} />;
  return <Row call={call} />;
}

export function whoOf(reply: CallReply): string {
  return reply.surface === "page" ? "you" : reply.by;
}

export const HOW: Record<CallReply["how"], string> = {
  allowed: "allowed by",
  second: "allowed, with the second button, by",
  edited: "changed and allowed by",
  denied: "denied by",
  closed: "closed by",
  auto: "auto-approved by",
  standing: "not asked:",
  ruled: "denied by",
};

function Row({ call }: { call: CallItem }) {
  const [open, setOpen] = useState(false);
  const [problem, setProblem] = useProblem();
  const running = call.status === "running";
  const doubt = call.status === "doubt";
  const act = (what: "cancel" | "undo") => void post(what, { call_id: call.id }).then(() => setProblem(null), setProblem);
  const tone = running ? "running" : doubt ? "doubt" : call.end?.success ? "good" : call.end?.kind === "denied" ? "denied" : "bad";
  // Of a no, a row says already who said it and why.
  const result = call.end?.kind === "denied" ? call.end.own_words : call.end?.message;
  const took = call.started_at && call.ended_at ? duration(call.ended_at - call.started_at) : "";
  return (
    <article class={`call ${tone}`} aria-label={`${call.name}: ${stateOf(call)}`} data-call={call.id}>
      <div class="line">
        <span class={`sign small tint-${call.color ?? "none"}`} aria-hidden="true">
          {call.glyph}
        </span>
        <strong>
          <Marked text={call.name || call.tool} />
        </strong>
        <span class={`pill ${tone}`}>{stateOf(call)}</span>
        <span class="muted grow">
          {call.reply && (
            <>
              {HOW[call.reply.how]} <Marked text={whoOf(call.reply)} />
            </>
          )}
          {took && `${call.reply ? ", " : ""}${took}`}
        </span>
        {running && (
          <button type="button" class="stop" disabled={call.stopping} onClick={() => act("cancel")}>
            {call.stopping ? "Stopping…" : "Stop, keep what is done"}
          </button>
        )}
        <span class="links">
          {call.changed.length > 0 && !call.undone_by && call.status === "ended" && (
            <button type="button" class="link" onClick={() => act("undo")}>
              Undo
            </button>
          )}
          {call.arguments.length > 0 && (
            <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? "Less" : "Details"}
            </button>
          )}
        </span>
      </div>
      {running && <Reports call={call} />}
      {isAsking(call) && <QuestionOf call={call} />}
      {open && <Named label="Arguments" rows={call.arguments} />}
      {open && call.reports.length > 0 && !running && <Reports call={call} />}
      {call.reply?.reason && (
        <p class="said">
          {call.reply.surface === "page" ? "You said" : "The reason"}: “<Marked text={call.reply.reason} />”
        </p>
      )}
      {call.end && result && (open || !call.end.success || isShort(call.end.message)) && (
        <p class={isShort(call.end.message) || !call.end.success ? "result" : "result mono"}>
          <Folded text={result} />
          {call.end.hidden > 0 && <span class="muted"> ({call.end.hidden.toLocaleString("en")} more characters in the export)</span>}
        </p>
      )}
      <Contents call={call} />
      {call.undone_by && (
        <p class="said">
          Undone by {call.undone_on === "page" ? "you" : call.undone_by}: {call.changed.join(", ")} as before.
        </p>
      )}
      {doubt && <p class="said">The program stopped while this ran. Nobody knows how it ended; the timeline lets you decide.</p>}
      <ProblemOf problem={problem} />
    </article>
  );
}

// A row has room for a sentence. What a tool read or listed is among its details.
function isShort(text: string): boolean {
  return text.length < 200 && !text.includes("\n");
}

export function stateOf(call: CallItem): string {
  if (call.status === "ended")
    return call.undone_by ? "undone" : (call.end?.words ?? (call.reply?.how === "closed" ? "closed" : "not allowed"));
  return { waiting: "waiting for you", running: "running", doubt: "outcome unknown", left: "interrupted" }[call.status];
}

export function Reports({ call }: { call: CallItem }) {
  return (
    <ul class="reports">
      {call.reports.slice(-6).map((report, place) => (
        <li key={report.id ?? `n${place}`}>
          <span>
            <Marked text={report.text} />
          </span>
          {report.fraction !== null && (
            <progress max={1} value={report.fraction} aria-label={`Progress of ${call.name}`}>
              {Math.round(report.fraction * 100)}%
            </progress>
          )}
        </li>
      ))}
    </ul>
  );
}
