// A card: what will happen, whether it can be undone, the exact arguments, the tool's own words as a quotation, the
// change itself, and the buttons. Its words come from the server; nothing that a model wrote names the action.

import { useEffect, useRef, useState } from "preact/hooks";
import { disarmAll, useArmed } from "./arming.ts";
import { follow } from "./follow.ts";
import { Granting } from "./granting.tsx";
import { scriptOf, usePicture, type WaitingCall } from "./picture.ts";
import { PreviewOf } from "./preview.tsx";
import { ProblemOf, useProblem } from "./problem.tsx";
import { goToFold, useReached } from "./reaching.ts";
import { post, type Refused } from "./requests.ts";
import { type AnswerBody, type CardArgument, type CardView, GRANT_WORDS, type MissingArgument } from "./wire.ts";
import { WordField } from "./word.tsx";
import { type Fold, Folded, Marked, ToolSays } from "./words.tsx";

type Effects = Record<NonNullable<CardView["effect"]> | "unknown", string>;
export const TONES: Effects = { none: "", reversible: "mild", irreversible: "grave", unknown: "" };
// Why one press is not enough, where it is not.
const WHY_TWO: Effects = {
  none: "",
  reversible: "",
  irreversible: "It cannot be undone",
  unknown: "Its tool does not say whether it can be undone",
};
export const SIGNS: Effects = { none: "○", reversible: "↺", irreversible: "⚠", unknown: "?" };

type Answer = Exclude<AnswerBody["action"], "close">;

function isYes(action: Answer): boolean {
  return action === "allow" || action === "allow_second";
}

// `keys`: whoever shows the card beside a list hands it the keys that are pressed there. `program`: who asks, where it is
// not this conversation.
type Shown = { call: WaitingCall; keys?: { current: ((event: KeyboardEvent) => void) | null }; program?: string };

export function CardOf(shown: Shown) {
  // Asked again, it is another question: whatever was typed into the first one does not carry over.
  return <Question key={shown.call.card.digest} {...shown} />;
}

