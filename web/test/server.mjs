// Starts the real binary (LUTRA_BIN) on a free port.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/**
 * @param {...string} flags of `lutra serve`
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>}
 */
export async function startServer(...flags) {
  const binary = process.env.LUTRA_BIN;
  if (!binary) throw new Error('LUTRA_BIN must name the binary to test; .ci/web sets it');
  const child = spawn(binary, ['serve', '--addr', '127.0.0.1:0', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  const log = [];
  const url = await new Promise((resolve, reject) => {
    exited.then(() => reject(new Error(`the server ended:\n${log.join('\n')}`)));
    createInterface({ input: child.stderr }).on('line', (line) => {
      log.push(line);
      const ready = /ready on .*?(http:\/\/[^/\s"]+)/.exec(line);
      if (ready) resolve(ready[1]);
    });
  });
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
