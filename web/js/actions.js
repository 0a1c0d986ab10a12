// What a person can do with an exchange: the buttons below its answer, and the question that
// can be edited.

import { copy } from './clipboard.js';
import { el } from './dom.js';
import { t } from './words.js';

/** @typedef {import('./exchange.js').Exchange} Exchange */
/** @typedef {import('./exchange.js').Acts} Acts */

/** @param {string} text @param {string} kind @param {() => unknown} click */
const button = (text, kind, click, more = {}) => el('button', { type: 'button', class: `quiet ${kind}`, on: { click }, ...more }, text);

/** The buttons below an answer. */
export class Actions {
  #exchange;
  #place = el('span', { class: 'place' });
  #back;
  #on;
  #branches;
  #copy;
  #resume;
  #again;

  /** @param {Exchange} exchange @param {Acts} acts */
  constructor(exchange, acts) {
    this.#exchange = exchange;
    this.#back = button('‹', 'change', () => acts.turn(exchange, -1), { 'aria-label': t`Earlier version` });
    this.#on = button('›', 'change', () => acts.turn(exchange, 1), { 'aria-label': t`Later version` });
    this.#branches = el('div', { class: 'branches', role: 'group', 'aria-label': t`Versions`, hidden: true }, this.#back, this.#place, this.#on);
    this.#copy = button(t`Copy`, 'copy', async () => {
      const done = await copy(exchange.answer);
      this.#copy.textContent = done ? t`Copied` : t`Not copied`;
    }, { 'aria-live': 'polite' });
    // It may be said again, and of another text.
    for (const event of ['blur', 'pointerleave']) this.#copy.addEventListener(event, () => { this.#copy.textContent = t`Copy`; });
    this.#resume = button(t`Continue`, 'change resume', () => acts.resume(exchange));
    this.#again = button(t`Ask again`, 'change again', () => acts.again(exchange));
    this.element = el('div', { class: 'actions' }, this.#branches, this.#copy, this.#resume, this.#again);
  }

  /** @param {number} index @param {number} of */
  place(index, of) {
    this.#branches.hidden = of < 2;
    this.#place.textContent = `${index + 1}/${of}`;
    /** @type {any} */ (this.#back).disabled = index === 0;
    /** @type {any} */ (this.#on).disabled = index === of - 1;
  }

  /** @param {number} by */
  focusBranch(by) {
    const wanted = /** @type {any} */ (by < 0 ? this.#back : this.#on);
    (wanted.disabled ? (by < 0 ? this.#on : this.#back) : wanted).focus();
  }

  /** Shows what can be done now. */
  render() {
    const { answer, reasoning, state, finish, needsKey, rounds, schema } = this.#exchange;
    const asking = state === 'asking';
    const short = finish === 'length' || finish === 'repetition' || state === 'stopped' || state === 'failed';
    this.#copy.hidden = asking || !answer;
    this.#resume.hidden = asking || !short || Boolean(schema) || // what is held to a schema is written in one go
      !(answer || reasoning && !rounds?.length);
    this.#again.hidden = asking || Boolean(needsKey);
  }
}

/** The question, which becomes a field when it is edited. */
export class Edit {
  #exchange;
  #acts;
  #words;
  /** @type {any} */
  #field = el('textarea', { 'aria-label': t`Your question`, rows: 3 });
  #form;
  #open;

  /** @param {Exchange} exchange @param {Acts} acts */
  constructor(exchange, acts) {
    this.#exchange = exchange;
    this.#acts = acts;
    this.#words = el('article', { class: 'question', 'aria-label': t`You`, tabindex: exchange.question.length > 1000 ? 0 : null }, exchange.question);
    this.#open = button(t`Edit`, 'change edit', () => this.#show(true));
    this.#form = el('form', { class: 'editing', hidden: true, on: { submit: (/** @type {Event} */ event) => this.#ask(event), keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) } },
      this.#field, el('div', { class: 'actions' }, button(t`Cancel`, '', () => this.#show(false)), el('button', { type: 'submit' }, t`Ask`)));
    this.element = el('div', { class: 'asked' }, this.#words, this.#form, el('div', { class: 'actions' }, this.#open));
  }

  /** @param {boolean} editing */
  #show(editing) {
    this.#words.hidden = this.#open.hidden = editing;
    this.#form.hidden = !editing;
    this.#field.value = this.#exchange.question;
    (editing ? this.#field : this.#open).focus();
  }

  /** @param {Event} event */
  #ask(event) {
    event.preventDefault();
    const question = this.#field.value.trim();
    if (!question) return;
    this.#show(false);
    this.#acts.ask(question, this.#exchange.rivals?.map(({ way }) => way) ?? [], this.#exchange.parent);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === 'Escape') this.#show(false);
    else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing && event.target === this.#field) /** @type {any} */ (this.#form).requestSubmit();
    else return;
    event.preventDefault();
    event.stopPropagation(); // Escape would stop an answer
  }
}
