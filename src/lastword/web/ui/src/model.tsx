// Which model answers, and a form that tries another one at once and keeps it.

import { useState } from "preact/hooks";
import { ProblemOf, useProblem } from "./problem.tsx";
import { post } from "./requests.ts";
import type { Settings, TriedModel } from "./wire.ts";
import { Marked } from "./words.tsx";

export function ModelOf({ settings }: { settings: Settings }) {
  const [address, setAddress] = useState("");
  const [model, setModel] = useState("");
  const [key, setKey] = useState("");
  const [trying, setTrying] = useState(false);
  const [problem, setProblem] = useProblem();
  const [tried, setTried] = useState<TriedModel | null>(null);

  function attempt() {
    setTrying(true);
    setProblem(null);
    setTried(null);
    post("model", { address, model, key })
      .then((found) => {
        setTried(found);
        setKey("");
      }, setProblem)
      .finally(() => setTrying(false));
  }

  return (
    <section>
      <h2>Who answers</h2>
      <p>
        <Marked text={settings.model} />
      </p>
      {settings.next_model && (
        <p>
          As soon as the assistant is done with what it does: <Marked text={settings.next_model} />.
        </p>
      )}
      {!settings.can_choose_model && <p class="muted">It is named where lastword was started, and can be changed there.</p>}
      {settings.can_choose_model && (
        <form
          class="model"
          aria-busy={trying}
          onSubmit={(event) => {
            event.preventDefault();
            if (!trying) attempt();
          }}
        >
          <label>
            Address of a model's server
            <input
              class="mono"
              required
              autocomplete="off"
              spellcheck={false}
              placeholder="http://127.0.0.1:11434/v1"
              value={address}
              onInput={(event) => setAddress(event.currentTarget.value)}
            />
          </label>
          <label>
            Name of the model, if the server has several
            <input
              class="mono"
              autocomplete="off"
              spellcheck={false}
              value={model}
              onInput={(event) => setModel(event.currentTarget.value)}
            />
          </label>
          <label>
            Key, if the server wants one
            <input class="mono" type="password" autocomplete="off" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
          </label>
          <p class="muted">It is asked three short questions. A key is kept in a file that only you can read, and nowhere else.</p>
          <div class="actions">
            <button type="submit" disabled={trying}>
              {trying ? "Trying it…" : "Try it and keep it"}
            </button>
          </div>
          <div role="status">
            {trying && <p class="muted">A large model on a small machine takes a few minutes for this.</p>}
            {tried && <Found tried={tried} />}
          </div>
          <ProblemOf problem={problem} />
        </form>
      )}
    </section>
  );
}

function Found({ tried }: { tried: TriedModel }) {
  const seen = tried.context_tokens === null ? "It does not say how much it sees." : `It sees ${tried.context_tokens} tokens at once.`;
  return (
    <>
      <p>It answers, and was kept:</p>
      <ul>
        <li>{seen}</li>
        <li>{tried.streams ? "Its answers come word by word." : "Its answers come in one piece."}</li>
        <li>{tried.native ? "It asks for tools in its own way." : "It did not ask for a tool in a way of its own."}</li>
        <li>{tried.grammar ? "It can be held to the form of a request." : "It cannot be held to the form of a request."}</li>
        <li>
          {tried.protocols.length
            ? `It asked for a tool in: ${tried.protocols.join(", ")}.`
            : "It asked for a tool in no protocol, so tools will not work with it."}
        </li>
      </ul>
      {tried.unlisted && (
        <p>
          It answers to this name, but <Marked text={tried.unlisted} />
        </p>
      )}
    </>
  );
}
