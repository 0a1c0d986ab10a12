// What the server reports of a search, as one plain object that the candidates, the
// tree, the votes and the store share. Every field may be missing: older and newer
// servers report less or more.

import { MOST, grow, growAnswers, parentOf } from './forest.js';
import { number, objects, string } from './read.js';

/**
 * A candidate, while it is written and afterwards. `cut` ones reached a limit;
 * `cancelled` ones were no longer needed.
 * @typedef {object} Candidate
 * @property {number} index
 * @property {number} parent node of the tree that it continues; -1: the question
 * @property {string} text so far
 * @property {number | null} tokens
 * @property {number | null} logprob mean over them
 * @property {number | null} score
 * @property {string} answer
 * @property {'writing' | 'complete' | 'cut' | 'cancelled'} state
 * @property {boolean} chosen
 *
 * @typedef {{ answer: string, votes: number, weight: number, judged: boolean, chosen: boolean }} Vote `weight` is what
 *   decides: the votes, the sum of their scores, or the best of these
 *
 * @typedef {object} Search
 * @property {boolean} done
 * @property {string} method
 * @property {string} select the rule that chooses
 * @property {string} [verifier] that judges the candidates
 * @property {number | null} n
 * @property {number | null} width
 * @property {number | null} stepsTaken
 * @property {number | null} live candidates in progress
 * @property {number | null} finished
 * @property {number | null} tokens
 * @property {string} leader the leading answer
 * @property {number | null} agreement share of the candidates that give it
 * @property {string} reason why the search ended
 * @property {boolean} degraded fewer candidates than asked for
 * @property {number | null} score of the choice
 * @property {Candidate[]} candidates whole answers, by their number
 * @property {Candidate[]} beams the next solution steps, while they are written
 * @property {any[]} nodes of the tree so far; empty at the end
 * @property {import('./forest.js').Step[]} steps a parent comes before its children
 * @property {Vote[]} votes the first leads
 * @property {{ chosen: number, discarded: number, cancelled: number, verifier: number } | null} usage tokens, at the end
 */

const mostCandidates = 512;
const mostText = 1 << 16;

/** Candidates of these are written step by step. @param {Search} search */
export const byStep = (search) => ['beam_search', 'dvts', 'particle_filtering'].includes(search.method);

/** The share of a search's candidates that give the leading answer; null: they are not independent of each other. @param {Search} search */
export const agreement = (search) => (byStep(search) ? null : search.agreement);

/** Scores are how sure the model was of its own words: no verifier has read them. @param {Search} search */
export const selfScored = ({ verifier = '' }) => ['logprob', 'self_certainty'].includes(verifier);

/**
 * Adds what a chunk reports to what is known.
 * @param {Search | null} known
 * @param {any} chunk of a stream
 * @param {string} [judge] that is expected to judge, where the server does not say
 * @returns {Search | null} a new object if the chunk reported anything
 */
export function absorb(known, chunk, judge = '') {
  const report = chunk.test_time_scaling;
  const choices = objects(chunk.choices).filter((c) => c.test_time_scaling);
  const used = chunk.usage?.test_time_scaling;
  if (used && known) {
    const [chosen, discarded, cancelled, verifier] = ['chosen', 'discarded', 'cancelled', 'verifier'].map((of) => number(used[`${of}_tokens`]) ?? 0);
    return { ...known, usage: { chosen, discarded, cancelled, verifier } };
  }
  if (!report && !choices.length) return known;
  /** @type {Search} */
  const next = { ...(known ?? empty()) };
  const t = report ?? {};
  next.method = string(t.method) || next.method;
  next.select = string(t.select) || next.select;
  next.verifier = string(t.verifier) || next.verifier || judge;
  next.reason = string(t.stop_reason) || next.reason;
  next.leader = string(t.leader) || next.leader;
  next.degraded = t.degraded === true || next.degraded;
  for (const [field, value] of /** @type {[keyof Search, any][]} */ ([
    ['n', t.n], ['width', t.width], ['stepsTaken', t.steps ?? t.step], ['live', t.live],
    ['finished', t.finished], ['tokens', t.tokens], ['agreement', t.agreement],
  ])) if (number(value) !== null) /** @type {any} */ (next)[field] = value;
  next.done ||= Boolean(next.reason) || choices.length > 0;

  const best = choices.find((c) => (c.index ?? 0) === 0)?.test_time_scaling;
  next.score = number(best?.score) ?? next.score;
  const whole = objects(t.candidates);
  const chosen = number(best?.candidate ?? (next.done ? whole[0]?.candidate : undefined));
  const added = objects(t.added);
  const partial = objects(t.partial);
  if (byStep(next)) next.beams = partial.reduce(gain, added.length || next.done ? [] : next.beams);
  else next.candidates = partial.reduce(gain, next.candidates);
  next.candidates = whole.reduce(complete, next.candidates);
  if (next.done) next.candidates = next.candidates.map((c) => conclude(c, whole, chosen));
  next.votes = tally(next, string(best?.answer) || next.leader);
  if (next.done && !next.candidates.length && string(best?.answer)) { // only the winner was reported
    next.votes = [{ answer: best.answer, votes: number(best.votes) ?? 1, weight: 1, judged: false, chosen: true }];
  }

  const tree = objects(t.tree).length ? objects(t.tree) : [...next.nodes, ...added].slice(0, MOST);
  const branched = tree.some((node) => parentOf(node) >= 0);
  // Candidates have the scores of their steps; a tree of whole answers has not.
  if (!branched && whole.some((c) => string(c.text))) next.steps = growAnswers(whole, chosen ?? undefined);
  else if (added.length || objects(t.tree).length || byStep(next) && partial.length) next.steps = grow(tree, next.beams);
  next.nodes = next.done ? [] : tree;
  return next;
}

