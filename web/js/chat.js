// The conversation: its exchanges, the requests to the server, and the answers that
// stream back.

import { ApiError, chat, droppedMessages } from './api.js';
import { el } from './dom.js';
import { ExchangeView } from './exchange.js';
import { absorb } from './search.js';
import { recall, remember } from './store.js';

/** @typedef {import('./exchange.js').Exchange} Exchange */

/**
 * @typedef {object} Hooks
 * @property {() => Omit<import('./api.js').ChatRequest, 'messages'> & { system: string }} plan what the person has set
 * @property {() => Omit<import('./api.js').ChatRequest, 'messages'> & { system: string }} planSingle the same for a single answer
 * @property {() => string | undefined} model that answers, where there are several
 * @property {(read: number) => string} whyLimited says why the model reads no more than so many questions, this one included
 * @property {(busy: boolean) => void} busy
 * @property {(whole?: HTMLElement) => void} changed the page has grown; `whole`: a complete answer, to be seen from its beginning
 * @property {(text: string) => void} announce to screen readers
 * @property {(reason: string) => void} needKey the server wants another key
 * @property {() => Promise<boolean>} comesBack the server does not answer now; true: it will
 * @property {() => void} renew the person wants a new conversation
 */

/** How many earlier exchanges are sent at most. */
const most = 100;

export class Chat {
  /** @type {Exchange[]} */
  #exchanges = [];
  /** @type {ExchangeView[]} */
  #views = [];
  /** @type {AbortController | null} */
  #running = null;
  #list;
  #hooks;
  #limitWords = el('span');
  /** The line above the first exchange that the model still reads. */
  #limit;

