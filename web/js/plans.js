// Plans of test-time scaling, as the server writes them, and in words.

import { methods } from './methods.js';
import { t } from './words.js';

/** @typedef {{ method: string, n?: number, width?: number, more: Record<string, string> }} Plan `more`: what else it sets */

/** The short forms of plans. @type {Record<string, { method: string, more?: Record<string, string> }>} */
const short = {
  sc: { method: 'self_consistency' }, asc: { method: 'self_consistency', more: { adaptive: 'true' } }, cert: { method: 'self_consistency', more: { verifier: 'self_certainty' } },
  bon: { method: 'best_of_n' }, abon: { method: 'best_of_n', more: { adaptive: 'true' } }, deepconf: { method: 'deepconf' },
  pf: { method: 'particle_filtering' }, beam: { method: 'beam_search' }, dvts: { method: 'dvts' },
};

/** Reads a plan; null: it is none that the page knows. @param {string} written @returns {Plan | null} */
export function parse(written) {
  const [first, ...settings] = written.split(';');
  const { n, width, ...more } = Object.fromEntries(settings.map((s) => [s.split('=', 1)[0], s.slice(s.indexOf('=') + 1)]));
  const [, name = '', size, wide] = /^([a-z]+)(\d+)?(?:x(\d+))?$/.exec(first) ?? [];
  const known = Object.hasOwn(short, name) && size ? short[name] : null;
  const method = first === 'single' ? 'none' : known?.method ?? first;
  if (!method || !Object.hasOwn(methods, method)) return null;
  return { method, n: Number(n ?? size) || undefined, width: Number(width ?? wide) || undefined, more: { ...known?.more, ...more } };
}

/** The method has a width. @param {string} method */
export const stepped = (method) => ['beam_search', 'dvts', 'auto'].includes(method);

/** A plan in words. @param {{ method: string, n?: number, width?: number, more?: Record<string, string> }} plan */
export function inWords({ method, n = 8, width = 4, more = {} }) {
  const size = stepped(method) ? `${n} × ${width}` : n;
  /** @type {Record<string, string>} */
  const sized = { self_consistency: t`Vote of ${n}`, best_of_n: t`Best of ${n}`, deepconf: t`Confident vote of ${n}`, particle_filtering: t`${n} particles` };
  const parts = [sized[method] ?? (['', 'none'].includes(method) ? methods[method].name : `${methods[method].name} ${size}`)];
  for (const [key, value] of Object.entries(more)) {
    if (key === 'adaptive') parts.push(...(value === 'true' ? [t`stops early`] : []));
    else if (key === 'temperature') parts.push(value === '0' ? t`the likeliest words` : t`temperature ${value}`);
    else if (key === 'verifier') parts.push(['logprob', 'self_certainty'].includes(value) ? t`by certainty` : t`judged by ${value}`);
    else if (key === 'early_stop.consensus') parts.push(t`stops when ${Math.round(100 * Number(value))} % sure`);
    else parts.push(`${key.replaceAll(/[._]/g, ' ')} ${value}`);
  }
  return parts.join(', ');
}

/** A plan of the server in words, or as it is written where the page does not know it. @param {string} written */
export function wordsOf(written) {
  const plan = parse(written);
  return plan ? inWords(plan) : written;
}
