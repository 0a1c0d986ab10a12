// The list of conversations: beside the page where there is room, else a drawer.

import { mostTitle } from './conversation.js';
import { byId, el } from './dom.js';
import * as library from './library.js';
import { ShapeError } from './shape.js';
import { keep, kept } from './store.js';
import * as transfer from './transfer.js';
import { t } from './words.js';

/** @typedef {import('./conversation.js').Head} Head */

const wide = matchMedia('(min-width: 75rem)');
/** @type {import('./chats.js').Chats} */
let chats;
/** What was deleted last. @type {Head | null} */
let deleted = null;
/** Lists are drawn in the order in which they were asked for. */
let asked = 0;
/** What the list shows: it is drawn again for other things alone, so that a menu that is open stays so. */
let drawn = '';

/**
 * Fills the list, now and when it changes.
 * @param {import('./chats.js').Chats} all
 */
export function openHistory(all) {
  chats = all;
  const drawer = byId('history');
  byId('show-history').addEventListener('click', toggleHistory);
  wide.addEventListener('change', () => place(wide.matches && !kept('hidden', false)));
  drawer.addEventListener('close', () => byId('show-history').setAttribute('aria-expanded', 'false'));
  drawer.addEventListener('click', (/** @type {MouseEvent} */ event) => { if (event.target === drawer && !wide.matches) drawer.close(); });
  byId('close-history').addEventListener('click', () => drawer.close());
  byId('find').addEventListener('input', refresh);
  byId('find-form').addEventListener('submit', (/** @type {Event} */ event) => event.preventDefault());
  byId('export').addEventListener('click', exportAll);
  byId('import').addEventListener('click', () => byId('import-file').click());
  byId('import-file').addEventListener('change', importFile);
  byId('conversations').addEventListener('click', (/** @type {any} */ event) => {
    const id = event.target.closest('.open')?.dataset.id;
    if (id) open(id);
  });
  // While an answer is written that happens each second; what is found then stays as it is.
  library.listen(({ gone }) => { if (gone || !byId('find').value) refresh(); });
  place(wide.matches && !kept('hidden', false));
  refresh();
}

/** Shows the list or hides it. */
export function toggleHistory() {
  const shows = !byId('history').open;
  if (wide.matches) keep('hidden', shows ? null : true);
  place(shows);
}

/** Shows the list with the focus in its search. */
export function searchHistory() {
  place(true);
  byId('find').focus();
}

/** @param {boolean} shows */
function place(shows) {
  const drawer = byId('history');
  drawer.close();
  if (shows && wide.matches) drawer.open = true; // without taking the focus
  else if (shows) drawer.showModal();
  byId('show-history').setAttribute('aria-expanded', String(shows));
}

/** @param {string} id */
function open(id) {
  if (!wide.matches) byId('history').close();
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
  const look = JSON.stringify([chats.current.head.id, rows.map(({ id, title }) => [id, title, found?.get(id)])]);
  if (look !== drawn && !byId('conversations').querySelector('.renaming')) draw(rows, found); // a title that is edited is drawn when that has ended
  drawn = byId('conversations').querySelector('.renaming') ? '' : look;
  byId('no-conversations').textContent = !works ? t`This browser keeps no conversations for this page.`
    : rows.length ? '' : words ? t`Nothing is found.` : t`Conversations are kept here, in this browser alone.`;
  byId('export').disabled = list.length === 0;
}

/** @param {Head[]} rows @param {Map<string, string> | null} found */
function draw(rows, found) {
  const list = byId('conversations');
  const focused = list.contains(document.activeElement) ? /** @type {any} */ (document.activeElement).closest('li')?.querySelector('.open')?.dataset.id : null;
  list.replaceChildren(...rows.map((head) => row(head, found?.get(head.id) ?? '')));
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
  if (conversation) transfer.save(transfer.fileName(conversation.head.title), transfer.write([conversation]));
}

async function exportAll() {
  const all = await Promise.all((await library.heads()).map(({ id }) => library.read(id)));
  transfer.save('conversations.lutra.json', transfer.write(all.filter((c) => c !== null)));
}

/** Adds what a file has. A conversation that is there already gains what it lacks. @param {any} event */
async function importFile({ target }) {
  const [file] = target.files;
  target.value = '';
  if (!file) return;
  try {
    if (file.size > transfer.mostBytes) throw new ShapeError(t`The file is larger than ${transfer.mostBytes >> 20} MiB.`);
    const conversations = transfer.read(await file.text());
    for (const { head, exchanges } of conversations) await library.add(head, exchanges);
    await library.makeRoom();
    notice(conversations.length === 1 ? t`“${conversations[0].head.title}” was added.` : t`${conversations.length} conversations were added.`);
    if (conversations.length === 1) await chats.open(conversations[0].head.id);
  } catch (err) {
    if (!(err instanceof ShapeError)) throw err;
    notice(err.message);
  }
}
