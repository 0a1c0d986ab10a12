// Elements of Markdown's tokens. They are built by hand, so whatever a model writes is
// text or an element of this file, never markup.

import { codeBlock } from './code.js';
import { el } from './dom.js';
import { formula } from './maths.js';
import { t } from './words.js';

/** @typedef {import('./lexer.js').Token} Token */

/** @param {Token} token of a block @returns {HTMLElement | null} */
export function block(token) {
  switch (token.type) {
    case 'space': case 'def': return null;
    case 'heading': return el(`h${Math.min(6, token.depth + 2)}`, {}, ...spans(token.tokens)); // the page and its columns have h1 to h3
    case 'code': return codeBlock(token.text, token.lang ?? '', token.codeBlockStyle === 'indented' || /\n {0,3}(?:`{3,}|~{3,})\s*$/.test(token.raw));
    case 'mathsBlock': return token.open ? el('p', {}, token.text) : formula(token.text, true);
    case 'hr': return el('hr');
    case 'blockquote': return el('blockquote', {}, ...blocks(token.tokens));
    case 'list': return list(token);
    case 'table': return table(token);
    case 'paragraph': return paragraph(token.tokens);
    case 'text': return el('p', {}, ...spans(token.tokens ?? [token]));
    default: return el('p', { class: 'plain' }, token.text ?? token.raw);
  }
}

/** @param {Token[]} tokens @returns {HTMLElement[]} */
const blocks = (tokens) => /** @type {HTMLElement[]} */ (tokens.map(block).filter(Boolean));

/** @param {Token} token */
function list(token) {
  return el(token.ordered ? 'ol' : 'ul', { start: token.ordered && token.start !== 1 ? token.start : null },
    ...token.items.map((/** @type {Token} */ item) => el('li', { class: item.task ? 'task' : null }, ...itemParts(item))));
}

/** Its first text is without a paragraph, whether there are empty lines between items or not: what follows may bring one. @param {Token} item @returns {(Node | string)[]} */
function itemParts(item) {
  const first = item.tokens.findIndex((/** @type {Token} */ part) => part.type === 'text' || part.type === 'paragraph');
  return item.tokens.flatMap((/** @type {Token} */ part, /** @type {number} */ i) => {
    if (part.type === 'checkbox') return part.checked ? '☑ ' : '☐ ';
    if (i === first) return spans(part.tokens ?? [part]);
    return block(part) ?? [];
  });
}

/** A table scrolls by itself where it is too wide. @param {Token} token */
function table(token) {
  /** @param {string} tag @param {Token[]} cells */
  const row = (tag, cells) => el('tr', {}, ...cells.map((cell) => el(tag, { class: cell.align && `to-${cell.align}`, scope: tag === 'th' ? 'col' : null }, ...spans(cell.tokens))));
  return el('div', { class: 'table', tabindex: 0, role: 'region', 'aria-label': t`Table` }, el('table', {},
    el('thead', {}, row('th', token.header)), el('tbody', {}, ...token.rows.map((/** @type {Token[]} */ cells) => row('td', cells)))));
}

/** An element a line; the one with the final answer stands out. @param {Token[]} tokens */
function paragraph(tokens) {
  const p = el('p');
  for (let from = 0, to; from < tokens.length; from = to + 1) {
    to = tokens.findIndex((t, i) => i >= from && t.type === 'br');
    if (to < 0) to = tokens.length;
    const line = el('span', { class: 'line' }, ...spans(tokens.slice(from, to)));
    if (/^\s*Answer:/.test(line.textContent ?? '')) line.classList.add('result');
    p.append(line, '\n');
  }
  return p;
}

/** @param {Token[]} tokens of what is within a line @returns {(Node | string)[]} */
const spans = (tokens = []) => tokens.flatMap(span);

/** @param {Token} token @returns {Node | string | (Node | string)[]} */
function span(token) {
  switch (token.type) {
    case 'text': return token.tokens ? spans(token.tokens) : entities(token.text);
    case 'escape': return token.text;
    case 'codespan': return el('code', {}, token.text);
    case 'strong': case 'em': case 'del': return el(token.type, {}, ...spans(token.tokens));
    case 'br': return el('br');
    case 'maths': return formula(token.text, Boolean(token.display));
    case 'link': return link(token.href, spans(token.tokens));
    case 'image': return link(token.href, [t`Image: ${token.text || token.href}`]); // the page loads nothing that a model names
    default: return token.raw;
  }
}

/** A link to elsewhere; addresses of other kinds are left out. @param {string} href @param {(Node | string)[]} words */
function link(href, words) {
  if (!/^(?:https?:\/\/|mailto:)/i.test(href)) return words;
  return el('a', { href, rel: 'noopener noreferrer nofollow', target: '_blank' }, ...words);
}

/** Those that models write; others stay as they are. @type {Record<string, string>} */
const named = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', copy: '©', reg: '®', trade: '™', hellip: '…', mdash: '—', ndash: '–',
  times: '×', divide: '÷', minus: '−', plusmn: '±', deg: '°', middot: '·', bull: '•', larr: '←', rarr: '→', le: '≤', ge: '≥', ne: '≠', infin: '∞', pi: 'π', euro: '€' };

/** @param {string} text */
function entities(text) {
  return text.replace(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([A-Za-z]{2,8}));/g, (all, decimal, hex, name) => {
    if (name) return Object.hasOwn(named, name) ? named[name] : all;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });
}
