// What went wrong with something that the person did, and what is left to say of it once the server answers again.

import { useEffect, useState } from "preact/hooks";
import { useReturns } from "./picture.ts";
import { Refused } from "./requests.ts";
import { Marked } from "./words.tsx";

// A request may have arrived although its answer did not, so nothing is sent again by itself.
const BACK = new Refused("back", null, "lastword answers again. Look whether what you did has arrived; if it has not, do it again.");

export function useProblem(): [Refused | null, (problem: Refused | null) => void] {
  const [problem, setProblem] = useState<Refused | null>(null);
  const returns = useReturns();
  useEffect(() => {
    if (problem?.code === "away") setProblem(BACK);
  }, [returns]);
  return [problem, setProblem];
}

export function ProblemOf({ problem }: { problem: Refused | null }) {
  if (!problem) return null;
  const isOver = problem.code === "back";
  return (
    <p class={isOver ? "muted" : "problem"} role={isOver ? "status" : "alert"}>
      <Marked text={problem.message} />
    </p>
  );
}
