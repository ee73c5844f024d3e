// The conversation: words, scripts and calls in the order in which they came, and a place to write.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { CallOf } from "./call.tsx";
import { type Command, CommandHelp, commandIn } from "./commands.tsx";
import { Conversations } from "./conversations.tsx";
import { follow } from "./follow.ts";
import { MessageOf } from "./message.tsx";
import { askingIn, type Picture, waitingIn } from "./picture.ts";
import { ProblemOf, useProblem } from "./problem.tsx";
import { earlier, post, type Refused, tokens } from "./requests.ts";
import type { CallItem, Item, ScriptItem, Settings } from "./wire.ts";
import { Folded, Marked } from "./words.tsx";

export function Chat({ picture }: { picture: Picture }) {
  const [read, setRead] = useState<{ session: string; items: Item[] } | null>(null);
  const [problem, setProblem] = useProblem();
  // What a window asks for is its own, and stays above what all of them are told, as long as that conversation is open.
  const older = read?.session === picture.session ? read.items : null;
  const items = [...(older ?? []).filter((item) => !picture.items.has(item.id)), ...picture.items.values()];
  const scripts = new Set(items.filter((item) => item.kind === "run").map((item) => item.id));
  const waiting = [...waitingIn(items), ...askingIn(items)];
  useLayoutEffect(follow, [picture.changes]);

  return (
    <div class="chat">
      <h1 class="unseen">Conversation</h1>
      <Conversations session={picture.session} isBusy={picture.busy} />
      {!items.length && picture.settings && <Welcome settings={picture.settings} />}
      {picture.hasEarlier && older === null && (
        <button
          type="button"
          class="link"
          onClick={() =>
            void earlier().then(
              (found) => setRead({ session: picture.session, items: found.items }),
              (refused: Refused) => setProblem(refused),
            )
          }
        >
          Show what was earlier
        </button>
      )}
      <ProblemOf problem={problem} />
      <div class="flow" role="log" aria-live="off" aria-label="Conversation">
        {items.map((item) =>
          item.kind === "call" && item.run && scripts.has(item.run) ? null : (
            <ItemOf key={item.id} item={item} items={items} isBusy={picture.busy} />
          ),
        )}
      </div>
      <Composer picture={picture} waiting={waiting} />
    </div>
  );
}

function ItemOf({ item, items, isBusy }: { item: Item; items: Item[]; isBusy: boolean }) {
  if (item.kind === "call") return <CallOf call={item} />;
  if (item.kind === "run")
    return <ScriptOf script={item} calls={items.filter((other): other is CallItem => other.kind === "call" && other.run === item.id)} />;
  return <MessageOf item={item} retry={item.problem ? toRetry(item, items) : null} isBusy={isBusy} />;
}

// What the person said last, when nothing but this failure came of it.
function toRetry(item: Item, items: Item[]): string | null {
  if (items.at(-1) !== item) return null;
  return items.findLast((other) => other.kind === "message" && other.by === "you")?.id ?? null;
}

const STATES: Record<ScriptItem["status"], [tone: string, words: string]> = {
  done: ["good", "done"],
  running: ["running", "running"],
  failed: ["bad", "failed"],
  cancelled: ["denied", "stopped"],
  waiting: ["denied", "needs your decision"],
  left: ["denied", "interrupted"],
};

function ScriptOf({ script, calls }: { script: ScriptItem; calls: CallItem[] }) {
  const asking = calls.findLast((call) => call.status === "waiting" || call.status === "running");
  const at = asking?.line;
  const [tone, words] = STATES[script.status];
  return (
    <section class="script" aria-label={`Script, ${words}`}>
      <div class="line">
        <strong>Script</strong>
        <span class={`pill ${tone}`}>{words}</span>
        <span class="muted grow">
          <Marked text={script.name ?? "written by the assistant"} />
        </span>
      </div>
      <ol class="code" tabIndex={0} aria-label="Text of the script">
        {script.text
          .replace(/\n$/, "")
          .split("\n")
          .map((line, place) => (
            <li key={place} class={place + 1 === at ? "now" : ""} aria-current={place + 1 === at ? "step" : undefined}>
              <code>
                <Marked text={line} />
              </code>
            </li>
          ))}
      </ol>
      {calls.map((call) => (
        <CallOf key={call.id} call={call} />
      ))}
      {script.lines.length > 0 && (
        <div class="printed">
          <span class="who">It printed</span>
          <Folded class="mono" text={script.lines.join("\n")} />
        </div>
      )}
      {script.error && (
        <p class="problem mono">
          <Marked text={script.error} />
        </p>
      )}
    </section>
  );
}

function Welcome({ settings }: { settings: Settings }) {
  return (
    <div class="welcome">
      <h2>Nothing happens here without you</h2>
      <p>Write to the assistant below. When it wants to do something that needs your word, a card shows exactly what, and waits.</p>
      <p class="muted">{settings.model}</p>
    </div>
  );
}

function Composer({ picture, waiting }: { picture: Picture; waiting: CallItem[] }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useProblem();
  const [told, setTold] = useState<Command | null>(null);
  const [sum, setSum] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  // The rehearsal model understands a few words only; in a tour they are worth a button.
  const rehearses = picture.settings?.rehearsal && picture.settings.tools.some((tool) => tool.tool === "tour_note");
  useLayoutEffect(() => {
    const box = field.current;
    if (!box) return;
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight + 2, 240)}px`;
  }, [text, waiting.length, picture.busy]);

  function say(words: string) {
    const command = commandIn(words);
    setTold(null);
    setSum("");
    if (command) {
      setText("");
      setTold(command);
      setProblem(null);
      if (command.view) location.hash = command.view;
      if (command.name === "/tokens") tokens().then((total) => setSum(total.words), setProblem);
      return;
    }
    if (!words.trim() || picture.busy) return;
    // Whatever was pressed to say it may be gone in a moment.
    field.current?.focus();
    post("say", { text: words }).then(
      () => {
        setText("");
        setProblem(null);
      },
      (refused: Refused) => setProblem(refused),
    );
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        say(text);
      }}
    >
      <ProblemOf problem={problem} />
      {told?.name === "/help" && <CommandHelp />}
      {told?.name === "/tokens" && sum && <p role="status">{sum}</p>}
      {rehearses && !picture.busy && !waiting.length && (
        <div class="hints" role="group" aria-label="Suggestions">
          {["next", "/undo", "tour", "/tour_count to=40"].map((words) => (
            <button type="button" key={words} onClick={() => say(words)}>
              {words}
            </button>
          ))}
        </div>
      )}
      <div class="write">
        <label class="unseen" for="say">
          Message to the assistant
        </label>
        <textarea
          id="say"
          ref={field}
          rows={1}
          value={text}
          placeholder={
            waiting.length ? "Waiting for your answer above" : picture.busy ? "The assistant is at work" : "Write to the assistant"
          }
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              if (!event.repeat) say(text);
            } else if (event.key === "Escape" && waiting[0]) {
              document.querySelector<HTMLElement>(`.card[data-call="${waiting[0].id}"]`)?.focus();
            }
          }}
        />
        {picture.busy ? (
          <button type="button" class="stop" onClick={() => void post("stop", {}).catch((refused: Refused) => setProblem(refused))}>
            Stop
          </button>
        ) : (
          <button type="submit" class="primary" disabled={!text.trim()}>
            Send
          </button>
        )}
      </div>
    </form>
  );
}
