// What stands for an answer of yours: the grants that you gave from cards, to be taken back here, and the rules by file.

import { useEffect, useState } from "preact/hooks";
import { ProblemOf, useProblem } from "./problem.tsx";
import { grants, post } from "./requests.ts";
import type { GrantsFound } from "./wire.ts";
import { Marked } from "./words.tsx";

const SAYINGS: Record<string, string> = { allow: "does not ask", ask: "asks each time", deny: "never happens" };

export function GrantsOf() {
  const [found, setFound] = useState<GrantsFound | null>(null);
  const [problem, fail] = useProblem();
  const look = () => void grants().then(setFound, fail);
  useEffect(look, []);
  if (found === null) return <ProblemOf problem={problem} />;
  return (
    <section class="grants">
      <h2>Grants and rules</h2>
      <ProblemOf problem={problem} />
      {found.grants.length === 0 && <p class="muted">You have granted nothing. A grant is given from a card, in a second step.</p>}
      <ul>
        {found.grants.map((grant) => (
          <li key={grant.id}>
            <p>
              <Marked text={grant.sentence} />
            </p>
            <p class="muted">
              <Marked text={grant.used} />
              {grant.over && `; it is over: ${grant.over}`}
            </p>
            <button type="button" onClick={() => void post("grant_revoke", { id: grant.id }).then(look, fail)}>
              Take it back
            </button>
          </li>
        ))}
      </ul>
      {found.files.map((file) => (
        <div key={file.path}>
          <p>
            <code>
              <Marked text={file.path} />
            </code>{" "}
            <span class="muted">
              ({file.layer}, {file.accepted ? "accepted" : "not accepted: it can only ask and deny"})
            </span>
          </p>
          <ul>
            {file.rules.map((rule) => (
              <li key={rule.name}>
                <Marked text={rule.name} />: {SAYINGS[rule.saying] ?? rule.saying}
                <p class="muted">
                  <Marked text={rule.words} />
                </p>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}
