// One turn of the conversation on the page: the question and what came of it.

import { el, eachFrame } from './dom.js';
import { markdown } from './markdown.js';
import { SearchView } from './searchview.js';

/**
 * @typedef {object} Turn
 * @property {string} question
 * @property {string} answer as far as it has come
 * @property {string} [reasoning] what came before it
 * @property {'asking' | 'waiting' | 'done' | 'stopped' | 'failed'} state waiting: for the server
 * @property {string} [error] in the server's words
 * @property {boolean} [needsKey] refused for want of a key; the page asks for one
 * @property {string} [finish] the finish reason
 * @property {string} [model] that answers, where there are several
 * @property {number} [unread] how many of the turns before this one the model was not shown
 * @property {string} [limit] why
 * @property {import('./search.js').Search | null} [search]
 * @property {{ first: number, total: number, tokens: number }} [stats] seconds, and tokens generated
 */

/** Shows a turn; it must be told when the turn has changed. */
export class TurnView {
  #turn;
  #text = el('div', { class: 'text' });
  #thoughts = el('div', { class: 'thoughts' });
  /** Open while it is all there is, and thereafter as the person wishes. @type {any} */
  #reasoning = el('details', { class: 'reasoning', open: true, hidden: true }, el('summary', {}, 'Reasoning'), this.#thoughts);
  #meta = el('p', { class: 'meta' });
  #error = el('p', { class: 'error', role: 'alert', hidden: true });
  #answer = el('article', { class: 'answer-box', 'aria-label': 'Answer' }, this.#reasoning, this.#text);
  /** @type {SearchView | null} */
  #search = null;
  /** The answer had begun when it was last shown. */
  #answered = false;
  /** The search that is drawn, and whether it ran. @type {unknown[]} */
  #drawn = [];
  /** Renders before the next paint, for the many small changes of a stream. */
  update = eachFrame(() => this.render());

  /** @param {Turn} turn @param {() => void} again asks once more */
  constructor(turn, again) {
    this.#turn = turn;
    this.again = el('button', { type: 'button', class: 'quiet again', on: { click: again } }, 'Ask again');
    this.#answer.append(this.#error, el('footer', {}, this.#meta, this.again));
    this.element = el('li', { class: 'turn' },
      el('article', { class: 'question', 'aria-label': 'You' }, turn.question), this.#answer);
    this.render();
  }

  /** Shows the turn as it is now. */
  render() {
    const { answer, reasoning, state, error, search } = this.#turn;
    const asking = state === 'asking';
    this.#answer.setAttribute('aria-busy', String(asking));
    this.#reasoning.hidden = !reasoning;
    if (this.#thoughts.textContent !== (reasoning ?? '')) this.#thoughts.textContent = reasoning ?? '';
    if (this.#answered !== Boolean(answer)) this.#reasoning.open = !answer;
    this.#answered = Boolean(answer);
    this.#text.replaceChildren(markdown(answer));
    this.#text.classList.toggle('waiting', asking && !(search && !answer)); // a search shows by itself that it goes on
    this.#error.hidden = !error;
    if (this.#error.textContent !== (error ?? '')) this.#error.textContent = error ?? '';
    this.#showSearch(search ?? null, asking);
    this.#meta.textContent = facts(this.#turn);
    this.again.hidden = asking || Boolean(this.#turn.needsKey);
  }

  /** @param {import('./search.js').Search | null} search @param {boolean} running */
  #showSearch(search, running) {
    if (!search) {
      this.#search?.element.remove();
      this.#search = null;
    } else if (search !== this.#drawn[0] || running !== this.#drawn[1]) {
      if (!this.#search) this.#text.after((this.#search = new SearchView()).element);
      this.#search.update(search, running);
    }
    this.#drawn = [search, running];
  }
}

/** @param {Turn} turn */
function facts({ state, finish, stats, needsKey, model }) {
  const parts = [];
  if (model) parts.push(model);
  if (needsKey) parts.push('waiting for an API key');
  if (state === 'waiting') parts.push('waiting for the server');
  if (state === 'stopped') parts.push('stopped');
  if (finish === 'length') parts.push('cut at the token limit');
  if (stats?.tokens) parts.push(`${stats.tokens.toLocaleString('en')} ${stats.tokens === 1 ? 'token' : 'tokens'}`, `${rate(stats.tokens / stats.total)} tokens/s`);
  if (stats?.first) parts.push(`first text after ${seconds(stats.first)}`);
  if (stats && state === 'done') parts.push(`${seconds(stats.total)} in all`);
  return parts.join(' · ');
}

/** @param {number} r */
const rate = (r) => (r < 10 ? r.toFixed(1) : Math.round(r).toLocaleString('en'));

/** @param {number} s */
const seconds = (s) => (s < 1 ? `${Math.round(1000 * s)} ms` : `${s.toFixed(1)} s`);
