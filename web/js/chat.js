// The conversation: its exchanges, the requests to the server, and the answers that
// stream back.

import { ApiError, chat, droppedMessages } from './api.js';
import { el } from './dom.js';
import { ExchangeView } from './exchange.js';
import { absorb } from './search.js';
import { recall, remember } from './store.js';

/** @typedef {import('./exchange.js').Exchange} Exchange */
/** @typedef {import('./exchange.js').Result} Result */
/** @typedef {import('./settings.js').Way} Way */

/**
 * @typedef {object} Hooks
 * @property {(way: Way) => Omit<import('./api.js').ChatRequest, 'messages'> & { system: string }} plan what the person has set, answered in a way
 * @property {() => Way} way that is set
 * @property {(way: Way) => string} nameOf
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

  /** @param {string} question @param {Way[]} [ways] in which it is answered too, for comparison */
  async ask(question, ways = []) {
    if (this.busy) return;
    this.#show({ question, answer: '', state: 'asking', rivals: ways.map((way) => ({ name: this.#hooks.nameOf(way), way, answer: '' })) });
    await this.#run();
  }

  /** Asks the last question once more, as things are set now. */
  async again() {
    const exchange = this.#exchanges.at(-1);
    if (!exchange || this.busy) return;
    const fresh = { answer: '', reasoning: '', finish: undefined, search: null, stats: undefined };
    Object.assign(exchange, fresh, { state: 'asking', needsKey: false, error: undefined, unread: undefined });
    exchange.rivals = exchange.rivals?.map((rival) => ({ ...rival, ...fresh }));
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
  #request(way = this.#hooks.way()) {
    const { system, ...rest } = this.#hooks.plan(way);
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
    exchange.name = this.#hooks.nameOf(this.#hooks.way());
    try {
      // One after the other, so that none takes another's time.
      for (const rival of exchange.rivals ?? []) await this.#receiveRival(rival, view, running.signal);
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
    const take = receiver(exchange);
    view.render();
    for await (const chunk of chat(request, signal)) {
      take(chunk);
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

  /** Answers in a way that the answer is compared with. @param {import('./exchange.js').Rival} rival @param {ExchangeView} view @param {AbortSignal} signal */
  async #receiveRival(rival, view, signal) {
    const take = receiver(rival);
    for await (const chunk of chat(this.#request(rival.way).request, signal)) {
      take(chunk);
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
    if (!remember('conversation', this.#exchanges)) remember('conversation', this.#exchanges.map(({ search, rivals, ...exchange }) => ({ ...exchange, rivals: rivals?.map(({ search, ...rival }) => rival) })));
  }
}

/** What adds the chunks of an answer to a result, from now on. @param {Result} result */
function receiver(result) {
  const start = performance.now();
  const since = () => (performance.now() - start) / 1000;
  const stats = { first: 0, thought: 0, total: 0, tokens: 0 };
  let thinking = 0; // since when
  /** @param {any} chunk */
  return (chunk) => {
    result.search = absorb(result.search ?? null, chunk);
    const choice = chunk.choices?.find((/** @type {any} */ c) => (c.index ?? 0) === 0);
    const text = choice?.delta?.content;
    const reasoning = choice?.delta?.reasoning_content;
    if (text) stats.first ||= since();
    if (reasoning) stats.thought = since() - (thinking ||= since());
    result.answer += text ?? '';
    result.reasoning = (result.reasoning ?? '') + (reasoning ?? '');
    result.finish = choice?.finish_reason ?? result.finish;
    stats.tokens = spent(stats.tokens, chunk, result.search, Boolean(text || reasoning));
    stats.total = since();
    result.stats = stats;
  };
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
