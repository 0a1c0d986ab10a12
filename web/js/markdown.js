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
  /** @type {Record<string, any>} */
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
    tokens.forEach((token, i) => {
      let made = /** @type {Element | null} */ (block(token));
      if (made) {
        const old = open.shift();
        if (old) made = morph(old, made);
        else this.#element.append(made);
      }
      if (i < done) this.#finished += token.raw;
      else if (made) this.#open.push(made);
    });
    open.forEach((old) => old.remove());
  }

  #restart() {
    this.#finished = '';
    this.#open = [];
    this.#links = Object.create(null);
    this.#element.replaceChildren();
  }
}

/**
 * How many tokens no further text can change: those before the last one, if the first line of what follows them is
 * complete. Until then it may continue a list, or become a heading.
 * @param {import('./lexer.js').Token[]} tokens
 */
function finishedOf(tokens) {
  let following = '';
  for (let i = tokens.length - 1; i >= 0; i--) {
    following = tokens[i].raw + following;
    if (tokens[i].type !== 'space' && /^[^\n]*\S[^\n]*\n/.test(following)) return i;
  }
  return 0;
}
