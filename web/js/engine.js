// What the engine does, read each second while the page is visible: a line, and a panel with more.

import { metrics } from './api.js';
import { byId, el } from './dom.js';
import { parse, reading } from './metrics.js';
import { sparkline } from './spark.js';
import { t } from './words.js';

/** @typedef {import('./metrics.js').Reading} Reading */

const lanes = 32; // of a tile
const percent = (/** @type {number | null} */ v) => (v === null ? '–' : `${(100 * v).toFixed(v > 0 && v < 0.1 ? 1 : 0)} %`);
const count = (/** @type {number} */ v) => (v < 100 ? v.toFixed(0) : Math.round(v).toLocaleString('en'));

/** @type {{ name: string, title: string, top: number | null, of: (r: Reading) => number | null, text: (r: Reading) => string }[]} */
const rows = [
  { name: t`Tokens a second`, title: t`Tokens generated, by all requests together`, top: null, of: (r) => r.tokens, text: (r) => count(r.tokens) },
  { name: t`Running · waiting`, title: t`Sequences being computed, and sequences waiting`, top: null, of: (r) => r.running + r.waiting, text: (r) => `${r.running} · ${r.waiting}` },
  { name: t`KV cache`, title: t`Share of the cache blocks that sequences hold`, top: 1, of: (r) => r.kv, text: (r) => percent(r.kv) },
  { name: t`Prefix hits`, title: t`Share of prompt tokens found in the prefix cache`, top: 1, of: (r) => r.hits, text: (r) => percent(r.hits) },
];

/**
 * Builds the panel and keeps it up to date while it can be seen.
 * @param {() => void} silent the server does not answer
 */
export function openEngine(silent) {
  const brief = byId('engine-brief');
  const cells = Array.from({ length: lanes }, () => el('i'));
  const fill = el('strong', {}, '–');
  const fillSpark = sparkline(1);
  const shown = rows.map((row) => ({ row, value: el('dd', {}, '–'), spark: sparkline(row.top) }));
  const trouble = el('p', { class: 'hint', hidden: true }, t`The server does not answer.`);
  byId('engine-body').append(
    el('div', { class: 'tile', title: t`Lanes of a kernel tile that carried a token, on average over the last second` },
      el('p', {}, el('span', {}, t`Batch fill`), fill), el('div', { class: 'lanes', 'aria-hidden': 'true' }, ...cells), fillSpark.element),
    el('dl', {}, ...shown.map(({ row, value, spark }) => el('div', { title: row.title }, el('dt', {}, row.name), value, spark.element))),
    trouble);

  /** @type {{ sample: import('./metrics.js').Sample, at: number } | null} */
  let before = null;
  /** @type {number | undefined} */
  let timer;
  const tick = async () => {
    try {
      const now = { sample: parse(await metrics()), at: performance.now() };
      if (before) show(reading(now.sample, before.sample, (now.at - before.at) / 1000));
      before = now;
      trouble.hidden = true;
    } catch {
      if (trouble.hidden) silent();
      trouble.hidden = false;
    }
    schedule();
  };
  const schedule = () => {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(tick, 1000);
  };
  document.addEventListener('visibilitychange', () => {
    before = null; // rates over the time away are of no use
    schedule();
  });

  /** @param {Reading} r */
  const show = (r) => {
    brief.textContent = r.tokens > 0 ? t`${count(r.tokens)} tokens/s` : t`idle`;
    brief.classList.toggle('on', r.tokens > 0);
    fill.textContent = percent(r.fill);
    cells.forEach((cell, i) => cell.classList.toggle('on', r.fill !== null && i < Math.round(r.fill * lanes)));
    fillSpark.push(r.fill);
    for (const { row, value, spark } of shown) {
      value.textContent = row.text(r);
      spark.push(row.of(r));
    }
  };
  tick();
}
