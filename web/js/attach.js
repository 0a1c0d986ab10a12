// Text files that go with a question. Chosen, dropped or pasted, they stand before it, each
// between fences, with its name.

import { byId, el } from './dom.js';
import { t } from './words.js';

/** How many files, and how many bytes of all. */
const mostFiles = 10, mostBytes = 256 * 1024;

/** @typedef {{ name: string, text: string, bytes: number }} Attached */

/**
 * Takes files from now on.
 * @returns {{ any: () => boolean, with: (question: string) => string }} whether there are some; the question with them, which are then gone
 */
export function openAttachments() {
  /** @type {Attached[]} */
  let files = [];
  /** @type {HTMLInputElement} */ const input = byId('attach-files');
  const list = byId('attached'), fault = byId('attach-fault');

  const show = () => {
    list.hidden = !files.length;
    list.replaceChildren(...files.map((file) => el('li', {}, el('button', { type: 'button', class: 'quiet', 'aria-label': t`Remove ${file.name}`, on: {
      click() {
        files = files.filter((other) => other !== file);
        show();
        byId('attach').focus();
      },
    } }, file.name, el('small', {}, size(file.bytes)), ' ×'))));
  };

  /** @param {Iterable<File>} chosen */
  const add = async (chosen) => {
    const faults = [];
    for (const file of chosen) {
      const before = files.reduce((sum, { bytes }) => sum + bytes, 0);
      if (files.length >= mostFiles) faults.push(t`${file.name} is left out: a question takes ${mostFiles} files.`);
      else if (before + file.size > mostBytes) faults.push(t`${file.name} is left out: the files of a question take ${size(mostBytes)} in all.`);
      else {
        const text = await textOf(file);
        if (text === null) faults.push(t`${file.name} is no text.`);
        else files.push({ name: file.name, text, bytes: file.size });
      }
    }
    fault.textContent = faults.slice(0, 3).join(' ');
    fault.hidden = !faults.length;
    show();
  };

  byId('attach').addEventListener('click', () => input.click());
  input.addEventListener('change', async () => {
    await add(input.files ?? []);
    input.value = ''; // so that the same file can be chosen again
    byId('question').focus();
  });
  const dragged = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes('Files');
  document.addEventListener('dragover', (event) => {
    if (!dragged(event)) return;
    event.preventDefault();
    byId('composer').classList.add('dropping');
  });
  document.addEventListener('dragleave', (event) => { if (!event.relatedTarget) byId('composer').classList.remove('dropping'); });
  document.addEventListener('drop', (event) => {
    byId('composer').classList.remove('dropping');
    if (!dragged(event)) return;
    event.preventDefault();
    add([...event.dataTransfer?.files ?? []]);
  });
  byId('question').addEventListener('paste', (/** @type {ClipboardEvent} */ event) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    add([...event.clipboardData.files]);
  });

  return {
    any: () => files.length > 0,
    with(question) {
      const parts = files.map(quoted);
      files = [];
      fault.hidden = true;
      show();
      return [...parts, question].filter(Boolean).join('\n\n');
    },
  };
}

/** Its text, in UTF-8; null: it has none. @param {File} file */
async function textOf(file) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
    return text.includes('\0') ? null : text.replaceAll('\r\n', '\n');
  } catch {
    return null;
  }
}

/** Fences are longer than any within. @param {Attached} file */
function quoted({ name, text }) {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`{3,}/g), (m) => m[0].length));
  const fence = '`'.repeat(longest + 1);
  return `${name.replace(/[\n\r`]/g, ' ')}:\n${fence}\n${text.replace(/\n$/, '')}\n${fence}`;
}

/** @param {number} bytes */
const size = (bytes) => (bytes < 1024 ? `${bytes} B` : `${Math.round(bytes / 1024).toLocaleString('en')} kB`);
