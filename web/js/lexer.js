// Markdown as marked reads it, with maths, and without markup: tags are text. Only its
// lexer is used, which makes tokens; elements are made by render.js.

import { Lexer, Marked } from '../libraries/marked/marked.esm.js';

/** @typedef {any} Token marked's, or of this file: `maths` and `mathsBlock` with their TeX as `text`, `plain` */

/** Formulas longer than this, in characters, stay source text. */
const longest = 10_000;

/** What opens a formula that stands alone, and what closes it. */
const opening = /^ {0,3}(\$\$|\\\[|\\begin\{((?:equation|align|alignat|gather|multline|eqnarray)\*?)\})/;

/** A formula in lines of its own. It has no empty line; while it is open, it ends with the text. */
const block = {
  name: 'mathsBlock',
  level: 'block',
  /** @param {string} src */
  start(src) {
    const at = src.search(/\n {0,3}(?:\$\$|\\\[|\\begin\{)/);
    return at < 0 ? undefined : at + 1;
  },
  /** @param {string} src @returns {Token} */
  tokenizer(src) {
    const m = opening.exec(src);
    if (!m) return undefined;
    const [begin, opens, name] = m;
    const empty = src.search(/\n[ \t]*\n/);
    const piece = src.slice(0, Math.min(longest, empty < 0 ? src.length : empty));
    const closes = opens === '$$' ? '$$' : name ? `\\end{${name}}` : '\\]';
    const end = piece.indexOf(closes, begin.length);
    if (end < 0) return piece.length === src.length ? { type: 'mathsBlock', raw: src, text: src, open: true } : undefined;
    const rest = /^[ \t]*[.,;]?[ \t]*(?:\n|$)/.exec(src.slice(end + closes.length, end + closes.length + 80));
    if (!rest) return undefined;
    const raw = src.slice(0, end + closes.length + rest[0].length);
    return { type: 'mathsBlock', raw, text: name ? raw.trim().replace(/[.,;]$/, '') : src.slice(begin.length, end) };
  },
};

/** A formula within a line. A dollar before a digit is money: $5 or $10. */
const inline = {
  name: 'maths',
  level: 'inline',
  /** @param {string} src */
  start(src) {
    const at = src.search(/\$|\\[([]|\\boxed\{/);
    return at < 0 ? undefined : at;
  },
  /** @param {string} src @returns {Token} */
  tokenizer(src) {
    src = src.slice(0, longest);
    const display = /^(?:\$\$([^]+?)\$\$|\\\[([^]+?)\\\])/.exec(src);
    if (display) return { type: 'maths', raw: display[0], text: display[1] ?? display[2], display: true };
    const m = /^\\\(([^]+?)\\\)/.exec(src) ?? /^\$(?![\s$])((?:\\[^\n]|[^\\$\n])*?(?:\\[^\n]|[^\\$\s]))\$(?!\d)/.exec(src);
    if (m) return { type: 'maths', raw: m[0], text: m[1] };
    const boxed = src.startsWith('\\boxed{') && braces(src, 6);
    return boxed ? { type: 'maths', raw: src.slice(0, boxed), text: src.slice(0, boxed) } : undefined;
  },
};

/** Where the braces close that open at `from`; 0: they do not. @param {string} src @param {number} from */
function braces(src, from) {
  for (let i = from, depth = 0; i < src.length; i++) {
    if (src[i] === '\\') i++;
    else if (src[i] === '{') depth++;
    else if (src[i] === '}' && --depth === 0) return i + 1;
  }
  return 0;
}

/** The one tag that tables need. */
const lineBreak = {
  name: 'br',
  level: 'inline',
  /** @param {string} src */
  start(src) {
    const at = src.search(/<br/i);
    return at < 0 ? undefined : at;
  },
  /** @param {string} src @returns {Token} */
  tokenizer(src) {
    const m = /^<br ?\/?>/i.exec(src);
    return m ? { type: 'br', raw: m[0] } : undefined;
  },
};

/** A line of so many characters is no Markdown: a model that repeats itself, or data. Reading it takes long. */
const longLine = {
  name: 'plain',
  level: 'block',
  /** @param {string} src */
  start(src) {
    const at = src.search(/\n[^\n]{10000}/);
    return at < 0 ? undefined : at + 1;
  },
  /** @param {string} src @returns {Token} */
  tokenizer(src) {
    const m = /^(?! {0,3}(?:```|~~~))[^\n]{10000,}(?:\n|$)/.exec(src);
    return m ? { type: 'plain', raw: m[0], text: m[0] } : undefined;
  },
};

const reader = new Marked({
  gfm: true,
  breaks: true, // a line is a solution step, so its end is kept
  extensions: /** @type {any} */ ([longLine, block, inline, lineBreak]),
  tokenizer: /** @type {any} */ ({
    html: () => undefined,
    tag: () => undefined,
    /** A single tilde means about. @param {string} src */
    del: (src) => (src.startsWith('~~') ? false : undefined),
    /** Stars between numbers multiply: 2*3*4. @param {string} src @param {string} _ @param {string} before */
    emStrong: (src, _, before) => (/[\d)]/.test(before) && /^\*[\d(]/.test(src) ? undefined : false),
  }),
});

/**
 * Reads text that begins with a block.
 * @param {string} text
 * @param {Record<string, any>} links that are defined before it
 * @returns {Token[]}
 */
export function lex(text, links) {
  const lexer = new Lexer(reader.defaults);
  Object.assign(lexer.tokens.links, links);
  try {
    return lexer.lex(text);
  } catch { // nested too deeply
    return [{ type: 'plain', raw: text, text }];
  }
}
