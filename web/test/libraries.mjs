// The page's libraries and the font of formulas: copies of what npm has under the versions and hashes of
// package-lock.json. `node libraries.mjs` writes web/libraries, with --check it compares.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const libraries = join(here, '../libraries');

/** Languages whose code is coloured. */
const languages = ['bash', 'c', 'cpp', 'csharp', 'css', 'diff', 'dockerfile', 'go', 'haskell', 'ini', 'java', 'javascript', 'json',
  'julia', 'kotlin', 'latex', 'lua', 'makefile', 'markdown', 'perl', 'php', 'python', 'r', 'ruby', 'rust', 'sql', 'swift', 'typescript',
  'xml', 'yaml'];

/** Files by where they go. @type {Record<string, string>} */
const files = {
  'marked/marked.esm.js': 'marked/lib/marked.esm.js',
  'marked/LICENSE': 'marked/LICENSE',
  'temml/temml.min.js': 'temml/dist/temml.min.js',
  'temml/Temml-Local.css': 'temml/dist/Temml-Local.css',
  'temml/Temml.woff2': 'temml/dist/Temml.woff2',
  'temml/LICENSE': 'temml/LICENSE',
  'noto/NotoSansMath.woff2': '@fontsource/noto-sans-math/files/noto-sans-math-latin-400-normal.woff2', // all of it, whatever the name says
  'noto/LICENSE': '@fontsource/noto-sans-math/LICENSE',
  'highlight/core.min.js': '@highlightjs/cdn-assets/es/core.min.js',
  'highlight/LICENSE': '@highlightjs/cdn-assets/LICENSE',
  ...Object.fromEntries(languages.map((l) => [`highlight/languages/${l}.min.js`, `@highlightjs/cdn-assets/es/languages/${l}.min.js`])),
};

/** What is added to a file: Temml's small build is no module. @type {Record<string, string>} */
const added = { 'temml/temml.min.js': '\nexport default temml;\n' };

const made = new Map(Object.entries(files).sort().map(([name, from]) => {
  const data = readFileSync(join(here, 'node_modules', from));
  return [name, added[name] ? Buffer.concat([data, Buffer.from(added[name])]) : data];
}));
made.set('SHA256SUMS', Buffer.from([...made].map(([name, data]) => `${createHash('sha256').update(data).digest('hex')}  ${name}\n`).join('')));

if (process.argv.includes('--check')) {
  const differ = [...made].filter(([name, data]) => { try { return !readFileSync(join(libraries, name)).equals(data); } catch { return true; } });
  if (differ.length) {
    console.error(`web/libraries differs from npm's packages; node libraries.mjs writes it: ${differ.map(([name]) => name)}`);
    process.exitCode = 1;
  }
} else {
  rmSync(libraries, { recursive: true, force: true });
  for (const [name, data] of made) {
    mkdirSync(dirname(join(libraries, name)), { recursive: true });
    writeFileSync(join(libraries, name), data);
  }
}
