// What would change in a file: inline or side by side, and where the tool allows it, the proposed text to edit.

import { useEffect, useRef, useState } from "preact/hooks";
import { DiffLines } from "./diff.tsx";
import type { CardPreview } from "./wire.ts";
import { FILE_WORDS, type Fold, FoldButton, Folded, Marked } from "./words.tsx";

const loading = () => import("./editor.ts");

export function PreviewOf({
  preview,
  text,
  fold,
  onEdit,
  onReady,
  onReshape = () => {},
}: {
  preview: CardPreview;
  text: string | null;
  fold: Fold;
  onEdit: (text: string | null) => void;
  onReady: () => void;
  // It takes another form, or another text: whatever was seen of it before, it is to be seen again.
  onReshape?: (part: HTMLElement | null) => void;
}) {
  const figure = useRef<HTMLElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const [sideBySide, setSideBySide] = useState(false);
  const [editing, setEditing] = useState(false);
  const [drawn, setDrawn] = useState("");
  const [broken, setBroken] = useState(false);
  // An editor is there to compare two columns and to write. Reading needs none.
  const draws = preview.base !== null && preview.lines !== null && (sideBySide || editing);
  const form = `${sideBySide} ${editing}`;
  const latest = useRef(text);
  latest.current = text;

  useEffect(() => {
    if (!draws) {
      setDrawn("");
      onReady();
      return;
    }
    let stop = () => {};
    let left = false;
    loading().then(
      ({ showDiff }) => {
        if (left || !host.current) return;
        stop = showDiff(host.current, {
          path: preview.path,
          base: preview.base ?? "",
          proposed: editing ? (latest.current ?? preview.raw ?? "") : (latest.current ?? preview.proposed ?? ""),
          sideBySide,
          editing,
          marks: latest.current === null ? preview.marks : [],
          onChange: (now) => {
            if (now === preview.raw) onReshape(figure.current);
            onEdit(now === preview.raw ? null : now);
          },
        });
        setDrawn(form);
        onReady();
      },
      () => {
        setBroken(true);
        onReady();
      },
    );
    return () => {
      left = true;
      stop();
    };
  }, [preview, sideBySide, editing, draws]);

  if (preview.kind === "text") return <Folded class="quoted mono" text={preview.text ?? ""} fold={fold} />;
  const created = preview.kind === "created";
  const rows = preview.lines ?? [];
  const shownRows = fold.open ? rows : rows.slice(0, preview.fold ?? rows.length);
  return (
    <figure class="preview" ref={figure} aria-busy={draws && !broken && drawn !== form}>
      <figcaption>
        <span class="path">
          <Marked text={preview.path} />
        </span>
        <span class="muted">
          {FILE_WORDS[preview.kind]}
          {preview.renamed_to && (
            <>
              {" to "}
              <span class="path">
                <Marked text={preview.renamed_to} />
              </span>
            </>
          )}
          {preview.note && `; ${preview.note}`}
        </span>
        {preview.added || preview.removed ? (
          <span class="counts">
            {!!preview.added && <span class="plus">+{preview.added}</span>}{" "}
            {!!preview.removed && <span class="minus">−{preview.removed}</span>}
          </span>
        ) : null}
        <span class="room" />
        {text !== null && (
          <button
            type="button"
            class="link"
            onClick={() => {
              onReshape(figure.current);
              onEdit(null);
              latest.current = null;
              setEditing(false);
            }}
          >
            Take my changes back
          </button>
        )}
        {preview.content && !editing && (
          <button
            type="button"
            class="link"
            onClick={() => {
              onReshape(figure.current);
              setEditing(true);
            }}
          >
            Edit the text
          </button>
        )}
        {preview.base !== null && preview.lines !== null && !created && preview.kind !== "deleted" && (
          <button
            type="button"
            class="link wide-only"
            aria-pressed={sideBySide}
            onClick={() => {
              onReshape(figure.current);
              setSideBySide(!sideBySide);
            }}
          >
            {sideBySide ? "Inline" : "Side by side"}
          </button>
        )}
      </figcaption>
      {draws && !drawn && !broken && <p class="muted loading">Loading the change…</p>}
      {draws && broken && (
        <pre class="mono">
          <Marked text={preview.proposed ?? ""} />
        </pre>
      )}
      {draws && <div class="diff" ref={host} hidden={broken} />}
      {preview.lines !== null && !draws && <DiffLines preview={preview} rows={shownRows} />}
      {preview.lines !== null && !draws && preview.fold !== null && (
        <div class="rows-fold">
          <FoldButton open={fold.open} more={`${(rows.length - shownRows.length).toLocaleString("en")} more lines`} turn={fold.turn} />
        </div>
      )}
    </figure>
  );
}
