// The card of the inbox that is looked at, and once it is answered, what came of it.

import { useEffect, useRef, useState } from "preact/hooks";
import { CardOf } from "./card.tsx";
import { programOf, type Row } from "./inbox.ts";
import { Over } from "./inbox_several.tsx";
import { isWaiting, type Picture, type WaitingCall } from "./picture.ts";
import { ProblemOf, useProblem } from "./problem.tsx";
import { cardOf, type Refused } from "./requests.ts";
import type { Item } from "./wire.ts";
import { Marked } from "./words.tsx";

// Whoever walks through the list with a key held down does not want every card on the way.
const FETCH_MILLISECONDS = 120;

export function Detail({
  row,
  picture,
  keys,
  pane,
}: {
  row: Row;
  picture: Picture;
  keys: { current: ((event: KeyboardEvent) => void) | null };
  pane: { current: HTMLElement | null };
}) {
  const { entry } = row;
  const own = entry.session === null ? picture.items.get(entry.id) : undefined;
  const [fetched, setFetched] = useState<WaitingCall | null>(null);
  const [problem, setProblem] = useProblem();
  const hadFocus = useRef(false);
  const isOwn = entry.session === null;
  useEffect(() => {
    setProblem(null);
    if (isOwn || row.isOver) return;
    let left = false;
    const timer = setTimeout(
      () =>
        void cardOf(entry.id, entry.digest).then(
          (call) => !left && isWaiting(call) && setFetched(call),
          (refused: Refused) => !left && setProblem(refused),
        ),
      FETCH_MILLISECONDS,
    );
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [entry.id, entry.digest, row.isOver, picture.returns]);
  const call = isOwn
    ? own && isWaiting(own)
      ? own
      : null
    : fetched?.id === entry.id && fetched.card.digest === entry.digest
      ? fetched
      : null;
  const isShown = call !== null && !row.isOver;
  // The card takes the focus with it when it goes; it stays where the card was.
  if (isShown) hadFocus.current = pane.current?.contains(document.activeElement) ?? false;
  useEffect(() => {
    if (row.isOver && hadFocus.current) pane.current?.focus();
    if (row.isOver) keys.current = null;
  }, [row.isOver]);
  if (row.isOver)
    return (
      <div class="card-over" role="status">
        <h2>
          <Marked text={entry.name} />
        </h2>
        <p>
          <Marked text={entry.summary} />
        </p>
        <p class="muted">
          <Over row={row} />. <span class="wide-only">↓ goes to the next one in the list.</span>
        </p>
        {row.apart === "missed" && <p>Nothing of it was done. If it is still wanted, it has to be asked for again.</p>}
        <Ending row={row} own={own} />
      </div>
    );
  return (
    <>
      <ProblemOf problem={problem} />
      {entry.asker === "ended" && (
        <p class="again">
          <strong>The program that asked has ended.</strong> An answer starts nothing by itself; a yes counts for one minute, if the program
          is started again in that time.
        </p>
      )}
      {entry.asker === "unknown" && <p class="again">Nobody knows whether the program that asked still lives.</p>}
      {call ? <CardOf call={call} keys={keys} program={programOf(entry)} /> : !problem && <p class="muted empty">Fetching the card…</p>}
    </>
  );
}

// What an allowed call did, once it is known.
function Ending({ row, own }: { row: Row; own: Item | undefined }) {
  const end = (own?.kind === "call" && own.end) || row.over?.end;
  if (!end) return isYes(row) ? <p class="muted">It runs. What it did comes here.</p> : null;
  if (!isYes(row)) return null;
  return (
    <p>
      <span class={`pill ${end.success ? "good" : "bad"}`}>{end.words}</span> <Marked text={end.message} />
    </p>
  );
}

function isYes({ over }: Row): boolean {
  return ["allowed", "second", "edited", "standing"].includes(over?.reply?.how ?? "");
}
