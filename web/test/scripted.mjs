// A chat API that streams a script, chunk by chunk as the test releases them:
// what the page draws must not depend on how long an answer takes.
import { once } from 'node:events';
import { createServer } from 'node:http';

/**
 * @param {any[]} chunks the first is sent at once, each of the others waits for `next`
 * @returns {Promise<{ url: string, requests: any[], next: (count?: number) => void, stop: () => Promise<void> }>}
 */
export async function startScripted(chunks) {
  const requests = [];
  let allowed = 0;
  const waiting = new Set();
  const server = createServer(async (req, res) => {
    let body = '';
    for await (const piece of req) body += piece;
    requests.push(JSON.parse(body));
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Access-Control-Allow-Origin': '*' });
    res.on('close', () => waiting.forEach((wake) => wake()));
    for (const [i, chunk] of chunks.entries()) {
      while (i > 0 && allowed === 0 && !res.closed) {
        await new Promise((wake) => waiting.add(wake));
        waiting.clear();
      }
      if (res.closed) return; // the client has gone, and needs no permission
      if (i > 0) allowed--;
      res.write(`data: ${JSON.stringify(chunk)}\n\n`);
    }
    allowed = 0;
    res.end('data: [DONE]\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    next(count = 1) {
      allowed += count;
      waiting.forEach((wake) => wake());
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A chunk of a chat completion. */
export function delta(content, choice = {}) {
  return { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'lutra-tiny-l', choices: [{ index: 0, delta: content, finish_reason: null, ...choice }] };
}
