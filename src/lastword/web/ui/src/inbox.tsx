// The inbox: what waits in every program, as a list to walk through with the card that is looked at beside it. Nothing
// in it moves by itself: a row whose card is over stays, and what is new comes last, until the person tidies up.

import { Component, type ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { SIGNS, TONES } from "./card.tsx";
import { AGES, type Age, ANYTHING, arranged, type Block, blocksOf, counted, programOf, type Row, type Wanted } from "./inbox.ts";
import { Detail } from "./inbox_detail.tsx";
import { MAX_AT_ONCE, Over, Several } from "./inbox_several.tsx";
import type { Picture } from "./picture.ts";
import type { InboxEntry } from "./wire.ts";
import { clock, Marked } from "./words.tsx";

export function Inbox({ picture }: { picture: Picture }) {
  const [wanted, setWanted] = useState<Wanted>(ANYTHING);
  const [grouped, setGrouped] = useState(true);
  const [tidied, setTidied] = useState(0);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [chosen, setChosen] = useState<ReadonlyMap<string, string>>(new Map());
  const [at, setAt] = useState("");
  const [looking, setLooking] = useState(false);
  const [several, setSeveral] = useState<Row[] | null>(null);
  const list = useRef<HTMLDivElement>(null);
  const pane = useRef<HTMLElement>(null);
  const keys = useRef<((event: KeyboardEvent) => void) | null>(null);
  const kept = useRef<{ key: string; rows: Row[] }>({ key: "", rows: [] });

  const key = JSON.stringify([wanted, tidied]);
  const before = kept.current.key === key ? kept.current.rows : [];
  const rows = useMemo(() => arranged(before, picture.inbox, wanted, Date.now() / 1000), [picture.inbox, key]);
  kept.current = { key, rows };
  const blocks = useMemo(() => blocksOf(rows, grouped), [rows, grouped]);
  const everything = useMemo(() => [...picture.inbox.entries.values()], [picture.inbox]);
  const row = rows.find((row) => row.entry.id === at);
  const picked = rows.filter((row) => !row.isOver && chosen.get(row.entry.id) === row.entry.digest);
  const missed = rows.filter((row) => row.apart === "missed").length;
  const over = rows.filter((row) => row.isOver).length - missed;
  const fresh = rows.filter((row) => row.isNew && !row.isOver).length;
  const untidy = over + fresh + rows.filter((row) => !row.isOver && row.entry.asker === "ended" && !row.apart).length;

  function choose(these: Row[], on: boolean) {
    setChosen((now) => {
      const next = new Map(now);
      for (const { entry } of these) {
        if (on && next.size < MAX_AT_ONCE) next.set(entry.id, entry.digest);
        else if (!on) next.delete(entry.id);
      }
      return next;
    });
  }

  function turn(group: string, open: boolean) {
    setOpened((now) => {
      const next = new Set(now);
      if (open) next.add(group);
      else next.delete(group);
      return next;
    });
  }

  function toRow() {
    setLooking(false);
    // The list takes the focus once it is not covered any more.
    setTimeout(() => list.current?.querySelector<HTMLElement>(`[data-stop="${CSS.escape(at)}"]`)?.focus(), 0);
  }

  function look(id: string) {
    setAt(id);
    setLooking(true);
    // On a phone the card covers the list, and whoever opened it goes there.
    setTimeout(() => pane.current?.focus(), 0);
  }

  function onKey(event: KeyboardEvent) {
    const here = event.target as HTMLElement;
    const stop = here.closest<HTMLElement>("[data-stop]");
    if (!stop || event.altKey) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key === "Enter" || event.key === "Backspace") keys.current?.(event);
      return;
    }
    const stops = [...(list.current?.querySelectorAll<HTMLElement>("[data-stop]") ?? [])];
    const place = stops.indexOf(stop);
    const steps: Record<string, number> = {
      ArrowDown: place + 1,
      j: place + 1,
      ArrowUp: place - 1,
      k: place - 1,
      Home: 0,
      End: stops.length - 1,
    };
    const next = steps[event.key];
    const group = stop.dataset.group;
    if (next !== undefined) {
      event.preventDefault();
      stops[Math.max(0, Math.min(stops.length - 1, next))]?.focus();
    } else if (group !== undefined && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      event.preventDefault();
      turn(group, event.key === "ArrowRight");
    } else if (event.key === "x" || (event.key === " " && group === undefined)) {
      event.preventDefault();
      if (event.repeat) return;
      stop.parentElement?.querySelector<HTMLInputElement>("input")?.click();
    }
  }

  if (several)
    return (
      <Several
        rows={several}
        picture={picture}
        onBack={() => {
          setSeveral(null);
          setTimeout(() => list.current?.querySelector<HTMLElement>('[data-stop][tabindex="0"]')?.focus(), 0);
        }}
        onDone={() => setChosen(new Map())}
      />
    );

  // What waits stands above what is dead, however old that is.
  const top = blocks.find((block) => block.rows[0] && !block.rows[0].apart) ?? blocks[0];
  const first = top?.rows.length === 1 ? top.rows[0]?.entry.id : top?.key;
  const isAt = rows.some((row) => row.entry.id === at) || blocks.some((block) => block.key === at);
  const roving = isAt ? at : first;
  const shown = (part: (row: Row) => boolean) =>
    blocks
      .filter((block) => block.rows[0] && part(block.rows[0]))
      .map((block) => (
        <BlockOf
          key={block.key}
          block={block}
          at={roving ?? ""}
          open={opened.has(block.key)}
          chosen={chosen}
          onTurn={turn}
          onChoose={choose}
          onFocus={setAt}
          onLook={look}
        />
      ));
  return (
    <div class="inbox">
      <div class="tools-row">
        <h1>Inbox</h1>
        <p class="muted" role="status">
          {everything.length === 0 ? "Nothing waits for an answer." : `${rows.length - over - missed} of ${everything.length} shown`}
        </p>
        <span class="grow" />
        <button
          type="button"
          disabled={untidy === 0}
          title="Takes away what is over, and puts what is new in its place"
          onClick={() => setTidied(tidied + 1)}
        >
          Tidy up{over || fresh ? ` (${[over && `${over} over`, fresh && `${fresh} new`].filter(Boolean).join(", ")})` : ""}
        </button>
      </div>
      <Filters wanted={wanted} onChange={setWanted} picture={picture}>
        <label class="choice">
          <input type="checkbox" checked={grouped} onChange={(event) => setGrouped(event.currentTarget.checked)} />
          <span>Group what is alike</span>
        </label>
      </Filters>
      <div class="panes">
        <div class="list" role="group" aria-label="The list" ref={list} onKeyDown={onKey} inert={looking && isNarrow()}>
          {rows.length === 0 && (
            <p class="muted empty">{everything.length ? "No card fits." : "Cards of all programs that share this memory come here."}</p>
          )}
          <ol aria-label="Cards that wait">{shown((row) => !row.isNew && !row.apart)}</ol>
          {rows.some((row) => row.apart === "ended" && !row.isNew) && (
            <Section
              title="The program that asked has ended"
              about="An answer starts nothing by itself. Deny them, or start the program again: it asks anew."
            >
              {shown((row) => !row.isNew && row.apart === "ended")}
            </Section>
          )}
          {missed > 0 && (
            <Section
              title="Nobody answered in time"
              about="These are over, and nothing of them was done. What is still wanted has to be asked for again."
            >
              {shown((row) => row.apart === "missed")}
            </Section>
          )}
          {rows.some((row) => row.isNew) && (
            <Section title="Came in since" about="">
              {shown((row) => row.isNew)}
            </Section>
          )}
        </div>
        <section
          class={`pane ${looking ? "looking" : ""}`}
          aria-label="The card"
          tabIndex={-1}
          ref={pane}
          onKeyDown={(event) => {
            if (event.key === "Escape") toRow();
            else if (event.target === pane.current && (event.ctrlKey || event.metaKey)) keys.current?.(event);
          }}
        >
          <button type="button" class="back" onClick={toRow}>
            Back to the list
          </button>
          {row ? (
            <Detail row={row} picture={picture} keys={keys} pane={pane} />
          ) : (
            <p class="muted empty">
              Choose a card to see exactly what it asks. ↑ and ↓ walk through the list, Space chooses several, Ctrl+Enter allows and
              Ctrl+Backspace denies the card that is shown.
            </p>
          )}
        </section>
      </div>
      <div class="several-bar" role="group" aria-label="Several at once">
        <span>
          {picked.length
            ? `${picked.length} chosen${picked.length >= MAX_AT_ONCE ? ", which is as many as go at once" : ""}`
            : "None chosen"}
        </span>
        <button type="button" class="primary" disabled={picked.length === 0} onClick={() => setSeveral(picked)}>
          Look at them, then answer
        </button>
        <button
          type="button"
          class="link"
          onClick={() =>
            choose(
              rows.filter((row) => !row.isOver && !row.apart && !row.entry.alone),
              true,
            )
          }
        >
          Choose all that are shown
        </button>
        <button type="button" class="link" disabled={chosen.size === 0} onClick={() => setChosen(new Map())}>
          Choose none
        </button>
      </div>
    </div>
  );
}

