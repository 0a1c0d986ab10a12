// One exchange of the conversation: the question, its answer and how that was found.

import { Actions, Edit } from './actions.js';
import { el, eachFrame } from './dom.js';
import { Markdown } from './markdown.js';
import { agreement } from './search.js';
import { Votes } from './votes.js';
import { t } from './words.js';

/**
 * What a way of answering made of a question.
 * @typedef {object} Result
 * @property {string} answer so far
 * @property {string} [reasoning] before the answer
 * @property {string} [finish] the finish reason
 * @property {import('./search.js').Search | null} [search]
 * @property {{ first: number, thought?: number, total: number, tokens: number }} [stats] seconds, and tokens generated
 * @property {Round[]} [rounds] of calls of tools, before the answer
 *
 * @typedef {{ id: string, name: string, arguments: string, result?: string, refused?: boolean, failed?: boolean }} Call of a tool; without a result: not answered yet
 * @typedef {{ content: string, calls: Call[] }} Round what the model wrote, and its calls
 *
 * @typedef {Result & { name: string, way: import('./settings.js').Way }} Rival in a column of its own
 *
 * @typedef {object} Exchanged
 * @property {string} id
 * @property {string} conversation
 * @property {string | null} parent the exchange that it follows
 * @property {number} created
 * @property {number} [beat] when it was last known to be written
 * @property {string} question
 * @property {string} [name] of the way in which it is answered
 * @property {'asking' | 'waiting' | 'done' | 'stopped' | 'failed'} state waiting: for the server
 * @property {string} [error] in the server's words
 * @property {boolean} [needsKey] refused without a valid key; the page asks for one
 * @property {string} [model] that answers, where there are several
 * @property {number} [unread] how many of the exchanges before this one the model was not shown
 * @property {string} [limit] why
 * @property {string} [schema] of JSON that the answer is held to
 * @property {number} [promoted] the candidate that the person has made the answer
 * @property {boolean} [picked] the person has made a column of a comparison the answer
 * @property {Rival[]} [rivals] other ways of answering, which are asked first
 *
 * @typedef {Result & Exchanged} Exchange
 */

/**
 * What can be done with an exchange.
 * @typedef {object} Acts
 * @property {(exchange: Exchange) => unknown} again
 * @property {(exchange: Exchange) => unknown} resume
 * @property {(question: string, ways: import('./settings.js').Way[], parent: string | null) => unknown} ask
 * @property {(exchange: Exchange, by: number) => unknown} turn
 * @property {(exchange: Exchange, candidate: import('./search.js').Candidate) => unknown} promote
 * @property {(exchange: Exchange, rival: Rival) => unknown} take
 */

/** Shows an exchange. Call update or render when the exchange has changed. */
export class ExchangeView {
  #exchange;
  #acts;
  #actions;
  #text = el('div', { class: 'text' });
  #reasoningText = el('div', { class: 'thoughts' });
  #thoughts = new Markdown(this.#reasoningText);
  #reasoningTitle = el('summary');
  /** Open until the answer begins; then the person decides. @type {any} */
  #reasoning = el('details', { class: 'reasoning', open: true, hidden: true }, this.#reasoningTitle, this.#reasoningText);
  #meta = el('p', { class: 'meta' });
  /** What shows calls of tools: few conversations have any. @type {Promise<import('./calls.js').Calls> | null} */
  #calls = null;
  #error = el('p', { class: 'error', role: 'alert', hidden: true });
  #answer = el('article', { class: 'answer-box', 'aria-label': t`Answer` }, this.#reasoning);
  #own = new Column('own', this.#text);
  /** A column for each rival. @type {Column[]} */
  #rivals = [];
  #answers = el('div', { class: 'answers' }, this.#own.element);
  /** What shows a search: many conversations have none. @type {import('./searchview.js').SearchView | null} */
  #search = null;
  #searchLoading = false;
  /** How many parts of the page are awaited. */
  #loading = 0;
  /** The answer had begun when it was last shown. */
  #answered = false;
  /** The search that is drawn, and whether it ran. @type {unknown[]} */
  #drawn = [];
  /** Renders before the next paint, for the many small changes of a stream. */
  update = eachFrame(() => this.render());