function Question({ call, keys, program }: Shown) {
  const card = call.card;
  const isGrave = card.effect === "irreversible";
  const whyTwo = WHY_TWO[card.effect ?? "unknown"];
  const section = useRef<HTMLElement>(null);
  const actions = useRef<HTMLDivElement>(null);
  const [edits, setEdits] = useState<Record<string, string>>({});
  const [editing, setEditing] = useState(false);
  const [denying, setDenying] = useState(false);
  const [granting, setGranting] = useState(false);
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useProblem();
  const [sent, setSent] = useState(false);
  const [drawn, setDrawn] = useState(0);
  const [folds, setFolds] = useState<Record<string, boolean | undefined>>({});
  const [word, setWord] = useState("");
  const { armed, counts } = useArmed(card.digest, drawn >= card.previews.length);
  useEffect(() => {
    if (drawn >= card.previews.length) follow();
  }, [drawn]);
  const isEdited = Object.keys(edits).length > 0;
  // Of an argument that was changed, the old value is shown whole.
  const closed = card.must_open.filter(
    (part) => folds[part] === undefined && !Object.keys(edits).some((name) => part === `argument ${name}`),
  );
  // Not asking again is more than one yes: whatever the effect, all of it is seen first.
  const unread = card.folded.filter((part) => folds[part] === undefined);
  const isTyped = card.word === null || word.trim().toLowerCase() === card.word;
  const { left, turned, reshaped, readOn } = useReached(section, actions, [drawn, denying, granting]);
  const lacks = left ? "rest" : closed.length ? "open" : isTyped ? null : "word";
  // What takes the place of the words moves the buttons.
  useEffect(() => {
    if (!left) disarmAll();
  }, [left]);

  function foldOf(part: string, at: number | null): Fold {
    return { at, open: folds[part] ?? false, turn: (button) => turn([part], !folds[part], button) };
  }

  // What was closed again has been open, if it was seen to its end by then. It moves the buttons, so they wait anew.
  function turn(parts: string[], open: boolean, button: HTMLElement | null) {
    const isSeen = button !== null && turned(button, open);
    const state = open || (isSeen ? false : undefined);
    setFolds((now) => ({ ...now, ...Object.fromEntries(parts.map((part) => [part, state])) }));
    disarmAll();
  }

  function openAll(parts: string[]) {
    turn(parts, true, goToFold(section.current) ?? section.current);
  }

  // What the step would cover is on the card: whoever grants it has seen all of that first.
  function grant() {
    if (lacks === "rest") readOn();
    else {
      setGranting(true);
      disarmAll();
    }
  }

  // What is in the table is shown in another form: as fields, as it was asked for, as it is now.
  function reshapeArguments() {
    reshaped(section.current?.querySelector(".arguments") ?? null);
  }

  function change(name: string, text: string | null) {
    setProblem(null);
    setEdits((now) => {
      const { [name]: _, ...rest } = now;
      return text === null ? rest : { ...rest, [name]: text };
    });
  }

  async function answer(action: Answer, why?: string) {
    if (sent) return;
    setSent(true);
    setProblem(null);
    disarmAll();
    try {
      await post("answer", {
        call_id: call.id,
        digest: card.digest,
        action,
        reason: why?.trim() || null,
        ...(isYes(action) && { word: card.word && word, opened: card.must_open }),
        ...(action === "allow" && { edits }),
      });
    } catch (refused) {
      setProblem(refused as Refused);
      setSent(false);
    }
  }

  function press(event: Event, action: Answer, why?: string) {
    if (!counts(event)) return;
    if (action === "allow_second" && isEdited) return;
    if (!isYes(action) || !lacks) void answer(action, why);
    else if (lacks === "rest") readOn();
    else if (lacks === "word") section.current?.querySelector<HTMLElement>(".word")?.focus();
  }

  // Keys count only while this card has the focus, and never out of a field for text.
  function onKey(event: KeyboardEvent) {
    const into = event.composedPath()[0] as HTMLElement;
    const writes = into.matches("input, textarea, select, [contenteditable=true], [contenteditable=true] *");
    if (event.key === "Escape" && denying) {
      setDenying(false);
      section.current?.focus();
    } else if (granting) {
      if (event.key === "Escape") backFromGranting();
    } else if (!writes && (event.ctrlKey || event.metaKey) && event.key === "Enter" && card.word === null && !denying) {
      event.preventDefault();
      press(event, "allow");
    } else if (!writes && (event.ctrlKey || event.metaKey) && event.key === "Backspace") {
      event.preventDefault();
      if (counts(event)) setDenying(true);
    }
  }

  // The buttons of the card come back under the pointer: they wait anew.
  function backFromGranting() {
    setGranting(false);
    disarmAll();
    section.current?.focus();
  }

  useEffect(() => {
    if (!keys) return;
    keys.current = onKey;
    return () => {
      if (keys.current === onKey) keys.current = null;
    };
  });

  const { items } = usePicture();
  const script = scriptOf(call, items);
  const heading = `card-${call.id}`;
  const primary = isEdited ? `${card.primary} (edited)` : card.primary;
  return (
    <section
      class={`card ${isGrave ? "grave" : ""}`}
      ref={section}
      tabIndex={-1}
      aria-labelledby={heading}
      data-call={call.id}
      data-armed={armed}
      onKeyDown={onKey}
    >
      <header>
        <span class={`sign tint-${call.color ?? "none"}`} aria-hidden="true">
          {call.glyph}
        </span>
        <div class="what">
          <h2 id={heading}>
            <Marked text={call.name} />
          </h2>
          <code class="tool">{call.tool}</code>
        </div>
        <span class={`effect ${TONES[card.effect ?? "unknown"]}`}>
          <span aria-hidden="true">{SIGNS[card.effect ?? "unknown"]} </span>
          {card.effect_words}
        </span>
      </header>

      <p class="sentence">
        <Marked text={card.sentence} />
      </p>
      {card.again && (
        <p class="again">
          <strong>Asked again:</strong> <Marked text={card.again} />.
        </p>
      )}
      {card.edited && <p class="again">You changed the arguments. This is what would happen now.</p>}

      <ArgumentTable
        rows={[...card.arguments, ...card.left_out.filter((row) => edits[row.name] !== undefined).map(added)]}
        edits={edits}
        editing={editing}
        problem={problem}
        foldOf={foldOf}
        none={card.left_out.length ? "No arguments were given." : "It takes no arguments."}
        onReshape={reshaped}
        onChange={(name, text) => {
          if (text === null) reshapeArguments();
          change(name, text);
        }}
      />
      {editing && card.left_out.some((row) => edits[row.name] === undefined) && (
        <p class="adding">
          <span class="muted">Not given: </span>
          {card.left_out
            .filter((row) => edits[row.name] === undefined)
            .map((row) => (
              <button
                key={row.name}
                type="button"
                class="link"
                title={row.about}
                onClick={() => change(row.name, row.type === "boolean" ? "true" : "")}
              >
                Add <Marked text={row.shown_name} />
              </button>
            ))}
        </p>
      )}

      <ToolSays card={card} fold={foldOf("message", card.message_fold)} />

      {card.previews.length > 0 && <h3 class="who">{card.preview_heading}</h3>}
      {card.previews.map((preview, place) => (
        <PreviewOf
          key={place}
          preview={preview}
          fold={foldOf(`preview ${place}`, preview.fold)}
          text={preview.content ? (edits[preview.content] ?? null) : null}
          onEdit={(text) => preview.content && change(preview.content, text)}
          onReady={() => setDrawn((n) => n + 1)}
          onReshape={reshaped}
        />
      ))}

      <ProblemOf problem={problem} />

      {granting ? (
        <Granting
          call={call}
          closed={unread}
          unseen={left !== null}
          onOpen={() => {
            backFromGranting();
            openAll(unread);
          }}
          onBack={backFromGranting}
        />
      ) : denying ? (
        <form
          class="denying"
          onSubmit={(event) => {
            event.preventDefault();
          }}
        >
          <label for={`why-${call.id}`}>Why not? The assistant reads this.</label>
          <textarea
            id={`why-${call.id}`}
            rows={2}
            value={reason}
            ref={(field) => {
              if (field && document.activeElement !== field && !field.dataset.seen) {
                field.dataset.seen = "yes";
                field.focus();
              }
            }}
            onInput={(event) => setReason(event.currentTarget.value)}
            onKeyDown={(event) => {
              // Both say no, never yes. An empty line is no reason, and Shift+Enter is a new one.
              if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              if (reason.trim()) press(event, "deny", reason);
            }}
          />
          <div class="actions">
            <button type="button" class="deny" disabled={sent} onClick={(event) => press(event, "deny", reason)}>
              {reason.trim() ? "Deny, and say so" : "Deny"}
            </button>
            <button type="button" onClick={() => setDenying(false)}>
              Back
            </button>
          </div>
        </form>
      ) : (
        <div class="actions" ref={actions}>
          {lacks === "rest" ? (
            <p class="second" id={`second-${call.id}`}>
              {left === "above" ? "You went past a part of it." : "There is more of it below."}{" "}
              <button type="button" class="link" onClick={readOn}>
                {left === "above" ? "Go back to it" : "Read on"}
              </button>
            </p>
          ) : lacks === "open" ? (
            <p class="second folded" id={`second-${call.id}`}>
              {whyTwo}, and {closed.length === 1 ? "a part of it is" : `${closed.length} parts of it are`} folded. Before you can allow it,{" "}
              <button type="button" class="link" onClick={() => openAll(closed)}>
                open {closed.length === 1 ? "it" : "them"}
              </button>
              .
            </p>
          ) : (
            card.word !== null && (
              <p class="second" id={`second-${call.id}`}>
                <label for={`word-${call.id}`}>
                  {whyTwo}. To allow it, type <b>{card.word}</b> here, then press the button:
                </label>
                <WordField id={`word-${call.id}`} value={word} armed={armed} onWord={setWord} />
              </p>
            )
          )}
          <button
            type="button"
            class={`primary ${isGrave ? "grave" : ""} ${lacks === "rest" ? "unread" : ""}`}
            disabled={sent}
            aria-disabled={lacks !== null}
            aria-describedby={lacks === null ? undefined : `second-${call.id}`}
            // Enter alone never approves, not even on the button that has the focus.
            onKeyDown={(event) => event.key === "Enter" && !event.ctrlKey && !event.metaKey && event.preventDefault()}
            onClick={(event) => press(event, "allow")}
          >
            <Marked text={primary} />
            {card.word === null && <kbd aria-hidden="true">Ctrl ⏎</kbd>}
          </button>
          {card.second !== null && (
            <button
              type="button"
              class={isGrave ? "primary second-act grave" : "primary second-act"}
              disabled={sent}
              aria-disabled={lacks !== null || isEdited}
              aria-describedby={lacks === null ? undefined : `second-${call.id}`}
              title={isEdited ? "It takes the call as it was asked for: take your changes back first" : undefined}
              onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
              onClick={(event) => press(event, "allow_second")}
            >
              <Marked text={card.second} />
            </button>
          )}
          <button type="button" class="no" disabled={sent} onClick={(event) => press(event, "deny")}>
            <Marked text={card.secondary} />
          </button>
          <button type="button" class="link" onClick={() => setDenying(true)}>
            Deny with a reason
          </button>
          {card.offers_rest && (
            <button type="button" class="link" disabled={sent} onClick={(event) => press(event, "deny_rest")}>
              Deny the rest of the script
            </button>
          )}
          {card.why_no_grant === "" && !isEdited && (
            <button type="button" class="link" disabled={sent} onClick={grant}>
              {GRANT_WORDS.ask}
            </button>
          )}
          {card.editable && card.arguments.length + card.left_out.length > 0 && (
            <button
              type="button"
              class="link"
              aria-pressed={editing}
              onClick={() => {
                reshapeArguments();
                setEditing(!editing);
              }}
            >
              {editing ? "Done editing" : "Edit arguments"}
            </button>
          )}
        </div>
      )}

      <footer>
        {call.session && (
          <p>
            Asked by another program{program && ": "}
            {program && <Marked text={program} />}, in session {call.session}.
          </p>
        )}
        {card.origin && (
          <p>
            Asked for by <Marked text={card.origin} />
            {script && call.line !== null && <LineOf text={script.text} line={call.line} />}.
          </p>
        )}
        {card.why_asked && <p>{card.why_asked}</p>}
        {card.why_no_grant && <p>{card.why_no_grant}</p>}
      </footer>
    </section>
  );
}

