// MCP under Settings: the servers whose tools stand behind cards, how each stands, and the clients that use our tools. The
// words of servers and clients come marked; nothing of them is drawn as anything but text.

import { useEffect, useState } from "preact/hooks";
import { post, servers } from "./requests.ts";
import { TrustOf } from "./trusting.tsx";
import type { ServerEntry, ServersFound } from "./wire.ts";
import { clock, Marked } from "./words.tsx";

// Servers start and fail, and clients come and go, without a word to this window.
const LOOK_MILLISECONDS = 3000;

type State = ServerEntry["state"];
const TONES: Record<State, string> = { "not trusted": "wait", changed: "wait", trusted: "", running: "good" };
const STATES: Record<State, string> = {
  "not trusted": "not trusted yet",
  changed: "changed since you trusted it",
  trusted: "trusted, not running",
  running: "trusted, running",
};

export function ServersOf({ changed }: { changed: unknown }) {
  const [found, setFound] = useState<ServersFound | null>(null);
  const [problem, setProblem] = useState("");
  const [looked, setLooked] = useState(0);
  const again = () => setLooked((n) => n + 1);
  useEffect(() => {
    let left = false;
    servers().then(
      (now) => {
        if (left) return;
        setFound(now);
        setProblem("");
      },
      (refused: Error) => !left && setProblem(refused.message),
    );
    const timer = setTimeout(() => document.hidden || again(), LOOK_MILLISECONDS);
    document.addEventListener("visibilitychange", again);
    return () => {
      left = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [changed, looked]);
  if (!found) return problem ? <p class="problem">{problem}</p> : null;
  return (
    <>
      <section aria-labelledby="mcp-servers">
        <h2 id="mcp-servers">MCP servers</h2>
        <p class="muted">
          Tools of other programs, behind your cards: each call of one asks you, until you turn its key with{" "}
          <code>lastword mcp trust NAME --standing</code>. They are named in <code>{found.place}</code>, and nothing is started or contacted
          before you have seen it.
        </p>
        {found.servers.length > 0 && (
          <ul class="servers">
            {found.servers.map((server) => (
              <Server key={server.name} server={server} again={again} />
            ))}
          </ul>
        )}
        <Add again={again} />
      </section>
      <section aria-labelledby="mcp-clients">
        <h2 id="mcp-clients">MCP clients</h2>
        {found.clients.length === 0 ? (
          <p class="muted">
            None is connected. <code>lastword mcp serve</code> offers your tools to one; its cards wait here.
          </p>
        ) : (
          <ul class="servers">
            {found.clients.map((client, place) => (
              <li key={place}>
                <div class="head">
                  <span class="name">
                    <Marked text={client.name} />
                  </span>
                  <span class="pill good">connected</span>
                </div>
                <p class="muted">
                  That is what it calls itself. Since {clock(client.since)}; <Marked text={client.way} />.
                </p>
              </li>
            ))}
          </ul>
        )}
      </section>
    </>
  );
}

function Server({ server, again }: { server: ServerEntry; again: () => void }) {
  const [asking, setAsking] = useState<"" | "trust" | "remove">("");
  const [said, setSaid] = useState("");
  const [problem, setProblem] = useState("");
  const withheld = server.tools.filter((tool) => tool.withheld);
  const isTrusted = server.state === "trusted" || server.state === "running";
  const first = server.way[0];

  function remove() {
    post("server_remove", { name: server.name }).then(again, (refused: Error) => setProblem(refused.message));
  }

  return (
    <li>
      <div class="head">
        <span class="name">{server.name}</span>
        <span class={`pill ${TONES[server.state]}`}>{STATES[server.state]}</span>
        {server.version && (
          <span class="muted">
            <Marked text={server.version} />
          </span>
        )}
      </div>
      {first && (
        <p class="mono">
          <Marked text={first[1]} />
        </p>
      )}
      {server.changed.map((line) => (
        <p key={line} class="again">
          <Marked text={line} />
        </p>
      ))}
      {isTrusted && withheld.length > 0 && (
        <p class="again">
          {withheld.length === 1 ? "One of its tools is" : `${withheld.length} of its tools are`} withheld: not as you trusted{" "}
          {withheld.length === 1 ? "it" : "them"}.
        </p>
      )}
      {server.new.length > 0 && (
        <p class="again">
          It lists what you have not looked at: <Marked text={server.new.join(", ")} />.
        </p>
      )}
      {server.last_error && (
        <blockquote aria-label="Last error">
          <span class="who">Last error</span>
          <Marked text={server.last_error} />
        </blockquote>
      )}
      {server.tools.length > 0 && (
        <details>
          <summary>{server.tools.length === 1 ? "One tool" : `${server.tools.length} tools`}</summary>
          <ul class="offered">
            {server.tools.map((tool) => (
              <li key={tool.id}>
                <code>{tool.id}</code>{" "}
                {!tool.id.endsWith(`__${tool.name}`) && (
                  <span class="muted">
                    <Marked text={tool.name} />
                  </span>
                )}
                {tool.withheld && (
                  <span class="muted">
                    {" "}
                    withheld: <Marked text={tool.withheld} />
                  </span>
                )}
              </li>
            ))}
          </ul>
        </details>
      )}
      {said && <p role="status">{said}</p>}
      {problem && (
        <p class="problem" role="alert">
          <Marked text={problem} />
        </p>
      )}
      {asking === "trust" ? (
        <TrustOf
          name={server.name}
          over={(words) => {
            setSaid(words);
            setAsking("");
            again();
          }}
        />
      ) : asking === "remove" ? (
        <div class="actions">
          <span>It is taken out of the file, and the trust in it is forgotten.</span>
          <button type="button" class="deny" onClick={remove}>
            Remove {server.name}
          </button>
          <button type="button" onClick={() => setAsking("")}>
            Keep it
          </button>
        </div>
      ) : (
        <div class="actions">
          <button
            type="button"
            onClick={() => {
              setSaid("");
              setProblem("");
              setAsking("trust");
            }}
          >
            {isTrusted ? "Look what has changed" : "Look at it"}
          </button>
          <button type="button" class="link" onClick={() => setAsking("remove")}>
            Remove
          </button>
        </div>
      )}
    </li>
  );
}

function Add({ again }: { again: () => void }) {
  const [open, setOpen] = useState(false);
  const [name, setName] = useState("");
  const [way, setWay] = useState("");
  const [given, setGiven] = useState("");
  const [problem, setProblem] = useState("");
  if (!open)
    return (
      <div class="actions">
        <button type="button" onClick={() => setOpen(true)}>
          Add a server
        </button>
      </div>
    );

  function add() {
    setProblem("");
    post("server_add", { name, way, given }).then(
      () => {
        setOpen(false);
        setName("");
        setWay("");
        setGiven("");
        again();
      },
      (refused: Error) => setProblem(refused.message),
    );
  }

  return (
    <form
      class="model"
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <label>
        Name: small letters, digits and hyphens
        <input
          class="mono"
          required
          autocomplete="off"
          spellcheck={false}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label>
        Command, or address
        <input
          class="mono"
          required
          autocomplete="off"
          spellcheck={false}
          placeholder="npx -y @modelcontextprotocol/server-filesystem@2026.8.31 ."
          value={way}
          onInput={(event) => setWay(event.currentTarget.value)}
        />
      </label>
      <label>
        Its variables, or the headers of an address, if it needs any: NAME=VALUE in each line
        <textarea
          class="mono"
          rows={2}
          spellcheck={false}
          placeholder="API_KEY=$&#123;API_KEY&#125;"
          value={given}
          onInput={(event) => setGiven(event.currentTarget.value)}
        />
      </label>
      <p class="muted">
        $&#123;NAME&#125; stands for a secret, which <code>lastword mcp secret NAME</code> keeps apart from the file. Adding starts nothing.
      </p>
      {problem && (
        <p class="problem" role="alert">
          <Marked text={problem} />
        </p>
      )}
      <div class="actions">
        <button type="submit">Add it</button>
        <button type="button" class="link" onClick={() => setOpen(false)}>
          Not now
        </button>
      </div>
    </form>
  );
}
