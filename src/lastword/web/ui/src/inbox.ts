// What stands in the inbox, and where. Rows stay where they are while others are answered or arrive: a card that is over
// keeps its row, one that is new comes last, and only the person tidies up. What does not live here: how it looks
// (inbox.tsx).

import type { Effect, InboxChange, InboxEntry, InboxGone, InboxMissed } from "./wire.ts";

// Fewer than these are quicker read one by one than as a group.
const MIN_GROUP = 4;
// Cards that are over and remembered to be. Whoever has not tidied up by then sees that they are gone, and not how.
const MAX_OVER = 2000;

export type Entries = ReadonlyMap<string, InboxEntry>;
export type Ends = ReadonlyMap<string, InboxGone>;
export type Standing = { entries: Entries; over: Ends; missed: readonly InboxMissed[] };

export function standingAfter({ entries, over, missed }: Standing, { put, gone, missed: late }: InboxChange): Standing {
  const now = new Map(entries);
  const ended = new Map(over);
  for (const end of gone) {
    now.delete(end.id);
    ended.set(end.id, end);
  }
  for (const entry of put) {
    now.set(entry.id, entry);
    ended.delete(entry.id);
  }
  for (const id of ended.keys()) {
    if (ended.size <= MAX_OVER) break;
    ended.delete(id);
  }
  return { entries: now, over: ended, missed: late ?? missed };
}

export const AGES = {
  any: "Any time",
  newer5: "Last 5 minutes",
  newer60: "Last hour",
  older60: "Older than an hour",
  older1440: "Older than a day",
};
export type Age = keyof typeof AGES;
export type Wanted = { words: string; tool: string; program: string; effect: "" | Effect | "unknown"; age: Age };
export const ANYTHING: Wanted = { words: "", tool: "", program: "", effect: "", age: "any" };

export const OWN = "This conversation";

export function programOf(entry: InboxEntry): string {
  return entry.session === null ? OWN : entry.program;
}

export function fits(entry: InboxEntry, wanted: Wanted, now: number): boolean {
  const minutes = (now - entry.asked_at) / 60;
  const limit = Number(wanted.age.slice(5));
  if (wanted.age.startsWith("newer") && minutes > limit) return false;
  if (wanted.age.startsWith("older") && minutes < limit) return false;
  if (wanted.tool && entry.tool !== wanted.tool) return false;
  if (wanted.program && programOf(entry) !== wanted.program) return false;
  if (wanted.effect && (entry.effect ?? "unknown") !== wanted.effect) return false;
  const text = `${entry.name} ${entry.tool} ${entry.sentence} ${entry.summary} ${programOf(entry)}`.toLowerCase();
  return wanted.words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

// `over`: it does not wait any more, and how that came. `apart`: when the list was made its program had ended, or nobody had
// answered it in time.
export type Row = { entry: InboxEntry; isOver: boolean; over: InboxGone | null; apart: "" | "ended" | "missed"; isNew: boolean };

// The rows that were there, where they were, and behind them those that are new.
export function arranged(rows: readonly Row[], { entries, over, missed }: Standing, wanted: Wanted, now: number): Row[] {
  const known = new Set(rows.map((row) => row.entry.id));
  const kept = rows.map((row) => {
    if (row.apart === "missed") return row;
    const entry = entries.get(row.entry.id);
    if (entry) return entry === row.entry && !row.isOver ? row : { ...row, entry, isOver: false, over: null };
    const end = over.get(row.entry.id) ?? null;
    return row.isOver && row.over === end ? row : { ...row, isOver: true, over: end };
  });
  const fresh = [...entries.values()].filter((entry) => !known.has(entry.id) && fits(entry, wanted, now));
  // Of one moment, by their ids: the order is the same in every window, and after a reload.
  fresh.sort((a, b) => a.asked_at - b.asked_at || (a.id < b.id ? -1 : 1));
  const isNew = rows.length > 0;
  // What nobody answered in time while the list stands keeps its row there, like everything else that is over.
  const late = isNew ? [] : missed.filter(({ entry }) => fits(entry, wanted, now));
  return [
    ...kept,
    ...fresh.map((entry): Row => ({ entry, isOver: false, over: null, apart: entry.asker === "ended" ? "ended" : "", isNew })),
    ...late.map(({ entry }): Row => ({ entry, isOver: true, over: over.get(entry.id) ?? null, apart: "missed", isNew: false })),
  ];
}

export type Block = { key: string; rows: Row[] };

// Those alike together, where the first of them stands. What came since the list was made stays by itself.
export function blocksOf(rows: readonly Row[], grouped: boolean): Block[] {
  const counts = new Map<string, Row[]>();
  const groupOf = (row: Row) => `${row.apart} ${row.entry.alike}`;
  if (grouped)
    for (const row of rows) {
      if (row.isNew) continue;
      const found = counts.get(groupOf(row));
      if (found) found.push(row);
      else counts.set(groupOf(row), [row]);
    }
  const blocks: Block[] = [];
  for (const row of rows) {
    const alike = row.isNew ? undefined : counts.get(groupOf(row));
    if (!alike || alike.length < MIN_GROUP) blocks.push({ key: row.entry.id, rows: [row] });
    else if (alike[0] === row) blocks.push({ key: groupOf(row), rows: alike });
  }
  return blocks;
}

// How many there are of each, for a choice; the commonest first.
export function counted(values: Iterable<string>): [string, number][] {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

export function alive(entries: Entries): InboxEntry[] {
  return [...entries.values()].filter((entry) => entry.asker !== "ended");
}
