// A sparkline: the last minute of one number.

import { svg } from './dom.js';

const length = 60;
const w = 120;
const h = 28;

/** @param {number | null} top the value of the upper edge; null: the greatest seen */
export function sparkline(top) {
  /** @type {(number | null)[]} */
  let values = [];
  const area = svg('path', { class: 'area' });
  const line = svg('path', { class: 'line' });
  const element = svg('svg', { class: 'spark', viewBox: `0 0 ${w} ${h}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, area, line);
  /** @param {number | null} value null: nothing to measure, a gap */
  const push = (value) => {
    values = [...values, value].slice(-length);
    const most = top ?? Math.max(1e-9, ...values.map((v) => v ?? 0));
    const points = values.map((v, i) => {
      const x = w - (values.length - 1 - i) * (w / (length - 1));
      return [x, h - 2 - (h - 4) * Math.min(1, (v ?? 0) / most)];
    });
    const path = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L');
    line.setAttribute('d', `M${path}`);
    area.setAttribute('d', `M${points[0][0].toFixed(1)} ${h}L${path}L${w} ${h}Z`);
  };
  return { element, push };
}
