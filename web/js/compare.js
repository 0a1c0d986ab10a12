// Other ways of answering, which the next questions are asked in too: a column each.

import { byId, el } from './dom.js';
import { nameOf, offersWay, way } from './settings.js';
import { recall, remember } from './store.js';
import { t } from './words.js';

/** @typedef {import('./settings.js').Way} Way */

/** Columns beside the answer: more would not fit, and each is asked for by itself. */
const most = 3;

/** @type {Way[]} */
let rivals = [];

/** @param {Way} a @param {Way} b */
const same = (a, b) => a.method === b.method && nameOf(a) === nameOf(b) && a.verifier === b.verifier;

/** Makes the button add the way that is set now. */
export function openCompare() {
  const kept = recall('rivals', []);
  rivals = Array.isArray(kept) ? kept.slice(0, most) : [];
  byId('compare').addEventListener('click', () => {
    set([...rivals.filter((r) => !same(r, way())), way()].slice(-most));
    byId('method').focus(); // what it is compared with is chosen next
  });
  set(rivals);
}

/** The ways that the model offers, but for the one that is set. */
export const compared = () => rivals.filter((r) => offersWay(r) && !same(r, way()));

/** @param {Way[]} next */
function set(next) {
  rivals = next;
  remember('rivals', rivals.length ? rivals : null);
  const list = byId('rivals');
  list.hidden = rivals.length === 0;
  list.replaceChildren(...rivals.map((r) => el('li', {}, el('button', {
    type: 'button', class: 'quiet', 'aria-label': t`Do not compare with ${nameOf(r)}`,
    on: { click: () => { set(rivals.filter((other) => other !== r)); byId('compare').focus(); } },
  }, nameOf(r), el('span', { 'aria-hidden': 'true' }, ' ×')))));
}
