// A dialog that shows a candidate in full, and makes it the answer.

import { copy } from './clipboard.js';
import { byId, el } from './dom.js';
import { Markdown } from './markdown.js';
import { parted } from './receive.js';
import { t } from './words.js';

/** @typedef {import('./search.js').Candidate} Candidate */
/** @typedef {{ candidates: Candidate[], label: (c: Candidate) => string, promote: (c: Candidate) => void }} Read */

/**
 * Opens the dialog.
 * @param {Candidate} first @param {Read} of where it belongs
 */
export function read(first, { candidates, label, promote }) {
  const dialog = byId('reader');
  let at = candidates.findIndex((c) => c.index === first.index);
  const title = el('h2', { id: 'reader-title' });
  const thought = el('div', { class: 'thoughts' });
  const reasoning = el('details', { class: 'reasoning' }, el('summary', {}, t`Reasoning`), thought);
  const text = el('div', { class: 'text', tabindex: 0, role: 'region', 'aria-label': t`Candidate` });
  const [written, thoughts] = [new Markdown(text), new Markdown(thought)];
  /** @param {string} words @param {() => unknown} click */
  const button = (words, click, kind = 'quiet') => /** @type {any} */ (el('button', { type: 'button', class: kind, on: { click } }, words));
  const back = button(t`Previous`, () => show(at - 1));
  const on = button(t`Next`, () => show(at + 1));
  const take = button(t`Use as the answer`, () => { dialog.close(); promote(candidates[at]); }, 'take');
  const copies = button(t`Copy`, async () => { copies.textContent = await copy(parted(candidates[at].text).answer) ? t`Copied` : t`Not copied`; });

  /** @param {number} to */
  const show = (to) => {
    at = to;
    const c = candidates[at];
    const parts = parted(c.text);
    title.textContent = t`Candidate ${c.index + 1} of ${candidates.length}: ${label(c)}`;
    thoughts.update(parts.reasoning);
    reasoning.hidden = !parts.reasoning;
    written.update(parts.answer);
    text.scrollTop = 0;
    back.disabled = at === 0;
    on.disabled = at === candidates.length - 1;
    take.disabled = c.chosen || c.state === 'writing' || !parts.answer;
    copies.textContent = t`Copy`;
  };
  show(at);
  dialog.replaceChildren(title, reasoning, text, el('div', { class: 'actions' }, back, on, copies, take, button(t`Close`, () => dialog.close())));
  dialog.showModal();
}
