// Where a person types the word of a second act. Whatever they happen to carry with them is not their word.

type Given = { id: string; value: string; armed: boolean; onWord: (word: string) => void };

export function WordField({ id, value, armed, onWord }: Given) {
  return (
    <input
      id={id}
      class="word"
      value={value}
      readOnly={!armed}
      autocomplete="off"
      autocapitalize="none"
      spellcheck={false}
      onPaste={(event) => event.preventDefault()}
      onDrop={(event) => event.preventDefault()}
      onInput={(event) => onWord(event.currentTarget.value)}
    />
  );
}
