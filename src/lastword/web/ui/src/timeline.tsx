// The timeline: every call as a bar, the time it waited for a person told apart from the time it ran. Calls in
// doubt are decided here.

import { useEffect, useMemo, useState } from "preact/hooks";
import { HOW, Reports, stateOf, whoOf } from "./call.tsx";
import { Contents } from "./contents.tsx";
import { ProblemOf, useProblem } from "./problem.tsx";
import { post, timeline } from "./requests.ts";
import type { CallItem, CallReply, ResolveBody, SessionTimeline } from "./wire.ts";
import { WordField } from "./word.tsx";
import { clock, duration, Folded, Marked } from "./words.tsx";

type Filter = "all" | "person" | "auto" | "free" | "refused" | "open";
const FILTERS: [Filter, string][] = [
  ["all", "Everything"],
  ["person", "Answered by a person"],
  ["auto", "You were not asked"],
  ["free", "Needed no approval"],
  ["refused", "Not done"],
  ["open", "Unfinished"],
];

function fits(call: CallItem, filter: Filter, words: string): boolean {
  const text = `${call.name} ${call.tool} ${call.arguments.flat().join(" ")} ${call.end?.message ?? ""}`.toLowerCase();
  if (words && !text.includes(words.toLowerCase())) return false;
  if (filter === "person") return call.reply !== null && !isStanding(call.reply);
  if (filter === "auto") return call.reply !== null && isStanding(call.reply);
  if (filter === "free") return call.reply === null && call.started_at !== null;
  if (filter === "refused") return call.status === "ended" && !call.end?.success;
  if (filter === "open") return call.status !== "ended";
  return true;
}

function isStanding(reply: CallReply): boolean {
  return reply.how === "auto" || reply.how === "standing" || reply.how === "ruled";
}

