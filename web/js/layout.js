// Where the steps of a search stand in its drawing: the question at the left,
// a column for each depth, and every step level with the middle of what
// follows it. Pruned steps are small, so that the rest stays in sight.

/**
 * @typedef {import('./search.js').Step} Step
 * @typedef {{ x: number, y: number, w: number, h: number }} Box y is the middle
 * @typedef {{ width: number, height: number, root: { x: number, y: number }, boxes: Box[] }} Layout boxes as steps
 */

export const size = { column: 176, gap: 26, big: 40, small: 22, space: 8, root: 12, edge: 10 };

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

  const left = size.edge + 2 * size.root + size.gap;
  const boxes = steps.map((s) => ({
    x: left + s.depth * (size.column + size.gap),
    y: 0,
    w: size.column,
    h: s.fate === 'pruned' ? size.small : size.big,
  }));

  // Depth first, without recursion: a chain of steps may be long.
  let bottom = size.edge;
  const open = first.toReversed().map((i) => ({ i, entered: false }));
  for (let top = open.pop(); top; top = open.pop()) {
    const { i, entered } = top;
    const below = children[i];
    if (below.length === 0) {
      boxes[i].y = bottom + boxes[i].h / 2;
      bottom += boxes[i].h + size.space;
    } else if (entered) {
      boxes[i].y = (boxes[below[0]].y + boxes[below[below.length - 1]].y) / 2;
    } else {
      open.push({ i, entered: true }, ...below.toReversed().map((c) => ({ i: c, entered: false })));
    }
  }
  separate(steps, boxes);

  const ys = first.map((i) => boxes[i].y);
  const deepest = steps.reduce((d, s) => Math.max(d, s.depth), 0);
  return {
    width: left + (deepest + 1) * (size.column + size.gap) - size.gap + size.edge,
    height: boxes.reduce((h, b) => Math.max(h, b.y + b.h / 2), 0) + size.edge,
    root: { x: size.edge + size.root, y: ys.length ? (ys[0] + ys[ys.length - 1]) / 2 : size.edge + size.root },
    boxes,
  };
}

/**
 * Moves boxes down that would lie upon another of their column: one that
 * follows small boxes is taller than they are.
 * @param {Step[]} steps
 * @param {Box[]} boxes
 */
function separate(steps, boxes) {
  /** @type {Map<number, Box[]>} */
  const columns = new Map();
  steps.forEach((s, i) => columns.set(s.depth, [...(columns.get(s.depth) ?? []), boxes[i]]));
  for (const column of columns.values()) {
    column.sort((a, b) => a.y - b.y);
    for (let i = 1; i < column.length; i++) {
      const least = column[i - 1].y + column[i - 1].h / 2 + size.space / 2 + column[i].h / 2;
      column[i].y = Math.max(column[i].y, least);
    }
    const over = size.edge - (column[0].y - column[0].h / 2);
    if (over > 0) for (const box of column) box.y += over;
  }
}
