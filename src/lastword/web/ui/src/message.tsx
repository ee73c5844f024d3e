// One message. What the person said can be said again or in other words, and the conversation goes on from there.

import { useState } from "preact/hooks";
import { ProblemOf, useProblem } from "./problem.tsx";
import { post } from "./requests.ts";
import type { MessageItem } from "./wire.ts";
import { Folded, Prose } from "./words.tsx";

const WHO = { you: "You", assistant: "Assistant", lastword: "lastword" };

export function MessageOf({ item, retry, isBusy }: { item: MessageItem; retry: string | null; isBusy: boolean }) {
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useProblem();
  const typed = item.raw ?? item.text;

  function again(message: string, words: string | null) {
    post("again", { message, text: words }).then(() => setText(null), setProblem);
  }

  if (text !== null)
    return (
      <form
        class="message you editing"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim()) again(item.id, text);
        }}
      >
        <textarea
          aria-label="Your message"
          rows={Math.min(12, text.split("\n").length + 1)}
          value={text}
          ref={(field) => field?.focus()}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && setText(null)}
        />
        <p class="muted">The conversation goes on from here. What was called since stays done, and the assistant is told.</p>
        <ProblemOf problem={problem} />
        <div class="row">
          <button type="submit" class="primary" disabled={isBusy || !text.trim()}>
            Send
          </button>
          <button type="button" class="link" onClick={() => setText(null)}>
            Keep it as it was
          </button>
        </div>
      </form>
    );
  return (
    <div class={`message ${item.by}${item.problem ? " failed" : ""}`}>
      <span class="unseen">{WHO[item.by]} said: </span>
      {item.reasoning && (
        <details class="thought">
          <summary>What it thought first</summary>
          <Folded text={item.reasoning} />
        </details>
      )}
      {item.by === "assistant" ? <Prose text={item.text} /> : <Folded text={item.text} />}
      {item.open && <span class="caret" aria-hidden="true" />}
      {(item.used || item.tokens !== null) && (
        <p class="used">
          {[item.used, item.tokens === null ? "" : `${item.tokens.toLocaleString("en")} tokens`].filter(Boolean).join(" · ")}
        </p>
      )}
      <ProblemOf problem={problem} />
      {item.by === "you" && item.turn !== null && !isBusy && (
        <span class="links">
          <button type="button" class="link" onClick={() => setText(typed)}>
            Edit
          </button>
          <button type="button" class="link" onClick={() => again(item.id, null)}>
            Ask again
          </button>
        </span>
      )}
      {retry !== null && !isBusy && (
        <p>
          <button type="button" class="retry" onClick={() => again(retry, null)}>
            Retry
          </button>
        </p>
      )}
    </div>
  );
}
