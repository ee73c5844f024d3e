// The conversations: a new one, and the list of those that there are, to search, open, rename and delete.

import { useEffect, useRef, useState } from "preact/hooks";
import { ProblemOf, useProblem } from "./problem.tsx";
import { conversations, post, type Refused } from "./requests.ts";
import type { ConversationEntry } from "./wire.ts";
import { Marked } from "./words.tsx";

const TYPED_MILLISECONDS = 200;
const FURTHER_MILLISECONDS = 2000;

export function Conversations({ session, isBusy }: { session: string; isBusy: boolean }) {
  // The list stands open over one conversation. As soon as another is shown it has done its work, in the same picture:
  // closed a frame later, it would take the next press on its button for itself.
  const [openOver, setOpenOver] = useState<string | null>(null);
  const isOpen = openOver === session;
  const [problem, setProblem] = useProblem();
  useEffect(() => setProblem(null), [session]);

  function begin() {
    post("new", {}).then(() => document.getElementById("say")?.focus(), setProblem);
  }

  return (
    <section class="conversations" aria-label="Conversations">
      <div class="row">
        <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpenOver(isOpen ? null : session)}>
          Conversations
        </button>
        <button type="button" class="link" disabled={isBusy} onClick={begin}>
          New conversation
        </button>
      </div>
      <ProblemOf problem={problem} />
      {isOpen && <List session={session} isBusy={isBusy} failed={setProblem} />}
    </section>
  );
}

function List({ session, isBusy, failed }: { session: string; isBusy: boolean; failed: (refused: Refused) => void }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState<ConversationEntry[] | null>(null);
  const [unsearched, setUnsearched] = useState(0);
  const [looks, lookAgain] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    let left = false;
    const timer = setTimeout(
      () =>
        void conversations(words).then(
          ({ conversations, unsearched }) => {
            if (left) return;
            setFound(conversations);
            setUnsearched(unsearched);
          },
          (refused: Refused) => left || failed(refused),
        ),
      words ? TYPED_MILLISECONDS : 0,
    );
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [words, looks, session]);

  // The server is asked for the words of a few conversations at a time; the older ones come last.
  useEffect(() => {
    if (!unsearched) return;
    const timer = setTimeout(() => lookAgain((n) => n + 1), FURTHER_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [unsearched, looks]);

  return (
    <div class="shelf">
      <label>
        <span class="unseen">Search conversations</span>
        <input type="search" ref={field} value={words} placeholder="Search" onInput={(event) => setWords(event.currentTarget.value)} />
      </label>
      <ul>
        {found?.map((entry) => (
          <EntryOf key={entry.id} entry={entry} isBusy={isBusy} failed={failed} changed={() => lookAgain((n) => n + 1)} />
        ))}
      </ul>
      {unsearched > 0 && (
        <p class="muted">Of {unsearched.toLocaleString("en")} older ones only the titles were searched so far. Looking further…</p>
      )}
      {found?.length === 0 && unsearched === 0 && <p class="muted">{words ? "No conversation has these words." : "There is none yet."}</p>}
    </div>
  );
}

function EntryOf(given: { entry: ConversationEntry; isBusy: boolean; failed: (refused: Refused) => void; changed: () => void }) {
  const { entry, isBusy, failed, changed } = given;
  const [doing, setDoing] = useState<"" | "renaming" | "deleting">("");
  const [title, setTitle] = useState(entry.title);
  const done = () => {
    setDoing("");
    changed();
  };

  if (doing === "renaming")
    return (
      <li>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            post("rename", { id: entry.id, title }).then(done, failed);
          }}
        >
          <input
            aria-label="Title"
            value={title}
            maxLength={80}
            ref={(field) => field?.focus()}
            onInput={(event) => setTitle(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Escape" && setDoing("")}
          />
          <button type="submit" disabled={!title.trim()}>
            Rename
          </button>
          <button type="button" class="link" onClick={() => setDoing("")}>
            Keep
          </button>
        </form>
      </li>
    );
  if (doing === "deleting")
    return (
      <li class="deleting">
        <p>
          Delete “<Marked text={entry.title} />
          ”? What was said is forgotten for good. What was called in it stays in the timeline.
        </p>
        <div class="row">
          <button type="button" class="no" onClick={() => void post("delete", { id: entry.id }).then(done, failed)}>
            Delete
          </button>
          <button type="button" class="link" onClick={() => setDoing("")}>
            Keep
          </button>
        </div>
      </li>
    );
  return (
    <li>
      <button
        type="button"
        class="title"
        aria-current={entry.is_open ? "true" : undefined}
        disabled={isBusy && !entry.is_open}
        onClick={() => void post("open", { id: entry.id }).catch(failed)}
      >
        <span>
          <Marked text={entry.title} />
        </span>
        <span class="muted">
          {entry.found ? <Marked text={entry.found} /> : entry.is_open ? "open now" : new Date(entry.at * 1000).toLocaleString("en-GB")}
        </span>
      </button>
      <button type="button" class="link" aria-label={`Rename ${entry.title}`} onClick={() => setDoing("renaming")}>
        Rename
      </button>
      <button
        type="button"
        class="link"
        aria-label={`Delete ${entry.title}`}
        disabled={isBusy && entry.is_open}
        onClick={() => setDoing("deleting")}
      >
        Delete
      </button>
    </li>
  );
}
