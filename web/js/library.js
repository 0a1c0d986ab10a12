// The conversations that this browser keeps, in IndexedDB: each exchange is a record of its
// own, so that saving one while it is answered costs little, and two tabs can add to the same
// conversation. Tabs tell each other what has changed.

import { mostExchanges } from './conversation.js';
import { recall, remember } from './store.js';

/** @typedef {import('./conversation.js').Head} Head */
/** @typedef {import('./exchange.js').Exchange} Exchange */

/** Conversations that are kept; the oldest make room. */
export const mostConversations = 500;
/** Results of looking for words. */
const mostFound = 100;
/** How long an answer is believed to be written in another tab that no longer says so. */
const silence = 5000;
/** How long after it was deleted a conversation may be restored by a tab that still shows it. */
const regret = 60_000;

/** @type {Promise<IDBDatabase>} */
const database = new Promise((resolve, reject) => {
  const asked = indexedDB.open('lutra', 1);
  asked.onupgradeneeded = () => {
    asked.result.createObjectStore('conversations', { keyPath: 'id' });
    asked.result.createObjectStore('exchanges', { keyPath: ['conversation', 'id'] });
  };
  asked.onsuccess = () => resolve(asked.result);
  asked.onerror = () => reject(asked.error);
});
/** The browser keeps conversations. */
export const works = database.then(() => true, () => false);

const channel = new BroadcastChannel('lutra');
/** @typedef {{ id: string, gone?: boolean }} Change of a conversation; without an id: of many */
/** @type {((change: Change, mine: boolean) => void)[]} */
const listeners = [];
channel.onmessage = (/** @type {MessageEvent<Change>} */ { data }) => listeners.forEach((listener) => listener(data, false));
/** @param {(change: Change, mine: boolean) => void} listener hears of what this tab and others change */
export const listen = (listener) => void listeners.push(listener);
/** @param {Change} change */
function tell(change) {
  channel.postMessage(change);
  listeners.forEach((listener) => listener(change, true));
}

/**
 * Runs work in a transaction on both stores.
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {(heads: IDBObjectStore, exchanges: IDBObjectStore) => IDBRequest<T> | void} work its request's result is returned
 * @returns {Promise<T>}
 */
async function transact(mode, work) {
  const transaction = (await database).transaction(['conversations', 'exchanges'], mode);
  return new Promise((resolve, reject) => {
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
    const request = work(transaction.objectStore('conversations'), transaction.objectStore('exchanges'));
    transaction.oncomplete = () => resolve(/** @type {any} */ (request?.result));
  });
}

/** @param {string} id */
const all = (id) => IDBKeyRange.bound([id], [id, []]);

/** All that are kept, the latest first. @returns {Promise<Head[]>} */
export async function heads() {
  const list = await transact('readonly', (conversations) => conversations.getAll()).catch(() => []);
  return list.filter((head) => !head.gone).sort((a, b) => b.updated - a.updated);
}

/** A conversation with its exchanges in order; null: there is none. @param {string} id @returns {Promise<{ head: Head, exchanges: Exchange[] } | null>} */
export async function read(id) {
  const [head, exchanges] = await Promise.all([
    transact('readonly', (conversations) => conversations.get(id)),
    transact('readonly', (_, store) => store.getAll(all(id))),
  ]).catch(() => [null, []]);
  return head ? { head, exchanges: /** @type {Exchange[]} */ (exchanges).map(settle).sort((a, b) => a.created - b.created) } : null;
}

/** An answer that nobody writes any more has stopped. @param {Exchange} exchange */
function settle(exchange) {
  const unfinished = exchange.state === 'asking' || exchange.state === 'waiting';
  return unfinished && Date.now() - (exchange.beat ?? 0) > silence ? stopped(exchange) : exchange;
}

/** @param {Exchange} exchange @returns {Exchange} */
const stopped = (exchange) => ({ ...exchange, state: exchange.state === 'done' || exchange.state === 'failed' ? exchange.state : 'stopped' });

/** Without the searches, which are the largest part. @param {Exchange} exchange @returns {Exchange} */
const slim = ({ search, rivals, ...exchange }) => ({ ...exchange, ...(rivals ? { rivals: rivals.map(({ search, ...rival }) => rival) } : {}) });

