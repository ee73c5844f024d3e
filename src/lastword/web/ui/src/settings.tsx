// Settings, in plain words: who answers, who approves, which tools there are, who else may look.

import { useState } from "preact/hooks";
import { mayNotify } from "./attention.ts";
import { GrantsOf } from "./grants.tsx";
import { ModelOf } from "./model.tsx";
import { ProblemOf, useProblem } from "./problem.tsx";
import { post } from "./requests.ts";
import { ServersOf } from "./servers.tsx";
import { Stopped, WHAT_STOPS } from "./stop.tsx";
import { chooseTheme, themeNow } from "./theme.ts";
import type { Settings, ToolEntry } from "./wire.ts";
import { Marked } from "./words.tsx";

export function SettingsOf({ settings, session }: { settings: Settings; session: string }) {
  const [problem, fail] = useProblem();
  const [address, setAddress] = useState("");
  const [stopped, setStopped] = useState("");
  const [notify, setNotify] = useState(mayNotify());
  const [theme, setTheme] = useState(themeNow());
  const chosen = settings.presets.find((preset) => preset.name === settings.preset);
  return (
    <div class="settings">
      <h1>Settings</h1>
      <ProblemOf problem={problem} />

      <ModelOf settings={settings} />

      <section>
        <h2>Who approves</h2>
        <p class={chosen?.auto_approve ? "warn" : ""}>
          {chosen?.auto_approve
            ? "The preset approves by itself what a tool lets be approved without you. Everything else still asks you."
            : "You are asked before anything that needs approval, unless a grant or a rule of yours answers: they are below."}
        </p>
        <fieldset>
          <legend>Preset</legend>
          {settings.presets.map((preset) => (
            <label key={preset.name} class="choice">
              <input
                type="radio"
                name="preset"
                checked={preset.name === settings.preset}
                onChange={() => void post("preset", { name: preset.name }).then(() => fail(null), fail)}
              />
              <span>
                <strong>{preset.name}</strong>
                <span class="muted">
                  {preset.auto_approve ? "approves by itself what tools allow" : "asks before what needs approval"}; model{" "}
                  {preset.model === "lastword" ? "as configured" : preset.model}; the assistant{" "}
                  {preset.protocol === "script" ? "may write scripts" : "asks for one tool at a time"}
                </span>
              </span>
            </label>
          ))}
        </fieldset>
        <p class="muted">Whatever answers for you takes the tool's own key as well. Presets are written in lastword.toml.</p>
      </section>

      <section>
        <h2>Tools</h2>
        {settings.tools.length === 0 && (
          <p>
            There are none yet. <code>lastword new tool NAME</code> makes one.
          </p>
        )}
        <ul class="tools">
          {settings.tools.map((tool) => (
            <li key={tool.tool}>
              <strong>
                <Marked text={tool.name} />
              </strong>{" "}
              <code>{tool.tool}</code>
              <p>
                <Marked text={tool.about} />
              </p>
              <p class="muted">{ruleOf(tool, chosen?.auto_approve ?? false)}</p>
            </li>
          ))}
        </ul>
      </section>

      {settings.has_servers && <ServersOf changed={settings} />}

      <section>
        <h2>This window</h2>
        <fieldset>
          <legend>Look</legend>
          {(["auto", "light", "dark"] as const).map((name) => (
            <label key={name} class="choice">
              <input
                type="radio"
                name="theme"
                checked={theme === name}
                onChange={() => {
                  chooseTheme(name);
                  setTheme(name);
                }}
              />
              <span>{{ auto: "As the system has it", light: "Light", dark: "Dark" }[name]}</span>
            </label>
          ))}
        </fieldset>
        <p>
          {notify === "granted" && "You get a notification when a card waits and this window is not in front."}
          {notify === "denied" && "The browser does not let this page show notifications. The count in the title still tells you."}
          {notify === "impossible" && "This browser has no notifications. The count in the title tells you."}
          {notify === "default" && (
            <button type="button" onClick={() => void Notification.requestPermission().then(setNotify)}>
              Notify me when a card waits
            </button>
          )}
        </p>
      </section>

      <GrantsOf tools={settings.tools} />

      <section>
        <h2>Stop everything</h2>
        <p>{WHAT_STOPS}</p>
        <div class="actions">
          <button type="button" onClick={() => void post("stop_everything", {}).then((done) => setStopped(done.message), fail)}>
            Stop everything
          </button>
        </div>
        {stopped && <Stopped said={stopped} />}
      </section>

      <section>
        <h2>Other windows</h2>
        <p>Another browser on this machine needs a key of its own. It works once.</p>
        <div class="actions">
          <button type="button" onClick={() => void post("key", {}).then((made) => setAddress(location.origin + made.path), fail)}>
            Make an address
          </button>
          <button type="button" onClick={() => void post("lock", {}).then(() => location.reload(), fail)}>
            Close the page for every window
          </button>
        </div>
        {address && (
          <p>
            <input
              class="mono"
              readOnly
              aria-label="Address with a key"
              value={address}
              onFocus={(event) => event.currentTarget.select()}
            />
          </p>
        )}
        <p class="muted">
          Session <code>{session}</code>. <code>lastword up --session {session}</code> comes back to it.
        </p>
      </section>
    </div>
  );
}

const EFFECTS: Record<NonNullable<ToolEntry["effect"]> | "unknown", string> = {
  none: "It changes nothing.",
  reversible: "It can be undone.",
  irreversible: "It cannot be undone.",
  unknown: "Whether it can be undone is not known.",
};

function ruleOf(tool: ToolEntry, autoApproves: boolean): string {
  const effect = EFFECTS[tool.effect ?? "unknown"];
  if (!tool.asks) return `Runs without asking. ${effect}`;
  if (!tool.grantable) return `Always asks you. ${effect}`;
  if (!tool.auto_approve) return `Asks you; a grant or a rule for exact arguments could answer. ${effect}`;
  return autoApproves ? `Is approved by your preset. ${effect}` : `Asks you; a preset, a grant or a rule could answer. ${effect}`;
}
