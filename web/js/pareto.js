// What the server's profile says of each plan: the share of right answers against time or
// tokens. Plans that nothing beats in both are joined, and listed.

import { profiles } from './api.js';
import { byId, el, svg } from './dom.js';
import { parse, wordsOf } from './plans.js';
import { number, objects, string } from './read.js';
import { t } from './words.js';

/** @typedef {{ plan: string, quality: number, low: number, high: number, tokens: number, ms: number }} Point */

const most = 512;
const size = { width: 300, height: 190, left: 34, right: 12, top: 10, bottom: 26 };

/** @type {Record<'ms' | 'tokens', { label: string, show: (v: number) => string }>} */
const costs = {
  ms: { label: t`Time`, show: (v) => (v < 1000 ? `${v < 10 ? v.toFixed(1) : Math.round(v)} ms` : `${(v / 1000).toFixed(1)} s`) },
  tokens: { label: t`Tokens`, show: (v) => Math.round(v).toLocaleString('en') },
};
const percent = (/** @type {number} */ v) => `${(100 * v).toFixed(1)} %`;

/** @type {'ms' | 'tokens'} */
let cost = 'ms';
/** @type {Point[]} */
let points = [];
let asked = '';

/**
 * Shows what a model reaches.
 * @param {string} model
 * @param {(wanted: { method: string, n?: number, width?: number }) => void} choose
 */
export async function show(model, choose) {
  asked = model;
  const list = await profiles().catch(() => null); // older servers have none
  if (model !== asked) return;
  points = read(objects(list).find((p) => p.model === model));
  draw(list === null, choose);
}

/** @param {any} profile @returns {Point[]} */
function read(profile) {
  return objects(profile?.points).slice(0, most).map((p) => ({
    plan: string(p.plan), quality: number(p.quality) ?? -1, low: number(p.ci_low) ?? 0, high: number(p.ci_high) ?? 1, tokens: number(p.tokens) ?? 0, ms: number(p.expected_ms) ?? 0,
  })).filter((p) => p.plan && p.quality >= 0 && p.tokens > 0 && p.ms > 0);
}

/** Points that no other beats in both, the cheapest first. */
function frontier() {
  let best = -1;
  return [...points].sort((a, b) => a[cost] - b[cost] || b.quality - a.quality).filter((p) => p.quality > best && (best = p.quality, true));
}

/** @param {boolean} failed @param {(wanted: { method: string, n?: number, width?: number }) => void} choose */
function draw(failed, choose) {
  const body = byId('pareto-body');
  if (!points.length) {
    body.replaceChildren(el('p', { class: 'hint' }, failed ? t`The server does not say.` : t`This model was not profiled: lutra-lab eval --profile measures it.`));
    return;
  }
  const joined = frontier();
  body.replaceChildren(
    el('div', { class: 'tabs', role: 'group', 'aria-label': t`Against` }, .../** @type {('ms' | 'tokens')[]} */ (Object.keys(costs)).map((c) => el('button', {
      type: 'button', class: 'quiet', 'aria-pressed': String(c === cost),
      on: { click: () => { cost = c; draw(failed, choose); /** @type {any} */ (body.querySelector('[aria-pressed=true]')).focus(); } },
    }, costs[c].label))),
    picture(joined),
    el('ol', { class: 'frontier', 'aria-label': t`Plans that nothing beats` }, ...joined.map((p) => {
      const wanted = settable(p.plan);
      const words = [el('span', { class: 'name' }, wordsOf(p.plan)), el('span', { class: 'facts' }, [percent(p.quality), costs.ms.show(p.ms), t`${costs.tokens.show(p.tokens)} tokens`].join(' · '))];
      return el('li', { title: p.plan }, wanted ? el('button', { type: 'button', class: 'quiet', on: { click: () => choose(wanted) } }, ...words) : el('p', {}, ...words));
    })),
    el('p', { class: 'hint' }, t`Right answers to the profile's problems; times as the server expects them now.`));
}

/** @param {Point[]} joined */
function picture(joined) {
  const logs = points.map((p) => Math.log10(p[cost]));
  const [from, to] = [Math.min(...logs) - 0.05, Math.max(...logs) + 0.05];
  const [low, high] = [Math.min(...points.map((p) => p.quality)) - 0.02, Math.min(1, Math.max(...points.map((p) => p.quality)) + 0.02)];
  const x = (/** @type {Point} */ p) => size.left + (size.width - size.left - size.right) * (Math.log10(p[cost]) - from) / (to - from);
  const level = (/** @type {number} */ q) => size.top + (size.height - size.top - size.bottom) * (high - q) / (high - low);
  const base = size.height - size.bottom;
  const path = joined.map((p, i) => (i ? `H${x(p).toFixed(1)}V${level(p.quality).toFixed(1)}` : `M${x(p).toFixed(1)} ${level(p.quality).toFixed(1)}`)).join('');
  const marks = [low, (low + high) / 2, high];
  return svg('svg', { class: 'pareto', viewBox: `0 0 ${size.width} ${size.height}`, role: 'img', 'aria-label': t`${points.length} plans; ${joined.length} of them are not beaten, and listed below` },
    ...marks.flatMap((q) => [
      svg('path', { class: 'rule', d: `M${size.left} ${level(q)}H${size.width - size.right}` }),
      svg('text', { x: size.left - 4, y: level(q), class: 'tick end' }, `${Math.round(100 * q)} %`)]),
    svg('text', { x: size.left, y: base + 14, class: 'tick' }, costs[cost].show(10 ** from)),
    svg('text', { x: size.width - size.right, y: base + 14, class: 'tick end' }, cost === 'tokens' ? t`${costs.tokens.show(10 ** to)} tokens` : costs.ms.show(10 ** to)),
    svg('path', { class: 'front', d: path }),
    ...points.map((p) => svg('circle', { class: joined.includes(p) ? 'best' : 'other', cx: x(p), cy: level(p.quality), r: joined.includes(p) ? 4 : 3 },
      svg('title', {}, t`${wordsOf(p.plan)}: ${percent(p.quality)} (${percent(p.low)} to ${percent(p.high)}), ${costs.ms.show(p.ms)}, ${costs.tokens.show(p.tokens)} tokens`))));
}

/** What the menus can be set to for a plan; null: it has other settings. @param {string} plan */
function settable(plan) {
  const wanted = parse(plan);
  return wanted && !Object.keys(wanted.more).length ? wanted : null;
}
