// The second step of a card: what would be allowed without asking again. It begins with exactly this call; whatever is
// looser is chosen here, one by one, and the sentence says all of it. What it says comes from the server. A word and a
// press grant it; each change puts both back to the beginning. What was said of an earlier choice keeps its place until
// the next is there, so that nothing jumps, and is not to be read or agreed to.

import { useEffect, useRef, useState } from "preact/hooks";
import { disarmAll, useArmed } from "./arming.ts";
import type { WaitingCall } from "./picture.ts";
import { ProblemOf, useProblem } from "./problem.tsx";
import { post, type Refused } from "./requests.ts";
import { GRANT_WORDS, type GrantChoiceBody, type GrantStep } from "./wire.ts";
import { WordField } from "./word.tsx";
import { Marked } from "./words.tsx";

type Choice = Required<Pick<GrantChoiceBody, "loosened" | "scope" | "sums">> & { calls: string };
const FIRST_CALLS = "10";

// What the server said, and the very choice that it said it of.
type Told = { choice: Choice; step: GrantStep };

// `unseen`: a part of the card was opened, or took another form, while this stood there.
type Given = { call: WaitingCall; closed: string[]; unseen: boolean; onOpen: () => void; onBack: () => void };

export function Granting({ call, closed, unseen, onOpen, onBack }: Given) {
  const card = call.card;
  const section = useRef<HTMLElement>(null);
  const newest = useRef(0);
  const [choice, setChoice] = useState<Choice>({ loosened: {}, scope: "session", calls: FIRST_CALLS, sums: {} });
  const [told, setTold] = useState<Told | null>(null);
  const [word, setWord] = useState("");
  const [sent, setSent] = useState(false);
  const [problem, setProblem] = useProblem();
  const step = told?.step ?? null;
  const fresh = told !== null && told.choice === choice;
  const isWhole = choice.calls === "" || /^[1-9]\d{0,8}$/.test(choice.calls);
  const canGrant = fresh && isWhole && step !== null && step.digest !== "" && closed.length === 0 && !unseen;
  const { armed, counts } = useArmed(step?.digest ?? "", canGrant);

  useEffect(() => section.current?.focus(), []);
  useEffect(() => {
    const number = ++newest.current;
    setWord("");
    setProblem(null);
    disarmAll();
    if (!isWhole) return;
    const calls = choice.calls === "" ? null : Number(choice.calls);
    post("grant_step", { call_id: call.id, digest: card.digest, ...choice, calls }).then(
      (said) => number === newest.current && setTold({ choice, step: said }),
      (refused: Refused) => number === newest.current && setProblem(refused),
    );
  }, [choice]);

  function press(event: Event) {
    if (!counts(event) || !canGrant || sent || step === null) return;
    if (word.trim().toLowerCase() !== step.word) {
      section.current?.querySelector<HTMLElement>(".word")?.focus();
      return;
    }
    setSent(true);
    disarmAll();
    post("grant", { call_id: call.id, digest: card.digest, step: step.digest, word, opened: card.folded }).catch((refused: Refused) => {
      setProblem(refused);
      setSent(false);
    });
  }

  const id = `grant-${call.id}`;
  const isTyped = step !== null && word.trim().toLowerCase() === step.word;
  const isAgreeable = step !== null && step.digest !== "" && isWhole && closed.length === 0 && !unseen;
  return (
    <section class="granting" ref={section} tabIndex={-1} aria-labelledby={id} aria-busy={!fresh || sent} data-armed={armed}>
      <h3 id={id}>{GRANT_WORDS.title}</h3>
      {step?.why_none && (
        <p>
          <Marked text={step.why_none} />
        </p>
      )}
      {step !== null && !step.why_none && (
        <>
          <p class="muted">{step.begins}</p>
          <table class="arguments" aria-label="What it would cover">
            <tbody>
              {step.bounds.map((row) => (
                <tr key={row.name}>
                  <th scope="row">
                    <Marked text={row.shown_name} />
                  </th>
                  <td>
                    {row.choices.length === 1 ? (
                      <Marked text={row.choices[0] ?? ""} />
                    ) : (
                      <div role="radiogroup" aria-label={row.shown_name}>
                        {row.choices.map((words, place) => (
                          <label key={place} class="choice">
                            <input
                              type="radio"
                              name={`${id}-${row.name}`}
                              checked={(choice.loosened[row.name] ?? 0) === place}
                              onChange={() => setChoice((now) => ({ ...now, loosened: { ...now.loosened, [row.name]: place } }))}
                            />
                            <span>
                              <Marked text={words} />
                            </span>
                          </label>
                        ))}
                      </div>
                    )}
                  </td>
                </tr>
              ))}
              <tr>
                <th scope="row">{GRANT_WORDS.how_long}</th>
                <td>
                  <div role="radiogroup" aria-label={GRANT_WORDS.how_long}>
                    {step.scopes.map(([scope, words]) => (
                      <label key={scope} class="choice">
                        <input
                          type="radio"
                          name={`${id}-scope`}
                          checked={scope === scopeOf(choice, step)}
                          onChange={() => setChoice((now) => ({ ...now, scope }))}
                        />
                        <span>{words}</span>
                      </label>
                    ))}
                  </div>
                </td>
              </tr>
              <tr>
                <th scope="row">{GRANT_WORDS.ends_after}</th>
                <td>
                  <label class="limit">
                    <input
                      inputMode="numeric"
                      autocomplete="off"
                      aria-label={`${GRANT_WORDS.ends_after} so many calls${step.needs_limit ? "" : " (empty: no limit)"}`}
                      aria-invalid={!isWhole}
                      value={choice.calls}
                      onInput={(event) => {
                        const calls = event.currentTarget.value.trim();
                        setChoice((now) => ({ ...now, calls }));
                      }}
                    />{" "}
                    calls{!step.needs_limit && <span class="muted"> (empty: no limit)</span>}
                  </label>
                  {step.sums.map((sum) => (
                    <label key={sum.name} class="limit">
                      <input
                        inputMode="decimal"
                        autocomplete="off"
                        aria-label={`${GRANT_WORDS.ends_after} so much of ${sum.shown_name} in all (empty: no limit)`}
                        value={choice.sums[sum.name] ?? ""}
                        onInput={(event) => {
                          const most = event.currentTarget.value;
                          setChoice((now) => ({ ...now, sums: { ...now.sums, [sum.name]: most } }));
                        }}
                      />{" "}
                      <span>
                        of <Marked text={sum.shown_name} /> in all <span class="muted">(empty: no limit)</span>
                      </span>
                    </label>
                  ))}
                </td>
              </tr>
            </tbody>
          </table>
        </>
      )}
      {/* There from the beginning: a reader of the screen says what changes in here, and not what comes with it. */}
      <div aria-live="polite" aria-busy={isWhole && !fresh && problem === null}>
        {!isWhole && <p class="problem">{GRANT_WORDS.not_whole}</p>}
        {step?.problem && fresh && (
          <p class="problem">
            <Marked text={step.problem} />
          </p>
        )}
        {step?.sentence && isWhole && (
          <div class={fresh ? "agree" : "agree unsaid"}>
            <p class="sentence">
              <Marked text={step.sentence} />
            </p>
            {step.settles.length > 0 && (
              <>
                <p>{step.settling}</p>
                <ul>
                  {step.settles.map((other) => (
                    <li key={other.id}>
                      <Marked text={other.summary} />
                    </li>
                  ))}
                </ul>
              </>
            )}
            <p class="muted">
              {step.counting} {step.ends} {step.past} You can take it back at any time, under Settings. What was done by then stays done.
            </p>
          </div>
        )}
      </div>
      <ProblemOf problem={problem} />
      <div class="actions">
        {closed.length > 0 && step !== null && !step.why_none ? (
          <p class="second folded">
            A part of this card is folded. Before you can grant it,{" "}
            <button type="button" class="link" onClick={onOpen}>
              open it
            </button>
            .
          </p>
        ) : unseen && step !== null && !step.why_none ? (
          <p class="second folded">
            You have not seen all of this card. Before you can grant it,{" "}
            <button type="button" class="link" onClick={onBack}>
              go back to it
            </button>
            .
          </p>
        ) : (
          isAgreeable && (
            <p class={fresh ? "second" : "second unsaid"} id={`second-${id}`}>
              <label for={`word-${id}`}>
                If you want all of that, type <b>{step.word}</b> here, then press the button:
              </label>
              <WordField id={`word-${id}`} value={word} armed={armed} onWord={setWord} />
            </p>
          )
        )}
        {!step?.why_none && (
          <button
            type="button"
            class="primary"
            disabled={sent}
            aria-disabled={!canGrant || !isTyped}
            aria-describedby={isAgreeable ? `second-${id}` : undefined}
            // Enter alone never grants.
            onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
            onClick={press}
          >
            {GRANT_WORDS.title}
          </button>
        )}
        <button type="button" class="no" disabled={sent} onClick={onBack}>
          {GRANT_WORDS.back}
        </button>
      </div>
    </section>
  );
}

// How long it would hold: what was chosen, or, where this card does not offer what every card begins with, what it does.
function scopeOf(choice: Choice, step: GrantStep): Choice["scope"] {
  return step.scopes.some(([offered]) => offered === choice.scope) ? choice.scope : step.scope;
}
