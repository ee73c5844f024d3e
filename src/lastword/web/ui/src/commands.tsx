// What can be typed after a slash here. Most of it is a view of the page; whatever else begins with one goes to the server,
// which knows /undo, or to the model.

export type Command = { name: string; view: "inbox" | "timeline" | "settings" | ""; about: string };

const COMMANDS: readonly Command[] = [
  { name: "/help", view: "", about: "what can be typed" },
  { name: "/tools", view: "settings", about: "the tools that the model may ask for, under Settings" },
  { name: "/preset", view: "settings", about: "the presets, under Settings" },
  { name: "/runs", view: "timeline", about: "what was called and run in this session, as the timeline" },
  { name: "/tokens", view: "", about: "what the model's server counted for the answers of this conversation" },
  { name: "/inbox", view: "inbox", about: "what waits for an answer, of all programs" },
];

export function commandIn(words: string): Command | undefined {
  return COMMANDS.find((command) => command.name === words.trim());
}

export function CommandHelp() {
  return (
    <dl class="help">
      {COMMANDS.map((command) => (
        <div key={command.name}>
          <dt>
            <code>{command.name}</code>
          </dt>
          <dd>{command.about}</dd>
        </div>
      ))}
      <div>
        <dt>
          <code>/undo</code>
        </dt>
        <dd>take back what the last call changed</dd>
      </div>
      <div>
        <dt>Esc</dt>
        <dd>goes to the card that waits; anything else goes to the model</dd>
      </div>
    </dl>
  );
}
