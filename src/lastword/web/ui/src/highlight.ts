// Code in colours, line by line. Loaded when the first piece of code in a known language is shown.

import type { Parser } from "@lezer/common";
import { classHighlighter, highlightCode } from "@lezer/highlight";
import { parser as javascript } from "@lezer/javascript";
import { parser as json } from "@lezer/json";
import { parser as python } from "@lezer/python";
import type { Piece } from "./pieces.ts";

const typescript = javascript.configure({ dialect: "ts jsx" });
const PARSERS: Record<string, Parser> = {
  python,
  py: python,
  python3: python,
  javascript: typescript,
  js: typescript,
  jsx: typescript,
  typescript,
  ts: typescript,
  tsx: typescript,
  mjs: typescript,
  json,
  jsonl: json,
};

// Languages of few rules: what a comment begins with, and the words that mean something.
const SIMPLE: Record<string, [comment: string, words: RegExp]> = {
  nuwa: ["//", /^(?:LET|SET|CALL|TRY|CALC|IF|THEN|ELSEIF|ELSE|END|FOR|IN|DO|BREAK|STOP|PRINT|AND|OR|NOT|true|false|null)$/],
  sh: ["#", /^(?:if|then|else|elif|fi|for|in|do|done|while|until|case|esac|function|return|export|local|set|cd|exit)$/],
  toml: ["#", /^(?:true|false)$/],
  yaml: ["#", /^(?:true|false|null|yes|no)$/],
  sql: [
    "--",
    /^(?:select|from|where|and|or|not|insert|into|values|update|set|delete|create|table|join|left|on|as|order|by|group|limit|null)$/i,
  ],
};
const ALIASES: Record<string, string> = { nuwascript: "nuwa", bash: "sh", shell: "sh", zsh: "sh", console: "sh", yml: "yaml", ini: "toml" };

export function highlight(text: string, language: string): Piece[][] | null {
  const name = ALIASES[language] ?? language;
  const parser = PARSERS[name];
  const simple = SIMPLE[name];
  const lines = parser ? parsed(text, parser) : simple ? text.split("\n").map((line) => scanned(line, ...simple)) : null;
  // A mark is the server's, and stands out in one piece: a line that has one keeps its own colours.
  const whole = text.split("\n");
  return lines?.map((line, number) => (whole[number]?.includes("‹") ? [[whole[number] ?? "", ""]] : line)) ?? null;
}

function parsed(text: string, parser: Parser): Piece[][] {
  const lines: Piece[][] = [[]];
  highlightCode(
    text,
    parser.parse(text),
    classHighlighter,
    (piece, kind) => lines.at(-1)?.push([piece, kind]),
    () => lines.push([]),
  );
  return lines;
}

function scanned(line: string, comment: string, words: RegExp): Piece[] {
  const found = line.match(/"(?:[^"\\]|\\.)*"?|'[^']*'?|\d+(?:\.\d+)?|[A-Za-z_]\w*|\s+|--|\/\/|[\s\S]/g) ?? [];
  const pieces: Piece[] = [];
  for (let place = 0; place < found.length; place++) {
    const part = found[place] ?? "";
    if (part === comment) {
      pieces.push([found.slice(place).join(""), "tok-comment"]);
      break;
    }
    const kind = /^["']/.test(part) ? "tok-string" : /^\d/.test(part) ? "tok-number" : words.test(part) ? "tok-keyword" : "";
    pieces.push([part, kind]);
  }
  return pieces;
}
