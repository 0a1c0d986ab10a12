// The candidates of a search side by side: a card each, whose text grows while
// it is written.

import { el } from './dom.js';
import { read } from './reader.js';
import { selfScored } from './search.js';
import { t } from './words.js';

/** @typedef {import('./search.js').Candidate} Candidate */

/** A card shows at most the last characters of a long text. */
const most = 6000;

/** The cards of one search, in the order of their numbers. */
export class Candidates {
  #list = el('ol', { class: 'cards' });
  element = el('div', { class: 'scroller', role: 'region', tabindex: 0, 'aria-label': t`Candidates; scrolls` }, this.#list);
  /** @type {Map<number, Card>} */
  #cards = new Map();
  #shown = false;
  #promote;
  /** @type {Candidate[]} */
  #all = [];
  #running = false;

  /** @param {(candidate: Candidate) => void} promote makes it the answer */
  constructor(promote) {
    this.#promote = promote;
  }

  /** Shows one in full. @param {number} index */
  #read(index) {
    const c = this.#all.find((one) => one.index === index);
    if (c) read(c, { candidates: this.#all, label: (one) => label(one, stateOf(one, this.#running)), promote: this.#promote });
  }

  /** @param {import('./search.js').Search} search @param {boolean} running */
  update(search, running) {
    const { candidates } = search;
    this.#all = candidates;
    this.#running = running;
    const winner = candidates.find((c) => c.chosen);
    candidates.forEach((c, i) => {
      let card = this.#cards.get(c.index);
      if (!card) {
        this.#cards.set(c.index, (card = new Card(c.index, () => this.#read(c.index))));
        this.#list.insertBefore(card.element, this.#list.children[i] ?? null);
      }
      card.update(c, running, winner, selfScored(search));
    });
    if (winner && !this.#shown) this.#show(/** @type {Card} */ (this.#cards.get(winner.index)).element);
    this.#shown = Boolean(winner);
  }

  /** Brings a card into view without moving the page. @param {HTMLElement} card */
  #show(card) {
    requestAnimationFrame(() => {
      this.element.scrollTop = card.offsetTop - this.element.offsetTop - (this.element.clientHeight - card.offsetHeight) / 2;
    });
  }
}

class Card {
  #label = el('span', { class: 'label' });
  #text = el('div', { class: 'words', tabindex: 0 });
  #tokens = el('span', { class: 'facts' });
  #facts = el('p', { class: 'facts' });
  /** What is shown. @type {{ c?: Candidate, state?: string }} */
  #drawn = {};

  /** @param {number} index @param {() => void} read */
  constructor(index, read) {
    this.element = el('li', { class: 'card' },
      el('p', { class: 'head' }, el('span', { class: 'number' }, index + 1), this.#tokens, this.#label), this.#text,
      el('div', { class: 'foot' }, this.#facts, el('button', { type: 'button', class: 'quiet', 'aria-label': t`Read candidate ${index + 1}`, on: { click: read } }, t`Read`)));
  }

  /** @param {Candidate} c @param {boolean} running @param {Candidate | undefined} winner @param {boolean} sure */
  update(c, running, winner, sure) {
    const state = stateOf(c, running);
    const lost = winner !== undefined && !c.chosen && (c.answer !== winner.answer || !c.answer);
    this.element.className = `card ${state}${c.chosen ? ' chosen' : lost ? ' lost' : ''}`;
    if (c === this.#drawn.c && state === this.#drawn.state) return;
    this.#drawn = { c, state };
    this.#label.textContent = label(c, state);
    const text = c.text.replace(/<\/?think>/g, '').replace(/\n\s*\n/g, '\n').trim().slice(-most);
    if (this.#text.textContent !== text) this.#text.textContent = text;
    this.#text.scrollTop = this.#text.scrollHeight; // the end is new, and has the answer
    this.#tokens.textContent = c.tokens === null ? '' : c.tokens === 1 ? t`1 token` : t`${c.tokens} tokens`;
    this.#facts.textContent = facts(c, sure);
  }
}

/** Where the search has ended, none is being written. @param {Candidate} c @param {boolean} running */
const stateOf = (c, running) => (c.state === 'writing' && !running ? 'cancelled' : c.state);

/** @param {Candidate} c @param {Candidate['state']} state */
function label({ answer, chosen }, state) {
  if (state === 'cancelled') return t`cancelled`;
  if (state === 'writing') return t`writing`;
  const end = state === 'cut' ? t`cut off` : answer || t`no answer found`;
  return chosen ? t`${end} · chosen` : end;
}

/** @param {Candidate} c @param {boolean} sure its score is how sure the model was */
function facts({ logprob, score }, sure) {
  const parts = [];
  if (logprob !== null) parts.push(t`logprob ${logprob.toFixed(2).replace('-', '−')}`);
  if (score !== null) parts.push(sure ? t`certainty ${score.toFixed(2)}` : t`score ${score.toFixed(2)}`);
  return parts.join(' · ');
}
