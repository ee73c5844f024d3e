// What stands for an answer of yours: the grants that you gave from cards, to be taken back here, the rules by file, and
// what decides about a call that nobody makes.

import { useEffect, useState } from "preact/hooks";
import { ProblemOf, useProblem } from "./problem.tsx";
import { grants, post } from "./requests.ts";
import type { ExplainedCall, GrantsFound, ToolEntry } from "./wire.ts";
import { Marked } from "./words.tsx";

const SAYINGS: Record<string, string> = { allow: "does not ask", ask: "asks each time", deny: "never happens" };

export function GrantsOf({ tools }: { tools: ToolEntry[] }) {
  const [found, setFound] = useState<GrantsFound | null>(null);
  const [problem, fail] = useProblem();
  const look = () => void grants().then(setFound, fail);
  useEffect(look, []);
  if (found === null) return <ProblemOf problem={problem} />;
  return (
    <section class="grants">
      <h2>Grants and rules</h2>
      <ProblemOf problem={problem} />
      {found.grants.length === 0 && <p class="muted">You have granted nothing. A grant is given from a card, in a second step.</p>}
      <ul>
        {found.grants.map((grant) => (
          <li key={grant.id}>
            <p>
              <Marked text={grant.sentence} />
            </p>
            <p class="muted">
              <Marked text={grant.used} />
              {grant.over && `; it is over: ${grant.over}`}
            </p>
            <button type="button" onClick={() => void post("grant_revoke", { id: grant.id }).then(look, fail)}>
              Take it back
            </button>
          </li>
        ))}
      </ul>
      {found.files.length === 0 && (
        <p class="muted">
          There are no rules. <code>lastword policy check</code> says where a file with some would be.
        </p>
      )}
      {found.files.map((file) => (
        <div key={file.path}>
          <p>
            <code>
              <Marked text={file.path} />
            </code>{" "}
            <span class="muted">
              ({file.layer}, {file.accepted ? "accepted" : "not accepted: it can only ask and deny"})
            </span>
          </p>
          <ul>
            {file.rules.map((rule) => (
              <li key={rule.name}>
                <Marked text={rule.name} />: {SAYINGS[rule.saying] ?? rule.saying}
                <p class="muted">
                  <Marked text={rule.words} />
                </p>
              </li>
            ))}
          </ul>
        </div>
      ))}
      {tools.length > 0 && <Explaining tools={tools} />}
    </section>
  );
}

// Each as the answer to: what would happen?
const WOULD: Record<string, string> = {
  allow: "Nobody would be asked.",
  ask: "You would be asked.",
  deny: "It would not happen, and nobody would be asked.",
};

function Explaining({ tools }: { tools: ToolEntry[] }) {
  const [name, setName] = useState(tools[0]?.tool ?? "");
  const [given, setGiven] = useState<Record<string, string>>({});
  const [told, setTold] = useState<ExplainedCall | null>(null);
  const [problem, setProblem] = useProblem();
  const tool = tools.find((known) => known.tool === name) ?? tools[0];
  // An answer is about what stood in the fields when it was asked for.
  function change(act: () => void) {
    setTold(null);
    setProblem(null);
    act();
  }
  function ask() {
    if (!tool) return;
    const filled = Object.entries(given).filter(([field, text]) => text !== "" && tool.parameters.includes(field));
    post("explain", { tool: tool.tool, arguments: Object.fromEntries(filled) }).then(
      (answer) => change(() => setTold(answer)),
      (refused) => change(() => setProblem(refused)),
    );
  }
  return (
    <form
      class="explaining"
      onSubmit={(event) => {
        event.preventDefault();
        ask();
      }}
    >
      <h3>What decides about a call?</h3>
      <p class="muted">Say which call you mean. It is not made: you only read what would decide about it, and why.</p>
      <label>
        Tool
        <select value={tool?.tool} onChange={(event) => change(() => setName(event.currentTarget.value))}>
          {tools.map((known) => (
            <option key={known.tool} value={known.tool}>
              {known.tool}
            </option>
          ))}
        </select>
      </label>
      {tool?.parameters.map((field) => (
        <label key={`${tool.tool} ${field}`}>
          <span>
            <Marked text={field} />
            {!tool.required.includes(field) && <span class="muted"> (empty: left out)</span>}
          </span>
          <input
            autocomplete="off"
            value={given[field] ?? ""}
            onInput={(event) => {
              const text = event.currentTarget.value;
              change(() => setGiven((now) => ({ ...now, [field]: text })));
            }}
          />
        </label>
      ))}
      <div class="actions">
        <button type="submit">Say what decides</button>
      </div>
      <ProblemOf problem={problem} />
      {told && (
        <p class="told" role="status">
          <strong>{WOULD[told.saying] ?? told.saying}</strong> {told.why && <Marked text={`${told.why}.`} />}
        </p>
      )}
    </form>
  );
}
