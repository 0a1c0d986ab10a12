// A conversation is a tree of exchanges: a question that was edited, or asked again, is one
// more branch, and nothing is lost. What is read is the path to one exchange.

import { parted } from './receive.js';

/** @typedef {import('./exchange.js').Exchange} Exchange */

/**
 * What is known of a conversation without its exchanges.
 * @typedef {object} Head
 * @property {string} id
 * @property {string} title
 * @property {number} created milliseconds since 1970, as all times
 * @property {number} updated
 * @property {string} at the exchange that its path ends with
 * @property {number} [gone] when it was deleted; until it is forgotten that can be undone
 */

/** Exchanges of a conversation. */
export const mostExchanges = 1000;
/** Characters of a title. */
export const mostTitle = 80;

/** A name that nobody else uses. randomUUID is not there over plain http. */
export const newId = () => [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, '0')).join('');

let latest = 0;
/** The time, later than at every call before: it orders exchanges. */
export const now = () => (latest = Math.max(Date.now(), latest + 1));

/** @returns {Head} */
export const newHead = () => ({ id: newId(), title: '', created: now(), updated: latest, at: '' });

/** What a conversation is called that begins with this question, whatever files stand before it. @param {string} question */
export function titleOf(question) {
  const words = question.replaceAll(/^[^\n]*:\n(`{3,})\n[^]*?\n\1$/gm, '').trim() || question.trim();
  const line = words.slice(0, 1000).replace(/\s+/g, ' ');
  return line.length > mostTitle ? `${line.slice(0, mostTitle - 1)}…` : line;
}

/** The exchanges from the first to one. @param {Exchange[]} all @param {string | null} id @returns {Exchange[]} */
export function pathTo(all, id) {
  const byId = new Map(all.map((e) => [e.id, e]));
  const path = [];
  for (let e = byId.get(id ?? ''); e && path.length <= all.length; e = byId.get(e.parent ?? '')) path.unshift(e);
  return path;
}

/** An exchange and those beside it, in order. @param {Exchange[]} all @param {Exchange} exchange */
export const siblings = (all, exchange) => all.filter((e) => e.parent === exchange.parent);

/** The latest exchange that follows one, or itself. @param {Exchange[]} all @param {Exchange} exchange */
export function newestBelow(all, exchange) {
  const below = new Set([exchange.id]);
  let newest = exchange;
  for (const e of all) { // a parent comes before its children
    if (e.parent === null || !below.has(e.parent)) continue;
    below.add(e.id);
    newest = e;
  }
  return newest;
}

/** An exchange with a candidate as its answer. @param {Exchange} exchange @param {import('./search.js').Candidate} candidate @returns {Exchange} */
export function promoted({ rivals, stats, error, ...same }, { index, text, state }) {
  const search = same.search && { ...same.search, candidates: same.search.candidates.map((c) => ({ ...c, chosen: c.index === index })) };
  return { ...same, ...parted(text), id: newId(), created: now(), state: 'done', finish: state === 'cut' ? 'length' : 'stop', search, promoted: index };
}

/** An exchange with the answer of a column of its comparison. @param {Exchange} exchange @param {import('./exchange.js').Rival} rival @returns {Exchange} */
export function taken({ rivals, rounds, error, ...same }, { way, ...result }) {
  const none = { reasoning: undefined, finish: undefined, search: null, stats: undefined, promoted: undefined };
  return { ...same, ...none, ...result, id: newId(), created: now(), state: 'done', picked: true };
}
