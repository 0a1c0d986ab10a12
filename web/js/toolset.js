// The tools that a person offers to models: two of the page's own, and functions of OpenAI's
// form whose calls the person answers by hand.

import { ShapeError, flag, list, oneOf, record, text } from './shape.js';
import { t } from './words.js';

/** @typedef {{ type: 'function', function: { name: string, description?: string, parameters?: any, strict?: boolean } }} Tool */

/** @type {import('./shape.js').Shape} */
const named = (v, at) => {
  if (typeof v === 'string' && /^[\w-]{1,64}$/.test(v)) return v;
  throw new ShapeError(t`${at} is not a name of 1 to 64 letters, digits, _ and -.`);
};
/** @type {import('./shape.js').Shape} */
const schema = (v, at) => {
  if (v && typeof v === 'object' && !Array.isArray(v)) return v;
  throw new ShapeError(t`${at} is not an object.`);
};
const tools = list(record({ type: oneOf('function'), function: record({ name: named, 'description?': text(4096), 'parameters?': schema, 'strict?': flag }) }), 64);

/** @param {string} name @param {string} description @param {Record<string, any>} properties @returns {Tool} */
const own = (name, description, properties) => ({ type: 'function', function: { name, description, parameters: { type: 'object', properties, required: Object.keys(properties) } } });

/** The page's own. */
export const builtIn = [
  own('calculator', 'Computes an expression of numbers, + - * / % ^ and parentheses.', { expression: { type: 'string' } }),
  own('current_date', 'Tells the date, the time and the time zone of the person.', {}),
];

/** Reads a list of tools, or throws a ShapeError that names what is wrong. @param {string} written empty: none @returns {Tool[]} */
export function read(written) {
  if (!written.trim()) return [];
  if (written.length > 100_000) throw new ShapeError(t`Tools may have 100,000 characters.`);
  let parsed;
  try {
    parsed = JSON.parse(written);
  } catch {
    throw new ShapeError(t`Tools are not JSON.`);
  }
  const all = tools(parsed, 'tools');
  const names = builtIn.map((tool) => tool.function.name);
  all.forEach((/** @type {Tool} */ tool, /** @type {number} */ i) => {
    if (names.includes(tool.function.name)) throw new ShapeError(t`tools[${i}].function.name is there twice, or is a tool of the page.`);
    names.push(tool.function.name);
  });
  return all;
}
