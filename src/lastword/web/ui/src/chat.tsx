// The conversation: words, scripts and calls in the order in which they came, and a place to write.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { CallOf } from "./call.tsx";
import { follow } from "./follow.ts";
import { type Picture, waitingIn } from "./picture.ts";
import { post } from "./requests.ts";
import type { CallItem, Item, ScriptItem, Settings } from "./wire.ts";
import { Folded, Marked, Prose } from "./words.tsx";

export function Chat({ picture }: { picture: Picture }) {
  const items = [...picture.items.values()];
  const waiting = waitingIn(items);
  useLayoutEffect(follow, [picture.changes]);

  return (
    <div class="chat">
      <h1 class="unseen">Conversation</h1>
      {!items.length && picture.settings && <Welcome settings={picture.settings} />}
      <div class="flow" role="log" aria-live="off" aria-label="Conversation">
        {items.map((item) =>
          item.kind === "call" && item.run && picture.items.has(item.run) ? null : <ItemOf key={item.id} item={item} items={items} />,
        )}
      </div>
      <Composer picture={picture} waiting={waiting} />
    </div>
  );
}

function ItemOf({ item, items }: { item: Item; items: Item[] }) {
  if (item.kind === "call") return <CallOf call={item} />;
  if (item.kind === "run")
    return <ScriptOf script={item} calls={items.filter((other): other is CallItem => other.kind === "call" && other.run === item.id)} />;
  const who = { you: "You", assistant: "Assistant", lastword: "lastword" }[item.by];
  return (
    <div class={`message ${item.by}`}>
      <span class="unseen">{who} said: </span>
      {item.by === "assistant" ? <Prose text={item.text} /> : <Folded text={item.text} />}
      {item.open && <span class="caret" aria-hidden="true" />}
    </div>
  );
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
  const [problem, setProblem] = useState("");
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
    if (!words.trim() || picture.busy) return;
    post("say", { text: words }).then(
      () => {
        setText("");
        setProblem("");
      },
      (refused: Error) => setProblem(refused.message),
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
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
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
          <button type="button" class="stop" onClick={() => void post("stop", {}).catch((refused: Error) => setProblem(refused.message))}>
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
