// Shows the cards that wait and sends what the person says. Whatever comes from a tool or a model is text, never markup.
"use strict";

const cards = document.getElementById("cards");
const ended = document.getElementById("ended");
const drawn = new Map(); // digest → the card's element: a card that is on the screen is never drawn anew under a finger

// What cannot be seen, or turns the direction of writing, is named instead: a value must not look like another one.
function visible(text) {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (char) => char === "\n" ? char : `⟨U+${char.codePointAt(0).toString(16).toUpperCase()}⟩`);
}

function make(name, words, className) {
  const element = document.createElement(name);
  if (words !== undefined) element.textContent = words;
  if (className) element.className = className;
  return element;
}

async function send(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok && answer.status !== 409) throw new Error(`${path}: ${answer.status}`);
  await look();
}

function draw(card) {
  const box = make("article");
  box.dataset.call = card.id;
  box.append(make("h3", card.title), make("p", `${card.tool} · ${card.description}`, "tool"));
  if (card.problem) box.append(make("p", `Asked again: ${card.problem}.`, "problem"));
  box.append(make("p", card.message));
  const list = make("dl");
  for (const [name, value] of Object.entries(card.arguments)) {
    list.append(make("dt", name), make("dd", visible(typeof value === "string" ? value : JSON.stringify(value))));
  }
  box.append(list);
  for (const text of card.preview) {
    const more = make("details");
    more.append(make("summary", card.preview_label), make("pre", visible(text)));
    box.append(more);
  }
  if (card.takes_word) box.append(make("p", "This cannot be undone: type “allow” first.", "problem"));

  const acts = make("div", undefined, "acts");
  const yes = make("button", card.allow, "yes");
  const no = make("button", "Deny");
  const reason = make("input");
  reason.placeholder = "Why not? (the assistant reads it)";
  reason.setAttribute("aria-label", "A reason for a no");
  const word = make("input", undefined, "word");
  word.setAttribute("aria-label", "Type allow");
  word.placeholder = "type allow";
  word.autocomplete = "off";
  yes.type = no.type = "button";
  yes.disabled = true;
  let read = false;
  const judge = () => { yes.disabled = !read || (card.takes_word && word.value !== "allow"); };
  // A press that was meant for what stood here a moment ago must not count for this.
  setTimeout(() => { read = true; judge(); }, 700);
  word.addEventListener("input", judge);
  // Enter never allows: it is what people press to get rid of something.
  yes.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  const answer = (allow) => {
    yes.disabled = no.disabled = true;
    send(`/calls/${encodeURIComponent(card.id)}/answer`, {
      digest: card.digest, allow, word: word.value, reason: allow ? null : reason.value || null,
    }).catch((problem) => { no.disabled = false; judge(); box.append(make("p", String(problem), "problem")); });
  };
  yes.addEventListener("click", () => answer(true));
  no.addEventListener("click", () => answer(false));
  if (card.takes_word) acts.append(word);
  acts.append(yes, no, reason);
  box.append(acts);
  return box;
}

async function look() {
  const desk = await (await fetch("/desk")).json();
  const there = new Set(desk.cards.map((card) => card.digest));
  for (const [digest, box] of drawn) {
    if (!there.has(digest)) { box.remove(); drawn.delete(digest); }
  }
  for (const card of desk.cards) {
    if (!drawn.has(card.digest)) { drawn.set(card.digest, draw(card)); cards.append(drawn.get(card.digest)); }
  }
  const many = desk.cards.length;
  document.title = many ? `(${many}) The shop's desk` : "The shop's desk";
  const words = many === 0 ? "Nothing waits for you." : many === 1 ? "One thing waits for you." : `${many} things wait for you.`;
  const count = document.getElementById("count");
  if (count.textContent !== words) count.textContent = words;
  const lines = desk.ended.map((one) => [`${one.tool} ${one.kind.replaceAll("_", " ")}`, one.message]);
  if (ended.dataset.shown !== JSON.stringify(lines)) {
    ended.dataset.shown = JSON.stringify(lines);
    ended.replaceChildren(...(lines.length ? lines : [["", "Nothing yet."]]).map(([what, message]) => {
      const line = make("li");
      line.append(make("b", what), what ? " — " + message : message);
      return line;
    }));
  }
}

for (const button of document.querySelectorAll("footer button")) {
  button.addEventListener("click", () => send("/calls", { tool: button.dataset.tool, arguments: JSON.parse(button.dataset.arguments) }));
}

async function keepLooking() {
  try { await look(); } catch { document.getElementById("count").textContent = "The program does not answer."; }
  setTimeout(keepLooking, 1000);
}
keepLooking();
