// The drawing of a search: a tree of solution steps that grows while the server
// searches. Below it is the same tree as a nested list.

import { el, svg } from './dom.js';
import { isSmall, layout } from './layout.js';
import { selfScored } from './search.js';
import { t } from './words.js';

/** @typedef {import('./forest.js').Step} Step */

/** The smallest zoom at which text can be read. */
const legible = 0.7;

/** A drawing that can be updated. */
export class Tree {
  #drawing = svg('svg', { role: 'img', class: 'tree' });
  #scroller = el('div', { class: 'scroller', role: 'region', tabindex: 0, 'aria-label': t`Search tree; scrolls` }, this.#drawing);
  #detail = el('p', { class: 'detail', 'aria-live': 'polite' });
  #outline = el('div', { class: 'outline', tabindex: 0 });
  #zoom = 1;
  /** The person has chosen the zoom; it stays. */
  #zoomed = false;
  /** @type {import('./layout.js').Layout | null} */
  #layout = null;
  /** @type {Step[]} */
  #steps = [];
  /** Of particles: how often each step was drawn. @type {number[]} */
  #draws = [];
  /** Scores are how sure the model was. */
  #sure = false;
  /** Steps already drawn: only new ones fade in. @type {Set<string>} */
  #seen = new Set();

  controls = el('div', { class: 'zoom', role: 'group', 'aria-label': t`Zoom`, hidden: true },
    this.#button('−', t`Smaller`, () => this.#scale(this.#zoom / 1.25)),
    this.#button(t`Fit`, t`Fit the width`, () => this.#scale(this.#fitting())),
    this.#button('+', t`Larger`, () => this.#scale(this.#zoom * 1.25)));

  /** Filled when it is opened. @type {any} */
  #words = el('details', { on: { toggle: () => this.#spell() } }, el('summary', {}, t`The tree as a list`), this.#outline);
  element = el('div', { class: 'tree-view', hidden: true }, this.#scroller, this.#detail, this.#words);

  /** @param {boolean} seen */
  show(seen) {
    this.controls.hidden = this.element.hidden = !seen;
  }

  /** @param {import('./search.js').Search} search */
  update(search) {
    const { steps, done } = search;
    const particles = search.method === 'particle_filtering'; // are drawn, not ranked
    this.#sure = selfScored(search);
    const at = (this.#layout = layout(steps));
    this.#steps = steps;
    this.#draws = particles ? draws(steps) : [];
    const pruned = steps.filter((s) => s.fate === 'pruned').length;
    this.#drawing.setAttribute('viewBox', `0 0 ${at.width} ${at.height}`);
    this.#drawing.setAttribute('aria-label',
      [particles ? t`${steps.length} different solution steps, ${pruned} dropped.` : t`${steps.length} different solution steps, ${pruned} pruned.`, done ? t`The chosen path is highlighted.` : '', t`A list follows.`].filter(Boolean).join(' '));
    const fresh = this.#seen;
    const paths = pathKeys(steps);
    const { fontFamily } = getComputedStyle(this.#drawing);
    this.#drawing.replaceChildren(
      svg('g', { class: 'edges' }, ...inFront(steps).map((i) => edge(steps, at, i))),
      svg('circle', { class: 'root', cx: at.root.x, cy: at.root.y, r: 7 }),
      ...steps.map((s, i) => this.#node(s, at.boxes[i], !fresh.has(paths[i]), fontFamily, this.#draws[i])));
    this.#seen = new Set(paths);
    this.#scale(this.#zoomed ? this.#zoom : Math.min(1, Math.max(legible, this.#fitting())));
    this.#spell();
    this.#follow(steps, done);
  }

  #spell() {
    if (this.#words.open) this.#outline.replaceChildren(outline(this.#steps, this.#draws, this.#sure));
  }

  /** @param {Step} step @param {import('./layout.js').Box} box @param {boolean} fresh @param {string} family of fonts @param {number} [drawn] of a particle */
  #node(step, box, fresh, family, drawn) {
    const small = isSmall(step);
    const score = step.score === null ? '' : step.score.toFixed(2);
    const room = box.w - 16 - (step.score === null && step.count < 2 ? 0 : 32);
    const font = `${step.fate === 'chosen' ? 500 : 400} ${small ? 11 : 12}px ${family}`;
    const lines = small ? [cut(step.text, room, font)] : wrap(step.text, room, font);
    const top = box.y - (lines.length - 1) * 7 - (small ? 0 : 1);
    return svg('g', {
      class: `step ${step.fate}${fresh ? ' fresh' : ''}`,
      on: { click: () => { this.#detail.textContent = describe(step, drawn, this.#sure); } },
    },
    svg('title', {}, describe(step, drawn, this.#sure)),
    svg('rect', { x: box.x, y: box.y - box.h / 2, width: box.w, height: box.h, rx: small ? 5 : 8 }),
    step.score === null ? null : svg('rect', {
      class: `gauge ${step.score >= 0.8 ? 'high' : step.score >= 0.4 ? 'mid' : 'low'}`,
      x: box.x + 5, y: box.y + box.h / 2 - 4, width: Math.max(3, (box.w - 10) * clamp(step.score)), height: 2.5, rx: 1.25,
    }),
    ...lines.map((line, i) => svg('text', { class: 'words', x: box.x + 8, y: top + i * 14 }, line)),
    svg('text', { class: 'score', x: box.x + box.w - 7, y: small ? box.y : box.y - 7 }, score),
    small || step.count < 2 && !(drawn && drawn > 1) ? null
      : svg('text', { class: 'count', x: box.x + box.w - 7, y: box.y + 7 }, drawn && drawn > 1 ? `→${drawn}` : `×${step.count}`));
  }

  /** @param {string} text @param {string} label @param {() => void} action */
  #button(text, label, action) {
    return el('button', { type: 'button', class: 'quiet', 'aria-label': label, title: label, on: { click: () => { this.#zoomed = true; action(); } } }, text);
  }

  /** @param {number} zoom */
  #scale(zoom) {
    if (!this.#layout) return;
    this.#zoom = Math.min(2, Math.max(0.3, zoom));
    this.#drawing.setAttribute('width', String(Math.round(this.#layout.width * this.#zoom)));
    this.#drawing.setAttribute('height', String(Math.round(this.#layout.height * this.#zoom)));
  }

  #fitting() {
    return this.#layout ? this.#scroller.clientWidth / this.#layout.width : 1;
  }

  /** Keeps the end of the search in view, and in the end the chosen path. @param {Step[]} steps @param {boolean} done */
  #follow(steps, done) {
    const boxes = this.#layout?.boxes ?? [];
    const chosen = done ? steps.findIndex((s) => s.fate === 'chosen') : Math.max(steps.findIndex((s) => s.fate === 'live'), steps.findLastIndex((s) => s.fate === 'kept'));
    if (chosen < 0) return;
    const { x, y } = boxes[chosen];
    const view = this.#scroller;
    view.scrollTop = y * this.#zoom - view.clientHeight / 2;
    view.scrollLeft = done ? 0 : x * this.#zoom - view.clientWidth / 2;
  }
}

const clamp = (/** @type {number} */ v) => Math.min(1, Math.max(0, v));

/** Steps in the order of drawing: chosen ones on top. @param {Step[]} steps */
function inFront(steps) {
  const rank = { pruned: 0, live: 1, kept: 2, chosen: 3 };
  return steps.map((_, i) => i).sort((a, b) => rank[steps[a].fate] - rank[steps[b].fate]);
}

/** @param {Step[]} steps @param {import('./layout.js').Layout} at @param {number} i */
function edge(steps, at, i) {
  const to = at.boxes[i];
  const from = steps[i].parent < 0 ? { x: at.root.x + 7, y: at.root.y } : { x: at.boxes[steps[i].parent].x + to.w, y: at.boxes[steps[i].parent].y };
  const bend = (to.x - from.x) / 2;
  const d = `M${from.x} ${from.y}c${bend} 0 ${bend} ${to.y - from.y} ${to.x - from.x} ${to.y - from.y}`;
  return svg('path', { class: `edge ${steps[i].fate}`, d });
}

/** A key for each step that stays the same while the tree grows. @param {Step[]} steps */
function pathKeys(steps) {
  /** @type {string[]} */
  const keys = [];
  for (const s of steps) keys.push(s.key ?? `${s.parent < 0 ? '' : keys[s.parent]}\n${s.text}`);
  return keys;
}

/** How often particles were drawn: each draw goes on with a step of its own. @param {Step[]} steps */
function draws(steps) {
  const times = steps.map(() => 0);
  for (const s of steps) if (s.parent >= 0) times[s.parent] += s.count;
  return times;
}

/** @param {Step} step @param {number | undefined} drawn of a particle @param {boolean} sure the score is how sure the model was */
function describe(step, drawn, sure) {
  const facts = [];
  if (step.score !== null) facts.push(sure ? t`certainty ${step.score.toFixed(3)}` : t`score ${step.score.toFixed(3)}`);
  if (step.count > 1) facts.push(t`written ${step.count} times`);
  if (drawn && drawn > 1) facts.push(t`drawn ${drawn} times`);
  if (step.fate !== 'kept') facts.push(step.fate === 'live' ? t`being written` : step.fate === 'chosen' ? t`chosen` : drawn !== undefined ? t`not drawn` : t`pruned`);
  return step.text + (facts.length ? ` (${facts.join(', ')})` : '');
}

const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));

/** @param {string} text @param {number} room in the drawing's units @param {string} font */
function fits(text, room, font) {
  pen.font = font;
  return pen.measureText(text).width <= room;
}

/** A text that must be cut keeps its end: that is a step's result. @param {string} text @param {number} room @param {string} font */
function cut(text, room, font) {
  if (fits(text, room, font)) return text;
  let end = text.slice(-60); // no box holds more
  while (end && !fits(`…${end}`, room, font)) end = end.slice(1);
  return `…${end.trimStart()}`;
}

/** One line, or two. @param {string} text @param {number} room @param {string} font */
function wrap(text, room, font) {
  if (fits(text, room, font)) return [text];
  const words = text.split(' ');
  let n = words.length - 1;
  while (n > 1 && !fits(words.slice(0, n).join(' '), room, font)) n--;
  if (n < 1) return [cut(text, room, font)];
  return [cut(words.slice(0, n).join(' '), room, font), cut(words.slice(n).join(' '), room, font)];
}

/** The nested list. @param {Step[]} steps @param {number[]} draws of particles @param {boolean} sure */
function outline(steps, draws, sure) {
  const top = el('ul');
  /** @type {HTMLElement[]} */
  const items = [];
  for (const [i, s] of steps.entries()) {
    const item = el('li', { class: s.fate }, describe(s, draws[i], sure));
    items.push(item);
    const parent = s.parent < 0 ? null : items[s.parent];
    const list = parent ? parent.querySelector(':scope > ul') ?? parent.appendChild(el('ul')) : top;
    list.append(item);
  }
  return top;
}