  /** @param {Exchange} exchange @param {Acts} acts */
  constructor(exchange, acts) {
    this.#exchange = exchange;
    this.#acts = acts;
    this.#actions = new Actions(exchange, acts);
    this.#answer.append(this.#answers, this.#error, el('footer', {}, this.#meta, this.#actions.element));
    this.element = el('li', { class: 'exchange' }, new Edit(exchange, acts).element, this.#answer);
    this.render();
  }

  /** Tells which of the branches at this place it is. @param {number} index @param {number} of */
  place(index, of) {
    this.#actions.place(index, of);
  }

  /** Puts the focus on the button that leads on. @param {number} by -1: back */
  focusBranch(by) {
    this.#actions.focusBranch(by);
  }

  /** Shows the exchange as it is now. */
  render() {
    const { answer, reasoning, state, error, search, schema, rivals = [] } = this.#exchange;
    const asking = state === 'asking';
    this.#reasoning.hidden = !reasoning;
    this.#reasoningText.classList.toggle('plain', Boolean(search)); // how the search goes, line by line
    if (!search) this.#thoughts.update(reasoning ?? '');
    else if (this.#reasoningText.textContent !== (reasoning ?? '')) this.#reasoningText.textContent = reasoning ?? '';
    this.#reasoningTitle.textContent = thinking(this.#exchange);
    if (this.#answered !== Boolean(answer)) this.#reasoning.open = !answer;
    this.#answered = Boolean(answer);
    if (this.#rivals.length !== rivals.length) {
      this.#rivals = rivals.map((rival) => new Column('rival', undefined, () => this.#acts.take(this.#exchange, rival)));
      this.#answers.replaceChildren(...this.#rivals.map((c) => c.element), this.#own.element);
    }
    rivals.forEach((rival, i) => this.#rivals[i].update(rival, rival.name, schema));
    this.#own.update(this.#exchange, rivals.length ? this.#exchange.name ?? '' : '', schema);
    this.#text.classList.toggle('waiting', asking && !(search && !answer)); // a search shows by itself that it is running
    this.#error.hidden = !error;
    if (this.#error.textContent !== (error ?? '')) this.#error.textContent = error ?? '';
    this.#showSearch(search ?? null, asking);
    this.#meta.textContent = facts(this.#exchange);
    this.#showCalls();
    this.#actions.render();
    this.#showBusy();
  }

  /** Until it is answered, and all that there is of the answer is shown. */
  #showBusy() {
    this.#answer.setAttribute('aria-busy', String(this.#exchange.state === 'asking' || this.#loading > 0));
  }

  /** Waits for a part of the page, and shows it. @template T @param {Promise<T>} part @param {(part: T) => void} show @param {() => void} missed without the server it is tried again */
  #load(part, show, missed) {
    this.#loading++;
    part.then(show, missed).finally(() => {
      this.#loading--;
      this.#showBusy();
    });
  }

  #showCalls() {
    if (!this.#exchange.rounds?.length && !this.#calls) return;
    this.#calls ??= import('./calls.js').then(({ Calls }) => {
      const calls = new Calls();
      this.#reasoning.after(calls.element);
      return calls;
    });
    this.#load(this.#calls, (calls) => calls.update(this.#exchange.rounds ?? []), () => { this.#calls = null; });
  }

  /** @param {import('./search.js').Search | null} search @param {boolean} running */
  #showSearch(search, running) {
    if (!search) {
      this.#search?.element.remove();
      this.#search = null;
    } else if (!this.#search) {
      if (this.#searchLoading) return;
      this.#searchLoading = true;
      this.#load(import('./searchview.js'), ({ SearchView }) => {
        this.#searchLoading = false;
        this.#answers.after((this.#search = new SearchView((c) => this.#acts.promote(this.#exchange, c))).element);
        this.#drawn = [];
        this.render();
      }, () => { this.#searchLoading = false; });
      return;
    } else if (search !== this.#drawn[0] || running !== this.#drawn[1]) {
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
  /** The answer in JSON whose fields are shown, and where. @type {string} */
  #fielded = '';
  /** @type {HTMLElement | null} */
  #form = null;

  /** What makes it the answer; null: it is. @type {HTMLElement | null} */
  #take;

  /** @param {string} kind @param {HTMLElement} [text] @param {() => void} [take] makes it the answer; none: it is */
  constructor(kind, text = el('div', { class: 'text' }), take) {
    this.#text = text;
    this.#take = take ? el('button', { type: 'button', class: 'quiet change take', on: { click: take } }, t`Use as the answer`) : null;
    this.#written = new Markdown(text);
    this.element = el('section', { class: kind }, text);
  }

  /** @param {Result} result @param {string} name empty: the column stands alone @param {string} [schema] of the answer */
  update({ answer, search, stats, finish }, name, schema) {
    this.#written.update(schema && answer ? `\`\`\`json\n${answer}${finish ? '\n```' : ''}` : answer);
    if (schema) this.#showFields(finish === 'stop' ? answer : '', schema);
    if (!name) return;
    this.#title.textContent = name;
    if (this.#take) this.#take.hidden = !answer || !finish;
    const agree = search ? agreement(search) : null;
    this.#took.textContent = [ending(finish), stats && tokens(stats.tokens), stats && seconds(stats.total), agree !== null && t`${Math.round(100 * agree)} % agree`].filter(Boolean).join(' · ');
    if (search) this.#votes.update(search);
    if (!this.#title.isConnected) this.element.replaceChildren(this.#title, this.#form ?? this.#text, this.#votes.element, this.#took, this.#take ?? '');
  }

  /** @param {string} answer empty: none, or not yet @param {string} schema */
  async #showFields(answer, schema) {
    if (answer === this.#fielded) return;
    this.#fielded = answer;
    this.#form?.replaceWith(this.#text);
    this.#form = null;
    this.#text.hidden = false;
    const { showForm } = await import('./form.js');
    if (answer && answer === this.#fielded) this.#form = showForm(this.#text, answer, schema);
  }
}

/** @param {number} n */
const tokens = (n) => (n === 1 ? t`1 token` : t`${n.toLocaleString('en')} tokens`);

/** Why an answer ended before its end; empty: it did not. @param {string} [finish] */
const ending = (finish) => (finish === 'length' ? t`cut at the token limit` : finish === 'repetition' ? t`ended: it repeated itself` : '');

/** What stands above a thought. @param {Exchange} exchange */
function thinking({ answer, state, search, stats }) {
  if (search) return t`Reasoning`;
  if (!answer && state === 'asking') return t`Thinking …`;
  return stats?.thought ? t`Thought for ${seconds(stats.thought)}` : t`Thought`;
}

/** @param {Exchange} exchange */
function facts({ state, finish, stats, needsKey, model, name, promoted, picked }) {
  const parts = [];
  if (model) parts.push(model);
  if (promoted !== undefined) parts.push(t`candidate ${promoted + 1}, chosen by you`);
  if (picked) parts.push(t`${name}, chosen by you`);
  if (needsKey) parts.push(t`waiting for an API key`);
  if (state === 'waiting') parts.push(t`waiting for the server`);
  if (state === 'stopped') parts.push(t`stopped`);
  if (ending(finish)) parts.push(ending(finish));
  if (stats?.tokens) parts.push(tokens(stats.tokens), t`${rate(stats.tokens / stats.total)} tokens/s`);
  if (stats?.first) parts.push(t`first text after ${seconds(stats.first)}`);
  if (stats && state === 'done') parts.push(t`${seconds(stats.total)} in all`);
  return parts.join(' · ');
}

/** @param {number} r */
const rate = (r) => (!Number.isFinite(r) ? '–' : r < 10 ? r.toFixed(1) : Math.round(r).toLocaleString('en'));

/** @param {number} s */
const seconds = (s) => (s < 1 ? `${Math.round(1000 * s)} ms` : `${s.toFixed(1)} s`);
