// Reads values of a file that anyone may have written: each is what it should be, within its
// bounds, or refused by the name of its place. Only fields that are named here are taken over.

import { t } from './words.js';

/**
 * Reads a value at a place.
 * @typedef {(value: any, at: string) => any} Shape
 */

/** Says why a file is refused. */
export class ShapeError extends Error {}

/** @param {string} at @param {string} wanted @returns {never} */
function refuse(at, wanted) {
  throw new ShapeError(at ? t`${at} is not ${wanted}.` : t`The file is not ${wanted}.`);
}

/** @param {number} most characters @returns {Shape} */
export const text = (most) => (v, at) => (typeof v === 'string' && v.length <= most ? v : refuse(at, t`a text of at most ${most.toLocaleString('en')} characters`));

/** @param {number} least @param {number} most @returns {Shape} */
export const number = (least, most) => (v, at) => (typeof v === 'number' && v >= least && v <= most ? v : refuse(at, t`a number from ${least} to ${most}`));

/** @param {number} least @param {number} most @returns {Shape} */
export const whole = (least, most) => (v, at) => (Number.isInteger(v) && v >= least && v <= most ? v : refuse(at, t`a whole number from ${least} to ${most}`));

/** @type {Shape} */
export const flag = (v, at) => (typeof v === 'boolean' ? v : refuse(at, t`true or false`));

/** @param {...string} words @returns {Shape} */
export const oneOf = (...words) => (v, at) => (words.includes(v) ? v : refuse(at, t`one of ${words.join(', ')}`));

/** @param {Shape} shape @returns {Shape} null is allowed */
export const orNull = (shape) => (v, at) => (v === null || v === undefined ? null : shape(v, at));

/** @param {Shape} shape @param {number} most @returns {Shape} */
export const list = (shape, most) => (v, at) => (Array.isArray(v) && v.length <= most
  ? v.map((item, i) => shape(item, `${at}[${i}]`)) : refuse(at, t`a list of at most ${most.toLocaleString('en')}`));

/**
 * An object. Fields whose name ends with "?" may be absent, or null, and are then left out.
 * @param {Record<string, Shape>} fields
 * @returns {Shape}
 */
export const record = (fields) => (v, at) => {
  if (!v || typeof v !== 'object' || Array.isArray(v)) refuse(at, t`an object`);
  /** @type {Record<string, any>} */
  const made = {};
  for (const [key, shape] of Object.entries(fields)) {
    const name = key.replace('?', '');
    const value = Object.hasOwn(v, name) ? v[name] : undefined;
    if (name !== key && (value === undefined || value === null)) continue;
    made[name] = shape(value, at ? `${at}.${name}` : name);
  }
  return made;
};
