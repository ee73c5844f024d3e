// A question of a running tool: who asks, in their own words, what there is to fill in, and where the answer goes. It is no
// card that asks for consent and must not look like one: it has its own colour, shape and words, and no keys.

import { useEffect, useState } from "preact/hooks";
import { disarmAll, useArmed } from "./arming.ts";
import { follow } from "./follow.ts";
import type { AskingCall } from "./picture.ts";
import { ProblemOf, useProblem } from "./problem.tsx";
import { post, type Refused } from "./requests.ts";
import type { FormField, QuestionBody } from "./wire.ts";
import { Folded, Marked } from "./words.tsx";

export function QuestionOf({ call }: { call: AskingCall }) {
  // Another question is another form: what was typed into the one before does not carry over.
  return <Form key={call.question.id} call={call} />;
}

function Form({ call }: { call: AskingCall }) {
  const { question } = call;
  const [values, setValues] = useState<Record<string, string>>({});
  const [problem, setProblem] = useProblem();
  const [sent, setSent] = useState(false);
  const [open, setOpen] = useState(false);
  const { armed, counts } = useArmed(question.id, true);
  useEffect(follow, []);

  async function answer(action: QuestionBody["action"]) {
    if (sent) return;
    setSent(true);
    setProblem(null);
    disarmAll();
    try {
      await post("answer_question", { call_id: call.id, question: question.id, action, ...(action === "give" && { values }) });
    } catch (refused) {
      setProblem(refused as Refused);
      setSent(false);
    }
  }

  function press(event: Event, action: QuestionBody["action"]) {
    if (counts(event)) void answer(action);
  }

  const heading = `question-${call.id}`;
  return (
    <section class="question" tabIndex={-1} aria-labelledby={heading} data-call={call.id} data-armed={armed}>
      <header>
        <span class="asks" aria-hidden="true">
          ?
        </span>
        <div class="what">
          <h2 id={heading}>
            <Marked text={call.name} /> wants to know something
          </h2>
          <p class="muted">
            <code>{call.tool}</code> · <Marked text={question.about} />
          </p>
        </div>
      </header>
      <blockquote aria-label="The tool asks">
        <span class="who">The tool asks</span>
        <Folded text={question.message} fold={{ at: question.message_fold, open, turn: () => setOpen(!open) }} />
      </blockquote>
      {question.can_give ? (
        <form autocomplete="off" onSubmit={(event) => event.preventDefault()}>
          <span class="who">Its form, in its words</span>
          {question.fields.map((field, place) => (
            <FieldOf
              key={field.name}
              id={`${heading}-${place}`}
              field={field}
              text={values[field.name] ?? ""}
              bad={problem?.param === field.name}
              onChange={(text) => setValues((now) => ({ ...now, [field.name]: text }))}
            />
          ))}
        </form>
      ) : (
        <p class="muted">It asks for a secret, which does not travel to another program. Answer it where the tool runs.</p>
      )}
      <ProblemOf problem={problem} />
      <p class="goes-to">{question.goes_to}</p>
      <div class="ways">
        {question.can_give && (
          <button type="button" class="send" disabled={sent} onClick={(event) => press(event, "give")}>
            Send answer
          </button>
        )}
        <button type="button" disabled={sent} onClick={(event) => press(event, "decline")}>
          Rather not say
        </button>
        <button type="button" class="link" disabled={sent} onClick={(event) => press(event, "close")}>
          Close
        </button>
      </div>
      {call.session && <p class="muted">Asked by another program, in session {call.session}.</p>}
    </section>
  );
}

type FieldProps = { id: string; field: FormField; text: string; bad: boolean; onChange: (text: string) => void };

function FieldOf({ id, field, text, bad, onChange }: FieldProps) {
  const shared = { id, value: text, "aria-invalid": bad, "aria-required": field.required, autocomplete: "off" as const };
  const options = field.kind === "boolean" ? BOTH : field.choices;
  return (
    <div class="ask">
      <label for={id}>
        <Marked text={field.label} />
        <span class="hint">
          {" "}
          {field.secret ? "secret" : field.kind_words}
          {field.required ? "" : ", optional"}
        </span>
      </label>
      {field.about && (
        <p class="hint">
          <Marked text={field.about} />
        </p>
      )}
      {field.kind === "boolean" || field.kind === "choice" ? (
        <select {...shared} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">Not chosen</option>
          {options.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      ) : field.secret ? (
        <input {...shared} type="password" autocomplete="new-password" onInput={(event) => onChange(event.currentTarget.value)} />
      ) : field.kind === "string" ? (
        <textarea {...shared} rows={1} onInput={(event) => onChange(event.currentTarget.value)} />
      ) : (
        <input
          {...shared}
          inputMode={field.kind === "integer" ? "numeric" : "decimal"}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </div>
  );
}

const BOTH = [
  { value: "yes", label: "Yes" },
  { value: "no", label: "No" },
];
