// What a model writes, drawn: Markdown read by marked's lexer and made into elements here, one by one. No text of the
// model's ever becomes markup, and whatever is not known is shown as it was written.

import { Lexer, type MarkedToken, type Token } from "marked";
import type { ComponentChildren, JSX } from "preact";
import { type Block, blocksOf, safeTarget } from "./blocks.ts";
import { CodeBlock } from "./code.tsx";
import { Marked } from "./words.tsx";

// Deeper than anybody reads. What is below is shown as it was written.
const MAX_DEPTH = 12;
// What was read before, for a message of which more arrives with every frame.
const MAX_KEPT = 500;
const kept = new Map<string, Token[]>();

function read(text: string): Token[] {
  const known = kept.get(text);
  if (known) return known;
  let tokens: Token[];
  try {
    tokens = new Lexer({ gfm: true }).lex(text);
  } catch {
    tokens = [{ type: "text", raw: text, text }];
  }
  if (kept.size >= MAX_KEPT) for (const oldest of [...kept.keys()].slice(0, MAX_KEPT / 2)) kept.delete(oldest);
  kept.set(text, tokens);
  return tokens;
}

export function Markdown({ text }: { text: string }) {
  return (
    <div class="prose">
      {blocksOf(text).map((block, place) => (
        <BlockOf key={place} block={block} />
      ))}
    </div>
  );
}

function BlockOf({ block }: { block: Block }) {
  if (block.kind === "code") return <CodeBlock text={block.text} info={block.info} isOpen={block.isOpen} />;
  if (block.kind === "plain")
    return (
      <p class="as-written">
        <Marked text={block.text} />
      </p>
    );
  return <>{drawn(read(block.text), 0)}</>;
}

function drawn(tokens: Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token, place) => <TokenOf key={place} token={token as MarkedToken} depth={depth} />);
}

function TokenOf({ token, depth }: { token: MarkedToken; depth: number }): JSX.Element | null {
  if (depth > MAX_DEPTH) return <Plain text={token.raw} />;
  const inside = (tokens?: Token[]) => drawn(tokens, depth + 1);
  switch (token.type) {
    case "space":
    case "checkbox":
      return null;
    case "heading":
      // All of one level, below that of the page: what a model skips would confuse who listens to headings.
      return <h2 class={`heading-${token.depth}`}>{inside(token.tokens)}</h2>;
    case "paragraph":
      return <p>{inside(token.tokens)}</p>;
    case "text":
      return token.tokens ? <span>{inside(token.tokens)}</span> : <Plain text={token.text} />;
    case "code":
      return <CodeBlock text={token.text} info={token.lang ?? ""} isOpen={false} />;
    case "blockquote":
      return <blockquote>{inside(token.tokens)}</blockquote>;
    case "hr":
      return <hr />;
    case "br":
      return <br />;
    case "strong":
      return <strong>{inside(token.tokens)}</strong>;
    case "em":
      return <em>{inside(token.tokens)}</em>;
    case "del":
      return <del>{inside(token.tokens)}</del>;
    case "codespan":
      return (
        <code>
          <Plain text={token.raw.replace(/^(`+) ?([\s\S]*?) ?\1$/, "$2")} />
        </code>
      );
    case "list": {
      const items = token.items.map((item, place) => (
        <li key={place} class={item.task ? "task" : undefined}>
          {item.task && (
            <span role="img" aria-label={item.checked ? "done" : "not done"}>
              {item.checked ? "☑ " : "☐ "}
            </span>
          )}
          {inside(item.tokens)}
        </li>
      ));
      return token.ordered ? <ol start={typeof token.start === "number" ? token.start : undefined}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <section class="wide" tabIndex={0} aria-label="Table">
          <table>
            <thead>
              <tr>
                {token.header.map((cell, place) => (
                  <th key={place} class={cell.align ?? undefined}>
                    {inside(cell.tokens)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {token.rows.map((row, line) => (
                <tr key={line}>
                  {row.map((cell, place) => (
                    <td key={place} class={cell.align ?? undefined}>
                      {inside(cell.tokens)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      );
    case "link":
      return <Link href={token.href} text={token.text} raw={token.raw} words={inside(token.tokens)} />;
    case "image":
      // Nothing is fetched because a model wrote its address: who asks for it tells its server that it was read.
      return (
        <Link
          href={token.href}
          text=""
          raw={token.raw}
          words={<>Picture: {token.text ? <Plain text={token.text} /> : "without a name"}</>}
        />
      );
    case "escape":
      return <Plain text={token.text} />;
    default:
      // HTML above all, and where the names of links are defined: nothing that was written is kept from the person.
      return <Plain text={token.raw} />;
  }
}

function Plain({ text }: { text: string }) {
  return <Marked text={text} />;
}

function Link({ href, text, raw, words }: { href: string; text: string; raw: string; words: ComponentChildren }) {
  const target = safeTarget(href);
  if (target === null) return <Plain text={raw} />;
  const isItself = text === href || `http://${text}` === href || `mailto:${text}` === href;
  return (
    <a href={target} rel="noopener noreferrer nofollow" target="_blank">
      {words}
      {!isItself && <span class="target"> ({target})</span>}
    </a>
  );
}
