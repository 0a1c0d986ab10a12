// Conversations by the day on which they last went on.

import { language, t } from './words.js';

/** @typedef {import('./conversation.js').Head} Head */

/**
 * @param {Head[]} heads the latest first
 * @param {Date} [now]
 * @returns {{ name: string, heads: Head[] }[]}
 */
export function byDate(heads, now = new Date()) {
  const months = new Intl.DateTimeFormat(language, { year: 'numeric', month: 'long' });
  /** Midnight, so many days ago. @param {number} days */
  const from = (days) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - days).getTime();
  const spans = [{ name: t`Today`, from: from(0) }, { name: t`Yesterday`, from: from(1) }, { name: t`Previous 7 days`, from: from(7) }, { name: t`Previous 30 days`, from: from(30) }];
  /** @type {Map<string, Head[]>} */
  const groups = new Map();
  for (const head of heads) {
    const name = spans.find((span) => head.updated >= span.from)?.name ?? months.format(Math.max(0, head.updated));
    if (!groups.get(name)?.push(head)) groups.set(name, [head]);
  }
  return [...groups].map(([name, heads]) => ({ name, heads }));
}
