// A line of code in pieces, each with the names of how it looks.

export type Piece = [text: string, kind: string];

// The pieces of a line, cut where something new begins or ends, and that named.
export function marked(pieces: Piece[], changed: [number, number][]): Piece[] {
  if (!changed.length) return pieces;
  const found: Piece[] = [];
  let at = 0;
  for (const [text, kind] of pieces) {
    const end = at + text.length;
    const edges = [at, ...changed.flat().filter((edge) => edge > at && edge < end), end];
    for (let place = 0; place + 1 < edges.length; place++) {
      const [from, to] = [edges[place] ?? at, edges[place + 1] ?? end];
      const isNew = changed.some(([first, last]) => first <= from && to <= last);
      if (from < to) found.push([text.slice(from - at, to - at), isNew ? `${kind} new`.trim() : kind]);
    }
    at = end;
  }
  return found;
}
