// What stands for an answer of yours: the grants that you gave from cards, to be taken back here, the rules by file, and
// what decides about a call that nobody makes.

import { useEffect, useRef, useState } from "preact/hooks";
import { ProblemOf, useProblem } from "./problem.tsx";
import { grants, post } from "./requests.ts";
import type { ExplainedCall, GrantEntry, GrantsFound, ToolEntry } from "./wire.ts";
import { Marked } from "./words.tsx";

const SAYINGS: Record<string, string> = { allow: "does not ask", ask: "asks each time", deny: "never happens" };

const LAYERS: Record<string, string> = { organisation: "your organisation's", user: "yours", project: "this project's" };

export function GrantsOf({ tools }: { tools: ToolEntry[] }) {
  const [found, setFound] = useState<GrantsFound | null>(null);
  const [problem, fail] = useProblem();
  const [taken, setTaken] = useState("");
  const heading = useRef<HTMLHeadingElement>(null);
  const look = () => grants().then(setFound, fail);
  useEffect(() => void look(), []);
  // Whether it was done or came too late, the list is another one by now, and the button that was pressed is gone.
  function takeBack(grant: GrantEntry) {
    setTaken("");
    fail(null);
    post("grant_revoke", { id: grant.id })
      .then(() => setTaken(grant.sentence), fail)
      .then(look)
      .then(() => heading.current?.focus());
  }
  if (found === null) return <ProblemOf problem={problem} />;
  return (
    <section class="grants">
      <h2>Grants and rules</h2>
      <ProblemOf problem={problem} />
      <h3 ref={heading} tabIndex={-1}>
        What you allowed from cards
      </h3>
      <p role="status">
        {taken && (
          <>
            Taken back: <Marked text={taken} />. You are asked about it again.
          </>
        )}
      </p>
      {found.grants.length === 0 && <p class="muted">You have granted nothing. A grant is given from a card, in a second step.</p>}
      <ul>
        {found.grants.map((grant) => (
          <li key={grant.id}>
            <p id={`standing-${grant.id}`}>
              <Marked text={grant.sentence} />
            </p>
            <p class="muted">
              <Marked text={grant.used} />
              {grant.over && `; it is over: ${grant.over}`}
            </p>
            <button type="button" aria-describedby={`standing-${grant.id}`} onClick={() => takeBack(grant)}>
              Take it back
            </button>
          </li>
        ))}
      </ul>
      <h3>Rules</h3>
      {found.files.length === 0 && (
        <p class="muted">
          There are no rules. <code>lastword policy check</code> says where a file with some would be.
        </p>
      )}
      {found.files.map((file) => (
        <div class="rules" key={file.path}>
          <p>
            <code>
              <Marked text={file.path} />
            </code>{" "}
            <span class="muted">
              ({LAYERS[file.layer] ?? file.layer}, {file.state})
            </span>
          </p>
          {file.rules.length === 0 && <p class="muted">It has no rules.</p>}
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
      {tool?.parameters.map((field) => {
        const id = `explained-${field}`;
        const shared = {
          id,
          autocomplete: "off",
          value: given[field] ?? "",
          onInput: (event: { currentTarget: HTMLInputElement }) => {
            const text = event.currentTarget.value;
            change(() => setGiven((now) => ({ ...now, [field]: text })));
          },
        };
        return (
          <label key={`${tool.tool} ${field}`} for={id}>
            <span>
              <Marked text={field} />
              {!tool.required.includes(field) && <span class="muted"> (empty: left out)</span>}
            </span>
            {tool.secrets.includes(field) ? <input type="password" {...shared} /> : <input {...shared} />}
          </label>
        );
      })}
      <div class="actions">
        <button type="submit">Say what decides</button>
      </div>
      <ProblemOf problem={problem} />
      <div role="status">
        {told && (
          <p class="told">
            <strong>{WOULD[told.saying] ?? told.saying}</strong> <Marked text={told.why} />
          </p>
        )}
      </div>
    </form>
  );
}
