// Makes web/icons of icon.svg; `.ci/web icons` runs it.
import { mkdirSync, readFileSync } from 'node:fs';
import { launch } from './browser.mjs';

const web = new URL('..', import.meta.url).pathname;
const drawing = `data:image/svg+xml;base64,${readFileSync(`${web}icon.svg`).toString('base64')}`;
mkdirSync(`${web}icons`, { recursive: true });
const { newContext, close } = await launch();
try {
  const page = await (await newContext()).newPage();
  /** Systems cut maskable icons down to a circle of 80 %. */
  for (const [name, size, padding] of [['192', 192, 0], ['512', 512, 0], ['maskable', 512, 64]]) {
    await page.setViewportSize({ width: size, height: size });
    await page.setContent(`<body style="margin:0;background:${padding ? '#0f6b63' : 'transparent'}"><img src="${drawing}" style="display:block;box-sizing:border-box;padding:${padding}px" width="${size}" height="${size}">`);
    await page.screenshot({ path: `${web}icons/${name}.png`, omitBackground: true });
  }
} finally {
  await close();
}