function isNarrow(): boolean {
  return matchMedia("(max-width: 720px)").matches;
}

function Section({ title, about, children }: { title: string; about: string; children: ComponentChildren }) {
  return (
    <section class="apart" aria-label={title}>
      <h2>{title}</h2>
      {about && <p class="muted">{about}</p>}
      <ol>{children}</ol>
    </section>
  );
}

const EFFECTS: [Wanted["effect"], string][] = [
  ["none", "Changes nothing"],
  ["reversible", "Can be undone"],
  ["irreversible", "Cannot be undone"],
  ["unknown", "Not known"],
];

type Filtering = { wanted: Wanted; onChange: (now: Wanted) => void; picture: Picture; children: ComponentChildren };

// On a phone the choices are folded, so that there is room for the list.
function Filters({ wanted, onChange, picture, children }: Filtering) {
  const [open, setOpen] = useState(false);
  const chosen = [wanted.program, wanted.tool, wanted.effect, wanted.age === "any" ? "" : wanted.age].filter(Boolean).length;
  const entries = [...picture.inbox.entries.values()];
  const tools = counted(entries.map((entry) => entry.tool));
  const programs = counted(entries.map(programOf));
  const pick = <K extends keyof Wanted>(name: K, label: string, choices: [string, string][]) => (
    <label>
      {label}
      <select value={wanted[name]} onChange={(event) => onChange({ ...wanted, [name]: event.currentTarget.value as Wanted[K] })}>
        {choices.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
  const all = (choices: [string, number][], chosen: string): [string, string][] => [
    ["", "All"],
    // What was chosen stays a choice, also when the last card of it is answered.
    ...(chosen && !choices.some(([value]) => value === chosen) ? [[chosen, `${chosen} (0)`] as [string, string]] : []),
    ...choices.map(([value, count]): [string, string] => [value, `${value} (${count})`]),
  ];
  return (
    <div class="filters">
      <label class="grow">
        With the words
        <input type="search" value={wanted.words} onInput={(event) => onChange({ ...wanted, words: event.currentTarget.value })} />
      </label>
      <button type="button" class="more" aria-expanded={open} aria-controls="picks" onClick={() => setOpen(!open)}>
        Filter{chosen > 0 && ` (${chosen})`}
      </button>
      <div class={`picks ${open ? "open" : ""}`} id="picks">
        {pick("program", "Program", all(programs, wanted.program))}
        {pick("tool", "Tool", all(tools, wanted.tool))}
        {pick("effect", "Effect", [["", "Any"], ...EFFECTS])}
        {pick("age", "Asked", Object.entries(AGES) as [Age, string][])}
        {children}
      </div>
    </div>
  );
}

type RowActs = {
  chosen: ReadonlyMap<string, string>;
  at: string;
  onChoose: (rows: Row[], on: boolean) => void;
  onFocus: (key: string) => void;
  onLook: (id: string) => void;
};

function BlockOf({
  block,
  open,
  onTurn,
  ...acts
}: RowActs & { block: Block; open: boolean; onTurn: (group: string, open: boolean) => void }) {
  const [row] = block.rows;
  if (!row) return null;
  if (block.rows.length === 1) return <RowOf row={row} {...acts} />;
  const entry = row.entry;
  const waiting = block.rows.filter((row) => !row.isOver);
  const may = waiting.filter((row) => mayChoose(row));
  const on = may.filter((row) => acts.chosen.get(row.entry.id) === row.entry.digest).length;
  return (
    <li class="group">
      <div class={`entry ${waiting.length ? "" : "over"}`}>
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={`Choose all ${may.length} of ${entry.name}`}
          disabled={may.length === 0}
          checked={may.length > 0 && on === may.length}
          indeterminate={on > 0 && on < may.length}
          onChange={(event) => acts.onChoose(may, event.currentTarget.checked)}
        />
        <button
          type="button"
          class="row"
          data-stop={block.key}
          data-group={block.key}
          tabIndex={acts.at === block.key ? 0 : -1}
          aria-expanded={open}
          onFocus={() => acts.onFocus(block.key)}
          onClick={() => onTurn(block.key, !open)}
        >
          <RowWords row={row} count={block.rows.length} left={waiting.length} />
        </button>
      </div>
      {open && (
        <ol>
          {block.rows.map((row) => (
            <RowOf key={row.entry.id} row={row} {...acts} />
          ))}
        </ol>
      )}
    </li>
  );
}

function mayChoose({ entry, isOver }: Row): boolean {
  return !isOver && (!entry.alone || entry.asker === "ended");
}

// Drawn again only when it looks different: of a thousand rows, an answer changes one.
class RowOf extends Component<RowActs & { row: Row }> {
  override shouldComponentUpdate(next: RowActs & { row: Row }): boolean {
    const { row, at, chosen } = this.props;
    const { id } = row.entry;
    return next.row !== row || (next.at === id) !== (at === id) || next.chosen.get(id) !== chosen.get(id);
  }

  override render() {
    return <OneRow {...this.props} />;
  }
}

function OneRow({ row, chosen, at, onChoose, onFocus, onLook }: RowActs & { row: Row }) {
  const { entry, isOver } = row;
  const may = mayChoose(row);
  return (
    <li>
      <div class={`entry ${isOver ? "over" : ""} ${at === entry.id ? "at" : ""}`}>
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={`Choose ${entry.name}, ${entry.summary}`}
          title={may || isOver ? undefined : "It is answered by itself only: it cannot be undone, or nobody said that it can"}
          disabled={!may}
          checked={!isOver && chosen.get(entry.id) === entry.digest}
          onChange={(event) => onChoose([row], event.currentTarget.checked)}
        />
        <button
          type="button"
          class="row"
          data-stop={entry.id}
          tabIndex={at === entry.id ? 0 : -1}
          aria-current={at === entry.id ? "true" : undefined}
          onFocus={() => onFocus(entry.id)}
          onClick={() => onLook(entry.id)}
        >
          <RowWords row={row} count={1} left={isOver ? 0 : 1} />
        </button>
      </div>
    </li>
  );
}

function RowWords({ row, count, left }: { row: Row; count: number; left: number }) {
  const { entry } = row;
  return (
    <>
      <span class={`sign small tint-${entry.color ?? "none"}`} aria-hidden="true">
        {entry.glyph}
      </span>
      <span class="entry-words">
        <span class="entry-head">
          <strong>
            <Marked text={entry.name} />
          </strong>
          {count > 1 && <span class="count">{left === count ? `${count} alike` : `${left} of ${count} left`}</span>}
          <time>{clock(entry.asked_at)}</time>
        </span>
        <span class="entry-line">{count > 1 ? <Marked text={entry.sentence} /> : <Marked text={entry.summary || entry.sentence} />}</span>
        <span class="entry-line whose muted">
          {left > 0 && (
            <span class={`effect ${TONES[entry.effect ?? "unknown"]}`}>
              <span aria-hidden="true">{SIGNS[entry.effect ?? "unknown"]} </span>
              {entry.effect ? entry.effect_words : "Undo not known"}
            </span>
          )}
          {count === 1 && row.isOver ? (
            <span class="program">
              <span class="name">
                <Over row={row} />
              </span>
            </span>
          ) : (
            <Program entry={entry}>
              {!row.isOver && entry.asker === "ended" && !row.apart && "; it has ended"}
              {!row.isOver && entry.asker === "unknown" && "; whether it lives is not known"}
            </Program>
          )}
        </span>
      </span>
    </>
  );
}

// Of a long name the end is cut, and never the number of the process: it tells two programs of one name apart.
function Program({ entry, children }: { entry: InboxEntry; children: ComponentChildren }) {
  const [, name, number = ""] = /^(.*?)(?:, (process \d+(?: \(one of [^()]*\))?))?$/s.exec(programOf(entry)) ?? ["", programOf(entry)];
  return (
    <span class="program">
      <span class="name">
        <Marked text={name ?? ""} />
        {number && ","}
      </span>{" "}
      <span class="number">
        <Marked text={number} />
        {children}
      </span>
    </span>
  );
}
