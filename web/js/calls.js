// A model's calls of tools as they are shown: each with its arguments, its result and what the
// person decides.

import { el } from './dom.js';
import { answersItself, decide, waits } from './toolrun.js';
import { t } from './words.js';

/** @typedef {import('./exchange.js').Call} Call */

/** Characters of a result that is written by hand. */
const most = 100_000;

/** The calls of an exchange. */
export class Calls {
  element = el('ol', { class: 'calls', 'aria-label': t`Calls of tools` });
  /** @type {{ call: Call, view: CallView }[]} */
  #views = [];

  /** @param {import('./exchange.js').Round[]} rounds */
  update(rounds) {
    const calls = rounds.flatMap((r) => r.calls);
    if (calls.length < this.#views.length || this.#views.some(({ call }, i) => call !== calls[i])) {
      this.#views = [];
      this.element.replaceChildren();
    }
    for (const call of calls.slice(this.#views.length)) {
      const view = new CallView(call);
      this.#views.push({ call, view });
      this.element.append(view.element);
    }
    for (const { view } of this.#views) view.update();
  }
}

class CallView {
  #call;
  #state = el('span', { class: 'hint', 'aria-live': 'polite' });
  #arguments = el('pre');
  #result = el('pre', { hidden: true });
  #details;
  /** @type {HTMLElement | null} */
  #form = null;

  /** @param {Call} call */
  constructor(call) {
    this.#call = call;
    this.#details = el('details', {}, el('summary', {}, call.name, ' ', this.#state), this.#arguments, this.#result);
    this.element = el('li', {}, this.#details);
  }

  /** Shows the call as it is now. */
  update() {
    const { result, refused, failed, arguments: written } = this.#call;
    const asks = waits(this.#call);
    this.#state.textContent = refused ? t`refused` : result !== undefined ? failed ? t`failed` : t`answered` : asks ? t`waits for you` : t`called`;
    this.#arguments.textContent = written;
    this.#result.hidden = result === undefined;
    this.#result.textContent = result ?? '';
    if (asks === Boolean(this.#form)) return;
    this.#form?.remove();
    this.#form = asks ? this.#ask() : null;
    if (this.#form) this.element.append(this.#form);
    /** @type {any} */ (this.#details).open = asks;
  }

  #ask() {
    const { name } = this.#call;
    const button = (/** @type {string} */ words, /** @type {() => void} */ click) => el('button', { type: 'button', class: 'quiet', on: { click } }, words);
    const refuse = button(t`Refuse`, () => decide(this.#call, { allow: false }));
    if (answersItself(name)) {
      return el('div', { class: 'actions', role: 'group', 'aria-label': t`Run ${name}?` }, button(t`Run once`, () => decide(this.#call, { allow: true })),
        button(t`Always in this conversation`, () => decide(this.#call, { allow: true, always: true })), refuse);
    }
    const field = /** @type {any} */ (el('textarea', { rows: 2, maxlength: most, 'aria-label': t`Result of ${name}`, placeholder: t`its result, for the model` }));
    return el('div', { class: 'by-hand' }, field, el('div', { class: 'actions' }, button(t`Send the result`, () => decide(this.#call, { allow: true, result: field.value })), refuse));
  }
}
