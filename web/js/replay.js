// A search once more, step by step, from what is known at its end. The server computes nothing.

import { el } from './dom.js';
import { t } from './words.js';

/** @typedef {import('./search.js').Search} Search */

/** Moments of whole answers, which were written at the same time. */
const parts = 20;
/** Milliseconds of a step of a tree, and of a part of whole answers. */
const pace = { step: 900, part: 150 };

/** The search was a tree, not whole answers. @param {Search} search */
const branched = (search) => search.steps.length > 0 && ['beam_search', 'dvts', 'particle_filtering'].includes(search.method);

/** How many moments there are before the end; 0: nothing to show. @param {Search} search */
export function moments(search) {
  if (branched(search)) return search.steps.reduce((most, s) => Math.max(most, s.depth + 1), 0);
  return search.candidates.some((c) => c.text) ? parts : 0;
}

/**
 * A search as it was at a moment. Nothing is chosen before the end.
 * @param {Search} search @param {number} at from 0 to its moments
 * @returns {Search}
 */
export function moment(search, at) {
  const last = moments(search);
  if (at >= last) return search;
  const before = { ...search, done: false, usage: null, reason: '', score: null, agreement: null, leader: '', votes: [], live: null };
  if (branched(search)) {
    // A parent comes before its children, and is left where they are.
    /** @type {Map<number, number>} */
    const places = new Map();
    /** @type {Search['steps']} */
    const steps = [];
    search.steps.forEach((s, i) => {
      if (s.depth >= at) return;
      places.set(i, steps.length);
      steps.push({ ...s, parent: places.get(s.parent) ?? -1, fate: s.fate === 'pruned' ? 'pruned' : 'kept' });
    });
    return { ...before, steps, stepsTaken: at, candidates: [] };
  }
  const longest = Math.max(...search.candidates.map((c) => c.text.length));
  const candidates = search.candidates.map((c) => {
    const length = Math.floor((at / last) * longest);
    const over = length >= c.text.length;
    return { ...c, text: c.text.slice(0, length), chosen: false, ...(over ? {} : { state: /** @type {const} */ ('writing'), answer: '', score: null }) };
  });
  return { ...before, candidates, steps: [], live: candidates.filter((c) => c.state === 'writing').length };
}

/** A button that replays a search, and a bar to go to any moment. */
export class Replay {
  #show;
  /** @type {Search | null} */
  #search = null;
  /** @type {number | undefined} */
  #timer;
  /** @type {any} */
  #range = el('input', { type: 'range', min: 0, step: 1, 'aria-label': t`Moment of the search`, on: { input: () => { this.#pause(); this.#go(); } } });
  /** @type {any} */
  #play = el('button', { type: 'button', class: 'quiet', on: { click: () => (this.#timer ? this.#pause() : this.#start()) } }, t`Pause`);
  button = el('button', { type: 'button', class: 'quiet replay', hidden: true, 'aria-expanded': 'false', on: { click: () => this.#toggle() } }, t`Replay`);
  bar = el('div', { class: 'replaying', role: 'group', 'aria-label': t`Replay`, hidden: true }, this.#play, this.#range);

  /** @param {(search: Search, over: boolean) => void} show */
  constructor(show) {
    this.#show = show;
  }

  /** @param {Search | null} search that has ended */
  of(search) {
    if (search === this.#search) return;
    this.#search = search;
    this.#pause();
    this.bar.hidden = true;
    this.button.hidden = !search || moments(search) === 0;
    this.button.setAttribute('aria-expanded', 'false');
  }

  #toggle() {
    const opens = this.bar.hidden;
    this.bar.hidden = !opens;
    this.button.setAttribute('aria-expanded', String(opens));
    if (!this.#search) return;
    this.#range.max = moments(this.#search);
    if (opens) this.#range.value = this.#range.max;
    if (opens) this.#start();
    else { this.#pause(); this.#show(this.#search, true); }
  }

  #start() {
    if (!this.#search) return;
    if (this.#range.value === this.#range.max) this.#range.value = '0';
    this.#play.textContent = t`Pause`;
    this.#timer = setInterval(() => {
      this.#range.value = Number(this.#range.value) + 1;
      this.#go();
      if (this.#range.value === this.#range.max) this.#pause();
    }, branched(this.#search) ? pace.step : pace.part);
    this.#go();
  }

  #pause() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#play.textContent = t`Play`;
  }

  #go() {
    if (this.#search) this.#show(moment(this.#search, Number(this.#range.value)), this.#range.value === this.#range.max);
  }
}
