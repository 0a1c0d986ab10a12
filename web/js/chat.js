// The conversation: its turns, what is asked of the server, and what streams
// back.

import { ApiError, chat } from './api.js';
import { absorb } from './search.js';
import { recall, remember } from './store.js';
import { TurnView } from './message.js';

/** @typedef {import('./message.js').Turn} Turn */

/**
 * @typedef {object} Hooks
 * @property {() => Omit<import('./api.js').ChatRequest, 'messages'> & { system: string }} plan what the person has set
 * @property {(busy: boolean) => void} busy
 * @property {() => void} changed the page has grown
 * @property {(text: string) => void} announce to screen readers
 * @property {(reason: string) => void} needKey the server wants another key
 */

export class Chat {
  /** @type {Turn[]} */
  #turns = [];
  /** @type {TurnView | null} */
  #last = null;
  /** @type {AbortController | null} */
  #running = null;
  #list;
  #hooks;

  /** @param {HTMLElement} list @param {Hooks} hooks */
  constructor(list, hooks) {
    this.#list = list;
    this.#hooks = hooks;
  }

  /** Shows the conversation that this tab had before it was reloaded. */
  restore() {
    const kept = recall('turns', []);
    for (const turn of Array.isArray(kept) ? kept : []) {
      // The page was left in the middle of this one.
      this.#show(turn.state === 'asking' ? { ...turn, state: 'stopped' } : turn);
    }
  }

  get empty() { return this.#turns.length === 0; }
  get busy() { return this.#running !== null; }
  get failed() { return this.#turns.at(-1)?.state === 'failed'; }

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
    Object.assign(turn, { answer: '', reasoning: '', state: 'asking', needsKey: false, error: undefined, finish: undefined, search: null, stats: undefined });
    await this.#run();
  }

  stop() {
    this.#running?.abort();
  }

  clear() {
    this.stop();
    this.#turns = [];
    this.#last = null;
    this.#list.replaceChildren();
    remember('turns', null);
  }

  /** @param {Turn} turn */
  #show(turn) {
    if (this.#last) this.#last.again.remove(); // only the last question can be asked again
    this.#turns.push(turn);
    this.#last = new TurnView(turn, () => this.again());
    this.#list.append(this.#last.element);
    this.#hooks.changed();
  }

  /** @returns {import('./api.js').ChatRequest} */
  #request() {
    const { system, ...rest } = this.#hooks.plan();
    const messages = system ? [{ role: 'system', content: system }] : [];
    for (const turn of this.#turns.slice(0, -1)) {
      if (turn.answer) messages.push({ role: 'user', content: turn.question }, { role: 'assistant', content: turn.answer });
    }
    messages.push({ role: 'user', content: this.#turns[this.#turns.length - 1].question });
    return { ...rest, messages };
  }

  /** Answers the last turn. */
  async #run() {
    const turn = this.#turns[this.#turns.length - 1];
    const view = /** @type {TurnView} */ (this.#last);
    const running = (this.#running = new AbortController());
    this.#hooks.busy(true);
    this.#hooks.announce('Answering.');
    try {
      await this.#receive(turn, view, running.signal);
      turn.state = 'done';
      this.#hooks.announce(turn.answer);
    } catch (err) {
      this.#fail(turn, err, running.signal.aborted);
    } finally {
      if (this.#running === running) this.#running = null;
    }
    view.render();
    if (this.#turns.includes(turn)) remember('turns', this.#turns); // it may have been cleared meanwhile
    if (!this.busy) this.#hooks.busy(false);
    this.#hooks.changed();
  }

  /** @param {Turn} turn @param {TurnView} view @param {AbortSignal} signal */
  async #receive(turn, view, signal) {
    const start = performance.now();
    const since = () => (performance.now() - start) / 1000;
    const stats = { first: 0, total: 0, tokens: 0 };
    view.render();
    for await (const chunk of chat(this.#request(), signal)) {
      turn.search = absorb(turn.search ?? null, chunk);
      const choice = chunk.choices?.find((/** @type {any} */ c) => (c.index ?? 0) === 0);
      const text = choice?.delta?.content;
      if (text) stats.first ||= since();
      turn.answer += text ?? '';
      turn.reasoning = (turn.reasoning ?? '') + (choice?.delta?.reasoning_content ?? '');
      turn.finish = choice?.finish_reason ?? turn.finish;
      stats.tokens = chunk.usage?.completion_tokens ?? stats.tokens;
      stats.total = since();
      turn.stats = stats;
      view.update();
      this.#hooks.changed();
    }
  }

  /** @param {Turn} turn @param {unknown} err @param {boolean} stopped by the person */
  #fail(turn, err, stopped) {
    if (stopped) {
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
    else turn.error = err.message + (err.retryAfter ? ` (Try again in ${err.retryAfter} s.)` : '');
  }
}
