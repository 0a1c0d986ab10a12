// Conversations as files: what a person keeps elsewhere, or gives to somebody else. A file has
// its searches too, so that whoever opens it sees how the answers were found.

import { mostExchanges, mostTitle, newestBelow } from './conversation.js';
import { MOST } from './forest.js';
import { mostConversations } from './library.js';
import { mostArguments, mostCalls, mostText } from './receive.js';
import { mostSchema } from './schema.js';
import { ShapeError, flag, list, number, oneOf, orNull, record, text, whole } from './shape.js';
import { t } from './words.js';

/** @typedef {import('./conversation.js').Head} Head */
/** @typedef {import('./exchange.js').Exchange} Exchange */
/** @typedef {{ head: Head, exchanges: Exchange[] }} Conversation */

const format = 'lutra.conversations';
const version = 1;
/** Bytes of a file that is opened. */
export const mostBytes = 64 << 20;

const words = text(4096);
const time = whole(0, 8.64e15);
const amount = number(0, 1e15);
const score = orNull(number(-1e9, 1e9));
const count = orNull(whole(0, 1e12));
const name = (/** @type {any} */ v, /** @type {string} */ at) => {
  if (typeof v === 'string' && /^[0-9a-f]{24}$/.test(v)) return v;
  throw new ShapeError(t`${at} is not a name of 24 hexadecimal digits.`);
};

const candidate = record({
  index: whole(0, 1 << 20), parent: whole(-1, MOST), text: text(1 << 16), tokens: count, logprob: score, score, answer: words,
  state: oneOf('writing', 'complete', 'cut', 'cancelled'), chosen: flag,
});
const search = record({
  done: flag, method: words, select: words, n: count, width: count, stepsTaken: count, live: count, finished: count, tokens: count,
  leader: words, 'verifier?': words, agreement: score, reason: words, degraded: flag, score, candidates: list(candidate, 512), beams: list(candidate, 512),
  steps: list(record({
    parent: whole(-1, MOST), depth: whole(0, MOST), text: text(1 << 16), score, fate: oneOf('kept', 'pruned', 'chosen', 'live'), count: whole(1, 1e9), 'key?': words,
  }), MOST * 2),
  votes: list(record({ answer: words, votes: whole(0, 1e9), weight: number(-1e9, 1e9), judged: flag, chosen: flag }), 512),
  usage: orNull(record({ chosen: amount, discarded: amount, cancelled: amount, verifier: amount })),
});
const result = {
  answer: text(mostText), 'reasoning?': text(mostText), 'finish?': words, 'search?': search,
  'stats?': record({ first: amount, 'thought?': amount, total: amount, tokens: amount }),
};
const rounds = list(record({
  content: text(mostText), calls: list(record({ id: text(256), name: text(256), arguments: text(mostArguments), 'result?': text(100_000), 'refused?': flag, 'failed?': flag }), mostCalls),
}), 17);
const exchange = record({
  ...result, 'rounds?': rounds, id: name, parent: orNull(name), created: time, question: text(mostText), 'name?': words,
  'state?': oneOf('asking', 'waiting', 'done', 'stopped', 'failed'), 'error?': words, 'model?': words, 'unread?': whole(0, mostExchanges), 'limit?': words,
  'promoted?': whole(0, 1 << 20), 'picked?': flag, 'schema?': text(mostSchema),
  'rivals?': list(record({ ...result, name: words, way: record({ method: words, n: whole(1, 1e6), width: whole(1, 1e6), verifier: words, 'likeliest?': flag }) }), 3),
});
const file = record({
  format: oneOf(format), version: whole(version, version),
  conversations: list(record({ id: name, title: text(mostTitle), created: time, updated: time, at: name, exchanges: list(exchange, mostExchanges) }), mostConversations),
});

/** The text of a file. @param {Conversation[]} conversations */
export function write(conversations) {
  const listed = conversations.map(({ head: { id, title, created, updated, at }, exchanges }) => ({
    id, title, created, updated, at, exchanges: exchanges.map(({ conversation, beat, needsKey, ...rest }) => stripped(rest)),
  }));
  return JSON.stringify({ format, version, conversations: listed });
}

/** Without what only a running search needs. @param {any} exchange */
function stripped({ search, rivals, ...exchange }) {
  const slim = (/** @type {any} */ s) => s && { ...s, nodes: undefined };
  return { ...exchange, search: slim(search), rivals: rivals?.map((/** @type {any} */ r) => ({ ...r, search: slim(r.search) })) };
}

/**
 * Reads a file of the page, or an export of ChatGPT or Open WebUI, or throws a ShapeError that says what is wrong with it.
 * @param {string} content
 * @returns {Promise<{ conversations: Conversation[], left: number }>} and how many it has besides that are not taken
 */
export async function read(content) {
  let parsed;
  try {
    parsed = JSON.parse(content);
  } catch {
    throw new ShapeError(content.startsWith('PK') ? t`The file is an archive: unpack it, and choose the conversations.json in it.` : t`The file is not JSON.`);
  }
  const foreign = parsed?.format === format ? null : (await import('./foreign.js')).read(parsed);
  const conversations = file(foreign ? { format, version, conversations: foreign.conversations } : parsed, '').conversations.map((/** @type {any} */ c, /** @type {number} */ i) => conversation(c, `conversations[${i}]`));
  return { conversations, left: foreign?.left ?? 0 };
}

/** @param {any} read @param {string} at @returns {Conversation} */
function conversation({ exchanges, ...head }, at) {
  const known = new Set();
  exchanges.forEach((/** @type {Exchange} */ e, /** @type {number} */ i) => {
    const here = `${at}.exchanges[${i}]`;
    if (known.has(e.id)) throw new ShapeError(t`${here}.id is there twice.`);
    if (e.parent !== null && !known.has(e.parent)) throw new ShapeError(t`${here}.parent is no exchange before it.`);
    known.add(e.id);
    e.conversation = head.id;
    e.state = e.state === 'asking' || e.state === 'waiting' ? 'stopped' : e.state ?? 'done';
    for (const r of [e, ...(e.rivals ?? [])]) tree(r.search, here);
  });
  if (!exchanges.length) throw new ShapeError(t`${at}.exchanges is empty.`);
  // The order of the file is that of the times, which show in nothing else.
  const from = Math.min(head.created, 8e15);
  exchanges.forEach((/** @type {Exchange} */ e, /** @type {number} */ i) => { e.created = Math.max(e.created, i ? exchanges[i - 1].created + 1 : from); });
  if (!known.has(head.at)) head.at = newestBelow(exchanges, exchanges[0]).id;
  return { head, exchanges };
}

/** Checks that a parent comes before its children, a level above them. @param {any} search @param {string} at */
function tree(search, at) {
  if (!search) return;
  search.nodes = [];
  search.steps.forEach((/** @type {any} */ s, /** @type {number} */ i) => {
    const above = s.parent < 0 ? -1 : s.parent < i ? search.steps[s.parent].depth : NaN;
    if (s.depth !== above + 1) throw new ShapeError(t`${at}.search.steps[${i}].parent is no step a level above it and before it.`);
  });
}

/** A name for the file of a conversation. @param {string} title */
export const fileName = (title) => `${title.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '').slice(0, 60) || 'conversation'}.lutra.json`;

/** Gives the person a file. @param {string} named @param {string} content */
export function save(named, content) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type: 'application/json' }));
  link.download = named;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
