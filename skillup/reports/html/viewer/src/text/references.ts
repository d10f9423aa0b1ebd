/* In place of those parts of Markdown's parser that the page has no use for, and of its large table
   of named references: HTML, definitions, references and headings by lines below them are texts
   here, shown as they were written. */
type State = (code: number | null) => State | undefined;

const none = (name: string) => ({ name, tokenize: (_: unknown, _ok: State, nok: State) => nok });

export const characterReference = none("characterReference");
export const definition = none("definition");
export const autolink = none("autolink");
export const setextUnderline = none("setextUnderline");
export const htmlFlow = none("htmlFlow");
export const htmlText = none("htmlText");
export const decodeNamedCharacterReference = (): false => false;
