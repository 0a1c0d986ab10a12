// Every request of the page: the server's public API and nothing else.

import { events } from './sse.js';
import { keep, kept, recall, remember } from './store.js';
import { t } from './words.js';

/**
 * @typedef {{ id: string, root?: string, task?: string, max_model_len?: number, lutra?: any, status?: { value?: string, failed?: boolean } }} ModelCard
 * @typedef {{ role: string, content: string, reasoning_content?: string, tool_calls?: any[], tool_call_id?: string }} ChatMessage
 * @typedef {{ method?: string, n?: number, width?: number, verifier?: string, include?: string[] }} ScalingRequest
 * @typedef {{ model: string, messages: ChatMessage[], truncation?: string, temperature?: number, max_tokens?: number,
 *   top_p?: number, top_k?: number, min_p?: number, seed?: number, stop?: string[], chat_template_kwargs?: { enable_thinking: boolean },
 *   continue_final_message?: boolean, repetition_detection?: Record<string, number>, tools?: import('./toolset.js').Tool[],
 *   response_format?: { type: 'json_schema', json_schema: { name: string, schema: any } }, test_time_scaling?: ScalingRequest }} ChatRequest
 *
 * What /readyz says: `ready`, or why not. A server that is not ready may answer for some of its models.
 * @typedef {{ ready: boolean, soon: boolean, message: string, loading: { model: string, progress: number | null }[] }} Readiness `soon`: by itself
 */

/** An error that the server answered with, in its own words. */
export class ApiError extends Error {
  /** @param {number} status @param {{ message?: string, code?: string | null }} [body] @param {number} [retryAfter] seconds */
  constructor(status, body, retryAfter) {
    super(body?.message || (status ? t`The server answered with status ${status}.` : t`The server cannot be reached.`));
    this.status = status; // 0: no answer at all
    this.code = body?.code ?? '';
    this.retryAfter = retryAfter ?? 0;
  }

  /** The server is not there, or not ready yet: the request can be repeated later. */
  get unavailable() { return this.status === 0 || this.status === 503 && this.code === 'unavailable'; }
}

/** The key that requests have, of this tab or kept on this device; empty: none. @returns {string} */
export const key = () => recall('key', '') || kept('key', '');

/** @param {string} value empty: none @param {boolean} [keeps] on this device, until it is forgotten */
export function setKey(value, keeps = false) {
  remember('key', value || null);
  keep('key', keeps && value ? value : null);
}

/** Addresses are relative to the page's: a proxy may serve it under any path. @param {string} path */
const at = (path) => new URL(path, document.baseURI);

/** @param {string} path @param {RequestInit} [init] */
async function call(path, init = {}) {
  const headers = new Headers(init.headers);
  if (key()) headers.set('Authorization', `Bearer ${key()}`);
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

/** What the plans of models were measured to reach. @returns {Promise<any[]>} */
export async function profiles() {
  const list = await (await call('v1/profiles')).json();
  return Array.isArray(list?.data) ? list.data : [];
}

/**
 * Asks the server whether it is ready. It throws when there is no server.
 * @returns {Promise<Readiness>}
 */
export async function readiness() {
  const response = await fetch(at('readyz'), { cache: 'no-store' });
  if (response.ok) return { ready: true, soon: true, message: '', loading: [] };
  const body = await response.json(); // throws for a proxy's page, which is no server's answer
  const loading = (Array.isArray(body?.loading) ? body.loading : []).slice(0, 64).map((/** @type {any} */ m) => ({
    model: String(m?.model ?? ''),
    progress: Number.isFinite(m?.progress) ? Math.min(1, Math.max(0, m.progress)) : null,
  }));
  return { ready: false, soon: loading.length > 0 || body?.error?.code === 'unavailable', message: String(body?.error?.message ?? ''), loading };
}

/** How many messages the model was not shown. @param {any} chunk @returns {number | null} null: the chunk does not say */
export function droppedMessages(chunk) {
  const n = chunk.truncation?.dropped_messages;
  return Number.isInteger(n) && n >= 0 ? n : null;
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
    throw new ApiError(response.status, { message: t`The connection broke before the answer was complete.` });
  }
  if (!ended) throw new ApiError(response.status, { message: t`The stream ended before the answer was complete.` });
}
