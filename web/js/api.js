// Everything the page says to the server: its public API and nothing else.

import { events } from './sse.js';
import { recall, remember } from './store.js';

/**
 * @typedef {{ id: string, root?: string, task?: string }} ModelCard
 * @typedef {{ role: string, content: string }} ChatMessage
 * @typedef {{ method: string, n?: number, width?: number, include?: string[] }} ScalingRequest
 * @typedef {{ model: string, messages: ChatMessage[], temperature?: number, max_tokens?: number, seed?: number,
 *   test_time_scaling?: ScalingRequest }} ChatRequest
 * @typedef {{ prompt_tokens: number, completion_tokens: number, prompt_tokens_details?: { cached_tokens?: number } }} Usage
 */

/** A refusal, in the server's own words. */
export class ApiError extends Error {
  /** @param {number} status @param {{ message?: string, code?: string | null }} [body] @param {number} [retryAfter] seconds */
  constructor(status, body, retryAfter) {
    super(body?.message || (status ? `The server answered with status ${status}.` : 'The server cannot be reached.'));
    this.status = status; // 0: no answer at all
    this.code = body?.code ?? '';
    this.retryAfter = retryAfter ?? 0;
  }
}

/** @param {string} value */
export const setKey = (value) => remember('key', value || null);

/** Addresses are relative to the page's: a proxy may serve it under any path. @param {string} path */
const at = (path) => new URL(path, document.baseURI);

/** @param {string} path @param {RequestInit} [init] */
async function call(path, init = {}) {
  const headers = new Headers(init.headers);
  const key = recall('key', '');
  if (key) headers.set('Authorization', `Bearer ${key}`);
  let response;
  try {
    response = await fetch(at(path), { ...init, headers });
  } catch (err) {
    if (init.signal?.aborted) throw err;
    throw new ApiError(0);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

/** @param {Response} response */
async function refusal(response) {
  const body = await response.json().catch(() => null); // a proxy's page, perhaps
  return new ApiError(response.status, body?.error, Number(response.headers.get('Retry-After')));
}

/** @returns {Promise<ModelCard[]>} */
export async function models() {
  const list = await (await call('v1/models')).json();
  return Array.isArray(list?.data) ? list.data : [];
}

/** @param {AbortSignal} [signal] @returns {Promise<string>} Prometheus' text */
export async function metrics(signal) {
  return (await call('metrics', { signal })).text();
}

/**
 * The chunks of a streamed answer.
 * @param {ChatRequest} request
 * @param {AbortSignal} signal ends the request on the server, too
 * @returns {AsyncGenerator<any>}
 */
export async function* chat(request, signal) {
  const response = await call('v1/chat/completions', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  let ended = false;
  try {
    for await (const data of events(/** @type {any} */ (response.body))) {
      if (data === '[DONE]') {
        ended = true;
        return;
      }
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ApiError(response.status, chunk.error);
      yield chunk;
    }
  } catch (err) {
    if (signal.aborted || err instanceof ApiError) throw err;
    throw new ApiError(response.status, { message: 'The connection broke before the answer was whole.' });
  }
  if (!ended) throw new ApiError(response.status, { message: 'The stream ended before the answer was whole.' });
}
