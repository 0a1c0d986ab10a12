// The layout of a search's drawing: the question at the left, a column for each depth,
// and every step level with its best child, so that the chosen path is a straight line
// along the top. Steps that are pruned or being written are small, so that the rest
// stays visible.

/**
 * @typedef {import('./forest.js').Step} Step
 * @typedef {{ x: number, y: number, w: number, h: number }} Box y is the middle
 * @typedef {{ width: number, height: number, root: { x: number, y: number }, boxes: Box[] }} Layout boxes as steps
 */

export const size = { column: 182, gap: 22, big: 40, small: 22, space: 8, root: 12, edge: 10 };

/** Steps with one line of text. @param {Step} step */
export const isSmall = ({ fate }) => fate === 'pruned' || fate === 'live';

/**
 * @param {Step[]} steps a parent before its children
 * @returns {Layout}
 */
export function layout(steps) {
  /** @type {number[][]} */
  const children = steps.map(() => []);
  /** @type {number[]} */
  const first = [];
  steps.forEach((s, i) => (s.parent < 0 ? first : children[s.parent]).push(i));
  const rank = { chosen: 0, kept: 1, live: 2, pruned: 3 };
  const better = (/** @type {number} */ a, /** @type {number} */ b) =>
    rank[steps[a].fate] - rank[steps[b].fate] || (steps[b].score ?? 0) - (steps[a].score ?? 0);
  for (const siblings of [first, ...children]) siblings.sort(better);

  const left = size.edge + 2 * size.root + size.gap;
  const boxes = steps.map((s) => ({
    x: left + s.depth * (size.column + size.gap),
    y: 0,
    w: size.column,
    h: isSmall(s) ? size.small : size.big,
  }));

  /** @type {number[]} by depth: where the free part of the column begins */
  const room = [];
  /** @param {number} i @param {number} least @returns {number} its y, at least that */
  const place = (i, least) => {
    const box = boxes[i];
    const [best, ...others] = children[i];
    const lowest = Math.max(least, (room[steps[i].depth] ?? 0) + box.h / 2);
    box.y = best === undefined ? lowest : place(best, lowest);
    room[steps[i].depth] = box.y + box.h / 2 + size.space;
    for (const other of others) place(other, box.y);
    return box.y;
  };
  const top = size.edge + size.big / 2;
  for (const i of first) place(i, top);

  const deepest = steps.reduce((d, s) => Math.max(d, s.depth), 0);
  return {
    width: left + (deepest + 1) * (size.column + size.gap) - size.gap + size.edge,
    height: boxes.reduce((h, b) => Math.max(h, b.y + b.h / 2), 0) + size.edge,
    root: { x: size.edge + size.root, y: first.length ? boxes[first[0]].y : top },
    boxes,
  };
}
