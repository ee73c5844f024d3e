// Texts: the server's marks made to stand out, long ones folded, and the little of Markdown that models write.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

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

export function Folded({ text, class: name }: { text: string; class?: string }) {
  const [open, setOpen] = useState(false);
  const lines = text.split("\n");
  const isLong = lines.length > FOLD_LINES || text.length > FOLD_CHARACTERS;
  const shown = !isLong || open ? text : lines.slice(0, FOLD_LINES).join("\n").slice(0, FOLD_CHARACTERS);
  return (
    <span class={name}>
      <Marked text={shown} />
      {isLong && (
        <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Show less" : `… ${(text.length - shown.length).toLocaleString("en")} more characters: show all`}
        </button>
      )}
    </span>
  );
}

export function Prose({ text }: { text: string }) {
  const blocks = text.split(/^```[^\n]*\n([\s\S]*?)(?:^```[^\S\n]*$|$(?![\s\S]))/m);
  return (
    <>
      {blocks.map((block, place) =>
        place % 2 ? (
          <pre key={place} tabIndex={0} aria-label="Code">
            <Marked text={block.replace(/\n$/, "")} />
          </pre>
        ) : (
          block.trim() && (
            <p key={place}>
              {block
                .trim()
                .split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/)
                .map((part, at) => {
                  if (at % 2 === 0) return <Marked key={at} text={part} />;
                  return part.startsWith("`") ? (
                    <code key={at}>
                      <Marked text={part.slice(1, -1)} />
                    </code>
                  ) : (
                    <strong key={at}>
                      <Marked text={part.slice(2, -2)} />
                    </strong>
                  );
                })}
            </p>
          )
        ),
      )}
    </>
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
