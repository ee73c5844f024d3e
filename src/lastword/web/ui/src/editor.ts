// CodeMirror, loaded when the first diff is shown. It lives in a shadow root: there its styles are style sheets that the
// page's policy allows, where a <style> element would need an exception.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension, type Range, StateField } from "@codemirror/state";
import type { DecorationSet, ViewUpdate } from "@codemirror/view";
import { Decoration, EditorView, keymap, lineNumbers, MatchDecorator, ViewPlugin, WidgetType } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export type Wanted = {
  path: string;
  base: string;
  proposed: string;
  sideBySide: boolean;
  editing: boolean;
  marks: [number, number, string][];
  onChange: (text: string) => void;
};

const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.bool, tags.null], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.comment, tags.meta], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.number, tags.atom], color: "var(--code-number)" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName), tags.className], color: "var(--code-name)" },
  { tag: tags.heading, fontWeight: "700" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strong, fontWeight: "700" },
]);

const look = EditorView.theme({
  "&": { fontSize: "13px", backgroundColor: "transparent", color: "var(--ink)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "none" },
  ".cm-content": { caretColor: "var(--ink)", padding: "6px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink) !important" },
  ".cm-selectionBackground": { backgroundColor: "var(--select) !important" },
  ".cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--added) !important" },
  ".cm-deletedChunk, &.cm-merge-a .cm-changedLine": { backgroundColor: "var(--removed) !important" },
  ".cm-changedText": { background: "var(--added-strong) !important" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "var(--removed-strong) !important" },
  ".cm-deletedChunk": { paddingLeft: "6px" },
  ".cm-deletedLine, .cm-deletedLine del": { textDecoration: "none" },
  ".cm-changeGutter .cm-changedLineGutter": { backgroundColor: "var(--added-edge) !important" },
  "&.cm-merge-a .cm-changeGutter .cm-changedLineGutter, .cm-deletedLineGutter": { backgroundColor: "var(--removed-edge) !important" },
  ".cm-collapsedLines": {
    background: "var(--quiet) !important",
    color: "var(--muted) !important",
    fontFamily: "var(--sans)",
    padding: "3px 12px",
  },
  ".odd": { background: "var(--odd)", color: "var(--odd-ink)", borderRadius: "3px", padding: "0 2px", fontWeight: "600" },
  ".tab": { position: "relative" },
  ".tab::before": { content: "'⇥'", position: "absolute", color: "var(--muted)", opacity: ".75" },
  ".cm-chunkButtons": { insetInlineEnd: "8px !important" },
  ".cm-chunkButtons button": {
    font: "600 12px var(--sans)",
    border: "1px solid var(--line) !important",
    borderRadius: "6px",
    background: "var(--card) !important",
    color: "var(--ink) !important",
    padding: "1px 8px !important",
    cursor: "pointer",
  },
});

const KEYWORDS = /^(LET|SET|CALL|TRY|CALC|IF|THEN|ELSEIF|ELSE|END|FOR|IN|DO|BREAK|STOP|PRINT|AND|OR|NOT|true|false|null)$/;

const nuwa = StreamLanguage.define<null>({
  name: "nuwa",
  startState: () => null,
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/^\/\/.*/)) return "comment";
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^\d+(?:\.\d+)?/)) return "number";
    if (stream.match(/^[A-Za-z_]\w*/)) return KEYWORDS.test(stream.current()) ? "keyword" : "variableName";
    stream.next();
    return null;
  },
});

function languageOf(path: string): Extension {
  const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  if (ending === "py" || ending === "pyi") return python();
  if (["js", "jsx", "ts", "tsx", "mjs"].includes(ending)) return javascript({ typescript: true, jsx: true });
  if (ending === "json") return json();
  return ending === "nuwa" ? nuwa : [];
}

function matching(pattern: RegExp, name: string): Extension {
  const matcher = new MatchDecorator({ regexp: pattern, decoration: Decoration.mark({ class: name }) });
  return ViewPlugin.fromClass(
    class {
      found: DecorationSet;
      constructor(view: EditorView) {
        this.found = matcher.createDeco(view);
      }
      update(update: ViewUpdate) {
        this.found = matcher.updateDeco(update, this.found);
      }
    },
    { decorations: (plugin) => plugin.found },
  );
}

class Mark extends WidgetType {
  readonly words: string;
  constructor(words: string) {
    super();
    this.words = words;
  }
  override eq(other: Mark) {
    return other.words === this.words;
  }
  toDOM() {
    const mark = document.createElement("span");
    mark.className = "odd";
    mark.textContent = this.words;
    return mark;
  }
}

// In a text that is being edited the odd characters are there, under the server's marks.
function marked(marks: [number, number, string][]): Extension {
  return StateField.define<DecorationSet>({
    create: () =>
      Decoration.set(marks.map(([from, to, words]): Range<Decoration> => Decoration.replace({ widget: new Mark(words) }).range(from, to))),
    update: (set, transaction) => set.map(transaction.changes),
    provide: (field) => EditorView.decorations.from(field),
  });
}

function leaveOut(type: "accept" | "reject", act: (event: MouseEvent) => void): HTMLElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Leave this out";
  button.hidden = type === "accept";
  button.onmousedown = act;
  return button;
}

export function showDiff(host: HTMLElement, wanted: Wanted): () => void {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.replaceChildren();
  const parent = document.createElement("div");
  root.append(parent);
  const same: Extension[] = [
    lineNumbers(),
    languageOf(wanted.path),
    syntaxHighlighting(colors),
    look,
    EditorView.lineWrapping,
    EditorState.tabSize.of(4),
    matching(/\t/g, "tab"),
    // What is written stays between the bar and the buttons of the card.
    EditorView.scrollMargins.of(() => ({ top: 80, bottom: 150 })),
  ];
  const readOnly = [EditorState.readOnly.of(true), EditorView.editable.of(false)];
  const named = (label: string) => EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", spellcheck: "false" });
  const proposed: Extension[] = wanted.editing
    ? [
        history(),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        named(`Proposed text of ${wanted.path}, editable`),
        marked(wanted.marks),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) wanted.onChange(update.state.doc.toString());
        }),
      ]
    : [...readOnly, matching(/‹[^‹›\n]*›/g, "odd"), named(`Change of ${wanted.path}`)];
  const collapse = { margin: 3, minSize: 8 };
  if (wanted.editing && wanted.marks.length) {
    const view = new EditorView({ doc: wanted.proposed, extensions: [...same, ...proposed], parent, root });
    return () => view.destroy();
  }
  if (wanted.sideBySide) {
    const before = [...same, ...readOnly, matching(/‹[^‹›\n]*›/g, "odd"), named(`Text of ${wanted.path} as it is now`)];
    const view = new MergeView({
      a: { doc: wanted.base, extensions: before },
      b: { doc: wanted.proposed, extensions: [...same, ...proposed] },
      parent,
      root,
      collapseUnchanged: collapse,
    });
    return () => view.destroy();
  }
  const view = new EditorView({
    doc: wanted.proposed,
    extensions: [
      ...same,
      ...proposed,
      unifiedMergeView({
        original: wanted.base,
        mergeControls: wanted.editing ? leaveOut : false,
        collapseUnchanged: collapse,
        allowInlineDiffs: false,
      }),
    ],
    parent,
    root,
  });
  return () => view.destroy();
}
