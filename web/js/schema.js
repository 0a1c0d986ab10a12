// The JSON schema that an answer is held to, as the person writes it. What is no schema is
// refused here; keywords that the server does not hold answers to it refuses by name.

import { ShapeError, list, oneOf, record, text } from './shape.js';
import { t } from './words.js';

/** Characters of a schema, and schemas within one another. */
export const mostSchema = 1 << 16;
const deepest = 64;

const types = oneOf('object', 'array', 'string', 'number', 'integer', 'boolean', 'null');

/** @param {any} v @param {string} at @param {number} [depth] */
function schema(v, at, depth = 0) {
  if (typeof v === 'boolean' && depth) return;
  if (depth > deepest || !v || typeof v !== 'object' || Array.isArray(v)) throw new ShapeError(t`${at} is no JSON schema, such as {"type": "object"}.`);
  const each = (/** @type {any} */ all, /** @type {string} */ where) => { for (const [key, one] of Object.entries(all)) schema(one, `${where}.${key}`, depth + 1); };
  for (const [key, value] of Object.entries(v)) {
    const where = `${at}.${key}`;
    if (['not', 'if', 'then', 'else', 'contains', 'propertyNames', 'additionalProperties'].includes(key) || key === 'items' && !Array.isArray(value)) schema(value, where, depth + 1);
    else if (['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'].includes(key)) { record({})(value, where); each(value, where); }
    else if (['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items'].includes(key)) each(list((one) => one, 1024)(value, where), where);
    else if (key === 'required') list(text(256), 1024)(value, where);
    else if (key === 'enum') list((one) => one, 4096)(value, where);
    else if (key === 'type') (Array.isArray(value) ? list(types, 7) : types)(value, where);
    else if (key === '$ref') text(1024)(value, where);
  }
}

/** Reads a schema, or throws a ShapeError that names what is wrong. @param {string} written empty: none @returns {any} null: none */
export function readSchema(written) {
  if (!written.trim()) return null;
  if (written.length > mostSchema) throw new ShapeError(t`A schema may have 65,536 characters.`);
  let parsed;
  try {
    parsed = JSON.parse(written);
  } catch {
    throw new ShapeError(t`The schema is not JSON.`);
  }
  schema(parsed, 'schema');
  return parsed;
}