/** @returns {Search} */
function empty() {
  return {
    done: false, method: '', select: '', n: null, width: null, stepsTaken: null, live: null, finished: null, tokens: null,
    leader: '', verifier: '', agreement: null, reason: '', degraded: false, score: null, candidates: [], beams: [], nodes: [], steps: [], votes: [], usage: null,
  };
}

/**
 * A list with one of its candidates changed, or with one more.
 * @param {Candidate[]} all @param {any} index @param {(c: Candidate) => Partial<Candidate>} change
 */
function replace(all, index, change) {
  if (!Number.isInteger(index) || index < 0) return all;
  const at = all.findIndex((c) => c.index === index);
  if (at < 0 && all.length >= mostCandidates) return all;
  /** @type {Candidate} */
  const old = all[at] ?? { index, parent: -1, text: '', tokens: null, logprob: null, score: null, answer: '', state: 'writing', chosen: false };
  const now = { ...old, ...change(old) };
  return at < 0 ? [...all, now].sort((a, b) => a.index - b.index) : all.with(at, now);
}

/** Adds what a candidate has gained. @param {Candidate[]} all @param {any} report */
const gain = (all, report) => replace(all, report.index, (c) => ({
  parent: parentOf(report),
  text: (c.text + string(report.text)).slice(-mostText),
  tokens: number(report.tokens) ?? c.tokens,
  logprob: number(report.logprob) ?? c.logprob,
  score: number(report.score) ?? c.score,
  answer: string(report.answer) || c.answer,
  state: state(report) ?? c.state,
}));

/** Adds a complete candidate. @param {Candidate[]} all @param {any} report */
const complete = (all, report) => replace(all, report.candidate, (c) => ({
  text: string(report.text).slice(-mostText) || c.text,
  tokens: number(report.tokens) ?? c.tokens,
  logprob: number(report.logprob) ?? c.logprob,
  score: number(report.score) ?? c.score,
  answer: string(report.answer) || c.answer,
  state: state(report) ?? 'complete',
}));

/** @param {any} report @returns {Candidate['state'] | null} null: it is not complete */
function state(report) {
  const reason = string(report.finish_reason);
  return reason === '' ? null : reason === 'length' ? 'cut' : 'complete';
}

/** A candidate at the end of its search. @param {Candidate} c @param {any[]} listed @param {number | null} chosen @returns {Candidate} */
function conclude(c, listed, chosen) {
  const counted = listed.some((report) => report.candidate === c.index);
  return { ...c, chosen: c.index === chosen, state: counted || c.chosen ? c.state : 'cancelled' };
}

/** @param {Search} search @param {string} winner @returns {Vote[]} */
function tally({ candidates, select }, winner) {
  /** @type {Map<string, Vote>} */
  const votes = new Map();
  for (const c of candidates) {
    if (!c.answer || c.state !== 'complete') continue;
    const vote = votes.get(c.answer) ?? { answer: c.answer, votes: 0, weight: 0, judged: false, chosen: c.answer === winner };
    vote.votes++;
    vote.judged ||= c.score !== null;
    if (select === 'weighted_vote') vote.weight += c.score ?? 0;
    else if (select === 'max') vote.weight = Math.max(vote.weight, c.score ?? 0);
    else vote.weight = vote.votes;
    votes.set(c.answer, vote);
  }
  return [...votes.values()].sort((a, b) => b.weight - a.weight || b.votes - a.votes);
}
