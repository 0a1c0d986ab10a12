// Keyboard shortcuts, and the dialog that lists them.

import { byId, el } from './dom.js';
import { keep, kept } from './store.js';
import { t } from './words.js';

/**
 * `key` as KeyboardEvent has it; with `control` (or ⌘), and `shift`, or alone, outside of fields.
 * @typedef {{ key: string, control?: boolean, shift?: boolean, words: string, run?: () => void }} Shortcut without `run`: said, but done elsewhere
 */

/** Keys alone can be turned off: a voice that is typed, say, would press them. */
const single = () => !kept('no-single-keys', false);

/** @param {Shortcut[]} shortcuts */
export function openShortcuts(shortcuts) {
  const help = byId('help');
  const all = [...shortcuts, { key: '?', words: t`These shortcuts`, run: show }, { key: '/', control: true, words: t`These, too, where ? is a letter`, run: show }];
  const box = /** @type {any} */ (el('input', { type: 'checkbox', on: { change: () => keep('no-single-keys', box.checked ? null : true) } }));
  function show() {
    box.checked = single();
    if (!help.open) help.showModal();
  }
  help.replaceChildren(el('h2', { id: 'help-title' }, t`Keyboard shortcuts`),
    el('div', { class: 'list', tabindex: 0, role: 'region', 'aria-label': t`Shortcuts` },
      el('dl', {}, ...all.map((s) => el('div', {}, el('dt', {}, ...keys(s)), el('dd', {}, s.words))))),
    el('label', { class: 'check' }, box, t`Keys alone, too, outside of fields`),
    el('div', { class: 'actions' }, el('button', { type: 'button', on: { click: () => help.close() } }, t`Close`)));
  byId('show-help').addEventListener('click', show);
  document.addEventListener('keydown', (event) => {
    const control = event.ctrlKey || event.metaKey;
    const field = /** @type {any} */ (event.target).closest?.('input, textarea, select, [contenteditable]');
    if (event.altKey || event.defaultPrevented || document.querySelector('dialog:modal') || !control && (field || !single())) return;
    const wanted = all.find((s) => s.run && s.key === event.key.toLowerCase() && Boolean(s.control) === control && (!s.control || Boolean(s.shift) === event.shiftKey));
    if (!wanted?.run) return;
    event.preventDefault();
    wanted.run();
  });
}

/** @param {Shortcut} shortcut */
function keys({ key, control, shift }) {
  const command = /Mac|iP(hone|ad)/.test(navigator.userAgent) ? '⌘' : 'Ctrl';
  const names = [...(control ? [command] : []), ...(shift ? ['Shift'] : []), key.length === 1 ? key.toUpperCase() : key];
  return names.flatMap((name, i) => [i ? ' + ' : '', el('kbd', {}, name)]);
}
