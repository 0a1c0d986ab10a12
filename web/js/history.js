// The list of conversations: beside the page where there is room, else a drawer.

import { mostExchanges, mostTitle } from './conversation.js';
import { byDate } from './dates.js';
import { byId, eachFrame, el } from './dom.js';
import { Drawer } from './drawer.js';
import * as library from './library.js';
import { ShapeError } from './shape.js';
import { t } from './words.js';

/** @typedef {import('./conversation.js').Head} Head */

const drawer = new Drawer('history', '(min-width: 75rem)');
/** @type {import('./chats.js').Chats} */
let chats;
/** What was deleted last. @type {Head | null} */
let deleted = null;
/** Lists are drawn in the order in which they were asked for. */
let asked = 0;
/** What the list shows: it is drawn again for other things alone, so that a menu that is open stays so. */
let drawn = '';
/** There have been conversations, so that the list may have a column. */
let settled = false;

/**
 * Fills the list, now and when it changes.
 * @param {import('./chats.js').Chats} all
 */
export function openHistory(all) {
  chats = all;
  byId('find').addEventListener('input', refresh);
  byId('find-form').addEventListener('submit', (/** @type {Event} */ event) => event.preventDefault());
  byId('export').addEventListener('click', exportAll);
  byId('import').addEventListener('click', () => byId('import-file').click());
  byId('import-file').addEventListener('change', importFile);
  byId('conversations').addEventListener('click', (/** @type {any} */ event) => {
    const id = event.target.closest('.open')?.dataset.id;
    if (id) open(id);
  });
  const soon = eachFrame(refresh); // an import changes hundreds
  // While an answer is written that happens each second; what is found then stays as it is.
  library.listen(({ gone }) => { if (gone || !byId('find').value) soon(); });
  refresh();
}

/** Shows the list or hides it. */
export const toggleHistory = () => drawer.toggle();

/** Shows the list with the focus in its search. */
export function searchHistory() {
  drawer.show();
  byId('find').focus();
}

/** @param {string} id */
function open(id) {
  drawer.yield();
  return chats.open(id);
}

/** Draws the list. */
export async function refresh() {
  const mine = ++asked;
  const wanted = () => mine === asked;
  const words = byId('find').value.trim();
  const [list, found, works] = await Promise.all([library.heads(), words ? library.find(words, wanted) : null, library.works]);
  if (!wanted()) return;
  const rows = list.filter((head) => !found || found.has(head.id) || head.title.toLowerCase().includes(words.toLowerCase()));
  if (!settled && list.length) drawer.settle(true); // who has none yet has the page for the question
  settled ||= list.length > 0;
  const groups = byDate(rows);
  const look = JSON.stringify([chats.current.head.id, groups.map(({ name, heads }) => [name, heads.map(({ id, title }) => [id, title, found?.get(id)])])]);
  if (look !== drawn && !byId('conversations').querySelector('.renaming')) draw(groups, found); // a title that is edited is drawn when that has ended
  drawn = byId('conversations').querySelector('.renaming') ? '' : look;
  byId('no-conversations').textContent = !works ? t`This browser keeps no conversations for this page.`
    : rows.length ? '' : words ? t`Nothing is found.` : t`Conversations are kept here, in this browser alone.`;
  byId('export').disabled = list.length === 0;
}

/** @param {ReturnType<typeof byDate>} groups @param {Map<string, string> | null} found */
function draw(groups, found) {
  const list = byId('conversations');
  const focused = list.contains(document.activeElement) ? /** @type {any} */ (document.activeElement).closest('li')?.querySelector('.open')?.dataset.id : null;
  list.replaceChildren(...groups.map(({ name, heads }) => el('section', { 'aria-label': name },
    el('h2', {}, name), el('ol', {}, ...heads.map((head) => row(head, found?.get(head.id) ?? ''))))));
  if (focused) list.querySelector(`[data-id="${focused}"]`)?.focus();
}

/** @param {Head} head @param {string} excerpt */
function row(head, excerpt) {
  const shown = head.id === chats.current.head.id;
  const title = head.title || t`Untitled`;
  const act = (/** @type {string} */ words, /** @type {() => unknown} */ run) => el('button', { type: 'button', class: 'quiet', on: {
    click(/** @type {any} */ event) {
      event.target.closest('details').open = false;
      run();
    },
  } }, words);
  return el('li', { class: shown ? 'shown' : null },
    el('button', { type: 'button', class: 'open', 'data-id': head.id, 'aria-current': shown ? 'true' : null, title },
      el('span', { class: 'title' }, title), excerpt ? el('small', {}, excerpt) : null),
    el('details', { name: 'more' }, el('summary', { 'aria-label': t`More for ${title}` }, '⋯'),
      el('div', { class: 'actions' }, act(t`Rename`, () => rename(head)), act(t`Export`, () => exportOne(head.id)), act(t`Delete`, () => remove(head)))));
}

