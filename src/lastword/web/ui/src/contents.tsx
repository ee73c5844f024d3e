// What a call returned beside its words: images are drawn, sounds can be played, and everything else is offered.

import { useState } from "preact/hooks";
import { contentPath } from "./requests.ts";
import type { CallContent, CallItem } from "./wire.ts";
import { Marked } from "./words.tsx";

export function Contents({ call }: { call: CallItem }) {
  if (call.content.length === 0) return null;
  return (
    <ul class="contents" aria-label={`What ${call.name} returned`}>
      {call.content.map((content, place) => (
        <li key={`${content.digest}${place}`}>
          <Content path={contentPath(call.id, content.digest)} content={content} />
        </li>
      ))}
    </ul>
  );
}

function Content({ path, content }: { path: string; content: CallContent }) {
  const [lost, setLost] = useState(false);
  const facts = `${content.media_type}, ${content.size}`;
  const image = content.kind === "image" && !lost;
  return (
    <figure class={`content ${content.kind}`}>
      {image && (
        <a href={path} target="_blank" rel="noopener" aria-label={`Open ${content.name} by itself`}>
          <img src={path} alt={content.alt || content.name} loading="lazy" decoding="async" onError={() => setLost(true)} />
        </a>
      )}
      {/* biome-ignore lint/a11y/useMediaCaption: a tool gives bytes; its words for those who cannot hear stand below. */}
      {content.kind === "audio" && !lost && <audio controls preload="none" src={path} onError={() => setLost(true)} />}
      <figcaption>
        <a href={path} download>
          <Marked text={content.name} />
        </a>
        <span class="muted"> {facts}</span>
        {content.alt && (
          <span class="alt">
            <Marked text={content.alt} />
          </span>
        )}
        {lost && <span class="problem">It cannot be shown. It was pruned or changed, or is no {content.kind} after all.</span>}
      </figcaption>
    </figure>
  );
}
