// The search behind an answer: its state, its candidates or its tree, and its votes.

import { Candidates } from './candidates.js';
import { el } from './dom.js';
import { methods } from './methods.js';
import { inWords, stepped } from './plans.js';
import { Replay } from './replay.js';
import { agreement, byStep, selfScored } from './search.js';
import { spentWords } from './spent.js';
import { Tree } from './tree.js';
import { Votes } from './votes.js';
import { t } from './words.js';

/** @typedef {import('./search.js').Search} Search */

/** @type {Record<string, string>} */
const reasons = {
  complete: t`all candidates are complete`,
  decided: t`the rest could not change the outcome`,
  consensus: t`the candidates agreed`,
  price: t`more candidates were not worth their price`,
  max_steps: t`the step limit was reached`,
  budget_tokens: t`the token budget was spent`,
  budget_time: t`the time budget was spent`,
  deadline: t`the deadline had come`,
};

/** A figure that shows a search, while it runs and afterwards. */
export class SearchView {
  #line = el('figcaption');
  #cards;
  #tree = new Tree();
  #votes = new Votes();
  #spent = el('p', { class: 'spent', hidden: true });
  #asCards = this.#tab(t`Candidates`, 'cards');
  #asTree = this.#tab(t`Tree`, 'tree');
  #tabs = el('div', { class: 'tabs', role: 'group', 'aria-label': t`View of the search` }, this.#asCards, this.#asTree);
  #replay = new Replay((search, over) => this.#draw(search, !over));
  /** The view that the person has chosen; null: the one that suits the method. @type {'cards' | 'tree' | null} */
  #wanted = null;
  /** @type {[Search, boolean] | null} */
  #drawn = null;

  /** @param {(candidate: import('./search.js').Candidate) => void} promote makes it the answer */
  constructor(promote) {
    this.#cards = new Candidates(promote);
    this.element = el('figure', { class: 'search' },
      el('header', {}, this.#line, this.#replay.button, this.#tree.controls, this.#tabs), this.#replay.bar,
      this.#cards.element, this.#tree.element, this.#votes.element, this.#spent);
  }

  /** @param {Search} search @param {boolean} running @param {boolean} votes are shown here */
  update(search, running, votes) {
    this.#votes.element.classList.toggle('elsewhere', !votes);
    this.#replay.of(running ? null : search);
    this.#draw(search, running);
  }

  /** @param {Search} search @param {boolean} running */
  #draw(search, running) {
    this.#drawn = [search, running];
    const can = { cards: search.candidates.length > 0, tree: search.steps.length > 0 };
    const fitting = byStep(search) && can.tree || !can.cards ? 'tree' : 'cards';
    const view = this.#wanted && can[this.#wanted] ? this.#wanted : fitting;
    this.#line.textContent = summary(search);
    this.#tabs.hidden = !(can.cards && can.tree && search.candidates.some((c) => c.text));
    this.#asCards.setAttribute('aria-pressed', String(view === 'cards'));
    this.#asTree.setAttribute('aria-pressed', String(view === 'tree'));
    this.#cards.element.hidden = view !== 'cards' || !can.cards;
    this.#tree.show(view === 'tree' && can.tree);
    if (view === 'cards') this.#cards.update(search, running && !search.done);
    else this.#tree.update(search);
    this.#votes.update(search);
    this.#spent.textContent = search.done ? spentWords(search) : '';
    this.#spent.hidden = !this.#spent.textContent;
  }

  /** @param {string} text @param {'cards' | 'tree'} view */
  #tab(text, view) {
    const click = () => {
      this.#wanted = view;
      if (this.#drawn) this.#draw(...this.#drawn);
    };
    return el('button', { type: 'button', class: 'quiet', on: { click } }, text);
  }
}

/** @param {Search} s */
function summary(s) {
  const plan = { method: s.method, n: s.n ?? undefined, width: s.width ?? undefined };
  const whole = plan.n && (plan.width || !stepped(s.method));
  const parts = [methods[s.method] && whole ? inWords(plan) : methods[s.method]?.name ?? t`Search`];
  const writing = s.candidates.filter((c) => c.state === 'writing').length;
  const known = s.candidates.length > 0 && !byStep(s);
  if (s.stepsTaken !== null && (s.stepsTaken > 1 || byStep(s))) parts.push(s.stepsTaken === 1 ? t`1 step` : t`${s.stepsTaken} steps`);
  if (!s.done && s.live !== null) {
    const [live, complete] = known ? [writing, s.candidates.length - writing] : [s.live, s.finished];
    parts.push(t`${live} in progress`);
    if (complete) parts.push(t`${complete} complete`);
  }
  if (!s.done && s.tokens !== null) parts.push(t`${s.tokens} tokens`);
  if (!s.done && s.leader) parts.push(t`${s.leader} leads`);
  const agree = agreement(s);
  if (agree !== null && (s.done || s.leader)) parts.push(t`${Math.round(100 * agree)} % agree`);
  if (s.done && s.score !== null) parts.push(selfScored(s) ? t`certainty ${s.score.toFixed(2)}` : t`score ${s.score.toFixed(2)}`);
  if (s.reason) parts.push(reasons[s.reason] ?? s.reason.replaceAll('_', ' '));
  if (s.degraded) parts.push(t`fewer candidates than requested: memory is short`);
  return parts.join(' · ');
}
