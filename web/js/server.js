// Watches whether the server is there and ready.

import { readiness } from './api.js';

/**
 * `lost`: there is no answer; `loading`: it will be ready by itself; `trouble`: it is
 * not ready for another reason, in the server's words.
 * @typedef {{ name: 'unknown' | 'ready' | 'loading' | 'trouble' | 'lost', message: string,
 *   loading: { model: string, progress: number | null }[] }} State
 */

const often = 500;
const seldom = 5000;

/** Watches the server while the page is visible. */
export class Server {
  /** @type {State} */
  state = { name: 'unknown', message: '', loading: [] };
  #changed;
  /** @type {number | undefined} */
  #timer;
  /** @type {Promise<State> | null} */
  #asking = null;

  /** @param {(now: State, before: State) => void} changed is called after every change */
  constructor(changed) {
    this.#changed = changed;
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.check(); });
    addEventListener('online', () => this.check());
    this.check();
  }

  get ready() { return this.state.name === 'ready'; }

  /** Asks now. */
  check() {
    return (this.#asking ??= this.#check());
  }

  async #check() {
    clearTimeout(this.#timer);
    const before = this.state;
    this.state = await ask();
    this.#asking = null;
    if (!document.hidden) this.#timer = setTimeout(() => this.check(), this.ready ? seldom : often);
    if (JSON.stringify(before) !== JSON.stringify(this.state)) this.#changed(this.state, before);
    return this.state;
  }
}

/** @returns {Promise<State>} */
async function ask() {
  try {
    const { ready, soon, message, loading } = await readiness();
    return { name: ready ? 'ready' : soon ? 'loading' : 'trouble', message, loading };
  } catch {
    return { name: 'lost', message: '', loading: [] };
  }
}
