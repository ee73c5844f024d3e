// Stop everything: in reach from every view. It takes a press to show what it does, and another one to do it.

import { useEffect, useRef, useState } from "preact/hooks";
import { post } from "./requests.ts";
import { Marked } from "./words.tsx";

export const WHAT_STOPS =
  "Denies every card that waits, cancels what runs and revokes every grant, also in other programs that share this memory.";

// What was stopped and what was not, a line for each.
export function Stopped({ said }: { said: string }) {
  return (
    <div role="status">
      <ul class="stopped">
        {said.split("\n").map((line, place) => (
          <li key={place} class={line.startsWith(" ") ? "" : "head"}>
            <Marked text={line.trim()} />
          </li>
        ))}
      </ul>
    </div>
  );
}

export function StopEverything() {
  const [open, setOpen] = useState(false);
  const [said, setSaid] = useState("");
  const [sent, setSent] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const act = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (open) act.current?.focus();
  }, [open]);

  function close() {
    setOpen(false);
    setSaid("");
    opener.current?.focus();
  }

  function stop() {
    setSent(true);
    void post("stop_everything", {})
      .then(
        (done) => setSaid(done.message),
        (refused: Error) => setSaid(refused.message),
      )
      .then(() => setSent(false));
  }

  return (
    <div class="stopping" role="group" aria-label="Emergency stop" onKeyDown={(event) => event.key === "Escape" && open && close()}>
      <button
        type="button"
        ref={opener}
        class="stop-all"
        aria-expanded={open}
        aria-label="Stop everything"
        title="Stop everything"
        onClick={() => (open ? close() : setOpen(true))}
      >
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <rect x="6" y="6" width="12" height="12" rx="2" />
        </svg>
        <span>Stop</span>
      </button>
      {open && (
        <section class="stop-panel" aria-label="Stop everything">
          {said ? <Stopped said={said} /> : <p>{WHAT_STOPS}</p>}
          <div class="actions">
            {!said && (
              <button type="button" ref={act} class="deny" disabled={sent} onClick={stop}>
                Stop everything now
              </button>
            )}
            <button type="button" onClick={close}>
              {said ? "Close" : "Not now"}
            </button>
          </div>
        </section>
      )}
    </div>
  );
}