/** What is being written; the tab's own storage has it should the page be closed before. @type {Map<string, { head: Head, exchange: Exchange }>} */
const pending = new Map();

/**
 * Keeps a conversation's head and some of its exchanges; without their searches where there is no room for these.
 * @param {Head} head @param {...Exchange} exchanges
 * @returns {Promise<boolean>} whether they are kept
 */
export async function write(head, ...exchanges) {
  for (const exchange of exchanges) pending.set(exchange.id, { head, exchange });
  /** @param {Exchange[]} list */
  const put = (list) => transact('readwrite', (conversations, store) => {
    conversations.put(head);
    for (const exchange of list) store.put(exchange);
  }).then(() => true, () => false);
  const done = await put(exchanges) || await put(exchanges.map(slim));
  for (const { id, state } of exchanges) if (done && state !== 'asking') pending.delete(id);
  if (done) tell({ id: head.id });
  return done;
}

addEventListener('pagehide', () => {
  const list = [...pending.values()];
  if (list.length && !remember('unfinished', list)) remember('unfinished', list.map(({ head, exchange }) => ({ head, exchange: slim(exchange) })));
});

/** Keeps what this tab was writing when it was closed or loaded again. */
export async function recover() {
  for (const { head, exchange } of recall('unfinished', [])) await write(head, stopped(exchange));
  remember('unfinished', null);
  await makeRoom();
}

/** Forgets what was deleted long enough ago, and the oldest where there are too many. */
export async function makeRoom() {
  const list = await transact('readonly', (conversations) => conversations.getAll()).catch(() => []);
  const left = list.filter((head) => !head.gone).sort((a, b) => b.updated - a.updated);
  const old = list.filter((head) => head.gone && Date.now() - head.gone > regret);
  for (const head of [...old, ...left.slice(mostConversations)]) await forget(head.id);
}

/** Adds a conversation as of its own time. One that is there keeps what it has, and gains what it lacks. @param {Head} head @param {Exchange[]} exchanges */
export async function add(head, exchanges) {
  const there = await read(head.id);
  if (!there) await write(head, ...exchanges);
  else await write({ ...there.head, gone: undefined }, ...exchanges.filter((e) => !there.exchanges.some(({ id }) => id === e.id)).slice(0, Math.max(0, mostExchanges - there.exchanges.length)));
}

/** Changes a head. @param {string} id @param {Partial<Head>} change */
export async function amend(id, change) {
  await transact('readwrite', (conversations) => {
    const asked = conversations.get(id);
    asked.onsuccess = () => { if (asked.result) conversations.put({ ...asked.result, ...change }); };
  }).catch(() => {});
  tell({ id, gone: Boolean(change.gone) });
}

/** Deletes a conversation for good. @param {string} id */
export async function forget(id) {
  await transact('readwrite', (conversations, store) => {
    conversations.delete(id);
    store.delete(all(id));
  }).catch(() => {});
}

/**
 * The conversations whose texts have some words, each with a line around the first place.
 * @param {string} words
 * @param {() => boolean} wanted still
 * @returns {Promise<Map<string, string>>}
 */
export async function find(words, wanted) {
  /** @type {Map<string, string>} */
  const found = new Map();
  const sought = words.toLowerCase();
  await transact('readonly', (_, store) => {
    const asked = store.openCursor();
    asked.onsuccess = () => {
      const cursor = asked.result;
      if (!cursor || !wanted() || found.size >= mostFound) return;
      const { conversation, question, answer } = cursor.value;
      const place = excerpt(question, sought) || excerpt(answer, sought);
      if (place) found.set(conversation, place);
      // One place a conversation is enough.
      if (place) cursor.continue([conversation, []]);
      else cursor.continue();
    };
  }).catch(() => {});
  return found;
}

/** @param {string} text @param {string} sought in small letters */
function excerpt(text, sought) {
  const at = text.toLowerCase().indexOf(sought);
  if (at < 0) return '';
  const from = Math.max(0, at - 24);
  return `${from ? '…' : ''}${text.slice(from, at + sought.length + 60).replace(/\s+/g, ' ').trim()}`;
}
