// The answers of a search's candidates, the leading one first, each with a bar of its
// weight in the choice.

import { el } from './dom.js';
import { t } from './words.js';

const most = 8;

/** Bars that can be updated. */
export class Votes {
  element = el('ol', { class: 'votes', 'aria-label': t`Votes`, hidden: true });

  /** @param {import('./search.js').Search} search */
  update({ votes, select }) {
    const top = Math.max(Number.MIN_VALUE, ...votes.map((v) => v.weight));
    this.element.hidden = votes.length === 0;
    this.element.replaceChildren(...votes.slice(0, most).map((v) => {
      const bar = el('span', { class: 'bar' });
      bar.style.inlineSize = `${(100 * v.weight) / top}%`;
      return el('li', { class: v.chosen ? 'chosen' : null },
        el('span', { class: 'answer', title: v.answer }, v.answer),
        el('span', { class: 'track', 'aria-hidden': 'true' }, bar),
        el('span', { class: 'tally' }, words(v, select)));
    }));
    if (votes.length > most) this.element.append(el('li', { class: 'more' }, t`and ${votes.length - most} more`));
  }
}

/** @param {import('./search.js').Vote} vote @param {string} select */
function words({ votes, weight, judged }, select) {
  const count = votes === 1 ? t`1 vote` : t`${votes} votes`;
  if (!judged) return count;
  if (select === 'weighted_vote') return t`${count}, weight ${weight.toFixed(2)}`;
  if (['max', 'knockout', 'round_robin'].includes(select)) return t`${count}, best score ${weight.toFixed(2)}`;
  return count;
}