/** @param {Head} head */
function rename(head) {
  const title = byId('conversations').querySelector(`[data-id="${head.id}"]`);
  /** @type {any} */
  const field = el('input', { value: head.title, maxlength: mostTitle, 'aria-label': t`Title`, required: true });
  let over = false; // a form that is taken away loses the focus once more
  const end = async (/** @type {boolean} */ saves) => {
    if (over) return;
    over = true;
    form.remove();
    drawn = '';
    const name = field.value.trim();
    if (saves && name) {
      chats.rename(head.id, name);
      await library.amend(head.id, { title: name });
    }
    await refresh();
    byId('conversations').querySelector(`[data-id="${head.id}"]`)?.focus();
  };
  const form = el('form', { class: 'renaming', on: {
    submit: (/** @type {Event} */ event) => { event.preventDefault(); end(true); },
    keydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Escape') { event.preventDefault(); event.stopPropagation(); end(false); } },
    focusout: () => end(true),
  } }, field);
  title.replaceWith(form);
  field.select();
}

/** Deletes a conversation, which can be undone until the notice is closed. @param {Head} head */
async function remove(head) {
  if (deleted) await library.forget(deleted.id);
  deleted = head;
  chats.discard(head.id);
  await library.amend(head.id, { gone: Date.now() });
  notice(t`“${head.title}” is deleted.`, t`Undo`, async () => {
    deleted = null;
    await library.amend(head.id, { gone: undefined });
    await chats.open(head.id);
  }, async () => {
    deleted = null;
    await library.forget(head.id);
  });
}

/**
 * Shows what was done, until it is closed and what closed does is done.
 * @param {string} words @param {string} [action] @param {() => void} [act] @param {() => void | Promise<void>} [closed]
 */
export function notice(words, action, act, closed) {
  const box = byId('history-notice');
  const shown = el('span', {}, words);
  const end = () => { if (shown.isConnected) box.replaceChildren(); };
  const button = (/** @type {string} */ label, /** @type {() => void} */ click) => el('button', { type: 'button', class: 'quiet', on: { click } }, label);
  box.replaceChildren(shown, ...(action && act ? [button(action, () => { end(); act(); })] : []), button(t`Close`, async () => { await closed?.(); end(); }));
}

/** @param {string} id */
async function exportOne(id) {
  const conversation = await library.read(id);
  const transfer = await import('./transfer.js');
  if (conversation) transfer.save(transfer.fileName(conversation.head.title), transfer.write([conversation]));
}

async function exportAll() {
  const transfer = await import('./transfer.js');
  const all = await Promise.all((await library.heads()).map(({ id }) => library.read(id)));
  transfer.save('conversations.lutra.json', transfer.write(all.filter((c) => c !== null)));
}

/** Adds what a file has. A conversation that is there already gains what it lacks. @param {any} event */
async function importFile({ target }) {
  const [file] = target.files;
  target.value = '';
  if (!file) return;
  const { mostBytes, read } = await import('./transfer.js');
  try {
    if (file.size > mostBytes) throw new ShapeError(t`The file is larger than ${mostBytes >> 20} MiB.`);
    const { conversations, left } = await read(await file.text());
    await Promise.all(conversations.map(({ head, exchanges }) => library.add(head, exchanges)));
    await library.makeRoom();
    const kept = new Set((await library.heads()).map(({ id }) => id));
    const added = conversations.filter(({ head }) => kept.has(head.id));
    const missing = left + conversations.length - added.length;
    const words = [added.length === 1 ? t`“${added[0].head.title}” was added.` : t`${added.length} conversations were added.`];
    if (missing) words.push(t`${missing} are left out: the latest ${library.mostConversations} are kept, of at most ${mostExchanges} questions each.`);
    notice(words.join(' '));
    if (added.length === 1) await chats.open(added[0].head.id);
  } catch (err) {
    if (!(err instanceof ShapeError)) throw err;
    notice(err.message);
  }
}