// The row of an argument that the person adds. It began as nothing.
function added(row: MissingArgument): Row {
  return { ...row, shown: "", fold: null, exact: null, raw: "", marked: false, in_preview: false, is_added: true };
}

function LineOf({ text, line }: { text: string; line: number }) {
  const found = text.split("\n")[line - 1];
  return found === undefined ? null : (
    <>
      {": "}
      <code>
        <Marked text={found.trim()} />
      </code>
    </>
  );
}

type Row = CardArgument & { is_added?: boolean };

function ArgumentTable({
  rows,
  edits,
  editing,
  problem,
  none,
  foldOf,
  onReshape,
  onChange,
}: {
  rows: Row[];
  edits: Record<string, string>;
  editing: boolean;
  problem: Refused | null;
  none: string;
  foldOf: (part: string, at: number | null) => Fold;
  onReshape: (row: Element | null) => void;
  onChange: (name: string, text: string | null) => void;
}) {
  if (!rows.length) return <p class="muted">{none}</p>;
  return (
    <table class="arguments" aria-label="Arguments">
      <tbody>
        {rows.map((row) => {
          const changed = edits[row.name] !== undefined;
          return (
            <tr key={row.name} class={changed ? "changed" : ""}>
              <th scope="row" title={row.about}>
                <Marked text={row.shown_name} />
              </th>
              <td>
                {editing && !row.in_preview ? (
                  <Field row={row} text={edits[row.name]} bad={problem?.param === row.name} onChange={onChange} />
                ) : row.in_preview ? (
                  <span class="muted">shown below{changed && ", as you changed it"}</span>
                ) : changed ? (
                  <span class="mono">
                    {!row.is_added && (
                      <>
                        <del>
                          <Marked text={row.shown} />
                        </del>{" "}
                      </>
                    )}
                    <ins>{row.secret ? "changed" : edits[row.name]}</ins>
                  </span>
                ) : (
                  <Value row={row} fold={foldOf(`argument ${row.name}`, row.fold)} onReshape={onReshape} />
                )}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

// A value as people read it, and on request as it travels.
function Value({ row, fold, onReshape }: { row: Row; fold: Fold; onReshape: (row: Element | null) => void }) {
  const [exact, setExact] = useState(false);
  if (row.exact === null) return <Folded class="mono" text={row.shown} fold={fold} />;
  return (
    <div class="value">
      {exact ? (
        <span class="mono">
          <Marked text={row.exact} />
        </span>
      ) : (
        <Folded class="read" text={row.shown} fold={fold} />
      )}
      <button
        type="button"
        class="link"
        aria-pressed={exact}
        aria-label={`${row.shown_name} exactly, as JSON`}
        title="Exactly as it goes to the tool, as JSON"
        onClick={(event) => {
          onReshape(event.currentTarget.closest("tr"));
          setExact(!exact);
          disarmAll();
        }}
      >
        exactly
      </button>
    </div>
  );
}

// The words for a kind of value, for whoever writes no programs; the last two have a form that has to be kept.
const KINDS: Record<string, string> = {
  string: "text",
  boolean: "true or false",
  number: "number",
  integer: "whole number",
  array: 'list, as JSON: ["one", "two"]',
  object: 'names with values, as JSON: {"name": "value"}',
};

function Field({
  row,
  text,
  bad,
  onChange,
}: {
  row: Row;
  text: string | undefined;
  bad: boolean;
  onChange: (name: string, text: string | null) => void;
}) {
  const value = text ?? row.raw;
  const give = (now: string) => onChange(row.name, now === row.raw && !row.is_added ? null : now);
  const about = `hint-${row.name}`;
  const shared = { "aria-label": row.shown_name, "aria-describedby": about, "aria-invalid": bad };
  return (
    <div class="field">
      {row.type === "boolean" ? (
        <select {...shared} value={value} onChange={(event) => give(event.currentTarget.value)}>
          <option>true</option>
          <option>false</option>
        </select>
      ) : row.secret ? (
        <input
          {...shared}
          type="password"
          autocomplete="off"
          placeholder={row.is_added ? "" : "unchanged"}
          value={text ?? ""}
          onInput={(event) => give(event.currentTarget.value)}
        />
      ) : (
        <div class="growing" data-text={value}>
          <textarea {...shared} rows={1} spellcheck={false} value={value} onInput={(event) => give(event.currentTarget.value)} />
        </div>
      )}
      <span class="hint" id={about}>
        {KINDS[row.type] ?? `${row.type}, as JSON`}
        {row.marked && (
          <>
            {"; it was "}
            <Marked text={row.shown} />
          </>
        )}
        {text !== undefined && (
          <button type="button" class="link" onClick={() => onChange(row.name, null)}>
            {row.is_added ? "leave it out" : "as it was"}
          </button>
        )}
      </span>
    </div>
  );
}