  /** @param {HTMLElement} list @param {Hooks} hooks */
  constructor(list, hooks) {
    this.#list = list;
    this.#hooks = hooks;
    this.#limit = el('li', { class: 'limit', role: 'note' }, this.#limitWords,
      el('button', { type: 'button', class: 'quiet', on: { click: () => hooks.renew() } }, 'New conversation'));
  }

  /** Shows the conversation that this tab had before it was reloaded. */
  restore() {
    const kept = recall('conversation', []);
    for (const exchange of Array.isArray(kept) ? kept : []) {
      // The page was closed during this one.
      this.#show(['asking', 'waiting'].includes(exchange.state) ? { ...exchange, state: 'stopped' } : exchange);
    }
    this.#mark();
  }

  get empty() { return this.#exchanges.length === 0; }
  get busy() { return this.#running !== null; }
  get failed() { return this.#exchanges.at(-1)?.state === 'failed'; }
  /** A question waits for the server. */
  get waiting() { return this.#exchanges.at(-1)?.state === 'waiting'; }

  /** @param {string} question @param {boolean} [compare] with a single answer to it */
  async ask(question, compare = false) {
    if (this.busy) return;
    this.#show({ question, answer: '', state: 'asking', compare });
    await this.#run();
  }

  /** Asks the last question once more, as things are set now. */
  async again() {
    const exchange = this.#exchanges.at(-1);
    if (!exchange || this.busy) return;
    Object.assign(exchange, { answer: '', reasoning: '', state: 'asking', needsKey: false, error: undefined, finish: undefined, unread: undefined, search: null, stats: undefined, single: undefined });
    await this.#run();
  }

  stop() {
    this.#running?.abort();
  }

  clear() {
    this.stop();
    this.#exchanges = [];
    this.#views = [];
    this.#list.replaceChildren();
    remember('conversation', null);
  }

  /** @param {Exchange} exchange */
  #show(exchange) {
    this.#views.at(-1)?.again.remove(); // only the last question can be asked again
    const view = new ExchangeView(exchange, () => this.again());
    this.#exchanges.push(exchange);
    this.#views.push(view);
    this.#list.append(view.element);
    this.#hooks.changed();
  }

  /** Shows which exchanges the model was not shown when it answered last. */
  #mark() {
    const last = this.#exchanges.at(-1);
    const unread = Math.min(last?.unread ?? 0, this.#views.length - 1);
    this.#views.forEach((view, i) => view.element.classList.toggle('unread', i < unread));
    if (unread > 0) {
      this.#limitWords.textContent = last?.limit ?? '';
      this.#views[unread].element.before(this.#limit);
    } else {
      this.#limit.remove();
    }
  }

  /**
   * The request, the indexes of the exchanges that have been answered, and how many of these are left out.
   * @returns {{ request: import('./api.js').ChatRequest, answered: number[], left: number }}
   */
  #request(plan = this.#hooks.plan) {
    const { system, ...rest } = plan();
    const messages = system ? [{ role: 'system', content: system }] : [];
    const last = this.#exchanges.length - 1;
    const answered = [...this.#exchanges.keys()].filter((i) => i < last && this.#exchanges[i].answer);
    const left = Math.max(0, answered.length - most);
    for (const i of answered.slice(left)) {
      messages.push({ role: 'user', content: this.#exchanges[i].question }, { role: 'assistant', content: this.#exchanges[i].answer });
    }
    messages.push({ role: 'user', content: this.#exchanges[last].question });
    return { request: { ...rest, messages }, answered, left };
  }

  /** Answers the last exchange. */
  async #run() {
    const exchange = this.#exchanges[this.#exchanges.length - 1];
    const view = this.#views[this.#views.length - 1];
    const running = (this.#running = new AbortController());
    this.#hooks.busy(true);
    this.#hooks.announce('Answering.');
    exchange.model = this.#hooks.model();
    try {
      if (exchange.compare) await this.#receiveSingle(exchange, view, running.signal);
      await this.#receive(exchange, view, running.signal);
      exchange.state = 'done';
      this.#hooks.announce(exchange.answer);
    } catch (err) {
      await this.#fail(exchange, err, running.signal);
    } finally {
      if (this.#running === running) this.#running = null;
    }
    view.render();
    if (this.#exchanges.includes(exchange)) this.#keep(); // it may have been cleared meanwhile
    if (!this.busy) this.#hooks.busy(false);
    this.#hooks.changed(exchange.search && exchange.answer ? view.element : undefined); // the answer is above its search
  }

  /** @param {Exchange} exchange @param {ExchangeView} view @param {AbortSignal} signal */
  async #receive(exchange, view, signal) {
    const { request, answered, left } = this.#request();
    const start = performance.now();
    const since = () => (performance.now() - start) / 1000;
    const stats = { first: 0, total: 0, tokens: 0 };
    view.render();
    for await (const chunk of chat(request, signal)) {
      exchange.search = absorb(exchange.search ?? null, chunk);
      const choice = chunk.choices?.find((/** @type {any} */ c) => (c.index ?? 0) === 0);
      const text = choice?.delta?.content;
      const reasoning = choice?.delta?.reasoning_content;
      if (text) stats.first ||= since();
      exchange.answer += text ?? '';
      exchange.reasoning = (exchange.reasoning ?? '') + (reasoning ?? '');
      exchange.finish = choice?.finish_reason ?? exchange.finish;
      stats.tokens = spent(stats.tokens, chunk, exchange.search, Boolean(text || reasoning));
      stats.total = since();
      exchange.stats = stats;
      const dropped = droppedMessages(chunk);
      if (dropped !== null || exchange.unread === undefined) {
        const unread = left + Math.ceil((dropped ?? 0) / 2);
        exchange.unread = unread && (answered[unread] ?? this.#exchanges.indexOf(exchange));
        exchange.limit = this.#hooks.whyLimited(answered.length - unread + 1);
        this.#mark();
      }
      view.update();
      this.#hooks.changed();
    }
  }

  /** Asks for the single answer that the search's is compared with. @param {Exchange} exchange @param {ExchangeView} view @param {AbortSignal} signal */
  async #receiveSingle(exchange, view, signal) {
    exchange.single = '';
    for await (const chunk of chat(this.#request(this.#hooks.planSingle).request, signal)) {
      exchange.single += chunk.choices?.[0]?.delta?.content ?? '';
      view.update();
      this.#hooks.changed();
    }
  }

  /** @param {Exchange} exchange @param {unknown} err @param {AbortSignal} signal that the person has stopped it */
  async #fail(exchange, err, signal) {
    // A question without any answer yet can wait for the server.
    const wait = err instanceof ApiError && err.unavailable && !exchange.stats && await this.#hooks.comesBack();
    if (signal.aborted) {
      exchange.state = 'stopped';
      this.#hooks.announce('Stopped.');
      return;
    }
    exchange.state = 'failed';
    if (!(err instanceof ApiError)) {
      console.error(err); // a fault of this page
      exchange.error = `The page could not read the answer: ${err}`;
      return;
    }
    exchange.needsKey = err.status === 401;
    if (exchange.needsKey) this.#hooks.needKey(err.message);
    else if (wait) exchange.state = 'waiting';
    else exchange.error = err.message + (err.retryAfter ? ` (Try again in ${err.retryAfter} s.)` : '');
  }

  /** Stores the conversation; if it is too large, without its searches. */
  #keep() {
    if (!remember('conversation', this.#exchanges)) remember('conversation', this.#exchanges.map(({ search, ...exchange }) => exchange));
  }
}

/**
 * The tokens generated so far, by all candidates: as the server reports; for a single answer, one a chunk of text
 * until the usage comes.
 * @param {number} before @param {any} chunk @param {import('./search.js').Search | null} search @param {boolean} text there is some
 */
function spent(before, chunk, search, text) {
  const used = (chunk.usage?.completion_tokens ?? 0) + (chunk.usage?.test_time_scaling?.cancelled_tokens ?? 0);
  if (used) return search ? Math.max(before, used) : used;
  return search ? Math.max(before, search.tokens ?? 0) : before + (text ? 1 : 0);
}
