// Trusting an MCP server: first the way to it, then what it says of its tools, or what changed in that. Each yes takes two
// acts, a word that is typed and a press, and is to exactly what stands there.

import { useEffect, useRef, useState } from "preact/hooks";
import { disarmAll, useArmed } from "./arming.ts";
import { PreviewOf } from "./preview.tsx";
import { post, serverQuestion } from "./requests.ts";
import type { SeenServer, ServerQuestion } from "./wire.ts";
import { WordField } from "./word.tsx";
import { Folded, Marked, Named } from "./words.tsx";

type Given = { name: string; over: (words: string) => void };

export function TrustOf({ name, over }: Given) {
  const [asked, setAsked] = useState<ServerQuestion | null>(null);
  const [seen, setSeen] = useState<SeenServer | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let left = false;
    serverQuestion(name).then(
      (now) => !left && setAsked(now),
      (refused: Error) => !left && setProblem(refused.message),
    );
    return () => {
      left = true;
    };
  }, [name]);
  useEffect(() => {
    if (seen?.same) over(`It is as you trusted it, with ${tools(seen.count)}.`);
  }, [seen]);
  if (problem)
    return (
      <p class="problem" role="alert">
        <Marked text={problem} />
      </p>
    );
  if (seen && !seen.same) return <Tools key={seen.digest} seen={seen} name={name} over={over} />;
  return asked && !seen && <Way asked={asked} name={name} over={over} onSeen={setSeen} />;
}

function Way({ asked, name, over, onSeen }: Given & { asked: ServerQuestion; onSeen: (seen: SeenServer) => void }) {
  const isAddress = asked.word === "contact";
  return (
    <Asking
      heading={isAddress ? `Contact ${name}?` : `Start ${name}?`}
      digest={asked.digest}
      word={asked.word}
      why={asked.rights}
      button={isAddress ? "Contact it, and look at its tools" : "Start it, and look at its tools"}
      busy={isAddress ? "Contacting it…" : "Starting it…"}
      closed={[]}
      onOpen={() => {}}
      onNo={() => over("")}
      onYes={(word) => post("server_look", { name, digest: asked.digest, word }).then(onSeen)}
    >
      <Named label="The way to it" rows={asked.way} />
      {asked.changed.map((line) => (
        <p key={line} class="again">
          <strong>Changed:</strong> <Marked text={line} />
        </p>
      ))}
    </Asking>
  );
}

function Tools({ seen, name, over }: Given & { seen: SeenServer }) {
  const [folds, setFolds] = useState<Record<string, boolean>>({});
  const closed = seen.must_open.filter((part) => folds[part] === undefined);
  const turn = (parts: string[], open: boolean) => {
    setFolds((now) => ({ ...now, ...Object.fromEntries(parts.map((part) => [part, open])) }));
    disarmAll();
  };
  const foldOf = (part: string, at: number | null) => ({ at, open: folds[part] ?? false, turn: () => turn([part], !folds[part]) });
  const what = seen.changes.length ? `What changed in ${name} since you trusted it` : `${name} names ${tools(seen.count)}`;
  return (
    <Asking
      heading={what}
      digest={seen.digest}
      word={seen.word}
      why="Your assistant may then ask for these tools. Each call still asks you."
      button="Trust it as it is"
      busy="Keeping it…"
      closed={closed}
      onOpen={() => turn(closed, true)}
      onNo={() => over("")}
      onYes={(word) =>
        post("server_trust", { name, digest: seen.digest, word, opened: seen.must_open }).then(() =>
          over(`Trusted, with ${tools(seen.count)}. When something of it changes, you are asked again.`),
        )
      }
    >
      {seen.version && (
        <p class="muted">
          It calls itself <Marked text={seen.version} />
          {seen.version_before && seen.version_before !== seen.version && (
            <>
              , and called itself <Marked text={seen.version_before} /> before
            </>
          )}
          .
        </p>
      )}
      {seen.unusable.map((line) => (
        <p key={line} class="again">
          Not usable: <Marked text={line} />
        </p>
      ))}
      {seen.tools.map((tool) => (
        <blockquote key={tool.id}>
          <span>
            <code>{tool.id}</code> {tool.loud && <span class="effect grave">says of itself that it destroys</span>}
          </span>
          <Folded text={tool.about} fold={foldOf(`tool ${tool.id}`, tool.fold)} />
          {tool.arguments && (
            <span class="muted">
              Arguments: <Marked text={tool.arguments} />
            </span>
          )}
        </blockquote>
      ))}
      {seen.changes.map((change, place) => (
        <PreviewOf
          key={change.path}
          preview={change}
          text={null}
          fold={foldOf(`change ${place}`, change.fold)}
          onEdit={() => {}}
          onReady={() => {}}
        />
      ))}
    </Asking>
  );
}

// A question that a word and a press answer with yes, and a press with no.
function Asking(given: {
  heading: string;
  digest: string;
  word: string | null;
  why: string;
  button: string;
  busy: string;
  closed: string[];
  onOpen: () => void;
  onNo: () => void;
  onYes: (word: string | null) => Promise<unknown>;
  children: preact.ComponentChildren;
}) {
  const { word, closed } = given;
  const section = useRef<HTMLElement>(null);
  const [typed, setTyped] = useState("");
  const [sent, setSent] = useState(false);
  const [problem, setProblem] = useState("");
  const { armed, counts } = useArmed(given.digest, true);
  useEffect(() => section.current?.focus(), []);
  const lacks = closed.length ? "open" : word === null || typed.trim().toLowerCase() === word ? null : "word";
  const id = `asking-${given.digest}`;

  function press(event: Event) {
    if (!counts(event) || sent) return;
    if (lacks === "word") section.current?.querySelector<HTMLElement>(".word")?.focus();
    if (lacks) return;
    setSent(true);
    setProblem("");
    disarmAll();
    given.onYes(word && typed).catch((refused: Error) => {
      setProblem(refused.message);
      setSent(false);
    });
  }

  return (
    <section class="card trusting" ref={section} tabIndex={-1} aria-labelledby={id} aria-busy={sent} data-armed={armed}>
      <h3 id={id}>{given.heading}</h3>
      {given.children}
      {problem && (
        <p class="problem" role="alert">
          <Marked text={problem} />
        </p>
      )}
      <div class="actions">
        {lacks === "open" ? (
          <p class="second folded" id={`second-${id}`}>
            {closed.length === 1 ? "A part of it is" : `${closed.length} parts of it are`} folded. Before you can trust it,{" "}
            <button type="button" class="link" onClick={given.onOpen}>
              open {closed.length === 1 ? "it" : "them"}
            </button>
            .
          </p>
        ) : (
          <p class="second" id={`second-${id}`}>
            <span>{given.why}</span>
            {word !== null && (
              <>
                <label for={`word-${id}`}>
                  If you want that, type <b>{word}</b> here, then press the button:
                </label>
                <WordField id={`word-${id}`} value={typed} armed={armed} onWord={setTyped} />
              </>
            )}
          </p>
        )}
        <button
          type="button"
          class="primary"
          disabled={sent}
          aria-disabled={lacks !== null}
          aria-describedby={`second-${id}`}
          // Enter alone never approves.
          onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
          onClick={press}
        >
          {sent ? given.busy : given.button}
        </button>
        <button type="button" class="no" disabled={sent} onClick={given.onNo}>
          Not now
        </button>
      </div>
    </section>
  );
}

function tools(count: number): string {
  return count === 1 ? "one tool" : `${count} tools`;
}
