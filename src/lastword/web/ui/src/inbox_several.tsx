// Several cards at once: a list of exactly what each of them does, then one act for all. The act is there once every
// card of the list was on the screen to its end; what cannot be undone is not among them.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { disarmAll, useArmed } from "./arming.ts";
import { HOW, whoOf } from "./call.tsx";
import { SIGNS, TONES } from "./card.tsx";
import { programOf, type Row } from "./inbox.ts";
import { isWaiting, type Picture, type WaitingCall } from "./picture.ts";
import { PreviewOf } from "./preview.tsx";
import { ProblemOf, useProblem } from "./problem.tsx";
import { cardOf, post, type Refused } from "./requests.ts";
import type { AnswerResult, InboxGone } from "./wire.ts";
import { Folded, Marked, ToolSays } from "./words.tsx";

// As many as the server takes.
export const MAX_AT_ONCE = 50;

export function Several({ rows, picture, onBack, onDone }: { rows: Row[]; picture: Picture; onBack: () => void; onDone: () => void }) {
  const [calls, setCalls] = useState<ReadonlyMap<string, WaitingCall>>(new Map());
  const [drawn, setDrawn] = useState<ReadonlySet<string>>(new Set());
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  const [opened, setOpened] = useState<ReadonlyMap<string, ReadonlySet<string>>>(new Map());
  const [presses, setPresses] = useState(0);
  const [reason, setReason] = useState("");
  const [sent, setSent] = useState(false);
  const [problem, setProblem] = useProblem();
  const [results, setResults] = useState<ReadonlyMap<string, AnswerResult> | null>(null);
  const [did, setDid] = useState<"allow" | "deny">("deny");
  const sheet = useRef<HTMLElement>(null);
  const end = useRef<HTMLHeadingElement>(null);
  const { entries, over } = picture.inbox;
  // A card that was answered elsewhere, or asks something else by now, is not among those that are answered here.
  const waiting = rows.filter(({ entry }) => entries.get(entry.id)?.digest === entry.digest);
  const mayAllow = waiting.every(({ entry }) => !entry.alone && entries.get(entry.id)?.asker !== "ended");
  const unseen = waiting.filter(({ entry }) => !seen.has(entry.id));
  const isReady = waiting.every(({ entry }) => drawn.has(entry.id));
  const { armed, counts } = useArmed(waiting.map(({ entry }) => entry.digest).join(), isReady);

  useEffect(() => {
    sheet.current?.focus();
    scrollTo(0, 0);
    let left = false;
    void (async () => {
      for (const { entry } of rows) {
        if (left) return;
        try {
          const own = entry.session === null ? picture.items.get(entry.id) : undefined;
          // Also of our own conversation: the server knows by it that this window looked.
          const call = await cardOf(entry.id, entry.digest);
          const shown = own && isWaiting(own) && own.card.digest === entry.digest ? own : call;
          if (!left && isWaiting(shown)) setCalls((now) => new Map(now).set(entry.id, shown));
        } catch (refused) {
          if (!left && (refused as Refused).code !== "not_waiting") setProblem(refused as Refused);
        }
      }
    })();
    return () => {
      left = true;
    };
  }, []);

  // A press may have opened what was folded, and the end of its card may be on the screen still.
  useEffect(() => {
    const pressed = () => setPresses((now) => now + 1);
    sheet.current?.addEventListener("click", pressed);
    return () => sheet.current?.removeEventListener("click", pressed);
  }, []);

  useEffect(() => {
    const watcher = new IntersectionObserver((found) => {
      const ends = found
        .filter((one) => one.isIntersecting && isWhole(one.target))
        .map((one) => (one.target as HTMLElement).dataset.end ?? "");
      if (ends.length) setSeen((now) => new Set([...now, ...ends]));
    });
    for (const mark of sheet.current?.querySelectorAll("[data-end]") ?? []) watcher.observe(mark);
    return () => watcher.disconnect();
  }, [calls.size, drawn.size, presses]);

  async function answer(action: "allow" | "deny") {
    if (sent) return;
    setSent(true);
    setProblem(null);
    disarmAll();
    const cards = waiting.map(({ entry }) => ({ call_id: entry.id, digest: entry.digest, opened: [...(opened.get(entry.id) ?? [])] }));
    try {
      const done = await post("answers", { cards, action, reason: action === "deny" ? reason.trim() || null : null });
      setDid(action);
      setResults(new Map(done.results.map((result) => [result.call_id, result])));
      onDone();
      setTimeout(() => end.current?.focus(), 0);
    } catch (refused) {
      setProblem(refused as Refused);
      setSent(false);
    }
  }

  function press(event: Event, action: "allow" | "deny") {
    if (counts(event) && waiting.length > 0 && (action === "deny" || (mayAllow && unseen.length === 0))) void answer(action);
  }

  function onKey(event: KeyboardEvent) {
    const writes = (event.target as HTMLElement).matches("input, textarea, select");
    if (event.key === "Escape") onBack();
    else if (!writes && !results && (event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      press(event, "allow");
    }
  }

  const refused = results ? [...results.values()].filter((result) => result.code !== null).length : 0;
  return (
    <section class="several" ref={sheet} tabIndex={-1} aria-labelledby="several" data-armed={armed} onKeyDown={onKey}>
      <div class="top">
        <h1 id="several">{rows.length === 1 ? "One card" : `${rows.length} cards at once`}</h1>
        <button type="button" onClick={onBack}>
          Back to the inbox
        </button>
      </div>
      <p>This is what each of them does. Look through them, then answer them together at the end of the list.</p>
      <ol>
        {rows.map((row) => {
          const { entry } = row;
          const call = calls.get(entry.id);
          const result = results?.get(entry.id);
          const isOver = !entries.has(entry.id) || entries.get(entry.id)?.digest !== entry.digest;
          return (
            <li key={entry.id} class={`one ${isOver && !result ? "over" : ""}`}>
              <div class="line">
                <span class={`sign small tint-${entry.color ?? "none"}`} aria-hidden="true">
                  {entry.glyph}
                </span>
                <h2>
                  <Marked text={entry.name} />
                </h2>
                <code class="tool">{entry.tool}</code>
                <span class={`effect ${TONES[entry.effect ?? "unknown"]}`}>
                  <span aria-hidden="true">{SIGNS[entry.effect ?? "unknown"]} </span>
                  {entry.effect_words}
                </span>
                <span class="muted grow">
                  <Marked text={programOf(entry)} />
                </span>
              </div>
              {call ? (
                <What
                  call={call}
                  onDrawn={() => setDrawn((now) => (now.has(entry.id) ? now : new Set(now).add(entry.id)))}
                  onOpen={(part) => setOpened((now) => new Map(now).set(entry.id, new Set(now.get(entry.id)).add(part)))}
                />
              ) : (
                <p class="muted">{isOver ? <Marked text={entry.summary} /> : "Fetching the card…"}</p>
              )}
              {result ? (
                <p class={result.code === null ? "outcome" : "problem"}>
                  {result.code === null ? <Answered did={did} over={over.get(entry.id)} /> : <Marked text={result.message} />}
                </p>
              ) : (
                isOver && (
                  <p class="outcome">
                    {entries.has(entry.id) ? (
                      "It asks something else by now, and is not answered here."
                    ) : (
                      <Over row={{ ...row, over: over.get(entry.id) ?? null }} />
                    )}
                  </p>
                )
              )}
              {drawn.has(entry.id) && <span class="end" data-end={entry.id} />}
            </li>
          );
        })}
      </ol>
      <ProblemOf problem={problem} />
      {results ? (
        <div class="act">
          <h2 ref={end} tabIndex={-1}>
            {results.size - refused} {did === "allow" ? "allowed" : "denied"}
            {refused > 0 && `, ${refused} not`}
          </h2>
          <button type="button" onClick={onBack}>
            Back to the inbox
          </button>
        </div>
      ) : (
        <div class="act">
          <p role="status">
            {!isReady
              ? "Fetching the cards…"
              : unseen.length
                ? `${unseen.length} of them were not on the screen yet. Scroll through the list, and open what is folded, before you allow them.`
                : mayAllow
                  ? "All of them were on the screen."
                  : "They cannot be allowed together; they can be denied."}
          </p>
          <label>
            Why not, if you deny them
            <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
          <div class="actions">
            {mayAllow && (
              <button
                type="button"
                class="primary"
                disabled={sent || waiting.length === 0}
                aria-disabled={unseen.length > 0}
                onKeyDown={(event) => event.key === "Enter" && !event.ctrlKey && !event.metaKey && event.preventDefault()}
                onClick={(event) => press(event, "allow")}
              >
                {waiting.length === 1 ? "Allow this one" : `Allow these ${waiting.length}`}
                <kbd aria-hidden="true">Ctrl ⏎</kbd>
              </button>
            )}
            <button type="button" class="no" disabled={sent || waiting.length === 0} onClick={(event) => press(event, "deny")}>
              {waiting.length === 1 ? "Deny this one" : `Deny these ${waiting.length}`}
            </button>
          </div>
        </div>
      )}
    </section>
  );
}

// Whether nothing of the card that ends here is folded.
function isWhole(end: Element): boolean {
  return !end.closest(".one")?.querySelector(".fold[aria-expanded=false]");
}

// What was said to one of several, and what its call did, once that is known.
function Answered({ did, over }: { did: "allow" | "deny"; over: InboxGone | undefined }) {
  if (did === "deny") return <>Denied by you.</>;
  const end = over?.end;
  return (
    <>
      Allowed by you.{" "}
      {end && (
        <>
          <span class={`pill ${end.success ? "good" : "bad"}`}>{end.words}</span> <Marked text={end.message} />
        </>
      )}
    </>
  );
}

// What became of a card that waits no longer.
export function Over({ row: { over, apart } }: { row: Row }) {
  if (!over?.reply)
    return (
      <>
        {apart === "missed" || over?.end?.kind === "expired" ? "Nobody answered in time" : "Waits no longer: its program has given it up"}
      </>
    );
  const { how, reason } = over.reply;
  return (
    <>
      {/* Of a card that waited nobody can say that it was not asked. */}
      {how === "standing" ? "answered by" : HOW[how]} <Marked text={whoOf(over.reply)} />
      {reason && (
        <>
          : “<Marked text={reason} />”
        </>
      )}
    </>
  );
}

// What one card does: the same words, values and changes as on the card itself, without its buttons.
function What({ call, onDrawn, onOpen }: { call: WaitingCall; onDrawn: () => void; onOpen: (part: string) => void }) {
  const { card } = call;
  const [ready, setReady] = useState(0);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  // Nothing is edited in a list.
  const previews = useMemo(() => card.previews.map((preview) => ({ ...preview, content: null })), [card]);
  useEffect(() => {
    if (ready >= card.previews.length) onDrawn();
  }, [ready]);
  const fold = (part: string, at: number | null) => ({
    at,
    open: open.has(part),
    turn: () => {
      onOpen(part);
      setOpen((now) => new Set(now.has(part) ? [...now].filter((other) => other !== part) : [...now, part]));
      disarmAll();
    },
  });
  return (
    <>
      <p class="sentence">
        <Marked text={card.sentence} />
      </p>
      {card.again && (
        <p class="again">
          <strong>Asked again:</strong> <Marked text={card.again} />.
        </p>
      )}
      {card.arguments.length > 0 && (
        <table class="arguments" aria-label="Arguments">
          <tbody>
            {card.arguments
              .filter((row) => !row.in_preview)
              .map((row) => (
                <tr key={row.name}>
                  <th scope="row">
                    <Marked text={row.shown_name} />
                  </th>
                  <td>
                    <Folded class="read" text={row.shown} fold={fold(`argument ${row.name}`, row.fold)} />
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
      <ToolSays card={card} fold={fold("message", card.message_fold)} />
      {previews.map((preview, place) => (
        <PreviewOf
          key={place}
          preview={preview}
          fold={fold(`preview ${place}`, preview.fold)}
          text={null}
          onEdit={() => {}}
          onReady={() => setReady((n) => n + 1)}
        />
      ))}
    </>
  );
}
