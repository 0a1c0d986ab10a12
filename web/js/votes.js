// The answers of a search's candidates, the leading one first, each with a bar of its
// weight in the choice.

import { el } from './dom.js';
import { byStep, selfScored } from './search.js';
import { t } from './words.js';

const most = 8;

/** Bars that can be updated. */
export class Votes {
  element = el('ol', { class: 'votes', 'aria-label': t`Votes`, hidden: true });

  /** @param {import('./search.js').Search} search */
  update(search) {
    const { votes } = search;
    const top = Math.max(Number.MIN_VALUE, ...votes.map((v) => v.weight));
    this.element.hidden = votes.length === 0;
    this.element.replaceChildren(...votes.slice(0, most).map((v) => {
      const bar = el('span', { class: 'bar' });
      bar.style.inlineSize = `${(100 * v.weight) / top}%`;
      return el('li', { class: v.chosen ? 'chosen' : null },
        el('span', { class: 'answer', title: v.answer }, v.answer),
        el('span', { class: 'track', 'aria-hidden': 'true' }, bar),
        el('span', { class: 'tally' }, words(v, search)));
    }));
    if (votes.length > most) this.element.append(el('li', { class: 'more' }, t`and ${votes.length - most} more`));
  }
}

/** @param {import('./search.js').Vote} vote @param {import('./search.js').Search} search */
function words({ votes, weight, judged }, search) {
  const { method, select } = search;
  const [one, many] = !byStep(search) ? [t`1 vote`, t`${votes} votes`] : method === 'particle_filtering' ? [t`1 particle`, t`${votes} particles`] : [t`1 beam`, t`${votes} beams`];
  const count = votes === 1 ? one : many;
  if (!judged) return count;
  if (select === 'weighted_vote') return t`${count}, weight ${weight.toFixed(2)}`;
  if (select === 'max') return selfScored(search) ? t`${count}, best certainty ${weight.toFixed(2)}` : t`${count}, best score ${weight.toFixed(2)}`;
  return count;
}
