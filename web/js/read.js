// Reads values of a server's answers: those of another type count as absent.

/** @param {any} v @returns {number | null} */
export const number = (v) => (typeof v === 'number' && Number.isFinite(v) ? v : null);

/** @param {any} v @returns {string} */
export const string = (v) => (typeof v === 'string' ? v : '');

/** @param {any} v @returns {any[]} */
export const list = (v) => (Array.isArray(v) ? v : []);

/** @param {any} v @returns {any[]} */
export const objects = (v) => list(v).filter((x) => x && typeof x === 'object');

/** @param {any} v @returns {string[]} */
export const strings = (v) => list(v).filter((s) => typeof s === 'string' && s !== '');
