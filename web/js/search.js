// What the server tells of a search, read into one plain object that the tree,
// the votes and what is remembered share. Every field may be missing: older
// and newer servers tell more or less.

/**
 * What became of a step: `kept` ones live on or ended a candidate.
 * @typedef {'kept' | 'pruned' | 'chosen'} Fate
 *
 * A solution step; equal steps after the same beginning are one node.
 * @typedef {object} Step
 * @property {number} parent index in `steps`; -1: the question
 * @property {number} depth 0 for the first
 * @property {string} text
 * @property {number | null} score of the solution up to here
 * @property {Fate} fate
 * @property {number} count candidates that wrote it
 *
 * @typedef {{ answer: string, votes: number, weight: number | null, chosen: boolean }} Vote
 *
 * @typedef {object} Search
 * @property {boolean} done
 * @property {string} method
 * @property {number | null} n
 * @property {number | null} width
 * @property {number | null} stepsTaken
 * @property {number | null} live candidates in the making
 * @property {number | null} finished
 * @property {number | null} tokens
 * @property {string} leader the answer in front
 * @property {number | null} agreement share of the candidates that give it
 * @property {string} reason why the search ended
 * @property {boolean} degraded fewer candidates than asked for
 * @property {number | null} score of the choice
 * @property {any[]} nodes of the tree, as told so far; empty at the end
 * @property {Step[]} steps a parent stands before its children
 * @property {Vote[]} votes most first
 */

const number = (/** @type {any} */ v) => (typeof v === 'number' && Number.isFinite(v) ? v : null);
const string = (/** @type {any} */ v) => (typeof v === 'string' ? v : '');
const list = (/** @type {any} */ v) => (Array.isArray(v) ? v.filter((x) => x && typeof x === 'object') : []);

/** More than anyone can look at; a hostile server could send any number. */
const MOST = 4000;

/**
 * Adds what a chunk tells to what is known.
 * @param {Search | null} known
 * @param {any} chunk of a stream
 * @returns {Search | null} a new object when the chunk told anything
 */
export function absorb(known, chunk) {
  const told = chunk.test_time_scaling;
  const choices = list(chunk.choices).filter((c) => c.test_time_scaling);
  if (!told && !choices.length) return known;
  /** @type {Search} */
  const next = { ...(known ?? empty()) };
  const t = told ?? {};
  next.method = string(t.method) || next.method;
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
  const candidates = list(t.candidates).length ? list(t.candidates) : choices.map((c) => c.test_time_scaling);
  const chosen = best?.candidate ?? candidates[0]?.candidate;
  if (candidates.length) next.votes = tally(candidates, string(best?.answer) || next.leader);
  const added = list(t.added);
  const tree = list(t.tree).length ? list(t.tree) : [...next.nodes, ...added].slice(0, MOST);
  const branched = tree.some((node) => parentOf(node) >= 0);
  // Candidates know the scores of their steps; a tree of whole answers does not.
  if (!branched && candidates.some((c) => string(c.text))) next.steps = growAnswers(candidates, chosen);
  else if (added.length || list(t.tree).length) next.steps = grow(tree);
  next.nodes = next.done ? [] : tree;
  return next;
}

/** @returns {Search} */
function empty() {
  return {
    done: false, method: '', n: null, width: null, stepsTaken: null, live: null, finished: null, tokens: null,
    leader: '', agreement: null, reason: '', degraded: false, score: null, nodes: [], steps: [], votes: [],
  };
}

/** @param {any} node @returns {number} */
const parentOf = (node) => number(node.parent) ?? -1;

/**
 * The steps of a tree that is told as a list, each node naming its parent's
 * place. A node is a solution step or a whole answer, of a line each step.
 * @param {any[]} nodes
 * @returns {Step[]}
 */
function grow(nodes) {
  const forest = new Forest();
  /** @type {number[]} place in the list → place among the steps */
  const place = [];
  nodes.slice(0, MOST).forEach((node, i) => {
    const parent = parentOf(node);
    const at = parent < 0 ? -1 : place[parent];
    if (at === undefined) return; // of a parent that does not stand before it
    const fate = ['pruned', 'chosen'].includes(node.fate) ? node.fate : 'kept';
    place[i] = forest.addLines(at, string(node.text), [], number(node.score), fate);
  });
  return forest.steps;
}

/**
 * The steps of whole answers, a line each.
 * @param {any[]} candidates
 * @param {number | undefined} chosen candidate's number
 */
function growAnswers(candidates, chosen) {
  const forest = new Forest();
  const winner = candidates.find((c, i) => (c.candidate ?? i) === chosen);
  candidates.slice(0, MOST / 8).forEach((c) => {
    const agrees = c === winner || Boolean(string(c.answer)) && string(c.answer) === string(winner?.answer);
    const fate = c === winner ? 'chosen' : agrees || !winner ? 'kept' : 'pruned';
    forest.addLines(-1, string(c.text), Array.isArray(c.step_scores) ? c.step_scores : [], number(c.score), fate);
  });
  return forest.steps;
}

/** Steps in the making: siblings of one text become one. */
class Forest {
  /** @type {Step[]} */
  steps = [];
  /** @type {Map<string, number>} parent and text → place */
  #known = new Map();

  /**
   * Adds a step for each line; those without a score of their own have none, but the last has the whole's.
   * @param {number} parent @param {string} text @param {any[]} scores @param {number | null} score @param {Fate} fate
   * @returns {number} place of the last
   */
  addLines(parent, text, scores, score, fate) {
    const lines = text.split('\n').filter((line) => line.trim()).slice(0, 64);
    const own = scores.length === lines.length ? scores : []; // else the steps were not lines
    return lines.reduce((at, line, i) => this.add(at, line, number(own[i]) ?? (i === lines.length - 1 ? score : null), fate), parent);
  }

  /** @param {number} parent @param {string} text @param {number | null} score @param {Fate} fate @returns {number} place */
  add(parent, text, score, fate) {
    const trimmed = text.trim();
    const key = `${parent}\n${trimmed}`;
    const at = this.#known.get(key);
    if (at === undefined) {
      const depth = parent < 0 ? 0 : this.steps[parent].depth + 1;
      this.#known.set(key, this.steps.push({ parent, depth, text: trimmed, score, fate, count: 1 }) - 1);
      return this.steps.length - 1;
    }
    const step = this.steps[at];
    step.count++;
    step.score = score === null ? step.score : Math.max(score, step.score ?? score);
    if (fate === 'chosen' || step.fate === 'pruned') step.fate = fate; // the best of them counts
    return at;
  }
}

/**
 * @param {any[]} candidates
 * @param {string} winner
 * @returns {Vote[]}
 */
function tally(candidates, winner) {
  /** @type {Map<string, Vote>} */
  const votes = new Map();
  for (const c of candidates) {
    const answer = string(c.answer);
    if (!answer) continue;
    const vote = votes.get(answer) ?? { answer, votes: 0, weight: null, chosen: answer === winner };
    vote.votes++;
    if (number(c.score) !== null) vote.weight = (vote.weight ?? 0) + c.score;
    votes.set(answer, vote);
  }
  return [...votes.values()].sort((a, b) => b.votes - a.votes || (b.weight ?? 0) - (a.weight ?? 0));
}
