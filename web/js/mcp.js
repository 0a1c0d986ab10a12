// Tools of the servers of the Model Context Protocol (specification of 2025-06-18) that the
// page's own server relays to: a session with each, by the Streamable HTTP transport.

import { ApiError, relay } from './api.js';
import { list, objects, string } from './read.js';
import { events } from './sse.js';

/** @typedef {import('./toolset.js').Tool} Tool */
/** @typedef {{ server: string, tool: string, title: string, description: string, parameters: any }} Known */

const version = '2025-06-18';
/** Versions that a server may choose instead: what the page asks for is the same in them. */
const versions = [version, '2025-03-26', '2025-11-25'];
/** Pages of a list, tools of a server, characters of a schema, a description and a result. */
const most = { pages: 16, tools: 256, schema: 1 << 16, description: 4096, result: 100_000 };
/** JSON-RPC's code for what a client does not do. */
const notFound = -32601;

/** A server has answered with an error. */
class Refusal extends Error {}

/** @type {Map<string, Session>} */
const sessions = new Map();
/** What models are offered, by the names that they have there. @type {Map<string, Known>} */
const offered = new Map();

/** @param {string} server */
function session(server) {
  if (!sessions.has(server)) sessions.set(server, new Session(server));
  return /** @type {Session} */ (sessions.get(server));
}

/** The tools of a server. @param {string} server @returns {Promise<Known[]>} */
export const tools = (server) => session(server).tools();

/** The name of a tool where models are offered it. @param {Known} known */
export const nameOf = ({ server, tool }) => `${server}_${tool}`.replace(/[^\w-]/g, '_').slice(0, 64);

/** A name is that of a tool that was offered. @param {string} name */
export const known = (name) => offered.get(name);

/**
 * The tools of some servers as models are offered them. A server that is no longer configured has none.
 * @param {string[]} servers @param {string[]} off names that are not offered
 * @returns {Promise<Tool[]>}
 */
export async function offer(servers, off) {
  const all = await Promise.all(servers.map((server) => tools(server).catch((err) => {
    if (err.code === 'mcp_server_not_found') return [];
    throw err;
  })));
  offered.clear();
  for (const one of all.flat()) if (!off.includes(nameOf(one)) && !offered.has(nameOf(one))) offered.set(nameOf(one), one);
  return [...offered].map(([name, { description, parameters }]) => ({ type: 'function', function: { name, description, parameters } }));
}

/**
 * Calls a tool that was offered.
 * @param {string} name @param {any} given its arguments @param {AbortSignal} signal
 * @returns {Promise<{ text: string, failed: boolean }>}
 */
export async function callTool(name, given, signal) {
  const { server, tool } = /** @type {Known} */ (offered.get(name));
  const result = await session(server).request('tools/call', { name: tool, arguments: given }, signal);
  return { text: written(result), failed: result?.isError === true };
}

/** What a model reads of a result. @param {any} result */
function written(result) {
  const parts = objects(result?.content).map((part) => {
    if (part.type === 'text') return string(part.text);
    if (part.type === 'resource' && string(part.resource?.text)) return part.resource.text;
    if (part.type === 'resource_link') return `${string(part.name)} ${string(part.uri)}`.trim();
    return `[${string(part.mimeType) || string(part.resource?.mimeType) || string(part.type)}: not shown]`;
  });
  const text = parts.length || !result?.structuredContent ? parts.join('\n') : JSON.stringify(result.structuredContent);
  return text.length > most.result ? `${text.slice(0, most.result - 20)}\n[cut off]` : text;
}

class Session {
  #server;
  #id = '';
  #version = '';
  #numbers = 0;
  /** @type {Promise<void> | null} */
  #opened = null;
  /** @type {Promise<Known[]> | null} */
  #tools = null;

