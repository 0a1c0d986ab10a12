// One exchange of the conversation: the question, its answer and how that was found.

import { el, eachFrame } from './dom.js';
import { Markdown } from './markdown.js';
import { SearchView } from './searchview.js';
import { Votes } from './votes.js';

/**
 * What a way of answering made of a question.
 * @typedef {object} Result
 * @property {string} answer so far
 * @property {string} [reasoning] before the answer
 * @property {string} [finish] the finish reason
 * @property {import('./search.js').Search | null} [search]
 * @property {{ first: number, thought?: number, total: number, tokens: number }} [stats] seconds, and tokens generated
 *
 * @typedef {Result & { name: string, way: import('./settings.js').Way }} Rival in a column of its own
 *
 * @typedef {object} Exchanged
 * @property {string} question
 * @property {string} [name] of the way in which it is answered
 * @property {'asking' | 'waiting' | 'done' | 'stopped' | 'failed'} state waiting: for the server
 * @property {string} [error] in the server's words
 * @property {boolean} [needsKey] refused without a valid key; the page asks for one
 * @property {string} [model] that answers, where there are several
 * @property {number} [unread] how many of the exchanges before this one the model was not shown
 * @property {string} [limit] why
 * @property {Rival[]} [rivals] other ways of answering, which are asked first
 *
 * @typedef {Result & Exchanged} Exchange
 */

/** Shows an exchange. Call update or render when the exchange has changed. */
export class ExchangeView {
  #exchange;
  #text = el('div', { class: 'text' });
  #reasoningText = el('div', { class: 'thoughts' });
  #thoughts = new Markdown(this.#reasoningText);
  #reasoningTitle = el('summary');
  /** Open until the answer begins; then the person decides. @type {any} */
  #reasoning = el('details', { class: 'reasoning', open: true, hidden: true }, this.#reasoningTitle, this.#reasoningText);
  #meta = el('p', { class: 'meta' });
  #error = el('p', { class: 'error', role: 'alert', hidden: true });
  #answer = el('article', { class: 'answer-box', 'aria-label': 'Answer' }, this.#reasoning);
  #own = new Column('own', this.#text);
  /** A column for each rival. @type {Column[]} */
  #rivals = [];
  #answers = el('div', { class: 'answers' }, this.#own.element);
  /** @type {SearchView | null} */
  #search = null;
  /** The answer had begun when it was last shown. */
  #answered = false;
  /** The search that is drawn, and whether it ran. @type {unknown[]} */
  #drawn = [];
  /** Renders before the next paint, for the many small changes of a stream. */
  update = eachFrame(() => this.render());

  /** @param {Exchange} exchange @param {() => void} again asks once more */
  constructor(exchange, again) {
    this.#exchange = exchange;
    this.again = el('button', { type: 'button', class: 'quiet again', on: { click: again } }, 'Ask again');
    this.#answer.append(this.#answers, this.#error, el('footer', {}, this.#meta, this.again));
    this.element = el('li', { class: 'exchange' },
      el('article', { class: 'question', 'aria-label': 'You', tabindex: exchange.question.length > 1000 ? 0 : null }, exchange.question), this.#answer);
    this.render();
  }

  /** Shows the exchange as it is now. */
  render() {
    const { answer, reasoning, state, error, search, rivals = [] } = this.#exchange;
    const asking = state === 'asking';
    this.#answer.setAttribute('aria-busy', String(asking));
    this.#reasoning.hidden = !reasoning;
    this.#reasoningText.classList.toggle('plain', Boolean(search)); // how the search goes, line by line
    if (!search) this.#thoughts.update(reasoning ?? '');
    else if (this.#reasoningText.textContent !== (reasoning ?? '')) this.#reasoningText.textContent = reasoning ?? '';
    this.#reasoningTitle.textContent = thinking(this.#exchange);
    if (this.#answered !== Boolean(answer)) this.#reasoning.open = !answer;
    this.#answered = Boolean(answer);
    if (this.#rivals.length !== rivals.length) {
      this.#rivals = rivals.map(() => new Column('rival'));
      this.#answers.replaceChildren(...this.#rivals.map((c) => c.element), this.#own.element);
    }
    rivals.forEach((rival, i) => this.#rivals[i].update(rival, rival.name));
    this.#own.update(this.#exchange, rivals.length ? this.#exchange.name ?? '' : '');
    this.#text.classList.toggle('waiting', asking && !(search && !answer)); // a search shows by itself that it is running
    this.#error.hidden = !error;
    if (this.#error.textContent !== (error ?? '')) this.#error.textContent = error ?? '';
    this.#showSearch(search ?? null, asking);
    this.#meta.textContent = facts(this.#exchange);
    this.again.hidden = asking || Boolean(this.#exchange.needsKey);
  }

  /** @param {import('./search.js').Search | null} search @param {boolean} running */
  #showSearch(search, running) {
    if (!search) {
      this.#search?.element.remove();
      this.#search = null;
    } else if (search !== this.#drawn[0] || running !== this.#drawn[1]) {
      if (!this.#search) this.#answers.after((this.#search = new SearchView()).element);
      this.#search.update(search, running, this.#rivals.length === 0);
    }
    this.#drawn = [search, running];
  }
}

/** An answer; beside others, with its name and what it took. */
class Column {
  #title = el('h3');
  #took = el('p', { class: 'took' });
  #votes = new Votes();
  #text;
  #written;

  /** @param {string} kind @param {HTMLElement} [text] */
  constructor(kind, text = el('div', { class: 'text' })) {
    this.#text = text;
    this.#written = new Markdown(text);
    this.element = el('section', { class: kind }, text);
  }

  /** @param {Result} result @param {string} name empty: the column stands alone */
  update({ answer, search, stats }, name) {
    this.#written.update(answer);
    if (!name) return;
    this.#title.textContent = name;
    this.#took.textContent = [stats && tokens(stats.tokens), stats && seconds(stats.total), search?.agreement != null && `${Math.round(100 * search.agreement)} % agree`].filter(Boolean).join(' · ');
    if (search) this.#votes.update(search);
    if (!this.#title.isConnected) this.element.replaceChildren(this.#title, this.#text, this.#votes.element, this.#took);
  }
}

/** @param {number} n */
const tokens = (n) => `${n.toLocaleString('en')} ${n === 1 ? 'token' : 'tokens'}`;

/** What stands above a thought. @param {Exchange} exchange */
function thinking({ answer, state, search, stats }) {
  if (search) return 'Reasoning';
  if (!answer && state === 'asking') return 'Thinking …';
  return stats?.thought ? `Thought for ${seconds(stats.thought)}` : 'Thought';
}

/** @param {Exchange} exchange */
function facts({ state, finish, stats, needsKey, model }) {
  const parts = [];
  if (model) parts.push(model);
  if (needsKey) parts.push('waiting for an API key');
  if (state === 'waiting') parts.push('waiting for the server');
  if (state === 'stopped') parts.push('stopped');
  if (finish === 'length') parts.push('cut at the token limit');
  if (stats?.tokens) parts.push(tokens(stats.tokens), `${rate(stats.tokens / stats.total)} tokens/s`);
  if (stats?.first) parts.push(`first text after ${seconds(stats.first)}`);
  if (stats && state === 'done') parts.push(`${seconds(stats.total)} in all`);
  return parts.join(' · ');
}

/** @param {number} r */
const rate = (r) => (r < 10 ? r.toFixed(1) : Math.round(r).toLocaleString('en'));

/** @param {number} s */
const seconds = (s) => (s < 1 ? `${Math.round(1000 * s)} ms` : `${s.toFixed(1)} s`);
