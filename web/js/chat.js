// The conversation: its turns, what is asked of the server, and what streams
// back.

import { ApiError, chat, droppedMessages } from './api.js';
import { el } from './dom.js';
import { TurnView } from './message.js';
import { absorb } from './search.js';
import { recall, remember } from './store.js';

/** @typedef {import('./message.js').Turn} Turn */

/**
 * @typedef {object} Hooks
 * @property {() => Omit<import('./api.js').ChatRequest, 'messages'> & { system: string }} plan what the person has set
 * @property {() => string | undefined} model that answers, where it is worth telling
 * @property {(read: number) => string} forgets says why the model reads no more than so many questions, this one included
 * @property {(busy: boolean) => void} busy
 * @property {(whole?: HTMLElement) => void} changed the page has grown; an answer that is whole, and is best seen from its beginning
 * @property {(text: string) => void} announce to screen readers
 * @property {(reason: string) => void} needKey the server wants another key
 * @property {() => Promise<boolean>} away the server does not answer now; true: it will
 * @property {() => void} renew the person wants a new conversation
 */

/** Turns that are sent along at most. */
const most = 100;

export class Chat {
  /** @type {Turn[]} */
  #turns = [];
  /** @type {TurnView[]} */
  #views = [];
  /** @type {AbortController | null} */
  #running = null;
  #list;
  #hooks;
  #limitWords = el('span');
  /** Stands above the first turn that the model still reads. */
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
    for (const turn of Array.isArray(kept) ? kept : []) {
      // The page was left in the middle of this one.
      this.#show(['asking', 'waiting'].includes(turn.state) ? { ...turn, state: 'stopped' } : turn);
    }
    this.#mark();
  }

  get empty() { return this.#turns.length === 0; }
  get busy() { return this.#running !== null; }
  get failed() { return this.#turns.at(-1)?.state === 'failed'; }
  /** A question waits for the server. */
  get waiting() { return this.#turns.at(-1)?.state === 'waiting'; }

  /** @param {string} question */
  async ask(question) {
    if (this.busy) return;
    this.#show({ question, answer: '', state: 'asking' });
    await this.#run();
  }

  /** Asks the last question once more, as things are set now. */
  async again() {
    const turn = this.#turns.at(-1);
    if (!turn || this.busy) return;
    Object.assign(turn, { answer: '', reasoning: '', state: 'asking', needsKey: false, error: undefined, finish: undefined, unread: undefined, search: null, stats: undefined });
    await this.#run();
  }

  stop() {
    this.#running?.abort();
  }

  clear() {
    this.stop();
    this.#turns = [];
    this.#views = [];
    this.#list.replaceChildren();
    remember('conversation', null);
  }

  /** @param {Turn} turn */
  #show(turn) {
    this.#views.at(-1)?.again.remove(); // only the last question can be asked again
    const view = new TurnView(turn, () => this.again());
    this.#turns.push(turn);
    this.#views.push(view);
    this.#list.append(view.element);
    this.#hooks.changed();
  }

  /** Shows which turns the model was not shown when it answered last. */
  #mark() {
    const last = this.#turns.at(-1);
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
   * What is asked, the places of the turns that have been answered, and how many of these are left out.
   * @returns {{ request: import('./api.js').ChatRequest, answered: number[], left: number }}
   */
  #request() {
    const { system, ...rest } = this.#hooks.plan();
    const messages = system ? [{ role: 'system', content: system }] : [];
    const last = this.#turns.length - 1;
    const answered = [...this.#turns.keys()].filter((i) => i < last && this.#turns[i].answer);
    const left = Math.max(0, answered.length - most);
    for (const i of answered.slice(left)) {
      messages.push({ role: 'user', content: this.#turns[i].question }, { role: 'assistant', content: this.#turns[i].answer });
    }
    messages.push({ role: 'user', content: this.#turns[last].question });
    return { request: { ...rest, messages }, answered, left };
  }

  /** Answers the last turn. */
  async #run() {
    const turn = this.#turns[this.#turns.length - 1];
    const view = this.#views[this.#views.length - 1];
    const running = (this.#running = new AbortController());
    this.#hooks.busy(true);
    this.#hooks.announce('Answering.');
    turn.model = this.#hooks.model();
    try {
      await this.#receive(turn, view, running.signal);
      turn.state = 'done';
      this.#hooks.announce(turn.answer);
    } catch (err) {
      await this.#fail(turn, err, running.signal);
    } finally {
      if (this.#running === running) this.#running = null;
    }
    view.render();
    if (this.#turns.includes(turn)) this.#keep(); // it may have been cleared meanwhile
    if (!this.busy) this.#hooks.busy(false);
    this.#hooks.changed(turn.search && turn.answer ? view.element : undefined); // the answer stands above its search
  }

  /** @param {Turn} turn @param {TurnView} view @param {AbortSignal} signal */
  async #receive(turn, view, signal) {
    const { request, answered, left } = this.#request();
    const start = performance.now();
    const since = () => (performance.now() - start) / 1000;
    const stats = { first: 0, total: 0, tokens: 0 };
    view.render();
    for await (const chunk of chat(request, signal)) {
      turn.search = absorb(turn.search ?? null, chunk);
      const choice = chunk.choices?.find((/** @type {any} */ c) => (c.index ?? 0) === 0);
      const text = choice?.delta?.content;
      const thought = choice?.delta?.reasoning_content;
      if (text) stats.first ||= since();
      turn.answer += text ?? '';
      turn.reasoning = (turn.reasoning ?? '') + (thought ?? '');
      turn.finish = choice?.finish_reason ?? turn.finish;
      stats.tokens = spent(stats.tokens, chunk, turn.search, Boolean(text || thought));
      stats.total = since();
      turn.stats = stats;
      const dropped = droppedMessages(chunk);
      if (dropped !== null || turn.unread === undefined) {
        const unread = left + Math.ceil((dropped ?? 0) / 2);
        turn.unread = unread && (answered[unread] ?? this.#turns.indexOf(turn));
        turn.limit = this.#hooks.forgets(answered.length - unread + 1);
        this.#mark();
      }
      view.update();
      this.#hooks.changed();
    }
  }

  /** @param {Turn} turn @param {unknown} err @param {AbortSignal} signal that the person has stopped it */
  async #fail(turn, err, signal) {
    // A question of which nothing has been answered can wait for the server.
    const wait = err instanceof ApiError && err.away && !turn.stats && await this.#hooks.away();
    if (signal.aborted) {
      turn.state = 'stopped';
      this.#hooks.announce('Stopped.');
      return;
    }
    turn.state = 'failed';
    if (!(err instanceof ApiError)) {
      console.error(err); // a fault of this page
      turn.error = `The page could not read the answer: ${err}`;
      return;
    }
    turn.needsKey = err.status === 401;
    if (turn.needsKey) this.#hooks.needKey(err.message);
    else if (wait) turn.state = 'waiting';
    else turn.error = err.message + (err.retryAfter ? ` (Try again in ${err.retryAfter} s.)` : '');
  }

  /** Remembers the conversation: if that is too much, without what the searches looked like. */
  #keep() {
    if (!remember('conversation', this.#turns)) remember('conversation', this.#turns.map(({ search, ...turn }) => turn));
  }
}

/**
 * The tokens generated so far, by all candidates: as the server tells; for a single answer each chunk of text is one,
 * until the usage says how many there were.
 * @param {number} before @param {any} chunk @param {import('./search.js').Search | null} search @param {boolean} text there is some
 */
function spent(before, chunk, search, text) {
  const used = (chunk.usage?.completion_tokens ?? 0) + (chunk.usage?.test_time_scaling?.cancelled_tokens ?? 0);
  if (used) return search ? Math.max(before, used) : used;
  return search ? Math.max(before, search.tokens ?? 0) : before + (text ? 1 : 0);
}
