// The search around an answer: its tree, its votes, and where it stands.

import { el } from './dom.js';
import { Tree } from './tree.js';

/** @typedef {import('./search.js').Search} Search */

/** @type {Record<string, string>} */
const reasons = {
  complete: 'every candidate came to its end',
  decided: 'the rest could not change the outcome',
  consensus: 'the candidates agreed',
  max_steps: 'the most steps were taken',
  budget_tokens: 'the token budget was spent',
  budget_time: 'the time was up',
};

/** A figure that shows a search, while it runs and afterwards. */
export class SearchView {
  #line = el('figcaption');
  #tree = new Tree();
  #votes = el('ol', { class: 'votes', 'aria-label': 'Votes' });
  element = el('figure', { class: 'search' }, el('header', {}, this.#line, this.#tree.controls), this.#tree.element, this.#votes);

  /** @param {Search} search */
  update(search) {
    this.#line.textContent = summary(search);
    this.#tree.update(search.steps, search.done);
    const most = Math.max(1, ...search.votes.map((v) => v.votes));
    this.#votes.hidden = search.votes.length === 0;
    this.#votes.replaceChildren(...search.votes.slice(0, 8).map((v) => {
      const bar = el('span', { class: 'bar' });
      bar.style.inlineSize = `${(100 * v.votes) / most}%`;
      const weight = v.weight === null ? '' : `, weight ${v.weight.toFixed(2)}`;
      return el('li', { class: v.chosen ? 'chosen' : null },
        el('span', { class: 'answer' }, v.answer),
        el('span', { class: 'track', 'aria-hidden': 'true' }, bar),
        el('span', { class: 'tally' }, `${v.votes} ${v.votes === 1 ? 'vote' : 'votes'}${weight}`));
    }));
  }
}

/** @param {Search} s */
function summary(s) {
  const parts = [s.method.replaceAll('_', ' ') || 'search'];
  if (s.n !== null) parts.push(`n = ${s.n}`);
  if (s.stepsTaken !== null && (s.stepsTaken > 1 || s.width !== null)) parts.push(`${s.stepsTaken} ${s.stepsTaken === 1 ? 'step' : 'steps'}`);
  if (!s.done && s.live !== null) parts.push(`${s.live} in the making`);
  if (!s.done && s.finished) parts.push(`${s.finished} complete`);
  if (!s.done && s.tokens !== null) parts.push(`${s.tokens} tokens`);
  if (!s.done && s.leader) parts.push(`${s.leader} leads`);
  if (s.agreement !== null && (s.done || s.leader)) parts.push(`${Math.round(100 * s.agreement)} % agree`);
  if (s.done && s.score !== null) parts.push(`score ${s.score.toFixed(2)}`);
  if (s.reason) parts.push(reasons[s.reason] ?? s.reason.replaceAll('_', ' '));
  if (s.degraded) parts.push('fewer candidates than asked for, for want of memory');
  return parts.join(' · ');
}
