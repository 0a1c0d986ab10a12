// Prints what node:test reports as pytest does, and adds the client's line to the table.
import { appendFileSync, readFileSync } from 'node:fs';

export default async function* table(events) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.details?.type === 'suite') continue;
    const kind = data.skip !== undefined ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed';
    counts[kind]++;
    if (kind === 'failed') yield `FAILED ${data.name}\n${data.details.error.cause?.stack ?? data.details.error}\n`;
  }
  yield `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`;
  if (process.env.LUTRA_TABLE) {
    const { version } = JSON.parse(readFileSync('node_modules/ai/package.json', 'utf8'));
    appendFileSync(process.env.LUTRA_TABLE, `ai\t${version}\t${counts.passed}\t${counts.failed}\t${counts.skipped}\n`);
  }
}
