// A text in Markdown that may still be growing. Finished blocks are made once; the last
// one is made anew when the text has grown, and changes what is there, node by node, so
// that a selection stays.

import { lex } from './lexer.js';
import { morph } from './morph.js';
import { block } from './render.js';

/** Shows a text in an element. Call update when the text has changed. */
export class Markdown {
  #element;
  #text = '';
  /** The text of the blocks that are finished. */
  #finished = '';
  /** Elements of the blocks that the text may still change. @type {Element[]} */
  #open = [];
  /** How many items are finished of the list that is the first of these. */
  #items = 0;
  /** Links that finished blocks define, by name. @type {Record<string, any>} */
  #links = Object.create(null);

  /** @param {HTMLElement} element whose children are the text's blocks */
  constructor(element) {
    this.#element = element;
  }

  /** @param {string} text */
  update(text) {
    if (text === this.#text) return;
    this.#text = text;
    text = text.replaceAll('\r\n', '\n');
    if (!text.startsWith(this.#finished)) this.#restart();
    const tokens = lex(text.slice(this.#finished.length), this.#links);
    const open = this.#open.splice(0);
    const done = finishedOf(tokens);
    let items = this.#items;
    tokens.forEach((token, i) => {
      let made = /** @type {Element | null} */ (block(token));
      if (made) {
        const old = open.shift();
        if (old) made = morph(old, made, items);
        else this.#element.append(made);
        items = 0;
      }
      if (i < done) {
        this.#items = 0;
        this.#finished += token.raw;
        if (token.type === 'def') this.#links[token.tag] ??= { href: token.href, title: token.title };
      } else if (made) {
        this.#open.push(made);
      }
    });
    if (tokens[done]?.type === 'list') this.#finishItems(tokens[done].items);
    open.forEach((old) => old.remove());
  }

  /** Also of a list the last item alone is made anew. @param {import('./lexer.js').Token[]} items of the first block that is not finished */
  #finishItems(items) {
    const done = finishedOf(items);
    this.#items += done;
    for (const item of items.slice(0, done)) this.#finished += item.raw;
  }

  #restart() {
    this.#items = 0;
    this.#finished = '';
    this.#open = [];
    this.#links = Object.create(null);
    this.#element.replaceChildren();
  }
}

/**
 * How many tokens, or items of a list, no further text can change: those before the last one, if the first line of what follows them is
 * complete. Until then it may continue a list, or become a heading.
 * @param {import('./lexer.js').Token[]} tokens
 */
function finishedOf(tokens) {
  let following = '';
  for (let i = tokens.length - 1; i >= 0; i--) {
    following = tokens[i].raw + following;
    const line = following.slice(0, following.indexOf('\n') + 1);
    if (tokens[i].type !== 'space' && line.trim()) return i;
  }
  return 0;
}
