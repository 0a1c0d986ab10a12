// The exchanges of a conversation that are shown: the path to one of them.

import { siblings } from './conversation.js';
import { el } from './dom.js';
import { ExchangeView } from './exchange.js';
import { t } from './words.js';

/** @typedef {import('./exchange.js').Exchange} Exchange */

export class Thread {
  /** Where it is shown; null: it is not. @type {HTMLElement | null} */
  list = null;
  #acts;
  /** @type {Map<string, ExchangeView>} */
  #views = new Map();
  #limitWords = el('span');
  /** The line above the first exchange that the model still reads. */
  #limit;

  /** @param {import('./exchange.js').Acts} acts @param {() => void} renew begins a new conversation */
  constructor(acts, renew) {
    this.#acts = acts;
    this.#limit = el('li', { class: 'limit', role: 'note' }, this.#limitWords,
      el('button', { type: 'button', class: 'quiet', on: { click: () => renew() } }, t`New conversation`));
  }

  /** @param {string} id @returns {ExchangeView | undefined} what shows an exchange */
  view(id) {
    return this.#views.get(id);
  }

  /**
   * Shows a path, and which of its exchanges the model was not shown when it answered last.
   * @param {Exchange[]} path @param {Exchange[]} all @param {boolean} busy
   */
  draw(path, all, busy) {
    const { list } = this;
    if (!list) return;
    const shown = path.map((exchange) => {
      let view = this.#views.get(exchange.id);
      if (!view) this.#views.set(exchange.id, (view = new ExchangeView(exchange, this.#acts)));
      const beside = siblings(all, exchange);
      view.place(beside.indexOf(exchange), beside.length);
      return view.element;
    });
    const last = path.at(-1);
    const unread = Math.min(last?.unread ?? 0, shown.length - 1);
    shown.forEach((element, i) => element.classList.toggle('unread', i < unread));
    this.#limitWords.textContent = last?.limit ?? '';
    if (unread > 0) shown.splice(unread, 0, this.#limit);
    // What is there stays in place, with its scroll positions and the focus.
    for (const element of [...list.children]) if (!shown.includes(/** @type {any} */ (element))) element.remove();
    shown.forEach((element, i) => { if (list.children[i] !== element) list.insertBefore(element, list.children[i] ?? null); });
    list.classList.toggle('busy', busy);
  }
}
