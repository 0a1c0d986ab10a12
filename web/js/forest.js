// The solution steps of a search as a tree, made from the server's lists: the nodes of
// a tree, or whole answers with a step in each line.

/**
 * What became of a step: `kept` ones continue or ended a candidate; `live` ones are
 * being written.
 * @typedef {'kept' | 'pruned' | 'chosen' | 'live'} Fate
 *
 * A solution step; equal steps after the same beginning are one node.
 * @typedef {object} Step
 * @property {number} parent index in the list; -1: the question
 * @property {number} depth 0 for the first
 * @property {string} text
 * @property {number | null} score of the solution up to here
 * @property {Fate} fate
 * @property {number} count candidates that wrote it
 * @property {string} [key] a name that stays while the text grows
 */

import { list, number, string } from './read.js';

/** More than anyone can read; a hostile server could send any number. */
export const MOST = 4000;

/** @param {any} node @returns {number} */
export const parentOf = (node) => number(node.parent) ?? -1;

/**
 * The steps of a tree that comes as a list, each node with its parent's index. A node
 * is a solution step, or a whole answer with a step in each line. Steps that are being
 * written are added one by one.
 * @param {any[]} nodes
 * @param {import('./search.js').Candidate[]} [writing]
 * @returns {Step[]}
 */
export function grow(nodes, writing = []) {
  const forest = new Forest();
  /** @type {number[]} index in the list → index among the steps */
  const indexOf = [];
  nodes.slice(0, MOST).forEach((node, i) => {
    const parent = parentOf(node);
    const at = parent < 0 ? -1 : indexOf[parent];
    if (at === undefined) return; // its parent does not come before it
    const fate = ['pruned', 'chosen'].includes(node.fate) ? node.fate : 'kept';
    indexOf[i] = forest.addLines(at, string(node.text), [], number(node.score), fate);
  });
  for (const c of writing) {
    const parent = c.parent < 0 ? -1 : indexOf[c.parent];
    if (parent === undefined || !c.text.trim()) continue;
    const depth = parent < 0 ? 0 : forest.steps[parent].depth + 1;
    forest.steps.push({ parent, depth, text: c.text.trim(), score: c.score, fate: 'live', count: 1, key: `live ${c.parent} ${c.index}` });
  }
  return forest.steps;
}

/**
 * The steps of whole answers, a line each.
 * @param {any[]} candidates as the server lists them
 * @param {number | undefined} chosen candidate's number
 * @returns {Step[]}
 */
export function growAnswers(candidates, chosen) {
  const forest = new Forest();
  const winner = candidates.find((c, i) => (c.candidate ?? i) === chosen);
  candidates.slice(0, MOST / 8).forEach((c) => {
    const agrees = c === winner || Boolean(string(c.answer)) && string(c.answer) === string(winner?.answer);
    const fate = c === winner ? 'chosen' : agrees || !winner ? 'kept' : 'pruned';
    forest.addLines(-1, string(c.text), list(c.step_scores), number(c.score), fate);
  });
  return forest.steps;
}

/** A tree under construction: siblings with the same text become one step. */
class Forest {
  /** @type {Step[]} */
  steps = [];
  /** @type {Map<string, number>} parent and text → index */
  #known = new Map();

  /**
   * Adds a step for each line. A line without a score of its own has none, but the last has the answer's.
   * @param {number} parent @param {string} text @param {any[]} scores @param {number | null} score @param {Fate} fate
   * @returns {number} index of the last
   */
  addLines(parent, text, scores, score, fate) {
    const lines = text.split('\n').filter((line) => line.trim()).slice(0, 64);
    const own = scores.length === lines.length ? scores : []; // else the steps were not lines
    return lines.reduce((at, line, i) => this.add(at, line, number(own[i]) ?? (i === lines.length - 1 ? score : null), fate), parent);
  }

  /** @param {number} parent @param {string} text @param {number | null} score @param {Fate} fate @returns {number} index */
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
    if (fate === 'chosen' || step.fate === 'pruned') step.fate = fate; // the best of them decides
    return at;
  }
}
