// A message cut into blocks that can be read one by one: what was read stays read while more words arrive, and no block is
// so long or so crowded with signs that reading it as Markdown takes longer than anybody waits.

// Longer ones, and those with more signs than a person writes, are shown as they are: the time that a parser takes grows with
// the square of either.
const MAX_CHARACTERS = 4_000;
const MAX_SIGNS = 600;

export type Block = { kind: "markdown" | "plain"; text: string } | { kind: "code"; text: string; info: string; isOpen: boolean };

// Nobody writes a longer one; a line of nothing else is a text.
const FENCE = /^ {0,3}(`{3,20}|~{3,20})(?!\1)([^`~]{0,100})$/;

export function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let lines: string[] = [];
  const flush = () => {
    const block = lines.join("\n").replace(/\n+$/, "");
    lines = [];
    if (block.trim()) blocks.push({ kind: isReadable(block) ? "markdown" : "plain", text: block });
  };
  const all = text.split("\n");
  for (let place = 0; place < all.length; place++) {
    const line = all[place] ?? "";
    const fence = FENCE.exec(line);
    if (fence) {
      flush();
      const [, sign = "", info = ""] = fence;
      const code: string[] = [];
      let isOpen = true;
      while (++place < all.length) {
        const next = all[place] ?? "";
        if (closes(next, sign)) {
          isOpen = false;
          break;
        }
        code.push(next);
      }
      blocks.push({ kind: "code", text: code.join("\n"), info: info.trim(), isOpen });
    } else if (!line.trim() && !/^\s/.test(all[place + 1] ?? "")) {
      flush();
    } else lines.push(line);
  }
  flush();
  return blocks;
}

function closes(line: string, sign: string): boolean {
  const bare = line.trim();
  return bare.length >= sign.length && line.search(/\S/) < 4 && bare === (sign[0] ?? "").repeat(bare.length);
}

function isReadable(block: string): boolean {
  return block.length <= MAX_CHARACTERS && (block.match(/[*_[\]()<>~`!#+|-]/g)?.length ?? 0) <= MAX_SIGNS;
}

// The address behind a link, when it is one that may be followed: plain, and what it looks like.
export function safeTarget(href: string): string | null {
  if (!/^(?:https?:\/\/|mailto:)/i.test(href) || /[\s‹›"<>\\^`{|}]/.test(href)) return null;
  try {
    const url = new URL(href);
    // A name before the host is how an address pretends to be another.
    return url.protocol === "mailto:" || (!url.username && !url.password) ? url.href : null;
  } catch {
    return null;
  }
}
