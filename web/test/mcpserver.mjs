// A server of the Model Context Protocol for tests, by its Streamable HTTP transport: sessions,
// answers as JSON and as events, a list of two pages.
import { once } from 'node:events';
import { createServer } from 'node:http';

const schema = { type: 'object', properties: { words: { type: 'string' } }, required: ['words'] };
const pages = [
  [{ name: 'echo', title: 'Echo', description: 'Says <b>it</b> again.', inputSchema: schema }, { name: 'fail', description: 'Fails.', inputSchema: schema }],
  [{ name: 'slow.one', description: 'Never answers.', inputSchema: schema }, { name: 'odd name', inputSchema: schema }],
];

/**
 * @returns {Promise<{ url: string, heard: any[], forget: () => void, stop: () => Promise<void> }>} `heard`: the messages,
 *   each with the headers that it came with; `forget` ends all sessions
 */
export async function startMCP() {
  const heard = [], sessions = new Set();
  let made = 0;
  const server = createServer(async (req, res) => {
    let body = '';
    for await (const piece of req) body += piece;
    const message = body ? JSON.parse(body) : { method: req.method };
    heard.push({ ...message, headers: req.headers });
    const id = req.headers['mcp-session-id'];
    const json = (answer, headers = {}) => res.writeHead(200, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer }));
    if (message.method === 'initialize') {
      sessions.add(`s${++made}`);
      return json({ result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'test', version: '1' } } }, { 'Mcp-Session-Id': `s${made}` });
    }
    if (!sessions.has(id)) return void res.writeHead(404, { 'Content-Type': 'text/plain' }).end('no such session');
    if (message.id === undefined || !message.method) return void res.writeHead(202).end();
    if (message.method === 'tools/list') {
      const page = Number(message.params.cursor ?? 0);
      return json({ result: { tools: pages[page], ...(page + 1 < pages.length ? { nextCursor: String(page + 1) } : {}) } });
    }
    const { name, arguments: { words } } = message.params;
    if (name === 'slow.one') return;
    if (name === 'fail') return json(words === 'hard' ? { error: { code: -32602, message: 'It cannot be.' } } : { result: { content: [{ type: 'text', text: 'Not today.' }], isError: true } });
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (const data of [{ method: 'ping', id: 'p1' }, { method: 'notifications/progress', params: {} }, { id: message.id, result: { content: [{ type: 'text', text: words }, { type: 'image', mimeType: 'image/png', data: 'AA==' }] } }]) {
      res.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...data })}\n\n`);
    }
    res.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}/mcp`,
    heard,
    forget: () => sessions.clear(),
    async stop() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
