// A piece of code in a message: highlighted once the languages are loaded, with a button that copies it.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Piece } from "./pieces.ts";
import { Marked } from "./words.tsx";

// Beyond this the colours cost more than they tell.
const MAX_HIGHLIGHTED = 50_000;
const COPIED_MILLISECONDS = 2000;

type Highlight = (text: string, language: string) => Piece[][] | null;
let highlight: Highlight | null = null;

export function useHighlight(wanted: boolean): Highlight | null {
  const [, again] = useState(0);
  useEffect(() => {
    if (!wanted || highlight) return;
    let left = false;
    import("./highlight.ts").then(
      (found) => {
        highlight = found.highlight;
        if (!left) again((n) => n + 1);
      },
      // Without colours it is still all there.
      () => {},
    );
    return () => {
      left = true;
    };
  }, [wanted]);
  return highlight;
}

export function CodeBlock({ text, info, isOpen }: { text: string; info: string; isOpen: boolean }) {
  const language = info.split(/\s/, 1)[0]?.toLowerCase() ?? "";
  const wanted = language !== "" && !isOpen && text.length <= MAX_HIGHLIGHTED;
  const colored = useHighlight(wanted);
  const lines = wanted && colored ? colored(text, language) : null;
  return (
    <figure class="code-block">
      <figcaption>
        <span class="who">
          <Marked text={info || "text"} />
        </span>
        <CopyButton text={text} />
      </figcaption>
      <pre tabIndex={0} aria-label="Code">
        <code>{lines ? <Lines lines={lines} /> : <Marked text={spaced(text)} />}</code>
      </pre>
    </figure>
  );
}

function Lines({ lines }: { lines: Piece[][] }) {
  return (
    <>
      {lines.map((line, number) => (
        <>
          {number > 0 && "\n"}
          <Pieces pieces={line} />
        </>
      ))}
    </>
  );
}

export function Pieces({ pieces }: { pieces: Piece[] }) {
  return (
    <>
      {pieces.map(([text, kind], place) =>
        kind ? (
          <span key={place} class={kind}>
            <Marked text={spaced(text)} />
          </span>
        ) : (
          <Marked key={place} text={spaced(text)} />
        ),
      )}
    </>
  );
}

// A tab in code is no trick; it is shown, and does not shout.
const spaced = (text: string) => text.replaceAll("‹tab›", "⇥   ");

function CopyButton({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), COPIED_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [said]);

  // As it is shown: marks go along, so that nothing unseen gets into a clipboard and from there into a shell.
  function copy() {
    const whole = text.replaceAll("‹tab›", "\t");
    const copied = navigator.clipboard?.writeText(whole) ?? Promise.reject();
    copied.then(
      () => setSaid("Copied"),
      () => {
        // Without https or a permission a page may not write there. The person may.
        const code = button.current?.closest("figure")?.querySelector("code");
        if (code) getSelection()?.selectAllChildren(code);
        setSaid("Selected: copy it with the keyboard");
      },
    );
  }

  return (
    <>
      <span class="unseen" role="status">
        {said}
      </span>
      <button type="button" class="link copy" ref={button} onClick={copy}>
        {said || "Copy"}
      </button>
    </>
  );
}
