// Tools of servers of the Model Context Protocol, by way of the server's relay.
import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ask, browse, call, closePanels, complaints, ended, fitsItsWidth, lastAnswer, open, page, panel, phone, press, reload, script, shot } from './browser.mjs';
import { startMCP } from './mcpserver.mjs';
import { startServer } from './server.mjs';

let server, tools;
browse(async () => {
  tools = await startMCP();
  const config = join(mkdtempSync(join(tmpdir(), 'lutra-mcp-')), 'config.yaml');
  writeFileSync(config, `server:\n  mcp_servers:\n    docs: {url: "${tools.url}", headers: {Authorization: Bearer upstream}}\n    away: {url: "http://127.0.0.1:1/"}\n`);
  server = await startServer('--config', config);
  return [server.stop, tools.stop];
});

async function offer() {
  await panel();
  await page.locator('#servers .check', { hasText: 'docs' }).click();
  await page.locator('#servers summary', { hasText: '3 tools' }).click();
}

test('tools of a server are listed, offered, asked for and called', async () => {
  await open(server);
  await offer();
  assert.deepEqual(await page.locator('#servers li label').allInnerTexts(), ['Echo', 'fail', 'slow.one'], 'both pages; no name with a space');
  assert.equal(await page.locator('#servers b').count(), 0, 'a description is text');
  await page.locator('#servers li .check', { hasText: 'fail' }).click();
  await shot('mcp-settings');
  const requests = await script([...call('docs_echo', '{"words":"<i>hi</i>"}')], [{ content: 'Said.' }]);
  const before = tools.heard.length;
  await ask('Say hi');
  await page.locator('.calls', { hasText: 'waits for you' }).waitFor();
  assert.deepEqual(requests[0].tools.map((t) => t.function.name), ['docs_echo', 'docs_slow_one']);
  assert.equal(tools.heard.length, before, 'nothing runs unasked');
  await shot('mcp-asks');
  await press('Run once');
  await ended();
  assert.equal(await lastAnswer(), 'Said.');
  assert.equal(requests[1].messages[2].content, '<i>hi</i>\n[image/png: not shown]');
  assert.equal(await page.locator('.calls i').count(), 0, 'a result is text');
  const asked = tools.heard.find((m) => m.method === 'tools/call');
  assert.deepEqual(asked.params, { name: 'echo', arguments: { words: '<i>hi</i>' } });
  assert.equal(asked.headers['mcp-protocol-version'], '2025-06-18');
  assert.equal(asked.headers.authorization, 'Bearer upstream');
  assert.equal(asked.headers.cookie, undefined);
  assert.ok(tools.heard.some((m) => m.id === 'p1' && m.result), 'a ping is answered');

  // A server that has forgotten the session is asked in another one.
  tools.forget();
  await script([...call('docs_echo', '{"words":"more"}')], [{ content: 'Again.' }]);
  await ask('And again');
  await press('Always in this conversation');
  await ended();
  assert.equal(await page.locator('.exchange:last-child .calls pre').nth(1).textContent(), 'more\n[image/png: not shown]');
  complaints.splice(0).forEach((c) => assert.match(c, /404/));

  await reload();
  const later = await script([{ content: 'Yes.' }]);
  await ask('Still there?');
  await ended();
  assert.deepEqual(later[0].tools.map((t) => t.function.name), ['docs_echo', 'docs_slow_one'], 'what is set is kept');
});

test('what a tool or a server refuses goes to the model, and a call that is stopped is cancelled', async () => {
  await open(server);
  await offer();
  const requests = await script([...call('docs_fail', '{"words":"soft"}', 'a'), ...call('docs_fail', '{"words":"hard"}', 'b', 1)], [{ content: 'Pity.' }]);
  await ask('Fail');
  await press('Always in this conversation');
  await ended();
  assert.deepEqual(requests[1].messages.slice(2).map((m) => m.content), ['Not today.', 'Error: It cannot be.']);
  await page.locator('.calls', { hasText: 'failed' }).waitFor();
  await script([...call('docs_slow_one', '{"words":"x"}')]);
  await ask('Wait');
  await press('Run once');
  await page.waitForFunction(() => !document.querySelector('.calls [role=group]'));
  while (!tools.heard.some((m) => m.params?.name === 'slow.one')) await page.waitForTimeout(20);
  await press('Stop');
  await ended();
  assert.match(await page.locator('.exchange:last-child .meta').innerText(), /stopped/);
  const { id } = tools.heard.find((m) => m.params?.name === 'slow.one');
  while (!tools.heard.some((m) => m.method === 'notifications/cancelled' && m.params.requestId === id)) await page.waitForTimeout(20);
});

test('a server that cannot be reached is named, and tools fit a phone', async () => {
  await open(server);
  await page.setViewportSize(phone);
  await offer();
  await page.locator('#servers .check', { hasText: 'away' }).click();
  await page.locator('#servers .fault', { hasText: "'away' has not answered: it cannot be reached" }).waitFor();
  await fitsItsWidth();
  await page.locator('#servers').scrollIntoViewIfNeeded();
  await shot('mcp-phone');
  await closePanels();
  await ask('Anything?');
  await ended();
  assert.match(await page.locator('.exchange .error').innerText(), /MCP server 'away'/);
  complaints.splice(0).forEach((c) => assert.match(c, /502/));
});
