// The lines of a change: numbered on both sides, a line beside what it became, and what stays folded between them.

import { useMemo, useState } from "preact/hooks";
import { Pieces, useHighlight } from "./code.tsx";
import { marked, type Piece } from "./pieces.ts";
import type { CardPreview } from "./wire.ts";

type Row = NonNullable<CardPreview["lines"]>[number];

const SIGNS = { same: " ", added: "+", removed: "−", gap: "" };
const SAID = { same: "", added: "added: ", removed: "removed: ", gap: "" };
// Beyond this the colours cost more than they tell.
const MAX_HIGHLIGHTED = 100_000;

export function DiffLines({ preview, rows }: { preview: CardPreview; rows: Row[] }) {
  const [opened, setOpened] = useState<number[]>([]);
  const { base, proposed } = preview;
  const size = (base?.length ?? 0) + (proposed?.length ?? 0);
  const language = preview.path.slice(preview.path.lastIndexOf(".") + 1).toLowerCase();
  const highlight = useHighlight(size > 0 && size <= MAX_HIGHLIGHTED);
  const colored = useMemo(() => {
    const lines = (text: string | null) => (highlight && text !== null && size <= MAX_HIGHLIGHTED ? highlight(text, language) : null);
    return { old: lines(base), new: lines(proposed) };
  }, [highlight, preview]);
  const stays = useMemo(() => proposed?.split("\n") ?? null, [proposed]);

  function pieces([kind, old, now, text, changed]: Row): Piece[] {
    const number = kind === "removed" ? old : now;
    const found = (kind === "removed" ? colored.old : colored.new)?.[(number ?? 0) - 1]?.map(([part, name]): Piece => [tabs(part), name]);
    // What was marked or cut elsewhere is not the same line: then it goes without colours.
    const parts = found && found.map(([part]) => part).join("") === text ? found : [[text, ""] as Piece];
    return marked(parts, changed);
  }

  // The lines that stay are there, unless the texts are too long to be sent.
  function within(place: number): Row[] {
    const [, old, now] = rows[place] as Row;
    const next = rows[place + 1];
    const count = next && next[1] !== null ? next[1] - (old ?? 1) : next && next[2] !== null ? next[2] - (now ?? 1) : 0;
    return Array.from({ length: count }, (_, line) => [
      "same",
      (old ?? 1) + line,
      (now ?? 1) + line,
      tabs(stays?.[(now ?? 1) - 1 + line] ?? ""),
      [],
      "",
    ]);
  }

  return (
    <section class="diff" tabIndex={0} aria-label={`Change of ${preview.path}`}>
      <table class="lines">
        <tbody>
          {rows.map((row, place) => {
            if (row[0] !== "gap") return <Line key={place} row={row} pieces={pieces(row)} />;
            if (opened.includes(place))
              return within(place).map((line) => <Line key={`${place}.${line[1]}`} row={line} pieces={pieces(line)} />);
            return (
              <tr key={place} class="gap">
                <td colSpan={4}>
                  {stays === null ? (
                    `⋯ ${row[3]}`
                  ) : (
                    <button type="button" class="link" onClick={() => setOpened([...opened, place])}>
                      ⋯ {row[3]}
                    </button>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function Line({ row: [kind, old, now, , , aside], pieces }: { row: Row; pieces: Piece[] }) {
  return (
    <tr class={kind}>
      <td class="number">{old}</td>
      <td class="number">{now}</td>
      <td class="op">
        <span aria-hidden="true">{SIGNS[kind]}</span>
        <span class="unseen">{SAID[kind]}</span>
      </td>
      <td class="text">
        <Pieces pieces={pieces} />
        {aside && <span class="aside">{aside}</span>}
      </td>
    </tr>
  );
}

const tabs = (text: string) => text.replaceAll("\t", "⇥   ");
