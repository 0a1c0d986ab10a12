// The first screen, and the room that a phone has.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerWith, ask, browse, card, cards, ended, fake, fitsItsWidth, open, page, shot } from './browser.mjs';
import { startServer } from './server.mjs';

let server;
browse(async () => {
  server = await startServer();
  return [server.stop];
});

const box = (selector) => page.locator(selector).boundingBox();
const labels = () => page.locator('#examples small').allInnerTexts();
const screens = { desktop: { width: 1440, height: 900 }, tablet: { width: 820, height: 1180 }, phone: { width: 390, height: 844 } };

test('the first screen belongs to the question', async () => {
  for (const [name, viewport] of Object.entries(screens)) {
    await page.setViewportSize(viewport);
    await open(server);
    const { y, height } = await box('#question');
    assert.ok(height > 60, `${name}: the box is large: ${height}`);
    assert.ok(y > viewport.height / 4 && y + height < 0.7 * viewport.height, `${name}: it is in the middle: ${y}`);
    for (const other of ['#history', '#panels', '#engine-body', '#method-hint']) assert.ok(await page.locator(other).isHidden(), `${name}: ${other} leaves it the room`);
    assert.match(await page.locator('#words').innerText(), /^lutra-tiny-l solves short counting stories/, 'the model is named, and what it is for');
    await fitsItsWidth();
    await shot(`first-${name}`);
  }
  await answerWith('Yes.');
  await ask('Is it?');
  await ended();
  const { y, height } = await box('#composer');
  assert.equal(Math.round(y + height), screens.phone.height, 'then it is below the conversation');
  assert.ok(await page.locator('#examples').isHidden());
});

test('examples suit the model', async () => {
  const kinds = { 'lutra-tiny-s': 'Three steps, one answer', smollm2: 'Explain', 'qwen2.5-coder-1.5b': 'Write', 'sentence-encoder': 'Explain', codellama: 'Write' };
  await fake('**/v1/models', 200, cards(...Object.keys(kinds).map((id) => card(id, { demo: id === 'lutra-tiny-s', methods: ['none'] }))));
  await open(server);
  for (const [id, first] of Object.entries(kinds)) {
    await page.locator('#model').selectOption(id);
    const shown = await labels();
    assert.deepEqual([shown.length, shown[0], shown.includes('Find the fault')], [4, first, first === 'Write'], id);
    assert.ok((await page.locator('#words').innerText()).startsWith(id));
  }
});

test('on a phone the bars leave the conversation its room, and nothing is lost', async () => {
  await page.setViewportSize(screens.phone);
  await open(server);
  await answerWith('Yes. '.repeat(400));
  await ask('Is it?');
  await ended();
  const [top, composer] = [await box('.top'), await box('#composer')];
  assert.ok(top.height + composer.height <= 120, `${top.height} + ${composer.height} px`);
  assert.ok((await box('#scroll')).height >= screens.phone.height - 120);
  await shot('phone-bars');
  await page.locator('#question').fill('one\ntwo\nthree');
  assert.ok((await box('#composer')).height > composer.height + 40, 'the box grows with what is written');
  await page.locator('#question').fill('');
  assert.ok(await page.locator('#method').isHidden());
  await page.locator('#show-plan').click();
  for (const part of ['#method', '#compare']) assert.ok(await page.locator(part).isVisible(), part);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'method');
  await page.locator('#method').selectOption('beam_search');
  await page.locator('#compare').click();
  await page.locator('#rivals button').waitFor();
  await fitsItsWidth();
  await shot('phone-method');
  await page.locator('#show-plan').click();
  assert.ok(await page.locator('#method').isHidden());
  assert.equal(await page.locator('#show-plan.set').count(), 1, 'a method that is set shows');
  await page.locator('#show-panels').click();
  for (const part of ['#settings', '#pareto', '#engine', '#panels > a']) assert.ok(await page.locator(part).isVisible(), part);
  await shot('phone-menu');
});