  /** @param {string} server */
  constructor(server) {
    this.#server = server;
    addEventListener('pagehide', () => this.#close());
  }

  /** @returns {Promise<Known[]>} */
  tools() {
    this.#tools ??= this.#list().catch((err) => {
      this.#tools = null;
      throw err;
    });
    return this.#tools;
  }

  async #list() {
    /** @type {Known[]} */
    const all = [];
    let cursor;
    for (let page = 0; page < most.pages && all.length < most.tools; page++) {
      const result = await this.request('tools/list', cursor ? { cursor } : {});
      for (const { name, title, annotations, description, inputSchema } of objects(list(result?.tools))) {
        const parameters = inputSchema && typeof inputSchema === 'object' ? inputSchema : {};
        if (!/^[^\s]{1,128}$/.test(string(name)) || JSON.stringify(parameters).length > most.schema) continue;
        all.push({ server: this.#server, tool: name, title: string(title) || string(annotations?.title) || name, description: string(description).slice(0, most.description), parameters });
      }
      cursor = string(result?.nextCursor);
      if (!cursor) break;
    }
    return all.slice(0, most.tools);
  }

  /**
   * Asks the server. One that has ended the session is asked in a new one.
   * @param {string} method @param {any} params @param {AbortSignal} [signal]
   */
  async request(method, params, signal) {
    for (let again = false; ; again = true) {
      this.#opened ??= this.#open().catch((err) => {
        this.#opened = null;
        throw err;
      });
      await this.#opened;
      try {
        return await this.#ask(method, params, signal);
      } catch (err) {
        if (again || !this.#id || !(err instanceof ApiError) || err.status !== 404) throw err;
        this.#id = this.#version = '';
        this.#opened = null;
      }
    }
  }

  async #open() {
    const { protocolVersion } = await this.#ask('initialize', { protocolVersion: version, capabilities: {}, clientInfo: { name: 'lutra-page', version: '1' } }) ?? {};
    if (!versions.includes(protocolVersion)) throw new Refusal(`it speaks version ${string(protocolVersion).slice(0, 32) || '?'} of the protocol, not ${version}`);
    this.#version = protocolVersion;
    await this.#post({ method: 'notifications/initialized' });
  }

  #close() {
    if (this.#id) this.#send({ method: 'DELETE', keepalive: true }).catch(() => {});
    this.#id = this.#version = '';
    this.#opened = null;
  }

  /** @param {RequestInit} init */
  #send(init) {
    return relay(this.#server, { ...init, headers: { ...init.headers, ...(this.#id ? { 'Mcp-Session-Id': this.#id } : {}), ...(this.#version ? { 'MCP-Protocol-Version': this.#version } : {}) } });
  }

  /** @param {any} message @param {AbortSignal} [signal] */
  #post(message, signal) {
    return this.#send({ method: 'POST', headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }, body: JSON.stringify({ jsonrpc: '2.0', ...message }), signal });
  }

  /** @param {string} method @param {any} params @param {AbortSignal} [signal] @returns {Promise<any>} */
  async #ask(method, params, signal) {
    const id = ++this.#numbers;
    try {
      const response = await this.#post({ id, method, params }, signal);
      if (method === 'initialize') this.#id = response.headers.get('Mcp-Session-Id') ?? '';
      if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) return answer(await response.json());
      for await (const data of events(/** @type {any} */ (response.body))) {
        const message = JSON.parse(data);
        if (message?.id === id && !message.method) return answer(message);
        this.#hear(message);
      }
      throw new Refusal('its answer has ended too early');
    } catch (err) {
      // That a connection ends is no message: the server would go on.
      if (signal?.aborted && this.#version) this.#post({ method: 'notifications/cancelled', params: { requestId: id } }).catch(() => {});
      throw err;
    }
  }

  /** Takes in what the server says unasked. @param {any} message */
  #hear(message) {
    if (message?.method === 'notifications/tools/list_changed') this.#tools = null;
    if (message?.method && message.id !== undefined) this.#post({ id: message.id, ...(message.method === 'ping' ? { result: {} } : { error: { code: notFound, message: 'Method not found' } }) }).catch(() => {});
  }
}

/** @param {any} message */
function answer(message) {
  if (message?.error) throw new Refusal(string(message.error.message).slice(0, 2000) || 'it has refused');
  return message?.result;
}