export function Timeline({ changes }: { changes: number }) {
  const [history, setHistory] = useState<SessionTimeline | null>(null);
  const [session, setSession] = useState("");
  const [filter, setFilter] = useState<Filter>("all");
  const [words, setWords] = useState("");
  const [problem, setProblem] = useProblem();
  useEffect(() => {
    const timer = setTimeout(
      () =>
        timeline(session).then((found) => {
          setHistory(found);
          setProblem(null);
        }, setProblem),
      history ? 300 : 0,
    );
    return () => clearTimeout(timer);
  }, [changes, session]);

  const shown = useMemo(() => (history?.calls ?? []).filter((call) => fits(call, filter, words)), [history, filter, words]);
  if (!history) return <p class="muted">{problem?.message ?? "Reading the journal…"}</p>;
  const doubtful = history.calls.filter((call) => call.status === "doubt");
  return (
    <div class="timeline">
      <div class="top">
        <h1>Timeline</h1>
        <a class="button" href={`/page/export?session=${encodeURIComponent(history.session)}`} download>
          Export
        </a>
      </div>
      {doubtful.map((call) => (
        <Doubt key={call.id} call={call} own={history.session === history.own} />
      ))}
      <div class="filters">
        <label>
          Session
          <select value={history.session} onChange={(event) => setSession(event.currentTarget.value)}>
            {!history.sessions.some((known) => known.id === history.session) && <option value={history.session}>this one</option>}
            {history.sessions.map((known) => (
              <option key={known.id} value={known.id}>
                {known.id === history.own ? "this one" : `${new Date(known.from * 1000).toLocaleDateString("en-GB")} ${clock(known.from)}`}
              </option>
            ))}
          </select>
        </label>
        <label>
          Show
          <select value={filter} onChange={(event) => setFilter(event.currentTarget.value as Filter)}>
            {FILTERS.map(([key, label]) => (
              <option key={key} value={key}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label class="grow">
          With the words
          <input type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </label>
      </div>
      <ProblemOf problem={problem} />
      <p class="legend" aria-hidden="true">
        <span>
          <span class="key waiting" /> waited for an answer
        </span>
        <span>
          <span class="key running" /> ran
        </span>
        <span>
          <span class="key bad" /> did not end well
        </span>
      </p>
      {shown.length === 0 ? (
        <p class="muted">{history.calls.length ? "No call fits." : "Nothing was called in this session yet."}</p>
      ) : (
        <Bars calls={shown} />
      )}
      {history.left_out > 0 && <p class="muted">{history.left_out} earlier calls are in the export.</p>}
    </div>
  );
}

// An hour in which nothing happened would leave nothing to see of the rest: idle time is drawn as a gap of one width.
const GAP_SECONDS = 4;
// About as wide as the name of a gap.
const NAME_PERCENT = 22;

export function scale(calls: CallItem[], now: number): { place: (at: number) => number; gaps: { at: number; seconds: number }[] } {
  const spans = calls
    .map((call) => [call.asked_at ?? call.started_at ?? call.ended_at ?? 0, call.ended_at ?? now] as [number, number])
    .sort((a, b) => a[0] - b[0]);
  const gaps: { from: number; to: number; seconds: number }[] = [];
  let end = spans[0]?.[1] ?? 0;
  for (const [from, to] of spans) {
    if (from - end > GAP_SECONDS) gaps.push({ from: end, to: from, seconds: from - end });
    end = Math.max(end, to);
  }
  const start = spans[0]?.[0] ?? 0;
  const busy = end - start - gaps.reduce((sum, gap) => sum + gap.seconds, 0);
  const wide = Math.max(busy, 0.001) * 0.06;
  const total = busy + gaps.length * wide || 1;
  const place = (at: number) => {
    let position = at - start;
    for (const gap of gaps) {
      if (at >= gap.to) position -= gap.seconds - wide;
      else if (at > gap.from) position -= (at - gap.from) * (1 - wide / gap.seconds);
    }
    return Math.min(100, Math.max(0, (position / total) * 100));
  };
  // The longest gaps are named first; a name that would stand on another one is left out.
  const named: { at: number; seconds: number }[] = [];
  for (const gap of gaps.toSorted((a, b) => b.seconds - a.seconds)) {
    const at = place((gap.from + gap.to) / 2);
    if (!named.some((other) => Math.abs(other.at - at) < NAME_PERCENT)) named.push({ at, seconds: gap.seconds });
  }
  return { place, gaps: named };
}

function Bars({ calls }: { calls: CallItem[] }) {
  const now = Date.now() / 1000;
  const { place, gaps } = scale(calls, now);
  return (
    <ol class="bars">
      {gaps.length > 0 && (
        <li class="gaps" aria-hidden="true">
          <span class="track">
            {gaps.map((gap) => (
              <span key={gap.at} style={{ left: `${gap.at}%` }}>
                {duration(gap.seconds)} later
              </span>
            ))}
          </span>
        </li>
      )}
      {calls.map((call) => (
        <Bar key={call.id} call={call} place={place} now={now} />
      ))}
    </ol>
  );
}

function Bar({ call, place, now }: { call: CallItem; place: (at: number) => number; now: number }) {
  const asked = call.asked_at;
  const answered = call.answered_at ?? (asked ? (call.started_at ?? call.ended_at ?? now) : null);
  const nobody = call.reply !== null && isStanding(call.reply);
  const waited = asked && answered ? answered - asked : 0;
  const ran = call.started_at ? (call.ended_at ?? now) - call.started_at : 0;
  const bad = call.status === "ended" && !call.end?.success;
  const span = (from: number, to: number) => ({ left: `${place(from)}%`, width: `max(3px, ${place(to) - place(from)}%)` });
  const first = asked ?? call.started_at ?? call.ended_at ?? now;
  return (
    <li>
      <details>
        <summary>
          <span class="when">{clock(first)}</span>
          <span class="name">
            <span aria-hidden="true">{call.glyph} </span>
            <Marked text={call.name || call.tool} />
          </span>
          <span class={`pill ${bad ? "bad" : call.status === "ended" ? "good" : call.status === "doubt" ? "doubt" : "running"}`}>
            {stateOf(call)}
          </span>
          <span class="track" aria-hidden="true">
            {asked && answered && <span class="bar waiting" style={span(asked, answered)} />}
            {call.started_at && (
              <span
                class={`bar ${bad ? "bad" : call.status === "doubt" ? "doubt" : "running"}`}
                style={span(call.started_at, call.ended_at ?? now)}
              />
            )}
            {!call.started_at && bad && <span class="bar bad" style={span(call.ended_at ?? now, call.ended_at ?? now)} />}
          </span>
          <span class="took">
            {call.reply?.how === "ruled" ? (
              <>
                {HOW.ruled} <Marked text={call.reply.by} />
              </>
            ) : nobody ? (
              "not asked"
            ) : (
              waited > 0 && <>waited {duration(waited)}</>
            )}
            {(nobody || waited > 0) && ran > 0 && ", "}
            {ran > 0 && <>ran {duration(ran)}</>}
          </span>
        </summary>
        <Steps call={call} />
      </details>
    </li>
  );
}

function Steps({ call }: { call: CallItem }) {
  return (
    <div class="steps">
      <ol>
        {call.asked_at && (
          <li>
            <time>{clock(call.asked_at)}</time> asked for by <Marked text={call.origin || "a program"} />
            {call.times_asked > 1 && `, ${call.times_asked} times`}
          </li>
        )}
        {call.reply && call.answered_at && (
          <li>
            <time>{clock(call.answered_at)}</time> {HOW[call.reply.how]} <Marked text={whoOf(call.reply)} />
            {call.reply.reason && (
              <>
                : “<Marked text={call.reply.reason} />”
              </>
            )}
          </li>
        )}
        {call.started_at && (
          <li>
            <time>{clock(call.started_at)}</time> started{!call.reply && " without asking: it needs no approval"}
          </li>
        )}
        {call.ended_at && (
          <li>
            <time>{clock(call.ended_at)}</time> {stateOf(call)}
          </li>
        )}
      </ol>
      {call.arguments.length > 0 && <Arguments call={call} />}
      {call.reports.length > 0 && <Reports call={call} />}
      {call.end && (
        <p class="result">
          <Folded text={call.end.message} />
        </p>
      )}
      <Contents call={call} />
      <p class="muted mono">{call.id}</p>
    </div>
  );
}

function Arguments({ call }: { call: CallItem }) {
  return (
    <dl>
      {call.arguments.map(([name, value]) => (
        <div key={name}>
          <dt>
            <Marked text={name} />
          </dt>
          <dd class="mono">
            <Marked text={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Doubt({ call, own }: { call: CallItem; own: boolean }) {
  const [problem, setProblem] = useProblem();
  const [word, setWord] = useState("");
  const decide = (decision: ResolveBody["decision"]) =>
    void post("resolve", { call_id: call.id, decision, word: decision === "again" ? word : null }).catch(setProblem);
  // It may be the second time that it happens, so a press alone does not run it, whatever the tool says of itself.
  const isTyped = word.trim().toLowerCase() === call.tool.toLowerCase();
  return (
    <section class="card doubt" aria-labelledby={`doubt-${call.id}`}>
      <h2 id={`doubt-${call.id}`}>
        Nobody knows how “<Marked text={call.name} />” ended
      </h2>
      <p>
        It was started at {clock(call.started_at ?? 0)}, and the program stopped before it said how it went. Look at what it changes, then
        decide.
      </p>
      <Arguments call={call} />
      {own ? (
        <div class="actions">
          <button type="button" onClick={() => decide("done")}>
            It was done
          </button>
          <button type="button" onClick={() => decide("abandon")}>
            Give it up
          </button>
          <p class="second" id={`again-${call.id}`}>
            <label for={`word-${call.id}`}>
              It may be the second time. To run it again, type{" "}
              <b>
                <Marked text={call.tool} />
              </b>{" "}
              here, then press the button:
            </label>
            <WordField id={`word-${call.id}`} value={word} armed onWord={setWord} />
          </p>
          <button type="button" disabled={!isTyped} aria-describedby={`again-${call.id}`} onClick={() => decide("again")}>
            Run it again
          </button>
        </div>
      ) : (
        <p class="muted">
          It belongs to another session: <code>lastword resolve {call.id}</code> decides.
        </p>
      )}
      <ProblemOf problem={problem} />
    </section>
  );
}
