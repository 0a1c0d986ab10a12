// The part of Prometheus' text format that the panel reads, and the rates between two
// samples.

/**
 * Sums and maxima by metric name over all label sets (models).
 * @typedef {Map<string, { sum: number, max: number }>} Sample
 *
 * @typedef {object} Reading
 * @property {number | null} fill share of the tile lanes that carried a token; null: there was no step
 * @property {number} tokens generated a second
 * @property {number} running sequences
 * @property {number} waiting sequences
 * @property {number} kv share of the fullest cache's blocks in use
 * @property {number | null} hits share of the looked-up prompt tokens that were cached; null: none were looked up yet
 */

/** @param {string} text @returns {Sample} */
export function parse(text) {
  /** @type {Sample} */
  const sample = new Map();
  for (const line of text.split('\n')) {
    const m = /^([a-zA-Z_:][\w:]*)(?:\{.*\})?\s+(\S+)/.exec(line);
    if (!m) continue;
    const value = Number(m[2]); // NaN for "+Inf" too, which no metric below has
    if (!Number.isFinite(value)) continue;
    const entry = sample.get(m[1]) ?? { sum: 0, max: 0 };
    entry.sum += value;
    entry.max = Math.max(entry.max, value);
    sample.set(m[1], entry);
  }
  return sample;
}

/**
 * @param {Sample} now
 * @param {Sample} before
 * @param {number} seconds between them
 * @returns {Reading}
 */
export function reading(now, before, seconds) {
  const value = (/** @type {string} */ name) => now.get(name)?.sum ?? 0;
  // A counter that fell belongs to a restarted server.
  const gain = (/** @type {string} */ name) => {
    const d = value(name) - (before.get(name)?.sum ?? 0);
    return d < 0 ? value(name) : d;
  };
  const lanes = gain('lutra_engine_lanes_total');
  const queries = value('lutra_prefix_cache_queries_total');
  return {
    fill: lanes > 0 ? gain('lutra_engine_tokens_total') / lanes : null,
    tokens: seconds > 0 ? gain('lutra_generation_tokens_total') / seconds : 0,
    running: value('lutra_num_requests_running'),
    waiting: value('lutra_num_requests_waiting'),
    kv: now.get('lutra_kv_cache_usage_ratio')?.max ?? 0,
    hits: queries > 0 ? value('lutra_prefix_cache_hits_total') / queries : null,
  };
}
