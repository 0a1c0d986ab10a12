// What a search has spent, and how hard its question seems to be: where candidates disagree,
// the model is unsure. Beams share their beginnings, so that they agree even on what is wrong.

import { byStep } from './search.js';
import { t } from './words.js';

/** @typedef {import('./search.js').Search} Search */

/** The first answers tell early whether more are worth it. */
const early = 4;

/**
 * How well a search's answers agree; null: there are none to compare, or they are not independent.
 * @param {Search} search
 * @returns {{ share: number, first: number, of: number, level: 'easy' | 'moderate' | 'hard' } | null} `share` of all that give
 *   the leading answer, and how many of the first ones agree
 */
export function difficulty(search) {
  const { candidates, votes } = search;
  const answers = candidates.filter((c) => c.state === 'complete' && c.answer).map((c) => c.answer);
  if (answers.length < 2 || votes.length === 0 || byStep(search)) return null;
  const head = answers.slice(0, early);
  const first = Math.max(...head.map((a) => head.filter((b) => b === a).length));
  const share = search.agreement ?? answers.filter((a) => a === votes[0].answer).length / answers.length;
  return { share, first, of: head.length, level: share >= 0.85 ? 'easy' : share >= 0.5 ? 'moderate' : 'hard' };
}

/** Both in words. @param {Search} search */
export function spentWords(search) {
  const parts = [];
  const { usage } = search;
  if (usage) {
    const of = [t`${count(usage.chosen)} for the answer`];
    if (usage.discarded) of.push(t`${count(usage.discarded)} for others`);
    if (usage.cancelled) of.push(t`${count(usage.cancelled)} cancelled`);
    const all = count(usage.chosen + usage.discarded + usage.cancelled), listed = of.join(', ');
    parts.push(usage.verifier ? t`Spent ${all} tokens: ${listed}; the verifier read ${count(usage.verifier)}.` : t`Spent ${all} tokens: ${listed}.`);
  }
  const d = difficulty(search);
  if (d) {
    const level = { easy: t`easy`, moderate: t`moderate`, hard: t`hard` }[d.level];
    const first = d.first === d.of ? t`all` : d.first;
    parts.push(t`The question looks ${level}: ${Math.round(100 * d.share)} % agree, of the first ${d.of} answers ${first}.`);
  } else if (byStep(search) && search.votes[0]?.votes > 1) {
    parts.push(t`These candidates share their first steps, so it says little that they agree.`);
  }
  return parts.join(' ');
}

/** @param {number} n */
const count = (n) => n.toLocaleString('en');
