// Text files that go with a question.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerWith, ask, browse, ended, fitsItsWidth, open, page, phone, shot } from './browser.mjs';
import { startServer } from './server.mjs';

let server;

browse(async () => {
  server = await startServer();
  return [server.stop];
});

const file = (name, text) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(text) });
const choose = (...files) => page.locator('#attach-files').setInputFiles(files);

test('files that are chosen or dropped stand before the question, with their names', async () => {
  await open(server);
  const requests = await answerWith('Read.');
  await choose(file('notes.txt', 'one\r\ntwo\n'), file('fence.md', '````\nx\n````'), file('gone.txt', 'gone'));
  await page.getByRole('button', { name: 'Remove gone.txt' }).click();
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File(['dropped'], 'drop.csv'));
    document.querySelector('main').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  });
  await page.locator('#attached li').nth(2).waitFor();
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('attached-phone');
  await ask('Compare them');
  await ended();
  assert.equal(requests[0].messages.at(-1).content,
    'notes.txt:\n```\none\ntwo\n```\n\nfence.md:\n`````\n````\nx\n````\n`````\n\ndrop.csv:\n```\ndropped\n```\n\nCompare them');
  assert.ok(await page.locator('#attached').isHidden(), 'the next question goes without');
});

test('files that are no text, too large or too many are refused by name', async () => {
  await open(server);
  await choose(file('picture.png', Buffer.from([0x89, 0x50, 0, 1])), file('large.txt', 'x'.repeat(300_000)), file('zero.bin', 'a\0b'));
  const fault = page.locator('#attach-fault');
  await fault.waitFor();
  assert.equal(await fault.innerText(), 'picture.png is no text. large.txt is left out: the files of a question take 256 kB in all. zero.bin is no text.');
  await choose(...Array.from({ length: 11 }, (_, i) => file(`${i}.txt`, 'x')));
  await page.locator('#attached li').nth(9).waitFor();
  assert.equal(await fault.innerText(), '10.txt is left out: a question takes 10 files.');
  assert.equal(await page.locator('#attached li').count(), 10);
});
