// The shell: what waits, where you are, and the three views.

import { useEffect, useState } from "preact/hooks";
import { disarmAll } from "./arming.ts";
import { useAttention } from "./attention.ts";
import { Chat } from "./chat.tsx";
import { follow } from "./follow.ts";
import { alive } from "./inbox.ts";
import { Inbox } from "./inbox.tsx";
import { askingIn, usePicture, waitingIn } from "./picture.ts";
import { SettingsOf } from "./settings.tsx";
import { StopEverything } from "./stop.tsx";
import { Timeline } from "./timeline.tsx";

type View = "chat" | "inbox" | "timeline" | "settings";
const VIEWS: [View, string, string][] = [
  ["chat", "Chat", "M4 5h16v11H9l-5 4z"],
  ["inbox", "Inbox", "M4 13l3-8h10l3 8v6H4zM4 13h5l1 2h4l1-2h5"],
  ["timeline", "Timeline", "M4 6h9M8 12h12M6 18h8"],
  ["settings", "Settings", "M4 7h10M18 7h2M4 17h4M12 17h8M16 4.5v5M10 14.5v5"],
];

function viewNow(): View {
  const named = location.hash.slice(1);
  return VIEWS.some(([view]) => view === named) ? (named as View) : "chat";
}

export function App() {
  const picture = usePicture();
  const [view, setView] = useState<View>(viewNow());
  const waiting = waitingIn(picture.items.values());
  const everywhere = alive(picture.inbox.entries);
  const asking = askingIn(picture.items.values());
  const count = everywhere.length + asking.length;
  const words = useAttention(everywhere, asking);
  useEffect(() => {
    const turn = () => {
      setView(viewNow());
      scrollTo(0, 0);
    };
    addEventListener("hashchange", turn);
    return () => removeEventListener("hashchange", turn);
  }, []);
  useEffect(() => {
    if (view === "chat") follow();
  }, [view]);
  // In the conversation a card or a question more or less moves the others. In the inbox nothing moves.
  const standing = [...waiting.map((call) => call.card.digest), ...asking.map((call) => call.question.id)];
  useEffect(() => disarmAll(), [view === "chat" ? standing.join() : view]);

  function toCard() {
    if (!waiting.length && !asking.length) {
      location.hash = "inbox";
      return;
    }
    if (view !== "chat") location.hash = "chat";
    setTimeout(() => {
      const card = document.querySelector<HTMLElement>(".card[data-call]") ?? document.querySelector<HTMLElement>(".question");
      card?.scrollIntoView({ block: "start" });
      card?.focus();
    }, 60);
  }

  if (picture.link === "locked")
    return (
      <main class="locked">
        <h1>This window has no key any more</h1>
        <p>
          Open the address that <code>lastword up</code> printed, or let an open window make a new one under Settings.
        </p>
      </main>
    );
  return (
    <>
      <header class="bar">
        <span class="brand">
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="8" />
            <path d="M8.5 17.2l5 5L24 10.5" />
          </svg>
          lastword
        </span>
        {count ? (
          <button type="button" class="waits" onClick={toCard}>
            <span>
              {count} waiting<span class="roomy"> for you</span>
            </span>
          </button>
        ) : (
          <span class="waits none">{picture.busy ? "Working…" : "Nothing waits"}</span>
        )}
        <span class={`link-state ${picture.link}`} role="status">
          <span class="dot" aria-hidden="true" />
          {{ live: "live", connecting: "connecting…", lost: "reconnecting…", locked: "" }[picture.link]}
        </span>
        <StopEverything />
        <nav aria-label="Views">
          {VIEWS.map(([name, label, path]) => (
            <a key={name} href={`#${name}`} aria-current={view === name ? "page" : undefined}>
              <svg viewBox="0 0 24 24" aria-hidden="true">
                <path d={path} />
              </svg>
              {label}
              {name === "inbox" && everywhere.length > 0 && <span class="count">{everywhere.length}</span>}
            </a>
          ))}
        </nav>
      </header>
      {picture.trouble && (
        <p class="problem trouble" role="alert">
          {picture.trouble}
        </p>
      )}
      <main class={view}>
        {view === "chat" && <Chat picture={picture} />}
        {view === "inbox" && <Inbox picture={picture} />}
        {view === "timeline" && <Timeline changes={picture.changes} />}
        {view === "settings" && picture.settings && <SettingsOf settings={picture.settings} session={picture.session} />}
      </main>
      <div class="unseen" role="status" aria-live="polite">
        {words}
      </div>
    </>
  );
}
