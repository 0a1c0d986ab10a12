// Makes the picture of the page that the documents show: a beam search for an
// example that a single answer gets wrong. `.ci/web picture` runs it.
import { closePanels, launch, panel } from './browser.mjs';
import { startServer } from './server.mjs';

const [file] = process.argv.slice(2);
const server = await startServer();
const { newContext, close } = await launch();
try {
  const page = await (await newContext()).newPage();
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.goto(server.url);
  await page.locator('#model:enabled').waitFor();
  await panel();
  await page.locator('[name=seed]').fill('1'); // the same picture every time, but for the times in it
  await page.locator('[name=temperature]').fill('1.5'); // candidates that differ
  await closePanels();
  await page.locator('#examples button').nth(2).click();
  await page.locator('.exchange:last-child [aria-busy=false] section.own > .text .result').waitFor();
  await page.locator('#engine-brief', { hasText: 'tokens/s' }).waitFor();
  await page.mouse.move(0, 0); // off what it would highlight
  await page.screenshot({ path: file, animations: 'disabled' });
} finally {
  await close();
  await server.stop();
}
