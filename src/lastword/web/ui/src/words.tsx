// Texts: the server's marks made to stand out, long ones folded, and what a model writes, which is Markdown (markdown.tsx).

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { CardView } from "./wire.ts";

const FOLD_LINES = 10;
const FOLD_CHARACTERS = 600;

// ‹U+202E› and its like are the server's: a real ‹ in a text is itself marked, so this cannot be forged.
export function Marked({ text }: { text: string }): ComponentChildren {
  if (!text.includes("‹")) return text;
  return text.split(/(‹[^‹›]*›)/).map((part, place) =>
    place % 2 ? (
      <mark class="odd" key={place} title="A character that could not be seen, or could be mistaken">
        {part}
      </mark>
    ) : (
      part
    ),
  );
}

// What is folded belongs to a card, which remembers what was opened: a part that folds there says where, and is told.
export type Fold = { at: number | null; open: boolean; turn: (button: HTMLElement) => void };

export function Folded({ text, class: name, fold }: { text: string; class?: string; fold?: Fold }) {
  const [opened, setOpened] = useState(false);
  const lines = text.split("\n");
  const isLong = fold ? fold.at !== null : lines.length > FOLD_LINES || text.length > FOLD_CHARACTERS;
  const open = fold ? fold.open : opened;
  const beginning = () => (fold ? text.slice(0, fold.at ?? 0) : lines.slice(0, FOLD_LINES).join("\n").slice(0, FOLD_CHARACTERS));
  const shown = !isLong || open ? text : beginning();
  return (
    <span class={name}>
      <Marked text={shown} />
      {isLong && (
        <FoldButton
          open={open}
          more={`${(text.length - shown.length).toLocaleString("en")} more characters`}
          turn={fold?.turn ?? (() => setOpened(!opened))}
        />
      )}
    </span>
  );
}

export function FoldButton({ open, more, turn }: { open: boolean; more: string; turn: (button: HTMLElement) => void }) {
  return (
    <button type="button" class="fold" aria-expanded={open} onClick={(event) => turn(event.currentTarget)}>
      {open ? "Show less" : `… ${more}: show all`}
    </button>
  );
}

// Names, each with its value: the arguments of a call, or how a server is reached.
export function Named({ label, rows }: { label: string; rows: [string, string][] }) {
  return (
    <table class="arguments" aria-label={label}>
      <tbody>
        {rows.map(([name, value], place) => (
          <tr key={place}>
            <th scope="row">
              <Marked text={name} />
            </th>
            <td class="mono">
              <Marked text={value} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// What a tool says on its card, in its own words.
export function ToolSays({ card, fold }: { card: CardView; fold: Fold }) {
  if (!card.title && !card.message) return null;
  return (
    <blockquote aria-label="The tool says">
      <span class="who">The tool says</span>
      {card.title && (
        <strong>
          <Marked text={card.title} />
        </strong>
      )}
      {card.message && <Folded text={card.message} fold={fold} />}
    </blockquote>
  );
}

type Drawing = (given: { text: string }) => ComponentChildren;
let Markdown: Drawing | null = null;

// Loaded with the first words of a model. Until then, and where it cannot be loaded, they are shown as they were written.
export function Prose({ text }: { text: string }) {
  const [, again] = useState(0);
  useEffect(() => {
    if (Markdown) return;
    let left = false;
    import("./markdown.tsx").then(
      (found) => {
        Markdown = found.Markdown;
        if (!left) again((n) => n + 1);
      },
      () => {},
    );
    return () => {
      left = true;
    };
  }, []);
  if (Markdown) return <Markdown text={text} />;
  return (
    <p class="as-written">
      <Marked text={text} />
    </p>
  );
}

export function clock(at: number): string {
  return new Date(at * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

export function duration(seconds: number): string {
  if (seconds < 0.0995) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

export const FILE_WORDS: Record<string, string> = {
  changed: "changes",
  created: "is created",
  deleted: "is deleted",
  renamed: "is renamed",
  unchanged: "stays as it is",
};
