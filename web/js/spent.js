// What a search has spent, and how hard its question seems to be: where candidates disagree,
// the model is unsure.

/** @typedef {import('./search.js').Search} Search */

/** The first answers tell early whether more are worth it. */
const early = 4;

/**
 * How well a search's answers agree; null: there are none to compare.
 * @param {Search} search
 * @returns {{ share: number, first: number, of: number, level: 'easy' | 'moderate' | 'hard' } | null} `share` of all that give
 *   the leading answer, and how many of the first ones agree
 */
export function difficulty({ candidates, agreement, votes }) {
  const answers = candidates.filter((c) => c.state === 'complete' && c.answer).map((c) => c.answer);
  if (answers.length < 2 || votes.length === 0) return null;
  const head = answers.slice(0, early);
  const first = Math.max(...head.map((a) => head.filter((b) => b === a).length));
  const share = agreement ?? answers.filter((a) => a === votes[0].answer).length / answers.length;
  return { share, first, of: head.length, level: share >= 0.85 ? 'easy' : share >= 0.5 ? 'moderate' : 'hard' };
}

/** Both in words. @param {Search} search */
export function spentWords(search) {
  const parts = [];
  const { usage } = search;
  if (usage) {
    const of = [`${count(usage.chosen)} for the answer`];
    if (usage.discarded) of.push(`${count(usage.discarded)} for others`);
    if (usage.cancelled) of.push(`${count(usage.cancelled)} cancelled`);
    parts.push(`Spent ${count(usage.chosen + usage.discarded + usage.cancelled)} tokens: ${of.join(', ')}${usage.verifier ? `; the verifier read ${count(usage.verifier)}` : ''}`);
  }
  const d = difficulty(search);
  if (d) parts.push(`${usage ? 'the' : 'The'} question looks ${d.level}: ${Math.round(100 * d.share)} % agree, of the first ${d.of} answers ${d.first === d.of ? 'all' : d.first}`);
  return parts.join('. ').replace('. the', '. The') + (parts.length ? '.' : '');
}

/** @param {number} n */
const count = (n) => n.toLocaleString('en');
